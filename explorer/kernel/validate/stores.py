"""Before threads meet behind a bulk store, or write what it sends, and before the block ends, its thread waits for its reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

from ...ir.finding import Finding
from ..bulk_copy import first_thread
from ..bulk_store import MEETINGS
from ..nodes import BulkStore, For, If, Node, WaitStores
from ..sites import Lowered, Store
from ..traverse import refs, walk
from .leaves import finding

Open = frozenset[tuple[str, Store]]
"""Leaves whose bulk stores may not have been read yet, and what these send."""


def check_stores(low: Lowered, body: Sequence[Node]) -> Iterator[Finding]:
    """A finding for each bulk store whose box others may write while the engine reads it."""
    if any(isinstance(n, BulkStore) for n in walk(tuple(body))):
        found = _Reads(low)
        for leaf, _ in found.behind(body, frozenset(), ()):
            found.late(leaf, "the block ends")
        yield from found.findings.values()


class _Reads:
    def __init__(self, low: Lowered) -> None:
        self.first = frozenset(first_thread(low))
        self.findings: dict[str, Finding] = {}

    def late(self, leaf: str, what: str) -> None:
        """Note that a store may still be read."""
        said = f"may still be read where {what}: no wait for its reads is before"
        self.findings.setdefault(leaf, finding("flow", leaf, said, None))

    def behind(self, body: Sequence[Node], left: Open, around: tuple[object, ...]) -> Open:
        """The stores that may be unread behind some nodes, of those that may be before."""
        return reduce(lambda found, node: self._node(node, found, around), body, left)

    def _node(self, node: Node, left: Open, around: tuple[object, ...]) -> Open:
        if isinstance(node, BulkStore):
            return left | {(node.site.leaf.id, node.source.store)}
        if isinstance(node, WaitStores):
            return frozenset() if frozenset(around) <= self.first else left  # else some way leads past it
        if isinstance(node, If):
            inner = (*around, *node.conditions)
            return self._branch(node, left, inner)
        if isinstance(node, For):
            every = left | self.behind(node.body, left, around)
            return left | self.behind(node.body, every, around)
        if isinstance(node, MEETINGS):
            for leaf, _ in left:
                self.late(leaf, "threads meet")
        for leaf, store in left:
            if any(r.store == store for r in refs(node)):
                self.late(leaf, f"{next(iter(node.ids), 'the text')} uses what it sends")
        return left

    def _branch(self, node: If, left: Open, inner: tuple[object, ...]) -> Open:
        """Behind both ways; the first thread's own branch is the way that all stores go."""
        taken, other = self.behind(node.body, left, inner), self.behind(node.otherwise, left, inner)
        mine = frozenset(node.conditions) <= self.first and not node.otherwise
        return taken if mine else taken | other
