"""The judgement of a plan: the four questions in order, the first refusal first."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..ir.finding import Finding
from ..ir.plan import Plan
from .cover import check_cover
from .isl import alone
from .obligations import check_obligations
from .order import check_order
from .placed import place_leaves


@dataclass(frozen=True)
class Judgement:
    """What the four questions answer.

    Attributes
    ----------
    refusals : tuple of Finding
        Cover, order and flow findings, and races that no barrier can order: with one of these the plan computes something
        else.
    obligations : tuple of Finding
        Open obligations: the plan is legal, but cannot be emitted until each is discharged.
    """

    refusals: tuple[Finding, ...]
    obligations: tuple[Finding, ...]

    @property
    def legal(self) -> bool:
        """Whether the plan computes what the program says."""
        return not self.refusals

    @property
    def emittable(self) -> bool:
        """Whether it is legal and no obligation is open."""
        return not self.refusals and not self.obligations


@lru_cache(maxsize=512)
@alone
def judge(plan: Plan) -> Judgement:
    """Ask the four questions; stops at the first question with a refusal.

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    Judgement
    """
    from .asynchronous import check_async
    from .barriers import check_races
    from .flow import check_flow
    from .joins import check_joins

    placed = place_leaves(plan)
    for question in (lambda: check_cover(plan, placed), lambda: check_order(plan, placed), lambda: check_joins(plan),
                     lambda: check_flow(plan), lambda: check_async(plan)):
        if refusals := question():
            return Judgement(refusals, ())
    if obligations := check_obligations(plan, placed):
        return Judgement((), obligations)  # their updates race until they are collected
    return Judgement(check_races(plan), ())
