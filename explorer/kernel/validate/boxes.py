"""Bulk copies and stores as the loops that they are: what the hardware does with each element of a box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ...ir.expr import ZERO, Expr, Ranges, const, quotient, remainder, var
from ...ir.swizzle import cells, offset
from ...ir.tree import Loop
from ..conditions import Condition
from ..nodes import BulkCopy, BulkStore, Copy, Do, For, If, Mbarriers, Node, Ref
from ..sites import Lowered, Store


@dataclass(frozen=True)
class Boxed(Copy):
    """One element of a bulk copy, and where its bytes are counted."""

    counted: Mbarriers | None = None
    slot: Expr = ZERO
    swizzle: int = 0


def unfolded(low: Lowered, node: BulkCopy) -> Node:
    """The loops over the elements of a box: each goes to its place behind the first one, and those beyond the array are zeros."""
    index, place, loops = _elements(low, node)
    shape, ranges = node.map.shape, {**node.site.ranges, **{name: (0, n - 1) for name, n in loops}}
    inside = tuple(c for e, n in zip(index, shape, strict=True) for c in (Condition(e), Condition(-e + (n - 1))))
    to = Ref(node.to.store, _element(node.to.store, node.to, place, ranges))
    source = Ref(node.map.store, _apart(index, node.map.axes))
    out: Node = Boxed(node.site, to, source, source.store.dtype.bytes, 1, inside, ids=node.ids, counted=node.counted,
                      slot=node.slot, swizzle=node.map.swizzle)
    return _in_loops(out, loops, node.loops)


@dataclass(frozen=True)
class BoxStored(Do):
    """One element of a bulk store."""

    swizzle: int = 0


def unfolded_store(low: Lowered, node: BulkStore) -> Node:
    """The loops over the elements of a box that is stored: each comes from its place behind the first one.

    The hardware leaves out those behind the array.  It knows no boxes that begin before it: what lies there would be stored.
    """
    index, place, loops = _elements(low, node)
    ranges = {**node.site.ranges, **{name: (0, n - 1) for name, n in loops}}
    clipped = (-at + (n - 1) for at, n in zip(index, node.map.shape, strict=True))
    inside = tuple(Condition(e) for e in clipped if e.interval(ranges)[0] < 0)
    source = Ref(node.source.store, _element(node.source.store, node.source, place, ranges))
    target = Ref(node.map.store, _apart(index, node.map.axes))
    out: Node = BoxStored(node.site, target, (source,), ids=node.ids, swizzle=node.map.swizzle)
    return _in_loops(If(inside, (out,)) if inside else out, loops, node.loops)


def _elements(low: Lowered, node: BulkCopy | BulkStore) -> tuple[list[Expr], Expr, list[tuple[str, int]]]:
    """Of a box: the index in the array as the hardware sees it, how far behind the first element, and the loops over both."""
    box = node.map.box if isinstance(node, BulkStore) else node.box
    counters = [low.variable[x.id] for x in node.loops]
    names = [*counters, *(f"{counters[-1] if counters else ''}+{n}" for n in range(len(box)))]
    index, place, loops = list[Expr](), ZERO, list[tuple[str, int]]()
    for first, n, by in zip(node.first, box, node.map.steps, strict=True):
        step = var(names[len(loops)]) if n > 1 else ZERO
        loops += [(names[len(loops)], n)] if n > 1 else []
        index.append(first + step * by)
        place = place * n + step
    return index, place, loops


def _in_loops(out: Node, loops: Sequence[tuple[str, int]], planned: Sequence[Loop]) -> Node:
    for number, (name, n) in reversed(list(enumerate(loops))):
        out = For(name, 0, n, (out,), "unroll", planned[min(number, len(planned) - 1)])
    return out


def _apart(index: Sequence[Expr], axes: Sequence[Sequence[int]]) -> tuple[Expr, ...]:
    """The element of the array, of which the hardware sees some axes as one."""
    out = list[Expr]()
    for e, joined in zip(index, axes, strict=True):
        inside = [prod(joined[axis + 1:]) for axis in range(len(joined))]
        out += [quotient(e, n) if axis == 0 else remainder(quotient(e, n), joined[axis]) for axis, n in enumerate(inside)]
    return tuple(out)


def _element(store: Store, first: Ref, behind: Expr, ranges: Ranges) -> tuple[Expr, ...]:
    """The index of the element of a shared array that lies so far behind another one."""
    assert store.buffer is not None
    index = [e for e in first.index if isinstance(e, Expr)]
    extents = cells(store.buffer, index, ranges)[1]
    rest, found = offset(store.buffer, index, ranges) + behind, list[Expr]()
    for n in reversed(extents):
        found.insert(0, remainder(rest, n, ranges) if len(found) + 1 < len(extents) else rest)
        rest = quotient(rest, n, ranges)
    if len(extents) > len(index):  # the panel stands before the row
        *outer, panel, row, inside = found
        found = [*outer, row, panel * const(extents[-1]).const + inside]
    return tuple(found)
