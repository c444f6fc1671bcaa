"""Deferred legality check: a strategy's steps without a judgement after each; the result is judged.

A strategy takes dozens of steps for a kernel, stitching hundreds, and nearly all of them are legal.  Strategies take steps with
:func:`take` and :func:`ask`.  Inside :func:`judged_once` these do not judge what keeps the order, and remember what came of each
step: other choices of a strategy begin with the same steps.  Where the result is not legal, everything is done again with a
judgement after each step, so that the refusal is that of the step.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from ..errors import ScheduleError, TransformError
from ..ir.finding import Verdict
from ..ir.plan import Plan
from ..poly.judge import judge
from ..schedule import Schedule
from ..schedule.step import taken
from ..system import cancel
from ..transforms.base import Transform

Known = dict[tuple[Plan, Transform, bool], tuple[Verdict, Plan | None]]
"""What came of a step on a plan, judged or not."""
KEEPS_ORDER = ("unroll", "vectorize", "bind", "stage", "contract", "collect")
"""Steps that keep the order, whose own preconditions nearly always decide: of 1,400 for four fused cases none was illegal."""


@dataclass
class Deferral:
    """One deferred check under way.

    Attributes
    ----------
    known : dict
        Steps that were tried or taken.
    stopped : list of Plan
        Where a step did not apply.
    """

    known: Known
    stopped: list[Plan] = field(default_factory=list)

    def look_up(self, plan: Plan, step: Transform, judged: bool) -> tuple[Verdict, Plan | None]:
        """What comes of a step."""
        cancel.check()
        key = plan, step, judged
        if key not in self.known:
            self.known[key] = taken(plan, step, judged)
        return self.known[key]


_DEFERRAL: ContextVar[Deferral | None] = ContextVar("deferral", default=None)
"""The deferred check that this thread is in."""


def take(schedule: Schedule, step: Transform) -> Schedule:
    """The schedule after one more step; inside :func:`judged_once` it is not judged.

    Raises
    ------
    TransformError, IllegalSchedule
        If the step does not apply.
    """
    deferral = _DEFERRAL.get()
    if deferral is None:
        return schedule.apply(step)
    cancel.check()
    plan = schedule.plan
    judged = deferral.known.get((plan, step, True))
    verdict, new = judged if judged and judged[0] else deferral.look_up(plan, step, False)
    if verdict and new is not None:
        return replace(schedule, plan=new, steps=(*schedule.steps, step))
    deferral.stopped.append(plan)
    raise TransformError(f"{step} does not apply: {verdict.what}", why=verdict.why, hint=verdict.hint, step=step,
                         verdict=verdict)


def ask(schedule: Schedule, step: Transform) -> tuple[Verdict, Plan | None]:
    """Whether a step applies, and the plan after it; inside :func:`judged_once` it is judged where it may change the order."""
    deferral = _DEFERRAL.get()
    if deferral is None:
        return taken(schedule.plan, step)
    return deferral.look_up(schedule.plan, step, step.name not in KEEPS_ORDER)


def judged_once(schedule: Schedule, work: Callable[[Schedule], Schedule], known: Known | None = None) -> Schedule:
    """What some work makes of a schedule, judged at its end; step by step where that does not come out legal.

    Within work that is judged as a whole, nothing is judged here.

    Raises
    ------
    TransformError, IllegalSchedule
        As the work does when every step is judged.
    """
    if _DEFERRAL.get() is not None:
        return work(schedule)
    deferral = Deferral({} if known is None else known)
    token = _DEFERRAL.set(deferral)
    try:
        made = work(schedule)
        if made is schedule or judge(made.plan).legal:
            return made
    except ScheduleError:
        if all(judge(plan).legal for plan in deferral.stopped):
            raise
    finally:
        _DEFERRAL.reset(token)
    return work(schedule)


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
    spread: dict[Hashable, tuple[tuple[Transform, ...], frozenset[str]]] = field(default_factory=dict)
    steps: Known = field(default_factory=dict)

    def again(self, schedule: Schedule, key: Hashable, work: Callable[[Schedule], Schedule]) -> Schedule:
        """Take the steps that the work took before, where they apply and make the same names; else, and where steps are judged,
        do it.
        """
        known, deferral = self.spread.get(key), _DEFERRAL.get()
        if known is not None and deferral is not None and (same := _again(deferral, schedule, *known)):
            return same
        made = work(schedule)
        self.spread[key] = made.steps[len(schedule.steps) :], _names(made.plan) - _names(schedule.plan)
        return made


def _again(deferral: Deferral, schedule: Schedule, steps: tuple[Transform, ...], made: frozenset[str]) -> Schedule | None:
    """The schedule after some steps; None where one does not apply, or they make other names than they did."""
    before, new = _names(schedule.plan), schedule
    for step in steps if not made & before else ():
        verdict, plan = deferral.look_up(new.plan, step, False)
        if not verdict or plan is None:
            return None
        new = replace(new, plan=plan, steps=(*new.steps, step))
    return new if _names(new.plan) - before == made else None


def _names(plan: Plan) -> frozenset[str]:
    """Of nodes, arrays, statements and buffers."""
    return frozenset((*plan.ids, *plan.array_of, *plan.statement_of, *plan.buffer_of))
