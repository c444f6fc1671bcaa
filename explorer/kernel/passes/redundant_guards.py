"""Conditions of updates that may run too often are dropped.

See :mod:`~explorer.kernel.redundant` for when that changes nothing.

Before::

    if (i < 1000) acc += x_s[i];

After::

    acc += x_s[i];
"""

from __future__ import annotations

from dataclasses import replace

from ..lower import Context
from ..nodes import Do, If, Multiply, Node
from ..traverse import map_bodies


def redundant_guards(body: tuple[Node, ...], context: Context) -> tuple[Node, ...]:
    """The body without them."""
    out: list[Node] = []
    for node in body:
        node = map_bodies(node, lambda inner: redundant_guards(inner, context))
        if isinstance(node, If) and len(node.body) == 1 and isinstance(only := node.body[0], (Do, Multiply)):
            kept = context.redundant.kept(only.site)
            node = replace(node, conditions=kept) if kept else replace(only, ids=(*only.ids, *node.ids))
        out.append(node)
    return tuple(out)
