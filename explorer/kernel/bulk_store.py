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

from ..ir.tree import Loop
from .bulk_copy import Known, box_of, by_first
from .nodes import Barrier, BulkStore, Collect, Combine, For, If, Node, Ref, WaitStores
from .sites import Store
from .traverse import children, refs, walk

MEETINGS = (Barrier, Collect, Combine)
"""Nodes in which the threads of a block wait for each other."""


def store(c: Known, outer: Loop, above: tuple[Loop, ...]) -> tuple[Node, ...]:
    """The bulk store that a nest of loops over a box is."""
    low, box = c.low, box_of(c, outer, above)
    if box is None:
        return ()
    ids = (box.leaf.id, *(x.id for x in box.found.loops), *(x.id for x in above if not low.is_counter(x)))
    source = Ref(low.store(box.leaf, 0), box.cell)
    node = BulkStore(box.site, c.bulk.map(box.leaf, box.found), box.first, source, box.found.loops, ids)
    return (by_first(low, node, box.when),)


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
        inside = any(isinstance(n, (BulkStore, *MEETINGS)) for n in walk(children(node)))
        if isinstance(node, BulkStore):
            open_ |= {node.source.store}
        elif isinstance(node, If) and inside:
            (inner, after), (other, else_) = (_waits(c, nodes, open_) for nodes in (node.body, node.otherwise))
            node, open_ = replace(node, body=inner, otherwise=other), after | else_
        elif isinstance(node, For) and inside:
            again = _waits(c, node.body, open_)[1]  # from one iteration to the next
            inner, after = _waits(c, node.body, open_ | again)
            node, open_ = replace(node, body=inner), open_ | after
        elif isinstance(node, MEETINGS) or any(r.store in open_ for n in walk((node,)) for r in refs(n)):
            out += _wait(c, open_)
            open_ = frozenset()
        out.append(node)
    return tuple(out), open_
