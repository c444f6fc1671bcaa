"""Trimmed loops end where the plan says, in each text that counts their iterations.

Passes may divide a loop, and the text of a producer and that of its consumers each have one.  What they count (groups, slots,
phases) fits together because all of them end alike: with the last iteration that :mod:`~explorer.poly.early_end` gives
for the block, and no thread before another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...ir.expr import Expr, var
from ...ir.finding import Finding
from ...ir.tree import Loop
from ...poly.early_end import end_of
from ..conditions import Condition
from ..nodes import Acquire, Arrive, Await, AwaitTurn, Commit, PassTurn, Release, Wait, WaitProducts
from .boxes import Boxed
from .leaves import finding
from .points import Coordinates
from .steps import Round, Step

COUNTED = (Acquire, Arrive, Await, AwaitTurn, Boxed, Commit, PassTurn, Release, Wait, WaitProducts)
"""Steps of which other threads, or the hardware, count how often they run."""


def check_ends(steps: Sequence[Step], coordinates: Coordinates) -> Iterator[Finding]:
    """A finding for every loop with something to count that does not end where the plan's trimmed loop does."""
    asked = set[Round]()
    for step in steps:
        if isinstance(step.node, COUNTED):
            for a in step.loops:
                if a.node.loop.trimmed and a not in asked:
                    asked.add(a)
                    limits, ends = (step.space.points((conj,)) for conj in (a.node.limits, end(a, coordinates)))
                    if not (limits.is_subset(ends) and ends.is_subset(limits)):
                        what = "ends with another iteration than the trimmed loop of the plan"
                        yield finding("flow", a.node.loop.id, what, step)


def ends(step: Step) -> tuple[Condition, ...]:
    """The iterations of trimmed loops around a step that run, in the kernel's variables."""
    return tuple(c for a in step.loops if a.node.loop.trimmed for c in end(a, step.coordinates))


def end(a: Round, coordinates: Coordinates) -> tuple[Condition, ...]:
    """Where the plan's loop ends, as a condition on the variable of the text's."""
    low, loop = coordinates.low, a.node.loop
    hit = low.plan.find(loop.id)
    if hit is None or not isinstance(hit[0], Loop):
        return ()
    last = end_of(low.plan, low.kernel, hit[0])
    if not isinstance(last, Expr):
        return ()
    e = low.in_c(last - var(loop.id), (*hit[1], hit[0])).substitute({low.variable[loop.id]: var(a.node.var)})
    return (Condition(e.substitute(coordinates.values)),)
