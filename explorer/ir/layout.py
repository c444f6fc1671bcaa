"""Fragment layouts: in which lane and register of a warp, or of a warpgroup, each element of a matrix is.

Tensor instructions take their operands as *fragments*: every lane of a warp, or of the four warps of a warpgroup, holds some
elements in its registers.  Which ones is fixed by
the instruction (PTX ISA, "Matrix Fragments for mma").  All of these layouts follow one rule.  A register of 32 bits packs
neighbours of a row; eight rows of four such registers fill the warp; further rows and columns go to further registers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from .expr import Expr, Ranges, quotient, remainder, var

LANES = 32


@dataclass(frozen=True)
class Layout:
    """The fragment layout of a matrix.

    Attributes
    ----------
    rows, columns : int
    lane, register : Expr
        Where an element lies, over ``row`` and ``column``.
    row, column : Expr
        Which element lies there, over ``lane`` and ``register``: the inverse.
    lanes : int
        Threads that hold it together: a warp's 32, or a warpgroup's 128.
    """

    rows: int
    columns: int
    lane: Expr
    register: Expr
    row: Expr
    column: Expr
    lanes: int = LANES

    @property
    def registers(self) -> int:
        """How many elements each lane holds."""
        return self.rows * self.columns // self.lanes

    @property
    def elements(self) -> Ranges:
        """Intervals of ``row`` and ``column``."""
        return {"row": (0, self.rows - 1), "column": (0, self.columns - 1)}

    @property
    def places(self) -> Ranges:
        """Intervals of ``lane`` and ``register``."""
        return {"lane": (0, self.lanes - 1), "register": (0, self.registers - 1)}

    @property
    def transposed(self) -> Layout:
        """The same of the matrix whose rows are this one's columns."""
        swap = {"row": var("column"), "column": var("row")}
        return Layout(self.columns, self.rows, self.lane.substitute(swap), self.register.substitute(swap), self.column, self.row,
                      self.lanes)

    @cached_property
    def is_bijective(self) -> bool:
        """Whether each element has one place and each place one element, by enumeration."""
        rows, columns = np.meshgrid(np.arange(self.rows), np.arange(self.columns), indexing="ij")
        at = {"row": rows, "column": columns}
        lane, register = (np.broadcast_to(e.evaluate(at), rows.shape) for e in (self.lane, self.register))
        places = set(zip(lane.ravel().tolist(), register.ravel().tolist(), strict=True))
        every = {(x, r) for x in range(self.lanes) for r in range(self.registers)}
        there = {"lane": lane, "register": register}
        return places == every and bool(
            (self.row.evaluate(there) == rows).all() and (self.column.evaluate(there) == columns).all())


@cache
def fragment(rows: int, columns: int, packed: int) -> Layout:
    """The layout of a fragment whose registers pack neighbours of a row.

    Parameters
    ----------
    rows : int
        8 or 16.
    columns : int
        A multiple of ``4 * packed``.
    packed : int
        Elements in a register of 32 bits; 1 for elements of 32 bits and more.

    Returns
    -------
    Layout

    Examples
    --------
    The left operand of ``m16n8k16`` on halves: lane ``4 * (row % 8) + (column % 8) // 2``.

    >>> a = fragment(16, 16, 2)
    >>> a.registers, a.lane.evaluate({"row": 9, "column": 12}), a.register.evaluate({"row": 9, "column": 12})
    (8, 6, 6)
    """
    row, column, lane, register = (var(name) for name in ("row", "column", "lane", "register"))
    span, high = 4 * packed, rows // 8  # columns that one register of each lane covers; how often eight rows come
    size = packed * high
    places = {"lane": (0, LANES - 1), "register": (0, rows * columns // LANES - 1)}
    elements = {"row": (0, rows - 1), "column": (0, columns - 1)}
    return Layout(
        rows, columns,
        remainder(row, 8, elements) * 4 + quotient(remainder(column, span, elements), packed, elements),
        remainder(column, packed, elements) + quotient(row, 8, elements) * packed + quotient(column, span, elements) * size,
        quotient(lane, 4, places) + remainder(quotient(register, packed, places), high, places) * 8,
        remainder(register, packed, places) + remainder(lane, 4, places) * packed + quotient(register, size, places) * span,
    )


GROUP = 128
"""Threads of a warpgroup, four warps in a row (PTX ISA, "Warpgroup")."""


@cache
def group_fragment(columns: int, packed: int = 2) -> Layout:
    """The layout of 64 rows over a warpgroup: each warp has 16 of them (PTX ISA, "wgmma: Register Fragments").

    So accumulators lie, as pairs of neighbours whatever their type, and left factors, several to a register of 32 bits: what a
    product of halves leaves is, rounded, the left factor of the next one.

    Parameters
    ----------
    columns : int
        A multiple of ``4 * packed``.
    packed : int
        Neighbours of a row that are neighbours in registers.

    Returns
    -------
    Layout

    Examples
    --------
    >>> c = group_fragment(256)
    >>> c.registers, c.lane.evaluate({"row": 25, "column": 13}), c.register.evaluate({"row": 25, "column": 13})
    (128, 38, 7)
    """
    row, column, lane, register = (var(name) for name in ("row", "column", "lane", "register"))
    places = {"lane": (0, GROUP - 1), "register": (0, columns // 2 - 1)}
    elements = {"row": (0, 63), "column": (0, columns - 1)}
    in_warp, span, size = remainder(row, 16, elements), 4 * packed, 2 * packed
    return Layout(
        64, columns,
        quotient(row, 16, elements) * LANES + remainder(in_warp, 8, elements) * 4
        + quotient(remainder(column, span, elements), packed, elements),
        remainder(column, packed, elements) + quotient(in_warp, 8, elements) * packed + quotient(column, span, elements) * size,
        quotient(lane, LANES, places) * 16 + quotient(remainder(lane, LANES, places), 4, places)
        + remainder(quotient(register, packed, places), 2, places) * 8,
        remainder(register, packed, places) + remainder(lane, 4, places) * packed + quotient(register, size, places) * span,
        GROUP,
    )
