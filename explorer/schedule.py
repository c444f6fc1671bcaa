"""A schedule: the user's program, the plan it has become, and the steps that made it.  Frozen; undo is keeping the old value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, Self

from .errors import IllegalSchedule, TransformError
from .ir.finding import Verdict
from .ir.plan import Plan, initial
from .ir.program import Program
from .poly.judge import Judgement, judge


class Step(Protocol):
    """What a schedule needs of a transformation; `str(step)` is the Python call that makes it."""

    def check(self, plan: Plan) -> Verdict:
        """Whether the step's own preconditions hold."""
        ...

    def rewrite(self, plan: Plan) -> Plan:
        """The plan after the step; called only where `check` says yes."""
        ...


@dataclass(frozen=True)
class Schedule:
    """A program and the legal plan that a sequence of transformations has made of it.

    Attributes
    ----------
    source : Program
        The user's program, with concrete sizes; what a run is verified against.
    plan : Plan
        What runs where, when, in which storage.
    steps : tuple of Step
        The transformations, in order; replaying them on `source` gives `plan`.
    """

    source: Program
    plan: Plan
    steps: tuple[Step, ...] = ()

    @classmethod
    def of(cls, program: Program) -> Self:
        """The schedule that runs `program` as written: one kernel, one thread."""
        return cls(program, initial(program))

    @cached_property
    def judgement(self) -> Judgement:
        """The answers of the four questions for this schedule."""
        return judge(self.plan)

    def try_step(self, step: Step) -> tuple[Verdict, Plan | None]:
        """What `apply` would say: the verdict, and the new plan if there is one (also when it is not legal)."""
        if not (verdict := step.check(self.plan)):
            return verdict, None
        plan = step.rewrite(self.plan)
        judgement = judge(plan)
        if judgement.refusals:
            finding = judgement.refusals[0]
            return Verdict(f"{step} is not legal: {finding.what}", finding.why, "; or ".join(finding.hints), finding), plan
        return verdict, plan

    def apply(self, step: Step) -> Self:
        """The schedule after one more transformation.

        Parameters
        ----------
        step : Step

        Returns
        -------
        Schedule
            A new value; this one is unchanged.

        Raises
        ------
        TransformError
            If the transformation's own precondition does not hold.
        IllegalSchedule
            If the result would compute something else; ``error.finding`` has the smallest pair of instances.
        """
        verdict, plan = self.try_step(step)
        if verdict and plan is not None:
            return replace(self, plan=plan, steps=(*self.steps, step))
        if verdict.finding is None:
            raise TransformError(f"{step} does not apply: {verdict.what}", why=verdict.why, hint=verdict.hint, step=step,
                                 verdict=verdict)
        finding = verdict.finding
        raise IllegalSchedule(verdict.what, where=finding.where, why=finding.why, hint="; or ".join(finding.hints),
                              step=step, finding=finding, verdict=verdict, program=self.source)
