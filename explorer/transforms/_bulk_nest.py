"""The loops of a bulk copy: those that place its boxes, and innermost those over the elements of one box."""

from __future__ import annotations

from math import prod

from ..ir.expr import ZERO, Expr, const, quotient, remainder, var
from ..ir.plan import Plan
from ..ir.tree import Loop, ranges
from ..poly.bulk import GRAIN, MOST_ELEMENTS, MOST_STEP
from ._copy_nest import UNROLL_LIMIT, CopyNest
from ._uses import Box


def panel_width(row: int, size: int, swizzle: int) -> int:
    """Elements of a panel of a shared array whose rows have `row` elements of `size` bytes: as many as a row of a box has.

    With a swizzle a panel is as wide as its pattern.  Without one a row is not divided, if a box can hold it.
    """
    if swizzle:
        return swizzle // size
    wide = (n for n in range(min(row, MOST_ELEMENTS), 0, -1) if row % n == 0 and n * size % GRAIN == 0)
    return next(wide, row)


def bulk_nest(plan: Plan, name: str, path: tuple[Loop, ...], outer: tuple[Loop, ...], found: Box, panel: int) -> CopyNest:
    """The nest that copies a box of an array by bulk copies; it will stand in the body of the last loop of `path`.

    One copy moves as much as lies in one piece in shared memory, has at most 256 elements along a dimension, and has neighbours
    of the array beside each other: it begins with rows of a panel.  The first thread of each thread loop in `path` makes it.
    """
    whole, loops, inner = True, list[Loop](), list[Loop]()
    at, when, place = [ZERO] * len(found.extents), list[tuple[str, Expr]](), len(found.places)
    for axis, run in reversed(list(enumerate(found.apart))):
        d, stride, last = f"{name}[{axis}]", 1, axis == len(found.extents) - 1
        for position, n in reversed(list(enumerate(run))):
            place -= 1
            own = f"{name}.{axis}" if len(run) == 1 else f"{name}.{axis}.{position}"
            mine = remainder(quotient(var(d), stride), n, {d: (0, prod(run) - 1)}) if position else quotient(var(d), stride)
            limit = panel if last else MOST_ELEMENTS
            step = found.places[place][1]
            most = min(n, limit, MOST_ELEMENTS // step) if whole and 1 <= step <= (1 if last else MOST_STEP) else 1
            part = next(x for x in range(most, 0, -1) if n % x == 0)
            if part < n:
                outside = Loop(plan.fresh(own), n // part, (), "unroll" if n // part <= UNROLL_LIMIT else "seq")
                loops.insert(0, outside)
                at[axis] = at[axis] + var(outside.id) * (part * stride)
                when.append((outside.id, quotient(mine, part)))
            if part > 1:
                element = Loop(plan.fresh(f"{own}.i" if part < n else own), part, (), "tensor")
                inner.insert(0, element)
                at[axis] = at[axis] + var(element.id) * stride
                when.append((element.id, remainder(mine, part, {d: (0, prod(run) - 1)})))
            stride *= n
            whole = whole and (part == n or last)
        if axis == len(found.extents) - 2 and found.extents[-1] > panel:
            whole = False  # panels follow each other behind their rows
    if found.extents:
        at[0] = at[0] + _others(path) * found.extents[0]
    when += [(x.id, const(x.start)) for x in path if x.is_thread]
    scope_at = [(f"{name}.{x.id}", var(x.id)) for x in outer]
    scope_when = [(x.id, var(f"{name}.{x.id}")) for x in outer]
    box = tuple((f"{name}[{axis}]", e) for axis, e in enumerate(at))
    return CopyNest((*loops, *inner), (*scope_at, *box), tuple(sorted((*scope_when, *when))), len(found.extents))


def _others(path: tuple[Loop, ...]) -> Expr:
    """The number of a thread among those of the thread loops around: a copy of any but the first one lies outside of the box."""
    threads = [x for x in path if x.is_thread]
    total = ZERO
    for position, x in enumerate(threads):
        total = total + (var(x.id) - x.start) * prod(y.extent for y in threads[position + 1:])
    return total.simplify(ranges(path))
