"""Programs as whole-array NumPy: right for every workload, refused where there is a recurrence, timed in the run pane."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import explorer as ex
from explorer import workloads
from explorer.app.dispatcher import Dispatcher
from explorer.app.session import Session
from explorer.errors import DeviceError
from explorer.ir.interpret import interpret
from explorer.run.baselines import vectorised as module
from explorer.run.baselines.vectorised import vectorised
from explorer.run.inputs.arguments import poisoned, seeded_arrays, widened
from tests.views.pages import Page

from .front import Front, schedule

M, N = ex.sizes("M N")


@ex.program
def edges(x: ex.f32[N, N], y: ex.f32[N, N], z: ex.f32[N]) -> None:
    for i in range(N):
        z[i] = 0.0
        for j in range(i + 1):
            y[j, i] = 2.0 * x[i, j]
            if i + j < N - 2:
                z[i] += x[i + j, i] * x[j, i]
        for j in range(i + 1, N):
            y[j, i] = x[i, i]


@ex.program
def blend(x: ex.f32[M, N], w: ex.f32[N], y: ex.f32[M]) -> None:
    for i in range(M):
        y[i] = 0.0
        for k in range(N):
            y[i] += ex.sqrt(x[i, k] * x[i, k] + w[k] * w[k])


@ex.program
def running(x: ex.f32[M, N], y: ex.f32[M, N]) -> None:
    for i in range(M):
        for k in range(N):
            y[i, k] = x[i, k]
        for k in range(N - 1):
            y[i, k + 1] = y[i, k + 1] + y[i, k]


@ex.program
def back(x: ex.f32[N], y: ex.f32[N], z: ex.f32[N + 1]) -> None:
    for i in range(N):
        y[i] = x[i] + z[i]
        z[i + 1] = y[i]


def assert_right(start: ex.Schedule) -> None:
    function = vectorised(start)
    assert not isinstance(function, str), function
    program = start.source
    held = seeded_arrays(program, 3)
    given = {a.name: widened(a, held[a.name]) for a in program.parameters if a.role != "out"}
    before = {name: value.copy() for name, value in given.items()}
    plain = {a.name: held[a.name] if a.role != "out" else poisoned(a) for a in program.parameters}
    expected = interpret(program, plain, exact=True)
    got: Any = function(given, dict(program.sizes))
    assert got.keys() == {a.name for a in program.parameters if a.role != "in"}
    for name, value in got.items():
        np.testing.assert_allclose(np.asarray(value, float), np.asarray(expected[name], float), rtol=1e-10, atol=1e-12)
    for name, value in before.items():
        np.testing.assert_array_equal(given[name], value, err_msg="the inputs are kept")


@pytest.mark.parametrize("name", workloads.names())
def test_every_workload_is_right(name: str) -> None:
    assert_right(schedule(name))


@pytest.mark.parametrize("start", [edges.schedule(N=7), blend.schedule(M=5, N=6), running.schedule(M=3, N=9), back.schedule(N=8)],
                         ids=["edges", "blend", "running", "back"])
def test_guards_triangles_and_recurrences_are_right(start: ex.Schedule) -> None:
    assert_right(start)


def test_a_long_recurrence_is_no_array_program() -> None:
    assert vectorised(running.schedule(M=64, N=65)) != ""
    why = vectorised(running.schedule(M=100, N=101))
    assert isinstance(why, str)
    assert "must run one iteration after the other, 10,000 in all" in why
    assert isinstance(vectorised(schedule("gauss_seidel", H=80, W=80, T=2)), str)


def test_matrix_products_need_no_array_of_all_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CELLS", 6 * 5 * 4 - 1)
    assert_right(schedule("matmul", M=6, N=5, K=4))
    start = blend.schedule(M=12, N=10)
    function = vectorised(start)
    assert not isinstance(function, str)
    with pytest.raises(DeviceError, match="120 cells at once"):
        function({a: np.ones(s) for a, s in (("x", (12, 10)), ("w", 10))}, {})


def ran(start: ex.Schedule) -> dict[str, Any]:
    front = Front(Session(start))
    assert isinstance(front.dispatcher, Dispatcher)
    front.ask("run", wait=True, time=True)
    return front.panes["run"]


def test_the_run_pane_has_a_peer_for_a_program_of_ones_own() -> None:
    pane = ran(blend.schedule(M=6, N=8))
    assert pane["status"] == "done"
    (row,) = Page(pane["html"]).tables[0][1:]
    assert row[0] == "NumPy (vectorised, in float64)"
    assert re.fullmatch(r"[\d.]+ (ns|µs|ms|s)", row[-1])
    assert "note no library peer: blend is not the text of a program in explorer.workloads" in Page(pane["html"]).text


def test_the_run_pane_says_why_there_is_no_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PYTHON_LOOPS", 10)
    pane = ran(running.schedule(M=6, N=8))
    assert not Page(pane["html"]).tables
    assert "NumPy: not timed: i, k_2 must run one iteration after the other" in Page(pane["html"]).text


@pytest.mark.parametrize("sizes", [{"M": 0, "N": 7, "K": 5}, {"M": 3, "N": 7, "K": 0}, {"M": 1, "N": 7, "K": 1}])
def test_axes_of_no_element_or_one(sizes: dict[str, int]) -> None:
    start = workloads.get("matmul").definition.schedule(**sizes)
    function = vectorised(start)
    assert callable(function)
    inputs = {a.name: np.ones(a.shape) for a in start.source.arrays if a.role == "in"}
    (result,) = function(inputs, sizes).values()
    assert result.shape == (sizes["M"], sizes["N"])
    assert (result == sizes["K"]).all()
