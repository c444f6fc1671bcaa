"""Where an element of a shared array lies: rows one after the other, in panels, or swizzled against bank conflicts.

A swizzle exchanges units of 16 bytes: the number of a unit within a row of the pattern is xor-ed with the number of the 128-byte
line, modulo the units of a row.  These are the patterns of tensor maps and of matrix descriptors (PTX ISA, "Swizzling Modes" and
"Matrix descriptor"); a pattern repeats after 8 lines, so the array begins at a multiple of 1024 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from .expr import Expr, Ranges, const, quotient, rejoin, remainder
from .plan import Buffer

MODES = (32, 64, 128)
"""Bytes of a row of each pattern."""
LINE, UNIT = 128, 16
"""Bytes over all banks, and of what changes places as one."""
ALIGNMENT = 1024
"""Bytes after which every pattern repeats."""


def offset(buffer: Buffer, index: Sequence[Expr], ranges: Ranges) -> Expr:
    """The place of an element in elements, as it is before the swizzle: row-major, or row-major in panels."""
    shape, place = buffer.padded_shape, const(0)
    if not buffer.panel or not shape:
        for e, extent in zip(index, shape, strict=True):
            place = place * extent + e
        return rejoin(place)
    (*outer, row, column), (*around, rows, columns) = (index, shape) if len(shape) > 1 else ((const(0), *index), (1, *shape))
    for e, extent in zip(outer, around, strict=True):
        place = place * extent + e
    panel, inside = quotient(column, buffer.panel, ranges), remainder(column, buffer.panel, ranges)
    return rejoin(place * (rows * columns) + panel * (rows * buffer.panel) + row * buffer.panel + inside)


def swizzled(place: int, mode: int, size: int) -> int:
    """Where the element of `size` bytes whose offset is `place` really lies, in elements, by one of the :data:`MODES`."""
    if not mode:
        return place
    line, unit = place * size // LINE, UNIT // size
    return place ^ (line % (mode // UNIT) * unit)
