"""Instructions of a warp or a warpgroup as the loops that they are: for the judge of the IR, and where each element counts."""

from __future__ import annotations

from ..ir.expr import var
from .conditions import Condition
from .nodes import Do, For, If, MoveMatrix, Multiply, Node
from .sites import Lowered


def unfolded(node: Multiply | MoveMatrix, low: Lowered) -> For:
    """A tensor instruction as the loops that it is: every update, or every copy, in the lane that has the element."""
    if isinstance(node, MoveMatrix):
        x = node.loop
        copy = Do(node.site, node.target, (node.source,), ids=node.ids)
        return For(low.variable[x.id], x.start, x.extent, (copy,), "unroll", x, ids=(x.id,))
    names = [low.variable[x.id] for x in node.loops]
    at = node.instruction.accumulator.lane.substitute({"row": var(names[0]), "column": var(names[1])})
    mine = Condition(var(low.role_name[node.instruction.role]) - at, True)
    out: Node = If((mine,), (Do(node.site, node.target, node.operands, ids=node.ids),))
    for name, x in reversed(list(zip(names, node.loops, strict=True))):
        out = For(name, x.start, x.extent, (out,), "unroll", x, ids=(x.id,))
    assert isinstance(out, For)
    return out
