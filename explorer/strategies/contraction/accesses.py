"""Accesses of a leaf over the loops around it: elements, strides, and how wide a thread may read along them."""

from __future__ import annotations

from math import prod

from ...ir.expr import Expr
from ...ir.plan import Plan
from ...ir.tree import Leaf, ranges
from ...transforms._axes import extents_of, walked_as_one


def written(plan: Plan, leaf: Leaf, slot: int) -> list[Expr]:
    """The index of an access as it is written."""
    return [e for e in plan.statement_of[leaf.statement].accesses[slot].index if isinstance(e, Expr)]


def index_of(plan: Plan, leaf: Leaf, slot: int) -> tuple[Expr, ...] | None:
    """The element of an access over the loops around, or None where it is data-dependent."""
    hit, access = plan.find(leaf.id), plan.statement_of[leaf.statement].accesses[slot]
    assert hit is not None
    at, scope = dict(leaf.at), ranges(hit[1])
    found = [e.substitute(at, scope) if isinstance(e, Expr) else None for e in access.index]
    return None if None in found else tuple(e for e in found if e is not None)


def walked(plan: Plan, leaf: Leaf, slot: int) -> tuple[tuple[int, ...], tuple[Expr, ...]] | None:
    """The stored extents of an access's array and the element, axes that a coalesced loop walks as one joined; or None."""
    index, array = index_of(plan, leaf, slot), plan.array_of[plan.statement_of[leaf.statement].accesses[slot].array]
    hit = plan.find(leaf.id)
    if index is None or hit is None:
        return None
    if array.stored != array.shape or all(isinstance(atom, str) for e in index for atom, _ in e.terms):
        return tuple(array.stored), index
    scope = ranges(hit[1])
    axes, (one,) = walked_as_one([index], array.shape, [scope])
    return extents_of(axes), one


def strides_of(plan: Plan, leaf: Leaf, slot: int) -> dict[str, int]:
    """Elements from one iteration of each loop to the next."""
    (shape, index), out, step = walked(plan, leaf, slot) or ((), ()), dict[str, int](), 1
    for e, extent in zip(reversed(index), reversed(shape), strict=True):
        for atom, c in e.terms:
            if isinstance(atom, str):
                out[atom] = out.get(atom, 0) + c * step
        step *= extent
    return out


def vector_of(plan: Plan, leaf: Leaf, slot: int, run: set[str]) -> int:
    """Elements of one access along the loops of a run: as many as 16 bytes hold, if all runs begin at a multiple of them."""
    (shape, index), steps = walked(plan, leaf, slot) or ((), ()), strides_of(plan, leaf, slot)
    array = plan.array_of[plan.statement_of[leaf.statement].accesses[slot].array]
    still = {name for name in steps if plan.loops[name].extent == 1}
    start = sum(e.const * prod(shape[axis + 1:]) for axis, e in enumerate(index))
    size = 16 // array.dtype.bytes if any(steps.get(name) == 1 for name in run) else 1
    while size > 1 and (start % size or any(step % size for name, step in steps.items() if name not in run | still)):
        size //= 2
    return size
