"""Reads of other lanes' registers: whether all lanes of the warp come by, with the same register, as a shuffle asks."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.plan import Plan
from ..ir.tree import WARP_SIZE, Leaf, Loop, View, ranges


def lanes_of(above: tuple[Loop, ...]) -> Loop | None:
    """The loop around a statement that is bound to the lanes of a warp, or to threads in whole warps."""
    return next((x for x in above if x.role in ("lane", "thread.x")), None)


def in_whole_warps(plan: Plan, leaf: Leaf, lanes: Loop) -> bool:
    """Whether a loop over lanes or threads takes whole warps of its launch, whose rows of threads are whole warps too."""
    kernel = plan.kernel_of(leaf.id)
    assert kernel is not None
    whole = not (lanes.extent % WARP_SIZE or lanes.start % WARP_SIZE)
    return whole and (lanes.role == "lane" or plan.extents[kernel.id][3] % WARP_SIZE == 0)


def broken_shuffles(plan: Plan) -> Iterator[tuple[str, str]]:
    """Leaves that read another lane's register where not all lanes read one together, and why: such a step is not taken.

    ``__shfl_sync`` gives what the asked lane hands in at the same place of the text (CUDA C++ Programming Guide, "Warp Shuffle
    Functions"): a lane that is not there hands in nothing, and one that is hands in its own cell.
    """
    for leaf, above, _ in plan.leaves:
        for slot, view in leaf.views:
            if view.lane is not None and (why := _broken(plan, leaf, above, slot, view)):
                yield leaf.id, why


def _broken(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], slot: int, view: View) -> str:
    statement, scope = plan.statement_of[leaf.statement], ranges(above)
    lanes = lanes_of(above)
    assert view.lane is not None
    if lanes is None or not in_whole_warps(plan, leaf, lanes):
        return "no loop around it is bound to all lanes of a warp"
    low, high = view.lane.interval(scope)
    if low < 0 or high >= WARP_SIZE:
        return f"it asks lane {view.lane}, which is not always one of the {WARP_SIZE}"
    if leaf.mechanism != "plain" or leaf.collect or slot == len(statement.reads):
        return "only a plain statement reads other lanes' registers"
    if plan.buffer_of[view.buffer].space != "register":
        return f"{view.buffer} is not in registers"
    if any(lanes.id in e.variables() for e in view.index):
        return f"the register of {view.buffer} is another one in each lane"
    for c in (*statement.domain, *statement.inside):
        e = c.expr.substitute(leaf.places, scope)
        if lanes.id in e.variables() and (c.equality or e.interval(scope)[0] < 0):
            return f"it does not run in all lanes: where {e} {'==' if c.equality else '>='} 0"
    return ""
