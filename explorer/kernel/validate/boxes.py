"""Bulk copies as the loops that they are: what the hardware does with each element of a box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ...ir.expr import ZERO, Expr, Ranges, const, quotient, remainder, var
from ...ir.swizzle import cells, offset
from ..conditions import Condition
from ..nodes import BulkCopy, Copy, For, Mbarriers, Node, Ref
from ..sites import Lowered, Store


@dataclass(frozen=True)
class Boxed(Copy):
    """One element of a bulk copy, and where its bytes are counted."""

    counted: Mbarriers | None = None
    slot: Expr = ZERO
    swizzle: int = 0


def unfolded(low: Lowered, node: BulkCopy) -> Node:
    """The loops over the elements of a box: each goes to its place behind the first one, and those beyond the array are zeros."""
    counters = [low.variable[x.id] for x in node.loops]
    names = [*counters, *(f"{counters[-1] if counters else ''}+{n}" for n in range(len(node.box)))]
    index, place, loops = list[Expr](), ZERO, list[tuple[str, int]]()
    for first, n, by in zip(node.first, node.box, node.map.steps, strict=True):
        step = var(names[len(loops)]) if n > 1 else ZERO
        loops += [(names[len(loops)], n)] if n > 1 else []
        index.append(first + step * by)
        place = place * n + step
    shape, ranges = node.map.shape, {**node.site.ranges, **{name: (0, n - 1) for name, n in loops}}
    inside = tuple(c for e, n in zip(index, shape, strict=True) for c in (Condition(e), Condition(-e + (n - 1))))
    to = Ref(node.to.store, _element(node.to.store, node.to, place, ranges))
    source = Ref(node.map.store, _apart(index, node.map.axes))
    out: Node = Boxed(node.site, to, source, source.store.dtype.bytes, 1, inside, (), node.ids, node.counted, node.slot,
                      node.map.swizzle)
    for number, (name, n) in reversed(list(enumerate(loops))):
        out = For(name, 0, n, (out,), "unroll", node.loops[min(number, len(node.loops) - 1)])
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
