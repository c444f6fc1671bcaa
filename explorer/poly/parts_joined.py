"""Two loops that are the parts of one: the second runs what the first does, in the iterations that follow.

The bodies are compared node by node: their loops, leaves and buffers have other names, the second loop may count from elsewhere,
and what holds in a part's iterations alone may have made its expressions shorter.  Nothing is taken on trust from the step that
made them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..ir.expr import ZERO, Expr, Ranges, var
from ..ir.plan import Buffer
from ..ir.tree import Leaf, Loop, Node, Sync, View, kept, walk


@dataclass
class _Twins:
    """What the second of two bodies is called in the first: its loops, as expressions of the first's, and its buffers.

    `first`, `second` and `whole` are the ranges of the first's loops in the iterations of each part, and in all.
    """

    first: dict[str, tuple[int, int]]
    second: dict[str, tuple[int, int]]
    whole: dict[str, tuple[int, int]]
    loops: dict[str, Expr]
    buffers: dict[str, str] = field(default_factory=dict)

    def one(self, ours: Expr, theirs: Expr) -> Expr | None:
        """The expression that is the first's in its iterations and the second's in those; None where neither of them is both."""
        if ours.simplify(self.second) == theirs.substitute(self.loops, self.second):
            return ours
        wide = theirs.substitute(self.loops, self.whole)
        return wide if wide.simplify(self.first) == ours else None


def joined(first: Loop, second: Loop, scope: Ranges, buffers: dict[str, Buffer]) -> tuple[Loop, dict[str, str]] | None:
    """Two parts of a loop as one, and the second's own buffers with those of the first that stand for them; or None.

    Parameters
    ----------
    first, second : Loop
        Neighbours; the second stands behind the first.
    scope : Ranges
        Of the loops around both.
    buffers : dict
        All of the plan, by name.
    """
    if any(x.role != "seq" or x.trimmed or not x.extent for x in (first, second)):
        return None
    behind = first.start + first.extent
    end = behind + second.extent - 1
    twins = _Twins({**scope, first.id: first.range}, {**scope, first.id: (behind, end)}, {**scope, first.id: (first.start, end)},
                   {second.id: var(first.id) - behind + second.start})
    if (body := _bodies(first.body, second.body, twins)) is None or len(set(twins.buffers.values())) < len(twins.buffers):
        return None
    inside = {second.id: first.id, **{b.id: a.id for a, b in zip(walk(first.body), walk(second.body), strict=True)}}
    for b, a in twins.buffers.items():
        ours, theirs = buffers[a], buffers[b]
        own = theirs.scope in inside
        if own != (a != b) or (own and theirs.space == "global"):  # global memory outlives an iteration
            return None
        if own and replace(theirs, name=a, scope=inside[theirs.scope]) != ours:
            return None
    return replace(first, extent=first.extent + second.extent, body=body), {b: a for b, a in twins.buffers.items() if a != b}


def _bodies(ours: tuple[Node, ...], theirs: tuple[Node, ...], twins: _Twins) -> tuple[Node, ...] | None:
    """What the first nodes do in the first iterations and the second ones in the others; notes who is whose twin."""
    if len(ours) != len(theirs):
        return None
    out: list[Node] = []
    for a, b in zip(ours, theirs, strict=True):
        if (node := _one_node(a, b, twins)) is None:
            return None
        out.append(node)
    return kept(ours, out)


def _one_node(a: Node, b: Node, twins: _Twins) -> Node | None:
    match a, b:
        case Loop(), Loop():
            if (a.extent, a.role, a.start, a.trimmed) != (b.extent, b.role, b.start, b.trimmed):
                return None
            twins.loops[b.id] = var(a.id)
            for scope in (twins.first, twins.second, twins.whole):
                scope[a.id] = a.range
            body = _bodies(a.body, b.body, twins)
            return None if body is None else a.around(body)
        case Leaf(), Leaf():
            return _one_leaf(a, b, twins)
        case Sync(), Sync():
            return a if (a.kind, a.pending) == (b.kind, b.pending) else None
        case _:
            return None


def _one_leaf(a: Leaf, b: Leaf, twins: _Twins) -> Leaf | None:
    ours, theirs = ((x.statement, x.mechanism, x.multicast, [s for s, _ in x.views], [d for d, _ in x.at], [e for e, _ in x.sums])
                    for x in (a, b))
    if ours != theirs or a.collect or b.collect:
        return None
    views: list[tuple[int, View]] = []
    for (slot, v), (_, w) in zip(a.views, b.views, strict=True):
        if (view := _one_view(v, w, twins)) is None:
            return None
        views.append((slot, view))
    at, sums = _pairs(a.at, b.at, twins), _pairs(a.sums, b.sums, twins)
    if at is None or sums is None or not _same_times(a, b, twins):
        return None
    made = replace(a, at=at, views=tuple(views), sums=sums)
    return a if made == a else made


def _pairs(ours: tuple, theirs: tuple, twins: _Twins) -> tuple | None:
    """(key, value) of the first, each value as one of both parts."""
    found = [(key, twins.one(x, y)) for (key, x), (_, y) in zip(ours, theirs, strict=True)]
    return None if any(e is None for _, e in found) else tuple(found)


def _one_view(v: View, w: View, twins: _Twins) -> View | None:
    alike = (len(v.index), len(v.element), v.lane is None) == (len(w.index), len(w.element), w.lane is None)
    if twins.buffers.setdefault(w.buffer, v.buffer) != v.buffer or not alike:
        return None
    ours, theirs = ((*x.index, *x.element, ZERO if x.lane is None else x.lane) for x in (v, w))
    found = [e for x, y in zip(ours, theirs, strict=True) if (e := twins.one(x, y)) is not None]
    if len(found) != len(ours):
        return None
    return View(v.buffer, tuple(found[:len(v.index)]), tuple(found[len(v.index):-1]), None if v.lane is None else found[-1])


def _same_times(a: Leaf, b: Leaf, twins: _Twins) -> bool:
    """Whether the loops' values are the same functions of the statement's dimensions."""
    left = dict(a.when)
    for loop, e in b.when:
        of = twins.loops.get(loop, var(loop))
        if left.pop(next(iter(of.variables())), None) != e - of.const:
            return False
    return not left
