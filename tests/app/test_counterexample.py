"""Refused steps, executed: the wrong cell of several refusals, and honesty where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import explorer as ex
from explorer import workloads
from explorer.ir.interpret import interpret
from explorer.kernel.interpreter import Order, execute
from explorer.kernel.launches import plan_ir, standing
from explorer.run.counterexample.counterexample import counterexample
from explorer.run.counterexample.result import Counterexample
from explorer.run.inputs.arguments import poisoned, seeded_arrays
from explorer.steps.calls import read_call
from explorer.strategies.default import default
from tests.views.pages import Page

from .front import front, schedule

M, N = ex.sizes("M N")
ORDERS = (Order(), Order(sequence="descending"), Order("block"), Order("block", "descending"), Order(early=True),
          Order("warp", "shuffled", 1), Order("thread", "shuffled", 2))


@ex.program
def dead(x: ex.f32[N], y: ex.f32[N]) -> None:
    for i in range(N):
        y[i] = x[i]
    for i in range(N):
        y[i] = 2.0 * x[i]
    for i in range(N):
        y[i] = 3.0 * x[i]


@ex.program
def column_sum(x: ex.f32[M, N], y: ex.f32[N]) -> None:
    for j in range(N):
        y[j] = 0.0
    for i in range(M):
        for j in range(N):
            y[j] += x[i, j]


@ex.program
def mirror(x: ex.f32[N], y: ex.f32[N]) -> None:
    t = ex.local(ex.f32, N)
    for i in range(N):
        t[i] = x[i]
    for i in range(N):
        y[i] = t[N - 1 - i]


def found(start: ex.Schedule, step: str) -> Counterexample:
    return counterexample(start, read_call(step), again=lambda sizes: start.at(**sizes))


@pytest.mark.parametrize(("name", "steps", "step", "question"), [
    ("softmax", [], "fuse('k_2', 'k_3')", "order"),
    ("softmax", [], "shift('i', 1, of='k')", "order"),
    ("gauss_seidel", [], "reverse('i')", "order"),
    ("gauss_seidel", [], "interchange('t', 'i')", "order"),
    ("gauss_seidel", [], "bind('i', 'thread.x')", "order"),
    ("jacobi2d", [], "bind('t', 'block.x')", "order"),
    ("matmul", [], "stage('total', 'i')", "order"),
    ("sum_rows", [], "bind('k', 'thread.x', count=32)", "obligation"),
    ("sum_rows", [], "bind('k', 'block.x')", "order"),
    ("sum_all", ["split('i', 8)"], "bind('i.i', 'thread.x')", "obligation"),
])
def test_illegal_orders_are_caught(name: str, steps: list[str], step: str, question: str) -> None:
    typical = {n: min(v, 4096) for n, v in workloads.get(name).typical.items()}
    start = schedule(name, *steps, **typical)
    result = found(start, step)
    assert result.caught, result
    assert result.finding
    assert result.finding.question == question
    assert all(value <= typical[size] for size, value in result.sizes)
    assert_really_wrong(start, step, result)


def assert_really_wrong(start: ex.Schedule, step: str, result: Counterexample) -> None:
    """The cell differs from the reference of the workload itself, and every smaller size is right."""
    sizes = dict(result.sizes)
    program = start.at(**sizes).source
    held = seeded_arrays(program, 0)
    given = {a.name: held[a.name] if a.role != "out" else poisoned(a) for a in program.parameters}
    expected = np.asarray(interpret(program, given, exact=True)[result.array], float)
    assert float(result.expected) == pytest.approx(float(expected[result.element]), rel=1e-5, abs=1e-30)
    assert result.got != result.expected
    marked = [row for row in result.cells if row[3] == "wrong"]
    assert marked[0][0].startswith(result.array)
    assert marked[0][1:3] == (result.got, result.expected)
    for name, value in sizes.items():
        if value > 1:
            fewer = {**sizes, name: value - 1}
            less = found(start.at(**fewer), step) if _applies(start, step, fewer) else None
            assert less is None or not less.caught or less.sizes != tuple(fewer.items())


def _applies(start: ex.Schedule, step: str, sizes: dict[str, int]) -> bool:
    try:
        return bool(read_call(step).check(start.at(**sizes).plan))
    except ex.ExplorerError:
        return False


def test_a_flow_refusal_is_caught() -> None:
    start = mirror.schedule(N=64)
    for step in ("split('i', 8)", "split('i_2', 8)", "bind('i.i', 'thread.x')", "bind('i_2.i', 'thread.x')"):
        start = start.apply(read_call(step))
    result = found(start, "contract('t', 'register')")
    assert result.caught, result
    assert result.finding
    assert result.finding.question == "flow"
    assert result.array == "y"
    assert result.got != result.expected


def test_values_that_nobody_uses_are_not_called_wrong() -> None:
    start = dead.schedule(N=8)
    result = found(start, "fuse('i_2', 'i')")
    assert not result.caught
    result = found(start.apply(read_call("fuse('i', 'i_2')")), "distribute('i', 'S0')")
    assert not result.caught


def test_softmax_does_not_depend_on_its_peak() -> None:
    result = counterexample(schedule("softmax", M=8, N=8), read_call("bind('k', 'block.x')"),
                            again=lambda sizes: schedule("softmax", **sizes), seconds=2)
    assert not result.caught
    assert "no output cell is wrong" in result.verdict
    assert result.finding
    assert result.finding.array == "peak"


def test_what_has_no_order_to_run_says_so() -> None:
    start = schedule("softmax", M=8, N=8)
    assert "cannot be made at all" in found(start, "vectorize('i')").verdict
    assert "is legal" in found(start, "split('k', 4)").verdict
    assert not found(start, "split('k', 4)").caught


def test_without_a_definition_only_its_own_sizes_are_tried() -> None:
    start = schedule("softmax", M=3, N=4)
    result = counterexample(start, read_call("fuse('k_2', 'k_3')"))
    assert result.caught
    assert dict(result.sizes) == {"M": 3, "N": 4}
    big = counterexample(schedule("softmax", M=3000, N=4000), read_call("fuse('k_2', 'k_3')"))
    assert not big.caught
    assert "too large" in big.verdict


def test_the_answer_of_the_front_end() -> None:
    f = front("softmax", M=64, N=64)
    data: dict[str, Any] = f.data("counterexample", call="fuse('k_2', 'k_3')")
    assert data["caught"]
    told = Page(data["html"]).text
    assert "run atM = 1, N = 2" in told
    assert "in the program: " in told
    assert "in the refused order: 1S4[0, 0]" in told, "the first of the refused order is the later of the program"
    assert "in the end y[0, 0] is 1" in told
    assert ["✗ 1" in cell for cell in data["html"].split('class="ocell')[1:]] == [True, False]
    assert "✓ right" in told


@pytest.mark.parametrize("name", workloads.names())
def test_legal_plans_are_right_in_every_order(name: str) -> None:
    start = schedule(name)
    for shown in (start, default(start, threads=4)):
        program = shown.source
        held = seeded_arrays(program, 0)
        given = {a.name: held[a.name] if a.role != "out" else poisoned(a) for a in program.parameters}
        expected = interpret(program, given, exact=True)
        for order in ORDERS:
            run = execute(shown.plan, held, order, exact=True)
            assert not run.hazards, f"{name}, {order}: {run.hazards[0]}"
            got = run.outputs
            for key, value in expected.items():
                np.testing.assert_allclose(np.asarray(got[key], float), np.asarray(value, float), rtol=1e-9, atol=1e-12,
                                           err_msg=f"{name}: {key}, {order}")


@pytest.mark.parametrize("steps", [
    ["bind('i', 'block.x')", "bind('j', 'thread.x')", "contract('total', 'register')", "split('k', 4)", "stage('a', 'k')",
     "stage('b', 'k')", "pipeline('k', 2)"],
    ["bind('i', 'thread.y')", "bind('k', 'thread.x')", "collect('total', 'shared')"],
    ["split('k', 4)", "rfactor('total', 'k.i')"],
])
def test_storage_collection_and_pipelines_are_right_in_every_order(steps: list[str]) -> None:
    start = schedule("matmul", *steps, M=3, N=4, K=9)
    held = seeded_arrays(start.source, 0)
    want = held["a"].astype(float) @ held["b"].astype(float)
    for order in ORDERS:
        run = execute(start.plan, held, order, exact=True)
        assert not run.hazards
        np.testing.assert_allclose(run.outputs["c"], want, rtol=1e-9)


def test_a_race_shows_a_lost_update() -> None:
    plan = read_call("bind('i', 'thread.x')").rewrite(column_sum.schedule(M=3, N=1).plan)
    held = {"x": np.array([[1.0], [2.0], [4.0]], np.float32)}
    ir = plan_ir(plan, barriers=standing)
    last, first = (execute(ir, held, order) for order in (Order(), Order(sequence="descending")))
    assert (last.outputs["y"].item(), first.outputs["y"].item()) == (4.0, 1.0)
    assert [h.kind for h in last.hazards] == ["race"]
    assert str(last.hazards[0].source).startswith("S1[")


def test_a_slot_too_few_shows_where_copies_land_early() -> None:
    start = schedule("matmul", "bind('i', 'block.x')", "bind('j', 'thread.x')", "split('k', 2)", "stage('a', 'k')", M=2, N=2, K=9)
    answer = found(start, "pipeline('k', 3, buffers=2)")
    assert answer.caught
    assert "landing at once" in answer.order
    assert not found(start, "pipeline('k', 3)").caught


def test_the_wrong_cell_is_in_the_row_of_the_pair() -> None:
    """At seed 0 the first of two elements is the larger one, so that one row alone shows nothing on those inputs."""
    from examples.softmax import softmax

    fused = read_call("fuse('k', 'j')")
    found = counterexample(softmax.schedule(M=64, N=1000), fused, again=lambda sizes: softmax.schedule(**sizes))
    assert dict(found.sizes) == {"M": 1, "N": 2}
    assert found.finding
    assert found.finding.source
    assert found.element[0] == found.finding.source.point[0] == 0
    assert [name for name, _ in found.trace] == ["S5[0, 0]"], "what is told is of the inputs that were run"
    assert found.inputs[0][1].count("=") == 2
