"""Vector loops whose lanes cannot be taken together become unrolled loops.

Lanes stay together where the body is plain statements under the same conditions, and no lane asks for more than a linear bound.
An atomic update is of one element.

Before::

    vector v: { if (a) x[v] = …; if (b) y[v] = …; }

After::

    unrolled v: { if (a) x[v] = …; if (b) y[v] = …; }
"""

from __future__ import annotations

from dataclasses import replace

from ..conditions import Condition
from ..lanes import partial
from ..lower import Context
from ..nodes import Declare, Do, For, If, Node
from ..traverse import map_bodies


def scalar_lanes(body: tuple[Node, ...], context: Context) -> tuple[Node, ...]:
    """The body with such loops unrolled."""
    out: list[Node] = []
    for node in body:
        if isinstance(node, For) and node.role == "vector" and not _together(node, context):
            node = replace(node, role="unroll")
        out.append(map_bodies(node, lambda inner: scalar_lanes(inner, context)))
    return tuple(out)


def lane_statements(loop: For) -> tuple[list[Do], set[tuple[Condition, ...]]] | None:
    """The statements of a loop's body, and their conditions; None where it holds anything else."""
    found, conditions = list[Do](), set[tuple[Condition, ...]]()
    for node in loop.body:
        guard, inner = (node.conditions, node.body) if isinstance(node, If) and not node.otherwise else ((), (node,))
        if isinstance(node, Declare):
            continue
        if len(inner) != 1 or not isinstance(only := inner[0], Do):
            return None
        found.append(only)
        conditions.add(guard)
    return found, conditions


def _together(loop: For, context: Context) -> bool:
    read = lane_statements(loop)
    if read is None:
        return False
    statements, conditions = read
    if len(conditions) > 1 or any(s.atomic or context.low.keeps_more(s.site) for s in statements):
        return False
    if not any(loop.var in c.variables() for guard in conditions for c in guard):
        return True
    return partial(context.low, statements[0].site, loop.loop) is not None  # all of them have these conditions
