"""The judge of the IR, alone, notices the errors of a pass; what it lets through does the same when it is run."""

from __future__ import annotations

from collections import Counter

import pytest

from explorer import strategies, workloads
from explorer.errors import ScheduleError
from explorer.kernel import passes
from explorer.kernel.launches import PlanIR, plan_ir
from explorer.kernel.traverse import map_bodies
from explorer.kernel.validate import judged

from .ir import MORE, RULES, Body, ir_mutants, no_barrier, swapped
from .test_ir_mutants import SUBJECTS, noticed


def faults(ir: PlanIR) -> list[str]:
    """What is wrong with the IR, by exact relations."""
    return [found.what for launch in ir.launches for found in judged(launch)]


def test_mutants_of_the_ir_are_judged_wrong() -> None:
    made: Counter[str] = Counter()
    for name, (make, _) in SUBJECTS.items():
        s = make()
        assert faults(plan_ir(s.plan)) == [], name
        for mutant in ir_mutants(plan_ir(s.plan), RULES | MORE):
            made[mutant.kind] += 1
            assert faults(mutant.ir), (name, mutant.kind, mutant.at)
    assert made.keys() == (RULES | MORE).keys()


def test_what_is_let_through_does_the_same() -> None:
    """Swaps of steps that may be swapped, and guards that others imply: where the judge sees no error, running sees none."""
    through = 0
    for make, _ in SUBJECTS.values():
        s = make()
        for mutant in ir_mutants(plan_ir(s.plan), {"neighbours are swapped": swapped}):
            if not faults(mutant.ir):
                through += 1
                assert not noticed(mutant.ir, s), mutant.at
    assert through


def test_a_pass_that_breaks_a_schedule_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def early(body: Body, context: object) -> Body:
        """A barrier less."""
        return next(no_barrier(body), tuple(map_bodies(n, lambda inner: early(inner, context)) for n in body))

    monkeypatch.setattr(passes, "PASSES", (*passes.PASSES, early))
    s = SUBJECTS["tiles"][0]()
    with pytest.raises(ScheduleError, match="no barrier stands between"):
        _ = s.cuda


def test_a_later_phase_waits_for_the_scratch_array_of_an_earlier_one() -> None:
    s = strategies.auto(workloads.get("max_all").definition.schedule(M=4096, N=4096))
    ir = plan_ir(s.plan)
    assert len(ir.launches[0].bodies) == 2, "two phases of one launch"
    assert faults(ir) == []
    waits = [m for m in ir_mutants(ir, {"no barrier": no_barrier}) if "S1_combine_2" in m.at]
    assert waits
    assert all("earlier phase" in faults(m.ir)[0] for m in waits)
