"""Copies that write again what is there: a loop that changes nothing of them is distributed and shifted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from explorer.errors import IllegalSchedule
from explorer.schedule import Schedule
from tests.properties.programs import define
from tests.properties.trial import Trial

OUTER = """@ex.program
def f(x: ex.f32[{shape}], w: ex.f32[M], y: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            y[i, j] = x[{index}] * w[i]
"""
CHANGED = """@ex.program
def f(x: ex.f32[N], y: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            y[i, j] = x[j]
        x[0] = 2.0
"""


def outer(index: str = "j", shape: str = "N") -> Schedule:
    return define(OUTER.format(index=index, shape=shape), "outer.py").schedule(M=4, N=5)


def right(*schedules: Schedule) -> None:
    trial = Trial(shrinks=0)
    for n, schedule in enumerate(schedules):
        trial.conclude(f"again {n}", schedule)
    trial.flush()
    assert not trial.tally.found, "\n".join(map(str, trial.tally.found))
    assert len(trial.tally.pairs) == len(schedules)


MOVES: dict[str, Callable[[Schedule], Schedule]] = {
    "distribute": lambda s: s.distribute("i", after="x_s"),
    "later": lambda s: s.shift("i", 1, of="S0"),
    "earlier": lambda s: s.shift("i", -1, of="x_s"),
}


@pytest.mark.parametrize("space", ["shared", "register"])
@pytest.mark.parametrize("move", MOVES)
def test_a_copy_that_does_not_change_with_the_loop(move: str, space: str) -> None:
    s = outer().stage("x", "i", space=space)
    made = MOVES[move](s) if space == "shared" else {
        "distribute": lambda: s.distribute("i", after="x_r"), "later": lambda: s.shift("i", 2, of="S0"),
        "earlier": lambda: s.shift("i", -1, of="x_r")}[move]()
    right(made)
    if space == "shared":
        right(MOVES[move](outer().bind("j", "thread.x").stage("x", "i")))


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize(("index", "shape"), [("i, j", "M, N"), ("j + i", "M + N")])
def test_a_copy_that_changes_is_overwritten(index: str, shape: str, move: str) -> None:
    with pytest.raises(IllegalSchedule) as refused:
        MOVES[move](outer(index, shape).stage("x", "i"))
    assert refused.value.finding.question == "flow"


def test_a_copy_of_what_the_loop_changes() -> None:
    s = define(CHANGED, "changed.py").schedule(M=4, N=5).stage("x", "i")
    with pytest.raises(IllegalSchedule):
        s.distribute("i", after="x_s")
