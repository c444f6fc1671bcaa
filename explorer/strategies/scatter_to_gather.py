"""Sums that each term scatters over an array, as sums that each element gathers: transposed convolutions, `fold`, gradients.

``y[s*i + k] += x[i] * w[k]`` adds to one element in several iterations of both loops, so neither is parallel.  With
``k = s*j + r`` and ``q = i + j`` the element is ``s*q + r``, and its terms are those of ``j``: a split of the shorter loop by the
stride, a skew of the longer one.  With a dilation ``d`` instead of a stride, ``y[i + d*k]``, the skew alone does it; with both,
what divides stride and dilation is left out, and one of them has to be 1 then.  Nests that start or use the elements are divided
in the same way, and fused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd

from ..ir.expr import Expr, var
from ..ir.tree import Leaf, Loop, Node
from ..schedule import Schedule
from ._steps import Builder, chain


@dataclass(frozen=True)
class Axis:
    """How the loops of a nest walk an axis of a result: its index is the first loop, times a stride, and the second, and `const`.

    Attributes
    ----------
    loops : tuple of str
        One, two (places of the stride, and the elements between them), or none where the index is the same everywhere.
    stride : int
    const : int
    """

    loops: tuple[str, ...]
    stride: int
    const: int


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
    own = {x.id for x in _own_nest(b, update)}
    if not any(len(e.terms) == 2 and e.variables() <= own for e in _index(b, update)):
        return schedule
    axes = list[Axis]()
    for number in range(len(_index(b, update))):
        loops = _divided(b, update, number)
        if loops is None:
            return schedule
        e = _index(b, update)[number]
        axes.append(Axis(loops, e.coefficient(loops[0]) if loops else 1, e.const))
    names = [x.id for x in _own_nest(b, update)]
    kept = [name for axis in axes for name in axis.loops if name in names]
    if not _ordered(b, names[0], (*kept, *(name for name in names if name not in kept))):
        return schedule
    _fuse_neighbours(b, update, axes, kept)
    return b.schedule


def _own_nest(b: Builder, leaf: str) -> list[Loop]:
    """The loops around a statement that nothing else stands in, outermost first."""
    hit = b.plan.find(leaf)
    assert hit is not None
    above = hit[1]
    return [*above[max((n + 1 for n, x in enumerate(above) if len(x.body) > 1), default=0):]]


def _index(b: Builder, leaf: str) -> list[Expr]:
    """The element that a statement writes, in its loops."""
    found = _leaf(b, leaf)
    return [e.substitute(found.places) for e in b.plan.statement_of[found.statement].target.index if isinstance(e, Expr)]


def _leaf(b: Builder, name: str) -> Leaf:
    found = next(leaf for leaf, _, _ in b.plan.leaves if leaf.id == name)
    return found


def _overlapping(e: Expr, nest: list[Loop]) -> bool:
    """Whether an axis is walked by two loops of a nest of which several iterations together name one element."""
    extents = {x.id: x.extent for x in nest}
    if len(e.terms) != 2 or not all(atom in extents for atom, _ in e.terms):
        return False
    (inner, least), (_, most) = sorted(e.terms, key=lambda term: abs(term[1]))
    return most % least != 0 or (extents[str(inner)] - 1) * abs(least) >= abs(most)


def _divided(b: Builder, update: str, number: int) -> tuple[str, ...] | None:
    """Let one loop, or two that name each element once, walk an axis: their names, outermost first; None if that fails."""
    e, nest = _index(b, update)[number], _own_nest(b, update)
    if not _overlapping(e, nest):
        return tuple(atom for atom, _ in sorted(e.terms, key=lambda term: -term[1]) if isinstance(atom, str))
    taps, moved = sorted((str(atom) for atom, _ in e.terms), key=lambda name: b.extent(name))
    dilation, stride = abs(e.coefficient(taps)), abs(e.coefficient(moved))
    every = gcd(dilation, stride)  # elements between these have no terms
    dilation, stride = dilation // every, stride // every
    if 1 not in (dilation, stride):
        return None  # elements with terms lie in no even distance
    backwards = [name for name in (taps, moved) if e.coefficient(name) < 0]
    residue = (b.plan.fresh(f"{taps}.r"),) if stride > 1 else ()
    if not all(b.attempt("reverse", name) for name in backwards):
        return None
    if residue and not b.attempt("split", taps, stride, *residue):
        return None
    names = [x.id for x in _own_nest(b, update) if x.id != taps]
    outer = names.index(moved)
    if not (_ordered(b, update, (*names[:outer], taps, *names[outer:])) and b.attempt("skew", moved, taps, dilation)):
        return None
    return (moved, *residue)


def _ordered(b: Builder, leaf: str, wanted: tuple[str, ...]) -> bool:
    """Reorder the nest of a statement, or of its outermost loop, where it is another one; whether it is this one now."""
    now = chain(b.plan.loops[leaf]) if leaf in b.plan.loops else _own_nest(b, leaf)
    return tuple(x.id for x in now) == wanted or b.attempt("reorder", wanted)


def _fuse_neighbours(b: Builder, update: str, axes: list[Axis], kept: list[str]) -> None:
    """Divide the nests that stand right before and behind an update's and walk the same array, and fuse them with it."""
    top = _own_nest(b, update)[0].id
    body = [n.id for n in _siblings(b, top)]
    place = body.index(top)
    before, behind = body[:place][-1:], body[place + 1:]
    for other in before:
        keep, loops = b.schedule, _alike(b, other, update, axes, kept)
        if loops is None or not all(b.attempt("fuse", *pair) for pair in zip(loops, kept, strict=True)):
            b.schedule = keep
        else:
            axes, kept = _renamed(axes, dict(zip(kept, loops, strict=True))), loops
    for other in behind:
        keep, loops = b.schedule, _alike(b, other, update, axes, kept)
        if loops is None or not all(b.attempt("fuse", *pair) for pair in zip(kept, loops, strict=True)):
            b.schedule = keep
            return


def _renamed(axes: list[Axis], names: dict[str, str]) -> list[Axis]:
    return [replace(axis, loops=tuple(names.get(name, name) for name in axis.loops)) for axis in axes]


def _siblings(b: Builder, node: str) -> tuple[Node, ...]:
    """The body that a node stands in."""
    outer = b.parent(node)
    return b.plan.loops[outer].body if outer else next(k.body for k in b.plan.kernels if any(n.id == node for n in k.body))


def _alike(b: Builder, top: str, update: str, axes: list[Axis], kept: list[str]) -> list[str] | None:
    """Let a nest with one statement walk the array of an update as that does; its loops in the order of `kept`, or None."""
    nest = chain(b.plan.loops[top]) if top in b.plan.loops else []
    if not nest or len(nest[-1].body) != 1 or not isinstance(leaf := nest[-1].body[0], Leaf):
        return None
    array = b.plan.statement_of[_leaf(b, update).statement].target.array
    access = next((a for a in b.plan.statement_of[leaf.statement].accesses if a.array == array and a.affine), None)
    if access is None:
        return None
    loops, own = dict[str, str](), {x.id for x in nest}
    for e, axis in zip(access.index, axes, strict=True):
        here = e.substitute(leaf.places) if isinstance(e, Expr) else Expr()
        mine, ours = here.variables() & own, [name for name in axis.loops if name in kept]
        if not mine and not ours:
            continue
        if len(mine) != 1 or not ours or (len(ours) == 1 and axis.stride > 1) or here - here.const != var(loop := min(mine)):
            return None
        if (by := here.const - axis.const) and not b.attempt("shift", loop, by):
            return None
        loops[ours[0]] = loop
        if len(ours) == 2:
            loops[ours[1]] = b.plan.fresh(f"{loop}.r")
            if not b.attempt("split", loop, axis.stride, loops[ours[1]], aligned=True):
                return None
    if loops.keys() != {*kept} or len(chain(b.plan.loops[top])) != len(kept):
        return None
    wanted = [loops[name] for name in kept]
    return wanted if _ordered(b, top, tuple(wanted)) else None
