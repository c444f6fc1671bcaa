"""Stamps before what a thread does, each time it begins to do something else: for an instrumented copy of a kernel only.

It is none of the passes that make a kernel's text.  It comes behind them and behind the proof, and adds nodes: without these the
tree is the one that was proved (:func:`without`).  What stands between two barriers, waits or copies is one piece, in the order
of the text; a loop of one kind of work is one piece, too.  The time of a piece ends where the next one begins.

Before::

    for k in 0…64: await; multiply; wait for products; release

After::

    for k in 0…64: stamp(0, k); await; stamp(1, k); multiply; stamp(2, k); wait for products; stamp(3, k); release
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ...ir.expr import ZERO, var
from ..nodes import (
    Acquire,
    Arrive,
    Await,
    AwaitTurn,
    Barrier,
    Begin,
    BulkCopy,
    BulkStore,
    Collect,
    Combine,
    Commit,
    Copy,
    Declare,
    Drain,
    For,
    If,
    Let,
    MoveMatrix,
    Multiply,
    Node,
    PassTurn,
    Release,
    Stamp,
    Wait,
    WaitProducts,
    WaitStores,
)
from ..sites import Lowered, Site
from ..traverse import children, map_bodies, walk

OF_NODE: dict[type, str] = {
    Acquire: "acquire", Drain: "acquire", BulkCopy: "issue", Arrive: "issue", Copy: "issue", Commit: "issue", Await: "wait",
    Wait: "wait", Multiply: "product", MoveMatrix: "load", WaitProducts: "drain", Release: "release", Barrier: "barrier",
    Collect: "combine", Combine: "combine", AwaitTurn: "barrier", PassTurn: "barrier", BulkStore: "store", WaitStores: "wait"}
"""What a node is, where that does not depend on what it accesses."""
NOTHING = (Declare, Let, Begin)
"""Nodes that take no time."""
ALONE = frozenset({"acquire", "wait", "drain", "release", "barrier", "combine"})
"""Kinds that never are one piece with others."""
STRONG = ("product", "store", "issue")
"""Kinds that others become a part of; two of these are not one piece."""
WEAK = ("through", "load", "compute")
"""The others, of which the first gives a piece its name."""


@dataclass(frozen=True)
class Mark:
    """A piece of what a role does.

    Attributes
    ----------
    kernel, role : str
    kind : str
        ``"acquire"``, a wait for a slot that is free; ``"issue"``, of copies; ``"wait"``, for copies; ``"product"``; ``"drain"``,
        a wait for products in flight; ``"release"``; ``"barrier"``; ``"combine"``, of values of several threads; ``"load"``, to
        registers; ``"compute"``; ``"through"``, results to shared memory; ``"store"``, results to global memory.
    ids : tuple of str
        The plan's nodes.
    loops : tuple of (str, int)
        The loops around it in the text, with their iterations: what a stamp counts.
    """

    kernel: str
    role: str
    kind: str
    ids: tuple[str, ...]
    loops: tuple[tuple[str, int], ...]

    @property
    def times(self) -> int:
        """How often a thread comes by, at most."""
        total = 1
        for _, extent in self.loops:
            total *= extent
        return total

    def iteration(self, at: int) -> tuple[tuple[str, int], ...]:
        """Each loop with its iteration, counted from 0."""
        found = list[tuple[str, int]]()
        for name, extent in reversed(self.loops):
            at, here = divmod(at, extent)
            found.append((name, here))
        return tuple(reversed(found))


@dataclass
class Stamping:
    """What one role's nodes become.

    Attributes
    ----------
    low : Lowered
    role, log : str
    marks : list of Mark
        Of all roles so far; new ones are added.
    """

    low: Lowered
    role: str
    log: str
    marks: list[Mark]
    around: list[For] = field(default_factory=list[For])

    def stamps(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """The nodes, with a stamp before each piece."""
        out, before = list[Node](), ""
        for node in nodes:
            if isinstance(node, NOTHING):
                out.append(node)
                continue
            kind = self._piece(node)
            if not kind:
                out.append(self._inside(node))
            elif kind == before:
                out.append(node)
                self.marks[-1] = replace(self.marks[-1], ids=_together(self.marks[-1].ids, node))
            else:
                out += [self._stamp(node, kind), node]
            before = kind
        return tuple(out)

    def _inside(self, node: Node) -> Node:
        """A loop or a condition around several pieces."""
        if isinstance(node, For):
            self.around.append(node)
        out = map_bodies(node, self.stamps)
        if isinstance(node, For):
            self.around.pop()
        return out

    def _stamp(self, node: Node, kind: str) -> Stamp:
        at = ZERO
        for loop in self.around:
            at = at * loop.extent + var(loop.var) - loop.start
        loops = tuple((x.loop.id, x.extent) for x in self.around)
        self.marks.append(Mark(self.low.kernel.id, self.role, kind, _together((), node), loops))
        return Stamp(self.log, len(self.marks) - 1, at)

    def _piece(self, node: Node) -> str:
        """The kind of a node that is one piece; nothing of one that has several inside."""
        if not isinstance(node, (For, If)):
            return self._kind(node)
        kinds = {self._kind(n) for n in walk(children(node)) if not isinstance(n, (For, If, *NOTHING))}
        if kinds <= {"issue"} or (not kinds & ALONE and len(kinds & set(STRONG)) <= 1):
            return next((k for k in (*STRONG, *WEAK) if k in kinds), "compute")
        return ""

    def _kind(self, node: Node) -> str:
        if type(node) in OF_NODE:
            return OF_NODE[type(node)]
        site: Site | None = getattr(node, "site", None)
        return self._moves(site) if site else "compute"

    def _moves(self, site: Site) -> str:
        """What an instance of a statement is, by where its values come from and go to."""
        last = len(site.statement.reads)
        to = self.low.store(site.leaf, last).space
        copied = site.statement in self.low.plan.copies
        if to == "register":
            return "load" if copied else "compute"
        if to == "global":
            return "store"
        return "issue" if copied and self.low.store(site.leaf, 0).space == "global" else "through"


def _together(ids: tuple[str, ...], node: Node) -> tuple[str, ...]:
    """The ids, and those of a node and of all inside."""
    return tuple(dict.fromkeys((*ids, *(i for n in walk((node,)) for i in n.ids))))


def without(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes without stamps."""
    return tuple(map_bodies(node, without) for node in nodes if not isinstance(node, Stamp))
