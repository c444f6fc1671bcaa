"""The judgement of a plan: the four questions in order, the first refusal first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import Undecided
from ..ir.finding import Finding
from ..ir.memo import per_program
from ..ir.plan import Plan
from ..system import cancel
from .cover import check_cover
from .expressible import check_expressible
from .isl import LIMIT, alone, budget
from .obligations import check_obligations
from .order import check_order
from .placed import place_leaves
from .register_pressure import pressures
from .undivided import undivided


@dataclass(frozen=True)
class Judgement:
    """What the four questions answer.

    Attributes
    ----------
    refusals : sequence of Finding
        Cover, order and flow findings, and races that no barrier can order: with one of these the plan computes something
        else.
    obligations : tuple of Finding
        Open obligations: the plan is legal, but cannot be emitted until each is discharged.
    """

    refusals: Sequence[Finding]
    obligations: tuple[Finding, ...]

    @property
    def legal(self) -> bool:
        """Whether the plan computes what the program says."""
        return not self.refusals

    @property
    def emittable(self) -> bool:
        """Whether it is legal and no obligation is open."""
        return not self.refusals and not self.obligations


@per_program(512)
@alone
def judge(plan: Plan, buffer: str = "", cells: bool = False) -> Judgement:
    """Ask the four questions; stops at the first question with a refusal.

    A question that takes longer than its budget is a refusal, too: nothing is assumed.

    Parameters
    ----------
    plan : Plan
    buffer : str
        The only one whose reads *flow* is asked about, where a plan differs from another in this buffer's cells alone; "" for
        all.
    cells : bool
        Whether the plan differs from a legal one in this buffer's cells alone: then neither *cover* nor *order* is asked again.

    Returns
    -------
    Judgement
    """
    from .asynchronous import check_async
    from .barriers import check_races
    from .joins import check_joins
    from .products import check_products
    from .replicas import check_replicas
    from .roles import check_roles

    question = "cover"
    try:
        with budget(LIMIT):
            placed = place_leaves(plan)
            when = (("cover", lambda: check_cover(plan, placed)), ("order", lambda: check_order(plan, placed)),
                    ("order", lambda: check_joins(plan)))
            where = (("flow", lambda: _lost_values(plan, buffer)), ("flow", lambda: check_async(plan)),
                     ("flow", lambda: check_products(plan)), ("flow", lambda: check_roles(plan)))
            for question, ask in where if cells else (*when, *where):  # noqa: B007 the one that was asked last is named below
                cancel.check()
                if refusals := ask():
                    return Judgement(refusals, ())
            question = "obligation"
            if obligations := check_obligations(plan, placed):
                return Judgement((), obligations)  # their updates race until they are collected
            if missing := check_expressible(plan):
                return Judgement((), missing)
            question = "race"
            if races := (*check_replicas(plan), *check_races(plan)):
                return Judgement(races, ())
            return Judgement((), tuple(pressures(plan)))
    except Undecided as error:
        return Judgement((Finding(question, error.what, error.why, hints=(error.hint,)),), ())


def _lost_values(plan: Plan, buffer: str) -> Sequence[Finding]:
    """What *flow* refuses: nothing where it refuses nothing of the undivided plan, whose cells live no longer."""
    whole = undivided(plan)
    try:
        if whole is not plan and (not buffer or buffer in whole.buffer_of) and not _flow(whole, buffer):
            return ()
    except Undecided:
        pass
    return _flow(plan, buffer)


@per_program(512)
def _flow(plan: Plan, buffer: str) -> tuple[Finding, ...]:
    from .flow import check_flow

    return check_flow(plan, buffer)
