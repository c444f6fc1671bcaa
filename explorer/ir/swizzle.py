"""Where an element of a shared array lies: rows one after the other, in panels, or swizzled against bank conflicts.

A swizzle exchanges units of 16 bytes: the number of a unit within a row of the pattern is xor-ed with the number of the 128-byte
line, modulo the units of a row.  These are the patterns of tensor maps and of matrix descriptors (PTX ISA, "Swizzling Modes" and
"Matrix descriptor"); a pattern repeats after 8 lines, so the array begins at a multiple of 1024 bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import gcd
from typing import Any

from .expr import Expr, Ranges, const, quotient, rejoin, remainder
from .plan import Buffer

MODES = (32, 64, 128)
"""Bytes of a row of each pattern."""
ROWS = 8
"""Rows after which each pattern repeats."""
LINE, UNIT = 128, 16
"""Bytes over all banks, and of what changes places as one."""
ALIGNMENT = 1024
"""Bytes after which every pattern repeats, and of whose multiple an array begins."""


def cells(buffer: Buffer, index: Sequence[Expr], ranges: Ranges) -> tuple[tuple[Expr, ...], tuple[int, ...]]:
    """The index of an element with its panel before its row, and the extents of such indices: row-major they give its place.

    Examples
    --------
    >>> from explorer.ir.dtype import DTYPES
    >>> from explorer.ir.expr import var
    >>> b = Buffer("y_s", DTYPES["f16"], (64, 256), "shared", panel=64)
    >>> cells(b, (var("k"), var("j")), {"k": (0, 63), "j": (0, 255)})
    (((j // 64), k, (j % 64)), (4, 64, 64))
    """
    shape = buffer.padded_shape
    if not buffer.panel or len(shape) < 2:
        return tuple(index), shape
    (*outer, row, column), (*around, rows, columns) = index, shape
    panel, inside = quotient(column, buffer.panel, ranges), remainder(column, buffer.panel, ranges)
    return (*outer, panel, row, inside), (*around, columns // buffer.panel, rows, buffer.panel)


def offset(buffer: Buffer, index: Sequence[Expr], ranges: Ranges) -> Expr:
    """The place of an element in elements, as it is before the swizzle: row-major, or row-major in panels."""
    place = const(0)
    for e, extent in zip(*cells(buffer, index, ranges), strict=True):
        place = place * extent + e
    return rejoin(place)


def apart(buffer: Buffer, index: Sequence[Expr], ranges: Ranges,
          unrolled: Collection[str] = ()) -> tuple[tuple[Expr, ...], Expr]:
    """The index of an element as that of the first in its unit of 16 bytes, and how far behind it is.

    A unit changes its place as a whole, so ``swizzled(first) + rest`` is the element's place, too, and neighbours are seen to be
    neighbours.  Where the rest would be a division of its own, it stays with the first, unless its loops are `unrolled`.
    """
    *outer, column = index
    unit, known = UNIT // buffer.dtype.bytes, {atom for atom, _ in column.terms}
    rest = remainder(column, unit, ranges)
    divided = Expr(tuple(t for t in rest.terms if t[0] not in known)).variables()
    return ((*outer, quotient(column, unit, ranges) * unit), rest) if divided <= frozenset(unrolled) else (tuple(index), const(0))


def by_patterns(buffer: Buffer, index: Sequence[Expr],
                ranges: Ranges) -> tuple[tuple[Expr, ...], tuple[int, ...], Expr]:
    """The index of an element in the first pattern of a swizzled array, with the extents of such indices, and how far on it is.

    A pattern repeats, so ``swizzled(place of the index) + beyond`` is the element's place, too.  What names a slot, a tile or an
    unrolled row is `beyond` as a rule: the same lanes read the same units of all of them, and a compiler sees it.
    """
    found, extents = cells(buffer, index, ranges)
    pattern = LINE // buffer.dtype.bytes * (buffer.swizzle // UNIT)
    inside, beyond, stride = list[Expr](), const(0), 1
    for e, extent in zip(reversed(found), reversed(extents), strict=True):
        step = pattern // gcd(pattern, stride)
        whole = Expr(tuple(t for t in e.terms if t[1] % step == 0), e.const // step * step)
        if (e - whole).interval(ranges)[0] < 0:  # a place within the pattern is none before it
            whole = const(0)
        inside.insert(0, e - whole)
        beyond, stride = beyond + whole * stride, stride * extent
    return tuple(inside), extents, beyond


def swizzled(place: Any, mode: int, size: int) -> Any:
    """Where the elements of `size` bytes whose offsets are `place` really lie, in elements, by one of the :data:`MODES`."""
    if not mode:
        return place
    line, unit = place * size // LINE, UNIT // size
    return place ^ (line % (mode // UNIT) * unit)


def shared_bytes(buffers: Iterable[Buffer]) -> int:
    """Bytes of shared memory that arrays take together: those that begin at multiples of 1024 bytes first, then the others."""
    return places_of([(b.nbytes, ALIGNMENT if b.is_placed else UNIT) for b in buffers if b.space == "shared"])[1]


def places_of(arrays: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], int]:
    """Where arrays begin in one allocation, and its bytes.

    Parameters
    ----------
    arrays : sequence of (int, int)
        Their bytes, and of what multiple (16 or more) they begin; those with the largest stand first.
    """
    places, end = [0] * len(arrays), 0
    for n, (nbytes, unit) in sorted(enumerate(arrays), key=lambda a: -a[1][1]):
        places[n] = -(-end // unit) * unit
        end = places[n] + -(-nbytes // UNIT) * UNIT
    return tuple(places), end
