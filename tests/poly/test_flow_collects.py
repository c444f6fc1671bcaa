"""Question flow, of registers that a collect updates in every thread: who needs the old value, and where."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.ir.interpret import interpret
from explorer.ir.plan import Plan
from explorer.poly.flow import check_flow
from explorer.schedule import Schedule
from explorer.transforms.contract import Contract
from explorer.workloads.max_columns import max_columns
from tests.poly.brute import wrong_reads
from tests.properties.programs import define
from tests.properties.witness import doubt
from tests.run_plan import run_plan

TEXT = """@ex.program
def f(x: ex.f32[M, N], y: ex.f32[N]):
    t = ex.local(ex.f32, N)
    for j in range(N):
        t[j] = j
    for i in range(M):
        for j in range(N):
            if {}:
                t[j] += x[i, j]
    for j in range(N):
        y[j] = 2 * t[j]
"""


def contracted(s: Schedule, array: str) -> Plan:
    """The plan with the array in registers, legal or not."""
    _, plan = s.try_step(Contract(array))
    assert plan is not None
    return plan


def confirmed(plan: Plan) -> list[str]:
    """The sinks of all findings; each reads a wrong value, as two enumerations see it."""
    wrong = wrong_reads(plan) | wrong_reads(plan, reverse=True)
    found = check_flow(plan)
    assert bool(found) == bool(wrong)
    for finding in found:
        assert finding.sink is not None
        assert (finding.sink.statement, finding.sink.point) in wrong, str(finding)
        assert not doubt(plan, finding)
    return [str(finding.sink) for finding in found]


def added(condition: str, how: str, role: str, reads: str, sizes: tuple[int, int] = (5, 5)) -> Schedule:
    s = define(TEXT.format(condition), "added.py").schedule(M=sizes[0], N=sizes[1])
    s = s.bind("j", role).bind("i", role).collect("S1", how)
    return s.bind("j_3", reads) if reads else s


@pytest.mark.parametrize("how", ["shared", "shuffle"])
def test_the_witness_of_a_collect_is_an_instance_in_a_thread_without_the_value(how: str) -> None:
    """The smallest instance was named, whose own thread has it (seed 77, chain 141)."""
    s = max_columns.schedule(M=7, N=5).bind("j", "thread.y").accumulate("y").bind("i", "thread.y", count=3).collect("S1", how)
    plan = contracted(s, "y_acc")
    assert confirmed(plan) == ["S1_combine_2[0, 1]", "S1_combine[1]"]
    combined, read = (finding.why for finding in check_flow(plan))
    assert "S0[0] runs in thread.y 0, S1_combine_2[0, 1] in thread.y 1" in combined
    assert "S0[1] runs in thread.y 1, S1_combine[1] in thread 0" in read  # it writes memory: not every thread runs it


@pytest.mark.parametrize("how", ["shared", "shuffle"])
@pytest.mark.parametrize(("role", "sizes"), [("thread.x", (5, 5)), ("thread.y", (4, 6)), ("lane", (6, 4)), ("thread.x", (40, 3))])
def test_no_other_thread_needs_the_old_value(how: str, role: str, sizes: tuple[int, int]) -> None:
    """Each element is added to by the thread that began it and reads it; what the others have is never seen."""
    s = added("i == j", how, role, role, sizes)
    assert confirmed(contracted(s, "t")) == []
    arrays = {"x": np.arange(sizes[0] * sizes[1], dtype=np.float32).reshape(sizes), "y": np.zeros(sizes[1], np.float32)}
    s = s.contract("t")
    for seed in range(4):
        np.testing.assert_allclose(run_plan(s.plan, arrays, seed)["y"], interpret(s.source, arrays)["y"])


@pytest.mark.parametrize(("condition", "role", "reads", "sinks"), [
    ("i == j", "thread.x", "", ["S2[1]"]),  # thread 0 reads all elements, and began one
    ("i == j", "thread.x", "thread.y", ["S2[1]"]),  # thread.x 0 of each thread.y
    ("i + 1 == j", "thread.x", "thread.x", ["S1[0, 1]"]),
    ("i >= j", "thread.y", "thread.y", ["S1[1, 0]"]),
    ("i >= 0", "lane", "lane", ["S1[1, 0]"]),
])
def test_who_updates_or_reads_elsewhere_is_named(condition: str, role: str, reads: str, sinks: list[str]) -> None:
    assert confirmed(contracted(added(condition, "shared", role, reads), "t")) == sinks
