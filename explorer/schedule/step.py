"""A step on a plan: its own preconditions, then the questions of legality about what it makes."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from ..errors import Undecided
from ..ir.finding import Finding, Proving, Verdict
from ..ir.memo import per_program
from ..ir.plan import Plan
from ..poly.bulk_store import broken_stores
from ..poly.judge import judge
from ..poly.lane_reads import broken_shuffles
from ..poly.mechanism import broken_boxes
from ..poly.ring_text import proof_of, sentence
from ..poly.tensor import misshapen_tiles, ordinary_in_tiles
from ..system import cancel

DEEPEST = 256
"""Loops around a statement: what clang takes of blocks within each other (``-fbracket-depth``); C itself promises 127."""


class Step(Protocol):
    """What a schedule needs of a transformation; `str(step)` is the Python call that makes it."""

    def check(self, plan: Plan) -> Verdict:
        """Whether the step's own preconditions hold."""
        ...

    def rewrite(self, plan: Plan) -> Plan:
        """The plan after the step; called only where `check` says yes."""
        ...


def taken(plan: Plan, step: Step, judge_it: bool = True) -> tuple[Verdict, Plan | None]:
    """A step on a plan: the verdict, and the new plan if there is one (also when it is not legal).

    Parameters
    ----------
    plan : Plan
    step : Step
    judge_it : bool
        Whether the new plan is judged; without, the verdict is that of the step's own preconditions.

    Raises
    ------
    Cancelled
        If the work of this thread is to stop.
    """
    cancel.check()
    try:
        verdict, new = (_made if _hashable(step) else _made.function)(plan, step, repr(step))
    except Undecided as error:
        return Verdict(error.what, error.why, error.hint), None
    if new is not None and judge_it and (refusals := judge(new).refusals):
        finding = _with_condition(new, refusals[0])
        return Verdict(f"{step} is not legal: {finding.what}", finding.why, "; or ".join(finding.hints), finding), new
    return verdict, new


def _hashable(step: Step) -> bool:
    """Whether answers about a step can be kept; one whose fields are lists is refused by its check."""
    try:
        hash(step)
    except TypeError:
        return False
    return True


@per_program(512)
def _made(plan: Plan, step: Step, text: str) -> tuple[Verdict, Plan | None]:
    """A step on a plan that is not judged: asked before the step is taken, and again by whoever replays a schedule's steps.

    The text tells apart steps that are equal, as those of numbers and of truth values are.
    """
    del text
    if not (verdict := step.check(plan)):
        return verdict, None
    new = step.rewrite(plan)
    if (deep := max((len(above) for _, above, _ in new.leaves), default=0)) > DEEPEST:
        return Verdict(f"a statement would stand in {deep} loops", f"compilers take {DEEPEST} blocks within each other",
                       "fewer splits; coalesce loops of one iteration with their neighbours"), None
    if broken := next(misshapen_tiles(new), None):
        leaf, why = broken
        return Verdict(f"{step} would take the tile of {leaf} apart, which is a tensor instruction", why,
                       "do this before tensorize"), None
    if broken := next(ordinary_in_tiles(new), None):
        leaf, loop = broken
        return Verdict(f"{step} would leave {leaf} in {loop}, a loop of an instruction or of a bulk copy's box",
                       f"{leaf} is part of neither", "do this before tensorize or the bulk copy"), None
    if broken := next(broken_shuffles(new), None):
        leaf, why = broken
        return Verdict(f"{step} would break a shuffle of {leaf}", why, "do this before shuffle"), None
    if broken := next(broken_boxes(new), None):
        leaf, why = broken
        return Verdict(f"{step} would take the box of {leaf.id} apart, which is a bulk copy: {why.what}", why.why,
                       "; or ".join(filter(None, ("do this before the bulk copy is made", why.hint)))), None
    if broken := next(broken_stores(new), None):
        leaf, why = broken
        return Verdict(f"{step} would take the box of {leaf.id} apart, which is a bulk store: {why.what}", why.why,
                       "; or ".join(filter(None, ("do this before the bulk store is made", why.hint)))), None
    return verdict, new


def _with_condition(plan: Plan, finding: Finding) -> Finding:
    """A refusal of a pipelined loop says for which stages and trip counts it is right, and for which one it fails first."""
    try:
        more = sentence(plan, finding) if finding.question == "flow" else ""
    except Undecided:
        more = ""
    why = "; ".join(filter(None, (finding.why, more)))
    return replace(finding, why=why, proving=Proving(lambda: proof_of(plan, finding))) if more else finding
