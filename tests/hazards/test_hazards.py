"""Every hazard of pipelining is refused with a witness that enumeration confirms, or proved and then run correctly.

The runs are those of the CPU device: an asynchronous copy's bytes are poison until its wait, threads run in adversarial orders,
and accesses are checked.
"""

from __future__ import annotations

import pytest

from explorer.errors import IllegalSchedule
from explorer.ir.finding import Verdict
from explorer.ir.plan import Plan
from explorer.kernel.emit import emit
from explorer.poly.judge import judge
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from explorer.schedule import Schedule
from explorer.schedule.step import Step
from tests.properties.equal import difference
from tests.properties.witness import doubt

from .corpus import CORPUS, JOINS, Hazard

REFUSED = [h for h in (*CORPUS, *JOINS) if h.outcome != "proved"]
PROVED = [h for h in CORPUS if h.outcome == "proved"]
SEEDS = (0, 1, 2, 3)


def refused_plan(hazard: Hazard, patch: pytest.MonkeyPatch) -> Plan:
    """The plan that the refused step makes; the refusal is by the question that was foretold."""
    seen: list[tuple[Verdict, Plan | None]] = []
    try_step = Schedule.try_step

    def watched(schedule: Schedule, step: Step, **options: bool) -> tuple[Verdict, Plan | None]:
        seen.append(try_step(schedule, step, **options))
        return seen[-1]

    patch.setattr(Schedule, "try_step", watched)
    with pytest.raises(IllegalSchedule) as caught:
        hazard.make()
    plan = seen[-1][1]
    assert plan is not None
    assert caught.value.finding.question == hazard.outcome
    return plan


@pytest.mark.parametrize("hazard", REFUSED, ids=lambda h: h.name)
def test_refused_with_a_witness(hazard: Hazard, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = refused_plan(hazard, monkeypatch)
    findings = judge(plan).refusals
    assert findings
    assert [doubt(plan, f) for f in findings] == [""] * len(findings)


def test_proved_and_run_correctly() -> None:
    proved = [*PROVED, *(h for h in JOINS if h.outcome == "proved")]
    schedules = [h.make() for h in proved]
    assert not [h.name for h, s in zip(proved, schedules, strict=True) if s.obligations]
    device = CpuDevice(seeds=SEEDS)
    wrong = []
    for hazard, schedule, built in zip(proved, schedules, device.build_many([emit(s.plan) for s in schedules]), strict=True):
        arrays = seeded_arrays(schedule.source, 1)
        for seed, outputs in zip(SEEDS, device.run_seeds(built, arrays), strict=True):
            if found := difference(schedule.source, arrays, outputs):
                wrong.append(f"{hazard.name} (order {seed}): {found}\n{built.module.text}")
    assert not wrong, "\n\n".join(wrong)


def test_the_proved_ones_do_run_ahead() -> None:
    """Every proved schedule has a copy that runs ahead, and most of them are asynchronous."""
    plans = [h.make().plan for h in PROVED]
    assert all(any(x.endswith(".pro") for x in plan.loops) for plan in plans)
    assert sum(any(leaf.mechanism == "async" for leaf, _, _ in plan.leaves) for plan in plans) > len(plans) // 2


def test_names_are_told_apart() -> None:
    assert len({h.name for h in (*CORPUS, *JOINS)}) == len(CORPUS) + len(JOINS) >= 50
