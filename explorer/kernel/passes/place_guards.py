"""Conditions move outwards: out of loops that they do not depend on, or into loop bounds.

Before::

    for i in 0…8: for j in 0…8: if (i < M and j <= i) y[i, j] = …;

After::

    for i in 0…min(8, M): for j in 0…min(8, i + 1): y[i, j] = …;

Barriers were placed for loops that run their whole box in every thread.  So a condition that depends on a thread never
moves over one, and a condition that is equal for all threads only where no conflict can lose its barrier: as the bounds of
a loop that still runs at least once (the iterations that run are consecutive), or around everything the kernel does.
Commits and waits are counted, so no condition moves over one: every iteration has its groups, if they are empty.
Collectives are reached by every thread: conditions that cannot move out say which threads have a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...ir.expr import const
from ...ir.tree import leaves
from ..bounds import bounds, is_linear
from ..conditions import Condition
from ..lower import Context
from ..nodes import (
    Apply,
    Await,
    AwaitTurn,
    Barrier,
    Collect,
    Combine,
    Commit,
    Contribute,
    Declare,
    For,
    If,
    Node,
    PassTurn,
    Release,
    Wait,
    WaitProducts,
)
from ..traverse import with_ids


@dataclass(frozen=True)
class Piece:
    """A part of a body while its conditions look for their places.

    Attributes
    ----------
    nodes : tuple of Node
    guards : tuple of Condition
        What must hold around it.
    barrier : bool
        It holds a barrier, a commit or a wait: conditions move out of it only where that skips nothing that is needed.
    neutral : bool
        A barrier, a declaration or a commit or wait: it may run when nothing around it does, and wants no condition.
    counted : bool
        It holds a commit or a wait.
    absorbs : bool
        Conditions that could not move outwards go into it.
    """

    nodes: tuple[Node, ...]
    guards: tuple[Condition, ...] = ()
    barrier: bool = False
    neutral: bool = False
    counted: bool = False
    absorbs: bool = False


def place_guards(body: tuple[Node, ...], context: Context) -> tuple[Node, ...]:
    """The body with every condition in its place."""
    return _grouped([p for node in body for p in _pieces(node, (), context)])


def _pieces(node: Node, above: tuple[For, ...], context: Context) -> list[Piece]:
    if isinstance(node, If) and not node.settled:
        return [Piece(with_ids(node.body, node.ids), node.conditions)]
    if isinstance(node, For):
        if isinstance(only := node.body[0] if len(node.body) == 1 else None, (Contribute, Apply)):
            return [Piece((node,), only.guards, barrier=isinstance(only, Apply), absorbs=True)]
        return [Piece((node,))] if node.settled else _loop(node, above, context)
    if isinstance(node, Collect):
        return [Piece((node,), () if node.of_cluster else node.guards, barrier=True, absorbs=not node.of_cluster)]
    if isinstance(node, (Barrier, Combine)):
        return [Piece((node,), barrier=True, neutral=True)]
    if isinstance(node, (Commit, Wait, WaitProducts, Await, Release, AwaitTurn, PassTurn)):
        return [Piece((node,), barrier=True, neutral=True, counted=True)]
    return [Piece((node,), neutral=isinstance(node, Declare))]


def _loop(loop: For, above: tuple[For, ...], context: Context) -> list[Piece]:
    """A loop: the conditions that all in it share become its bounds or move out of it."""
    pieces = [p for node in loop.body for p in _pieces(node, (*above, loop), context)]
    if all(p.neutral for p in pieces) and not any(p.barrier or p.counted for p in pieces):
        return []
    shared = _shared(pieces, context)
    outer = tuple(c for c in shared if loop.var not in c.variables())
    limits = () if loop.role == "unroll" else tuple(c for c in shared if is_linear(c, loop.var))
    if any(p.barrier for p in pieces):
        whole = context.sites.keys() == {leaf.id for leaf, _ in leaves((loop.loop,))}
        outer = tuple(c for c in outer if whole and _ends_well(c, above))
        limits = limits if whole or _runs(loop, limits, above, context) else ()
    taken = {*outer, *limits}
    kept = [p if p.neutral else replace(p, guards=tuple(c for c in p.guards if c not in taken)) for p in pieces]
    node = replace(loop, body=_grouped(kept), limits=(*loop.limits, *limits))
    return [Piece((node,), outer, barrier=any(p.barrier for p in pieces), neutral=all(p.neutral for p in pieces),
                  counted=any(p.counted for p in pieces))]


def _ends_well(c: Condition, above: Sequence[For]) -> bool:
    """Whether a condition that moves further out will become bounds of a loop, or stand around the whole kernel."""
    inner = next((x for x in reversed(above) if x.var in c.variables()), None)
    return inner is None or (is_linear(c, inner.var) and inner.role == "seq")


def _runs(loop: For, limits: Sequence[Condition], above: Sequence[For], context: Context) -> bool:
    """Whether the loop surely runs at least once within these bounds."""
    ranges = context.low.ranges((), boxes=False) | {x.var: (x.start, x.start + x.extent - 1) for x in above}
    lowers, uppers = bounds(limits, loop.var)
    box = const(loop.start), const(loop.start + loop.extent)
    return all((u - lo).interval(ranges)[0] >= 1 for lo in (box[0], *lowers) for u in (box[1], *uppers))


def _shared(pieces: Sequence[Piece], context: Context) -> tuple[Condition, ...]:
    """The conditions that every piece wants and that may stand around all of them."""
    wanting = [p for p in pieces if not p.neutral]
    if not wanting or any(p.counted for p in pieces):
        return ()
    uniform = context.low.thread_variables
    common = [c for c in wanting[0].guards if all(c in p.guards for p in wanting[1:])]
    if any(p.barrier for p in pieces):
        common = [c for c in common if not c.variables() & uniform]
    return tuple(common)


def _grouped(pieces: Sequence[Piece]) -> tuple[Node, ...]:
    """The nodes of the pieces; neighbours that share conditions stand under one ``if``."""
    out: list[Node] = []
    position = 0
    while position < len(pieces):
        piece, end = pieces[position], position + 1
        if piece.absorbs or not piece.guards:
            out += [_absorbing(n, piece.guards) for n in piece.nodes] if piece.absorbs else piece.nodes
            position = end
            continue
        common = piece.guards
        while end < len(pieces) and not pieces[end].absorbs and (both := tuple(c for c in common if c in pieces[end].guards)):
            common, end = both, end + 1
        inner = _grouped([replace(p, guards=tuple(c for c in p.guards if c not in common)) for p in pieces[position:end]])
        ids = tuple(dict.fromkeys(i for n in inner for i in n.ids)) if len(inner) == 1 else ()
        out.append(If(common, inner, ids=ids))
        position = end
    return tuple(out)


def _absorbing(node: Node, guards: tuple[Condition, ...]) -> Node:
    """A collective under conditions that say which threads have a value."""
    if isinstance(node, For):
        return replace(node, body=tuple(_absorbing(n, guards) for n in node.body))
    assert isinstance(node, (Collect, Contribute, Apply))
    return replace(node, guards=guards)
