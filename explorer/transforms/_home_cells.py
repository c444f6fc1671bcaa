"""Register cells by the loops of the statement that writes an array: its other users find an element's cell from the element.

A fragment of one tensor instruction is often a fragment of the next one: the sums of one product are a factor of another, in the
same lane, but the two run through their registers in different orders.  The writer's loops number the cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..ir.expr import Expr, const, var
from ..ir.tree import Loop, ranges
from ._uses import Use

Cell = tuple[tuple[int, ...], tuple[Expr, ...]]
"""Extents of a buffer, and one access's cell in it."""


def home_cells(found: Sequence[Use], depth: int) -> Iterator[tuple[Use, tuple[Cell, ...]]]:
    """Each writer whose loops follow from the element, those in most loops first; extents and cell of every access by its loops.

    Parameters
    ----------
    found : sequence of Use
        All accesses of an array.
    depth : int
        How many loops around them are outside of the buffer's scope.
    """
    for home in sorted((u for u in found if u.writes), key=lambda u: -len(u.above)):
        if (cells := _cells(home, found, depth)) is not None:
            yield home, cells


def by_same_threads(home: Use, found: Sequence[Use]) -> bool:
    """Whether the thread that uses an element is the one in which a writer's loops make it, as far as the element tells that."""
    when, axes = dict(home.leaf.when), axes_of(home)
    told = [x for x in home.above if x.is_thread and when[x.id].variables() <= axes.keys()]
    for u in found:
        index, once = u.index(), {x.id: const(x.start) for x in u.above if x.extent == 1}
        element = {dim: index[axis] - offset for dim, (axis, offset) in axes.items()}
        for x in told:
            there = when[x.id].substitute(element, ranges(u.above)).substitute(once)
            own = next((y for y in u.above if y.role == x.role), None)
            if there != (var(own.id).substitute(once) if own else Expr()):
                return False
    return True


def _cells(home: Use, found: Sequence[Use], depth: int) -> tuple[Cell, ...] | None:
    """The same, with the cells that one writer's loops number."""
    when, axes = dict(home.leaf.when), axes_of(home)
    moved = {name for e in home.index() for name in e.variables()}
    own: list[Loop] = [x for x in home.above[depth:] if not x.is_place and x.extent > 1 and x.id in moved]
    if any(x.id not in when or not when[x.id].variables() <= axes.keys() for x in own):
        return None
    cells, spans = list[tuple[Expr, ...]](), list[list[tuple[int, int]]]()
    for u in found:
        scope, index = ranges(u.above), u.index()
        element = {dim: index[axis] - offset for dim, (axis, offset) in axes.items()}
        cells.append(tuple(when[x.id].substitute(element, scope) for x in own))
        spans.append([e.interval(scope) for e in cells[-1]])
    lows = [min(low for low, _ in axis) for axis in zip(*spans, strict=True)]
    shape = tuple(max(high for _, high in axis) - low + 1 for axis, low in zip(zip(*spans, strict=True), lows, strict=True))
    return tuple((shape, tuple(e - low for e, low in zip(cell, lows, strict=True))) for cell in cells)


def axes_of(u: Use) -> dict[str, tuple[int, int]]:
    """For each dimension of a statement that is an index of its target by itself: the axis, and what is added to it."""
    out: dict[str, tuple[int, int]] = {}
    for axis, e in enumerate(u.access.index):
        if isinstance(e, Expr) and len(e.terms) == 1 and isinstance(name := e.terms[0][0], str) and e - e.const == var(name):
            out.setdefault(name, (axis, e.const))
    return out
