"""Leaves that are tensor instructions: the lanes that hold their operands, and whether they still are whole tiles."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.expr import Expr, var
from ..ir.instructions import INSTRUCTIONS
from ..ir.layout import LANES, Layout
from ..ir.plan import Plan
from ..ir.tree import Leaf, Loop, ranges

Held = tuple[Layout, str, str]
"""An operand's layout, and the loops over its rows and columns."""


def operands(leaf: Leaf, above: tuple[Loop, ...]) -> tuple[Held, Held, Held] | None:
    """Factors and accumulator of a tensor instruction; None for other leaves, and where its three loops are gone."""
    row = INSTRUCTIONS.get(leaf.mechanism)
    if row is None or [x.role for x in above[-3:]] != ["tensor"] * 3:
        return None
    m, n, k = (x.id for x in above[-3:])
    return (row.left, m, k), (row.right, k, n), (row.accumulator, m, n)


def operand_lanes(leaf: Leaf, above: tuple[Loop, ...]) -> tuple[Expr, ...]:
    """The lane that holds the element of each access, over the three loops; nothing for other leaves."""
    scope = ranges(above)
    return tuple(layout.lane.substitute({"row": var(i), "column": var(j)}, scope) for layout, i, j in operands(leaf, above) or ())


def misshapen_tiles(plan: Plan) -> Iterator[tuple[str, str]]:
    """Leaves that are marked as tensor instructions and are none, and why: a step that makes one is not taken."""
    for leaf, above, kernel in plan.leaves:
        if leaf.mechanism in INSTRUCTIONS:
            yield from ((leaf.id, why) for why in _misshapen(plan, leaf, above, plan.extents[kernel.id][3]))


def _misshapen(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], threads: int) -> Iterator[str]:
    row = INSTRUCTIONS[leaf.mechanism]
    held, tile = operands(leaf, above), above[-3:]
    if held is None or any(len(x.body) != 1 or x.start for x in tile) or tuple(x.extent for x in tile) != (row.m, row.n, row.k):
        yield f"its three innermost loops have to be a whole tile of {row.m} x {row.n} x {row.k}, and nothing else in them"
        return
    scope, inside = ranges(above), {x.id for x in tile}
    for slot, (layout, i, j) in enumerate(held):
        view = leaf.view(slot)
        register = layout.register.substitute({"row": var(i), "column": var(j)}, scope)
        buffer = plan.buffer_of[view.buffer] if view else None
        if view is None or buffer is None or buffer.space != "register" or buffer.padded_shape[-1:] != (layout.registers,) or (
                not view.index or view.index[-1] != register or any(e.variables() & inside for e in view.index[:-1])):
            yield f"operand {slot} has to be a register array of the tile, as the instruction's layout has it"
    for c in plan.statement_of[leaf.statement].domain:
        e = c.expr.substitute(dict(leaf.at), scope)
        if e.variables() & inside and (c.equality or e.interval(scope)[0] < 0):
            yield "a tile is computed as a whole, and a condition asks for a part of one"
            return
    if threads % LANES or leaf.collect or any(x.role in ("lane", "thread.x") for x in above):
        yield "all 32 lanes of a warp run it together"

