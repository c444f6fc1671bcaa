"""Scalars are declared where they are first written.

Before::

    float total;
    …
    total = 0.0f;

After::

    …
    float total = 0.0f;

A scalar of which nothing is left (its statements have no instance) is not declared.
"""

from __future__ import annotations

from dataclasses import replace

from ..lower import Context
from ..nodes import Declare, Do, Node, Ref
from ..sites import Store
from ..traverse import map_bodies, refs, walk


def first_writes(body: tuple[Node, ...], context: Context) -> tuple[Node, ...]:
    """The body without declarations that a write right there makes, or that nothing needs."""
    out = [map_bodies(node, lambda inner: first_writes(inner, context)) for node in body]
    for declared in [n for n in out if isinstance(n, Declare) and isinstance(n.what, Store) and not n.what.shape]:
        store = declared.what
        user = next((n for n, node in enumerate(out) if node is not declared and _mentions(node, store)), None)
        if user is None:
            out.remove(declared)
            continue
        if not isinstance(first := out[user], Do) or first.site.statement.update:
            continue
        if isinstance(first.target, Ref) and first.target.store == store and sum(r.store == store for r in refs(first)) == 1:
            out[user] = replace(first, declares=True)
            out.remove(declared)
    return tuple(out)


def _mentions(node: Node, store: object) -> bool:
    return any(r.store == store for inner in walk((node,)) for r in refs(inner)) or any(
        isinstance(inner, Declare) and inner.what == store for inner in walk((node,)))
