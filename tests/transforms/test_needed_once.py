"""Compute_at where each element is needed once, however the consumers write its index; a reduction moves with its start."""

from __future__ import annotations

import pytest

from explorer.errors import IllegalSchedule, TransformError
from explorer.schedule import Schedule
from tests.properties.programs import define
from tests.properties.trial import Trial

FLAT = """@ex.program
def f(x: ex.f32[{wide}], y: ex.f32[M]):
    t = ex.local(ex.f32, {wide})
    for i in range({wide}):
        t[i] = x[i] * 2.0
    for c in range(M):
        y[c] = {read}
"""
SHAPED = """@ex.program
def f(x: ex.f32[8 * M], y: ex.f32[8 * M]):
    t = ex.local(ex.f32, M, 8)
    for i in range(M):
        for j in range(8):
            t[i, j] = x[8 * i + j] * 2.0
    for v in range(8 * M):
        y[v] = t[v // 8, v % 8] + 1.0
"""
MIRRORED = """@ex.program
def f(x: ex.f32[M, N], y: ex.f32[M, N]):
    t = ex.local(ex.f32, M, N)
    for i in range(M):
        for j in range(N):
            t[i, j] = x[i, j] * 2.0
    for c in range(M):
        for d in range(N):
            y[c, d] = t[M - 1 - c, N - 1 - d]
"""
ONCE = """@ex.program
def f(x: ex.f32[M + 1], y: ex.f32[M]):
    t = ex.local(ex.f32, M + 1)
    for i in range(M + 1):
        t[i] = x[i] * 2.0
    for o in range(1):
        for c in range(M):
            y[c] = t[c] + t[c + 1]
"""
TURNED = """@ex.program
def f(x: ex.f32[M, N], y: ex.f32[N, M]):
    t = ex.local(ex.f32, M, N)
    for i in range(M):
        for j in range(N):
            t[i, j] = x[i, j] + 1.0
    for c in range(N):
        for d in range(M):
            y[c, d] = t[d, c] * 2.0
"""
ROWS = """@ex.program
def f(x: ex.f32[M, N], y: ex.f32[M, N]):
    t = ex.local(ex.f32, M)
    for i in range(M):
        t[i] = 0.0
        for k in range(N):
            t[i] += x[i, k]
    for i in range(M):
        for j in range(N):
            y[i, j] = x[i, j] / (t[i] * t[i] + 1.0)
"""


def schedule(text: str) -> Schedule:
    made = define(text, "needed.py")
    return made.schedule(**{name: {"M": 5, "N": 4}[name] for name in made.sizes})


def flat(wide: str, read: str) -> Schedule:
    return schedule(FLAT.format(wide=wide, read=read))


def right(made: Schedule) -> bool:
    trial = Trial(shrinks=0)
    trial.conclude("needed", made)
    trial.flush()
    assert not trial.tally.found, "\n".join(map(str, trial.tally.found))
    return bool(trial.tally.pairs)


@pytest.mark.parametrize(("make", "cells"), [
    (lambda: schedule(SHAPED).split("v", 8).compute_at("t", "v"), (8,)),
    (lambda: schedule(SHAPED).split("v", 4).compute_at("t", "v"), (4,)),
    (lambda: schedule(SHAPED).compute_at("t", "v"), ()),
    (lambda: flat("2 * M", "t[2*c] + t[2*c + 1]").compute_at("t", "c"), (2,)),
    (lambda: flat("2 * M", "t[2*c + 1]").compute_at("t", "c"), (1,)),
    (lambda: flat("3 * M", "t[3*c + 2] * t[3*c]").split("c", 2).compute_at("t", "c"), (6,)),
    (lambda: flat("2 * M", "t[2*M - 1 - 2*c] + t[2*M - 2 - 2*c]").compute_at("t", "c"), (2,)),
    (lambda: flat("M", "t[M - 1 - c]").compute_at("t", "c"), ()),
    (lambda: flat("M", "t[M - 1 - c]").split("c", 2).compute_at("t", "c"), (2,)),
    (lambda: schedule(MIRRORED).compute_at("t", "d"), ()),
    (lambda: schedule(ONCE).compute_at("t", "o"), (6,)),
    (lambda: schedule(TURNED).coalesce(("c", "d")).split("c", 4).compute_at("t", "c"), None),
    (lambda: schedule(TURNED).coalesce(("c", "d")).compute_at("t", "c"), None),
])
def test_each_element_is_needed_once(make, cells: tuple[int, ...] | None) -> None:
    made = make()
    assert right(made)
    if cells is not None:
        assert right(made.contract("t"))
        assert made.contract("t").plan.buffer_of["t"].shape == cells


def test_a_row_that_is_read_backwards_moves_as_it_is_made() -> None:
    assert right(schedule(MIRRORED).compute_at("t", "c"))


@pytest.mark.parametrize("read", ["t[c] + t[c + 1]", "t[2*c] + t[2*c + 2]", "t[c] + t[2*M - c]", "t[c // 2]"])
def test_what_two_iterations_need_stays(read: str) -> None:
    with pytest.raises(TransformError, match="needed in more than one iteration of c"):
        flat("2 * M + 1", read).compute_at("t", "c")


def test_elements_that_no_iteration_needs_are_missed() -> None:
    """Each instance runs once: also one whose element nobody reads."""
    with pytest.raises(IllegalSchedule, match="would never run"):
        flat("2 * M + 4", "t[2*c] + t[2*c + 1]").compute_at("t", "c")


def test_a_reduction_brings_its_start() -> None:
    made = schedule(ROWS).compute_at("t", "i_2")
    assert [leaf.id for leaf, above, _ in made.plan.leaves if above[0].id == "i_2"] == ["S0", "S1", "S2"]
    assert made.contract("t").plan.buffer_of["t"].shape == ()
    assert right(made.contract("t"))
    assert right(schedule(ROWS).split("i_2", 2).compute_at("t", "i_2").contract("t"))


def test_a_statement_comes_alone() -> None:
    made = schedule(ROWS).compute_at("S1", "i_2")
    assert [above[0].id for _, above, _ in made.plan.leaves] == ["i", "i_2", "i_2"]
    assert right(made)
    with pytest.raises(TransformError, match="S1 already runs inside of i_2"):
        made.compute_at("S1", "i_2")
    assert made.compute_at("t", "i_2").plan.leaves[0][1][0].id == "i_2"
