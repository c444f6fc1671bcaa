"""Bulk stores in the kernel IR: the first thread asks for them, and waits for their reads before it meets the others again.

Before::

    bulk C[…] = C_s[…]            # all threads have written C_s, and met
    barrier
    C_s[…] = …                    # the next tile

After::

    if (tx == 0): bulk C[…] = C_s[…]
    if (tx == 0): wait for the reads of bulk stores
    barrier
    C_s[…] = …
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir.expr import Expr
from ..ir.tree import Leaf, Loop
from .bulk_copy import Known, by_first, moved, when_made
from .nodes import Barrier, BulkStore, Collect, Combine, For, If, Node, Ref, WaitStores
from .sites import Store
from .traverse import children, refs, walk

MEETINGS = (Barrier, Collect, Combine)
"""Nodes in which the threads of a block wait for each other."""


def store(c: Known, outer: Loop, above: tuple[Loop, ...]) -> tuple[Node, ...]:
    """The bulk store that a nest of loops over a box is."""
    low, around = c.low, [*above, outer]
    while isinstance(inner := around[-1].body[0], Loop):
        around.append(inner)
    assert isinstance(inner, Leaf)
    site, found = c.sites[inner.id], moved(low.plan, inner, tuple(around))
    when = when_made(low, site, found)
    if when is None:
        return ()

    def told(e: Expr) -> Expr:
        return low.in_c(e, site.loops).simplify(site.ranges)

    source = Ref(low.store(inner, 0), tuple(map(told, found.cell)))
    ids = (inner.id, *(x.id for x in found.loops), *(x.id for x in above if not low.is_counter(x)))
    node = BulkStore(site, c.bulk.map(inner, found), tuple(map(told, found.first)), source, found.loops, ids)
    return (by_first(low, node, when),)


def with_waits(c: Known, body: Sequence[Node]) -> tuple[Node, ...]:
    """The body with a wait wherever the first thread would go on to what needs its stores read."""
    if not any(isinstance(n, BulkStore) for n in walk(tuple(body))):
        return tuple(body)
    out, left = _waits(c, body, frozenset())
    return (*out, *_wait(c, left))


def _wait(c: Known, open_: frozenset[Store]) -> tuple[Node, ...]:
    return (by_first(c.low, WaitStores()),) if open_ else ()


def _waits(c: Known, body: Sequence[Node], open_: frozenset[Store]) -> tuple[tuple[Node, ...], frozenset[Store]]:
    """The nodes with waits, and the arrays that stores may still read behind them, of those they may read before."""
    out: list[Node] = []
    for node in body:
        if isinstance(node, BulkStore):
            open_ |= {node.source.store}
        elif isinstance(node, If):
            (inner, after), (other, else_) = (_waits(c, nodes, open_) for nodes in (node.body, node.otherwise))
            node, open_ = replace(node, body=inner, otherwise=other), after | else_
        elif isinstance(node, For):
            again = _waits(c, node.body, open_)[1]  # from one iteration to the next
            inner, after = _waits(c, node.body, open_ | again)
            node, open_ = replace(node, body=inner), open_ | after
        elif isinstance(node, MEETINGS) or (open_ and {r.store for r in refs(node)} & open_ and not children(node)):
            out += _wait(c, open_)
            open_ = frozenset()
        out.append(node)
    return tuple(out), open_
