"""Steps without a judgement after each: the result is judged, and where that refuses, everything is done again step by step.

A strategy takes dozens of steps for a kernel, stitching hundreds for the schemes of the edges, and nearly all of them are legal.
So what has to be legal is taken on trust, what may be illegal is asked, and what one kernel took before is taken again where the
kernel comes up again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Self, TypeVar

from ..errors import ScheduleError, TransformError
from ..ir.finding import Verdict
from ..ir.plan import Plan
from ..poly.judge import judge
from ..schedule import Schedule, Step

S = TypeVar("S", bound=Schedule)
Known = dict[tuple[Plan, Step, bool], tuple[Verdict, Plan | None]]
TRUSTED = ("unroll", "vectorize", "bind", "stage", "contract", "collect")
"""Steps that keep the order, whose own preconditions nearly always decide: of 1,400 for four fused cases none was illegal."""


@dataclass(frozen=True)
class Trusting(Schedule):
    """A schedule that takes the steps it is told to take when their own preconditions hold.

    Attributes
    ----------
    stopped : list of Plan
        Where a step did not apply.
    known : dict
        Plan and step to what came of it, asked or taken: other schemes begin with the same steps.
    origin : Schedule, optional
        What the work began with; one that refuses to be made again (a task that is to stop) ends the work at its next step.
    """

    stopped: list[Plan] = field(default_factory=list, compare=False)
    known: Known = field(default_factory=dict, compare=False)
    origin: Schedule | None = field(default=None, compare=False)

    def apply(self, step: Step) -> Self:
        """The schedule after one more step, not judged."""
        asked = self.known.get((self.plan, step, True))
        verdict, plan = asked if asked and asked[0] else self._looked_up(step, False)
        if verdict and plan is not None:
            return replace(self, plan=plan, steps=(*self.steps, step))
        self.stopped.append(self.plan)
        raise TransformError(f"{step} does not apply: {verdict.what}", why=verdict.why, hint=verdict.hint, step=step,
                             verdict=verdict)

    def try_step(self, step: Step) -> tuple[Verdict, Plan | None]:
        """What a judged step would say, where it may be illegal."""
        return self._looked_up(step, getattr(step, "name", "") not in TRUSTED)

    def again(self, steps: tuple[Step, ...], made: frozenset[str]) -> Self | None:
        """The schedule after some steps; None where one does not apply, or they make other names than they did."""
        before, new = _names(self.plan), self
        for step in steps if not made & before else ():
            verdict, plan = new._looked_up(step, False)
            if not verdict or plan is None:
                return None
            new = replace(new, plan=plan, steps=(*new.steps, step))
        return new if _names(new.plan) - before == made else None

    def _looked_up(self, step: Step, judged: bool) -> tuple[Verdict, Plan | None]:
        key = (self.plan, step, judged)
        if self.origin is not None:
            replace(self.origin)
        if key not in self.known:
            if judged:
                self.known[key] = super().try_step(step)
            else:
                verdict = step.check(self.plan)
                self.known[key] = verdict, step.rewrite(self.plan) if verdict else None
        return self.known[key]


def swiftly(schedule: S, work: Callable[[Schedule], Schedule], known: Known | None = None) -> S:
    """What some work makes of a schedule, judged once; step by step where that does not come out legal.

    Within work that is judged as a whole, nothing is judged here.

    Raises
    ------
    TransformError, IllegalSchedule
        As the work does when every step is judged.
    """
    known = {} if known is None else known
    if isinstance(schedule, Trusting):
        return work(schedule)  # type: ignore[return-value]
    trusting = Trusting(schedule.source, schedule.plan, schedule.steps, known=known, origin=schedule)
    try:
        made = work(trusting)
        if made is trusting:
            return schedule
        if judge(made.plan).legal:
            return replace(schedule, plan=made.plan, steps=made.steps)
    except ScheduleError:
        if all(judge(plan).legal for plan in trusting.stopped):
            raise
    return work(schedule)  # type: ignore[return-value]


@dataclass
class Memory:
    """What was made before.

    Attributes
    ----------
    made : dict
        Plan to schedule, or the refusal.
    spread : dict
        What a kernel was, with what was wanted of it, to the steps that it took and the names that they made.
    steps : dict
        Single steps, tried or taken.
    """

    made: dict[Hashable, Schedule | ScheduleError] = field(default_factory=dict)
    spread: dict[Hashable, tuple[tuple[Step, ...], frozenset[str]]] = field(default_factory=dict)
    steps: Known = field(default_factory=dict)

    def again(self, schedule: S, key: Hashable, work: Callable[[S], S]) -> S:
        """Take the steps that the work took before, where they apply and make the same names; else, and where steps are judged,
        do it.
        """
        known = self.spread.get(key)
        if known is not None and isinstance(schedule, Trusting) and (taken := schedule.again(*known)):
            return taken
        made = work(schedule)
        self.spread[key] = made.steps[len(schedule.steps) :], _names(made.plan) - _names(schedule.plan)
        return made


def _names(plan: Plan) -> frozenset[str]:
    """Of nodes, arrays, statements and buffers."""
    return frozenset((*plan.ids, *plan.array_of, *plan.statement_of, *plan.buffer_of))
