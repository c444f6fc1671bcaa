"""Two statements that update one array by one operation: their updates of an element may change places, and nothing else may."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from explorer.errors import IllegalSchedule
from explorer.poly.dependence import analyse
from explorer.schedule import Schedule
from tests.properties.programs import define
from tests.properties.trial import Trial

TWICE = """@ex.program
def twice(x: ex.f32[M, N], z: ex.f32[M, N], y: ex.f32[M]):
    t = ex.local(ex.f32, M)
    for i in range(M):
        t[i] = 0.0
    for i in range(M):
        for k in range(N):
            t[i] += x[i, k]
    for i in range(M):
        for k in range(N):
            t[i] {second}
    for i in range(M):
        y[i] = t[i]
"""


def twice(second: str = "+= z[i, k]") -> Schedule:
    return define(TWICE.format(second=second), "twice.py").schedule(M=3, N=4)


def right(schedule: Schedule) -> bool:
    """The schedule runs, and computes what the program says."""
    trial = Trial(shrinks=0)
    trial.conclude("peers", schedule)
    trial.flush()
    assert not trial.tally.found, "\n".join(map(str, trial.tally.found))
    return bool(trial.tally.pairs)


def test_updates_of_two_statements_are_of_one_reduction() -> None:
    facts = analyse(twice().source)
    assert {(d.source, d.sink) for d in facts.reductions} == {("S1", "S1"), ("S2", "S2"), ("S1", "S2")}
    assert not any({d.source, d.sink} == {"S1", "S2"} for d in facts.ordered)
    assert {(f.source, f.sink) for f in facts.flow} >= {("S0", "S2"), ("S1", "S2")}


def joined(s: Schedule) -> Schedule:
    return s.fuse("i_2", "i_3").fuse("k", "k_2")


def swapped(s: Schedule) -> Schedule:
    return s.sequence("i_2", after="i_3")


@pytest.mark.parametrize("make", [
    joined,
    lambda s: joined(s).fuse("i", "i_2").fuse("i", "i_4").contract("t", "register").bind("i", "block.x"),
    swapped,
    lambda s: swapped(s).fuse("i", "i_3").fuse("i", "i_2").fuse("i", "i_4").contract("t", "shared").bind("k", "thread.x")
    .collect("S1", "atomic"),
    lambda s: joined(s).bind("k", "thread.x").collect("S1", "atomic").collect("S2", "atomic"),
    lambda s: joined(s).bind("k", "thread.x").collect("S1", "shuffle").collect("S2", "shared"),
])
def test_they_change_places(make: Callable[[Schedule], Schedule]) -> None:
    assert right(make(twice()))


@pytest.mark.parametrize("second", ["*= z[i, k]", "= max(t[i], z[i, k])", "+= z[i, k] * t[(i + 1) % M]"])
def test_other_operations_and_other_reads_keep_their_order(second: str) -> None:
    with pytest.raises(IllegalSchedule) as refused:
        twice(second).sequence("i_2", after="i_3")
    assert refused.value.finding.question == "order"


def test_across_blocks_they_still_meet() -> None:
    """Neither order is kept in one launch, so both have to be atomic."""
    s = twice().launch("twice", after="i").launch("twice.2", after="i_3").reverse("i_3")
    with pytest.raises(IllegalSchedule) as refused:
        s.bind("i_2", "block.x")
    assert refused.value.finding.kind == "reduction"
