"""Sums that each term scatters over an array, as sums that each element gathers: transposed convolutions, `fold`, gradients.

``y[s*i + k] += x[i] * w[k]`` adds to one element in several iterations of both loops, so neither is parallel.  With
``k = s*j + r`` and ``q = i + j`` the element is ``s*q + r``, and its terms are those of ``j``: a split of the shorter loop by the
stride, a skew of the longer one.  With a dilation ``d`` instead of a stride, ``y[i + d*k]``, the skew alone does it.  Nests that
start or use the elements are divided in the same way, and fused.
"""

from __future__ import annotations

from ..ir.expr import Expr
from ..ir.tree import Leaf, Loop, Node
from ..schedule import Schedule
from ._steps import Builder, chain


def gathered_sums(schedule: Schedule) -> Schedule:
    """Let each element of a result gather what is added to it, wherever terms are scattered.

    Before::

        for o in 0…2*I+2
            y[o] = 0
        for i in 0…I
            for k in 0…4
                y[2*i + k] += x[i] * w[k]

    After::

        for o in 0…I+1
            for o.i in 0…2
                y[2*o + o.i] = 0
                for k in 0…2
                    y[2*o + o.i] += x[o - k] * w[2*k + o.i]      # where 0 <= o - k < I

    Parameters
    ----------
    schedule : Schedule
        A program as written.

    Returns
    -------
    Schedule
        Legal; the same schedule where nothing is scattered, or by more than two loops along an axis.
    """
    for leaf, _, _ in schedule.plan.leaves:
        if schedule.plan.statement_of[leaf.statement].update:
            schedule = _gathered(schedule, leaf.id)
    return schedule


def _gathered(schedule: Schedule, update: str) -> Schedule:
    """The schedule in which the elements that one update adds to gather their terms; the same one where that cannot be."""
    b = Builder(schedule)
    nest = _own_nest(b, update)
    if not any(_overlapping(e, nest) for e in _index(b, update)):
        return schedule
    parts, offsets = list[tuple[str, ...]](), list[int]()
    for axis in range(len(_index(b, update))):
        found = _divided(b, update, axis)
        if found is None:
            return schedule
        parts.append(found)
        offsets.append(-_index(b, update)[axis].const)
    nest = _own_nest(b, update)
    kept = [name for part in parts for name in part if name in {x.id for x in nest}]
    wanted = (*kept, *(x.id for x in nest if x.id not in kept))
    if wanted != tuple(x.id for x in nest) and not b.attempt("reorder", wanted):
        return schedule
    _fuse_alike(b, update, parts, offsets, len(kept))
    return b.schedule


def _own_nest(b: Builder, leaf: str) -> list[Loop]:
    """The loops around a statement that nothing else stands in, outermost first."""
    hit = b.plan.find(leaf)
    assert hit is not None
    above = hit[1]
    shared = max((n + 1 for n, x in enumerate(above) if len(x.body) > 1), default=0)
    return [*above[shared:]]


def _index(b: Builder, leaf: str) -> list[Expr]:
    """The element that a statement writes, in its loops."""
    hit = b.plan.find(leaf)
    assert hit is not None and isinstance(hit[0], Leaf)
    target = b.plan.statement_of[hit[0].statement].target
    return [e.substitute(hit[0].places) for e in target.index if isinstance(e, Expr)]


def _overlapping(e: Expr, nest: list[Loop]) -> bool:
    """Whether an element is the same in several iterations of both of the two loops that walk its axis."""
    if len(e.terms) != 2:
        return False
    extents = {x.id: x.extent for x in nest}
    (inner, least), (_, most) = sorted(e.terms, key=lambda term: abs(term[1]))
    if not all(atom in extents for atom, _ in e.terms):
        return False
    return abs(most) % abs(least) != 0 or (extents[str(inner)] - 1) * abs(least) >= abs(most)


def _divided(b: Builder, update: str, axis: int) -> tuple[str, ...] | None:
    """Let one loop, or two that do not overlap, walk an axis: their names, outermost first, or () for none; None if that fails."""
    e, nest = _index(b, update)[axis], _own_nest(b, update)
    if not _overlapping(e, nest):
        return tuple(atom for atom, _ in sorted(e.terms, key=lambda term: -term[1]) if isinstance(atom, str))
    names = [str(atom) for atom, _ in e.terms]
    for name in names:
        if e.coefficient(name) < 0 and not b.attempt("reverse", name):
            return None
    e, extents = _index(b, update)[axis], {x.id: x.extent for x in nest}
    taps, moved = sorted(names, key=lambda name: extents[name])
    dilation, stride = e.coefficient(taps), e.coefficient(moved)
    if 1 not in (dilation, stride):
        return None  # some elements between would have no terms
    residue = ""
    if stride > 1:
        residue = b.plan.fresh(f"{taps}.r")
        if not b.attempt("split", taps, stride, residue):
            return None
    order = [x.id for x in _own_nest(b, update)]
    if order.index(taps) > order.index(moved):
        order.remove(taps)
        order.insert(order.index(moved), taps)
        if not b.attempt("reorder", tuple(order)):
            return None
    if not b.attempt("skew", moved, taps, 1 if residue else dilation):
        return None
    return (moved, residue) if residue else (moved,)


def _fuse_alike(b: Builder, update: str, parts: list[tuple[str, ...]], offsets: list[int], depth: int) -> None:
    """Divide the nests beside an update's that run through the same elements as its own, and fuse them, as far as that works."""
    nest = _own_nest(b, update)
    top = nest[0].id
    own = [x.id for x in nest]
    for node in _siblings(b, top):
        if node.id != top:
            keep = b.schedule
            if not _alike(b, node, update, parts, offsets, own[:depth]):
                b.schedule = keep
    body = [n.id for n in _siblings(b, top)]
    for other in (body[body.index(top) - 1: body.index(top)] if body.index(top) else []):
        keep = b.schedule
        inner = [x.id for x in chain(b.plan.loops[other])][:depth] if other in b.plan.loops else []
        if len(inner) == depth and all(b.attempt("fuse", first, second) for first, second in zip(inner, own, strict=False)):
            own[:depth] = inner
        else:
            b.schedule = keep
    body = [n.id for n in _siblings(b, own[0])]
    for other in body[body.index(own[0]) + 1:]:
        keep = b.schedule
        inner = [x.id for x in chain(b.plan.loops[other])][:depth] if other in b.plan.loops else []
        if len(inner) < depth or not all(b.attempt("fuse", first, second) for first, second in zip(own, inner, strict=False)):
            b.schedule = keep
            return


def _siblings(b: Builder, node: str) -> tuple[Node, ...]:
    """The body that a node stands in."""
    outer = b.parent(node)
    return b.plan.loops[outer].body if outer else next(k.body for k in b.plan.kernels if any(n.id == node for n in k.body))


def _alike(b: Builder, node: Node, update: str, parts: list[tuple[str, ...]], offsets: list[int], own: list[str]) -> bool:
    """Divide a nest that visits elements of the update's array, one loop an axis, as the update's are; whether it is like it now."""
    nest = chain(node)
    if not nest or len(nest[-1].body) != 1 or not isinstance(nest[-1].body[0], Leaf):
        return False
    leaf = nest[-1].body[0]
    hit = b.plan.find(update)
    assert hit is not None and isinstance(hit[0], Leaf)
    array, statement = b.plan.statement_of[hit[0].statement].target.array, b.plan.statement_of[leaf.statement]
    access = next((a for a in statement.accesses if a.array == array), None)
    if access is None:
        return False
    names = {x.id for x in nest}
    wanted = list[str]()
    for e, part, offset in zip(access.index, parts, offsets, strict=True):
        here = e.substitute(leaf.places) if isinstance(e, Expr) else None
        if here is None or len(here.terms) > 1:
            return False
        mine = [atom for atom, c in here.terms if isinstance(atom, str) and c == 1 and atom in names]
        ours = [name for name in part if name in own]
        if len(mine) != bool(ours):
            if mine or ours:
                return False
            continue
        if not mine:
            continue
        (loop,) = mine
        if offset + here.const and not b.attempt("shift", loop, offset + here.const):
            return False
        wanted.append(loop)
        if len(part) == 2:
            inner = b.plan.fresh(f"{loop}.r")
            if not b.attempt("split", loop, b.extent(part[1]), inner, aligned=True):
                return False
            wanted.append(inner)
    now = [x.id for x in chain(b.plan.loops[nest[0].id])]
    if len(wanted) < len(now) or set(wanted) != set(now):
        return False
    return wanted == now or b.attempt("reorder", tuple(wanted))
