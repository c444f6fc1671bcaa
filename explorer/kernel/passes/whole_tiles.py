"""One check for all elements of a tile in registers, instead of one for each: a mask costs only where the tile has an edge.

Each thread of a tile of a tensor instruction has tens of elements, each with its own row and column, and so a comparison for each
where some may be masked: behind a diagonal, or beyond the last key.  Of most tiles none is.

Before::

    #pragma unroll
    for r in 0…64: if (128*j + 8*(r/4) + … <= 128*i + tx/4 + …) peak[…] = max(peak[…], dot[r]);

After::

    if (128*j + 127 <= 128*i)
      #pragma unroll
      for r in 0…64: peak[…] = max(peak[…], dot[r]);
    else
      #pragma unroll
      for r in 0…64: if (128*j + 8*(r/4) + … <= 128*i + tx/4 + …) peak[…] = max(peak[…], dot[r]);

The check is the same for all threads of a block, and a loop around the tile is in it: most iterations have no edge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...ir.expr import Expr, Ranges, const
from ..conditions import Condition, condition
from ..lower import Context
from ..nodes import Declare, Do, For, If, Node
from ..sites import Store
from ..traverse import map_bodies, refs, walk

FEWEST, MOST = 16, 2
"""Elements of a thread from which on the tile is written twice, and different checks that may stand before it."""


def whole_tiles(body: tuple[Node, ...], context: Context) -> tuple[Node, ...]:
    """The body with loops over masked registers written twice, without their conditions and with them."""
    return tuple(_node(n, (), context) for n in body)


def _node(node: Node, above: tuple[For, ...], context: Context) -> Node:
    if isinstance(node, For) and node.role == "unroll" and _in_registers(node):
        checks = _checks(node, above, context)
        if checks:
            return If(checks, (_unmasked(node),), (node,), settled=True)
    inner = (*above, node) if isinstance(node, For) else above
    return map_bodies(node, lambda nodes: tuple(_node(n, inner, context) for n in nodes))


def _in_registers(loop: For) -> bool:
    """Whether a loop is unrolled as a whole, and nothing in it touches memory."""
    for n in walk((loop,)):
        if isinstance(n, For):
            known = n.role == "unroll" and not n.limits
        elif isinstance(n, If):
            known = not n.otherwise
        elif isinstance(n, Declare):
            known = isinstance(n.what, Store) and n.what.space == "register"
        else:
            known = isinstance(n, Do) and all(r.store.space == "register" and r.of_lane is None for r in refs(n))
        if not known:
            return False
    return True


def _checks(loop: For, above: tuple[For, ...], context: Context) -> tuple[Condition, ...]:
    """What holds only where all conditions in a loop do, the same for all threads; empty where that is of no use."""
    inside = {n.var: (n.start, n.start + n.extent - 1) for n in walk((loop,)) if isinstance(n, For)}
    elements = 1
    for low, high in inside.values():
        elements *= high - low + 1
    asked = dict.fromkeys(_conditions(loop))
    if elements < FEWEST or not asked or any(c.equality for c in asked):
        return ()
    around = {x.var: (x.start, x.start + x.extent - 1) for x in above}
    ranges = context.low.ranges((), boxes=False) | around | inside
    kept = ranges.keys() - inside.keys() - context.low.thread_variables
    found = dict.fromkeys(condition(_lowest(c.expr, kept, ranges), False, ranges) for c in asked)
    checks = tuple(c for c in found if c is not None)
    decided = any(c.variables() & around.keys() for c in checks) and all(c.expr.interval(ranges)[1] >= 0 for c in checks)
    return checks if decided and len(checks) <= MOST else ()


def _conditions(loop: For) -> Iterator[Condition]:
    for n in walk((loop,)):
        if isinstance(n, If):
            yield from n.conditions
        elif isinstance(n, Do):
            yield from n.inside


def _lowest(e: Expr, kept: set[str], ranges: Ranges) -> Expr:
    """The least value over all variables that are not kept."""
    out = const(e.const)
    for term in e.terms:
        part = Expr((term,))
        out += part if part.variables() <= kept else const(part.interval(ranges)[0])
    return out


def _unmasked(loop: For) -> For:
    """The loop without its conditions."""
    def among(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        out = list[Node]()
        for n in nodes:
            if isinstance(n, If):
                out += among(n.body)
            else:
                out.append(replace(n, inside=()) if isinstance(n, Do) else map_bodies(n, among))
        return tuple(out)

    return replace(loop, body=among(loop.body))
