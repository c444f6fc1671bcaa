"""Two loops that are the parts of one: the second runs what the first does, in the iterations that follow.

The bodies are compared node by node: their loops, leaves and buffers have other names, and the second loop may count from
elsewhere.  Nothing is taken on trust from the step that made them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..ir.expr import Expr, Ranges, var
from ..ir.plan import Buffer
from ..ir.tree import Leaf, Loop, Node, Sync, walk


@dataclass
class _Twins:
    """What the second of two bodies is called in the first: its loops, as expressions of the first's, and its buffers.

    `scope` has the ranges of the first's loops in the second's iterations.
    """

    scope: dict[str, tuple[int, int]]
    loops: dict[str, Expr]
    buffers: dict[str, str] = field(default_factory=dict)

    def alike(self, ours: Expr, theirs: Expr) -> bool:
        """Whether the second's expression is the first's, in the second's iterations."""
        return ours.simplify(self.scope) == theirs.substitute(self.loops, self.scope)


def continued(first: Loop, second: Loop, scope: Ranges, buffers: dict[str, Buffer]) -> dict[str, str] | None:
    """The second loop's own buffers, with those of the first that stand for them, where both are parts of one loop; else None.

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
    twins = _Twins({**scope, first.id: (behind, behind + second.extent - 1)}, {second.id: var(first.id) - behind + second.start})
    if not _are_twins(first.body, second.body, twins):
        return None
    if len(set(twins.buffers.values())) < len(twins.buffers):
        return None
    inside = {second.id: first.id, **{b.id: a.id for a, b in zip(walk(first.body), walk(second.body), strict=True)}}
    for b, a in twins.buffers.items():
        ours, theirs = buffers[a], buffers[b]
        own = theirs.scope in inside
        if own != (a != b) or (own and replace(theirs, name=a, scope=inside[theirs.scope]) != ours):
            return None
    return {b: a for b, a in twins.buffers.items() if a != b}


def _are_twins(ours: tuple[Node, ...], theirs: tuple[Node, ...], twins: _Twins) -> bool:
    """Whether the second nodes do what the first ones do; notes who is whose twin."""
    return len(ours) == len(theirs) and all(_is_twin(a, b, twins) for a, b in zip(ours, theirs, strict=True))


def _is_twin(a: Node, b: Node, twins: _Twins) -> bool:
    match a, b:
        case Loop(), Loop():
            if (a.extent, a.role, a.start, a.trimmed) != (b.extent, b.role, b.start, b.trimmed):
                return False
            twins.loops[b.id], twins.scope[a.id] = var(a.id), a.range
            return _are_twins(a.body, b.body, twins)
        case Leaf(), Leaf():
            return _is_twin_leaf(a, b, twins)
        case Sync(), Sync():
            return (a.kind, a.pending) == (b.kind, b.pending)
        case _:
            return False


def _is_twin_leaf(a: Leaf, b: Leaf, twins: _Twins) -> bool:
    if (a.statement, a.mechanism, a.multicast, len(a.views), len(a.sums)) != (
            b.statement, b.mechanism, b.multicast, len(b.views), len(b.sums)) or a.collect or b.collect:
        return False
    if [d for d, _ in a.at] != [d for d, _ in b.at] or [e for e, _ in a.sums] != [e for e, _ in b.sums]:
        return False
    values = [(x[1], y[1]) for x, y in zip((*a.at, *a.sums), (*b.at, *b.sums), strict=True)]
    for (slot, v), (other, w) in zip(a.views, b.views, strict=True):
        if slot != other or twins.buffers.setdefault(w.buffer, v.buffer) != v.buffer or (v.lane is None) != (w.lane is None):
            return False
        values += zip((*v.index, *v.element), (*w.index, *w.element), strict=True)
        values += [(v.lane, w.lane)] if v.lane is not None and w.lane is not None else []
    return all(twins.alike(x, y) for x, y in values) and _same_times(a, b, twins)


def _same_times(a: Leaf, b: Leaf, twins: _Twins) -> bool:
    """Whether the loops' values are the same functions of the statement's dimensions."""
    theirs = dict(b.when)
    twice = {loop: e for loop, e in a.when if loop not in theirs}
    for loop, e in b.when:
        of = twins.loops.get(loop)
        if of is None:
            if dict(a.when).get(loop) != e:
                return False
            continue
        name = next(iter(of.variables()))
        if twice.pop(name, None) != e - of.const:
            return False
    return not twice
