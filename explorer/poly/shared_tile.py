"""How a warpgroup's instruction reads a factor in shared memory: the one place where it is decided whether it can.

A matrix descriptor knows one layout: rows of 32, 64 or 128 bytes, swizzled in units of 16 bytes, eight rows to a pattern, and a
stride from panel to panel (PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout").  The depth of the product runs
along these rows (K-major), or across them (MN-major).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from ..ir.expr import Expr, var
from ..ir.instructions import STEP_BYTES, Instruction, Wgmma, instruction
from ..ir.plan import Buffer, Plan
from ..ir.regroup import without_remainders
from ..ir.swizzle import MODES
from ..ir.tree import Leaf, View

ROWS = 8
"""Rows of a swizzle pattern."""


@dataclass(frozen=True)
class SharedTile:
    """What a descriptor says of a factor's tile.

    Attributes
    ----------
    swizzle : int
        Bytes of a row.
    transposed : bool
        Whether the depth runs across the rows (MN-major).
    panel_bytes, step_bytes : int
        From a panel to the next one, and from one instruction of the tile to the next one, along the depth.
    """

    swizzle: int
    transposed: bool
    panel_bytes: int
    step_bytes: int


@dataclass(frozen=True)
class NoTile:
    """Why no descriptor says where the tile is, and what would help."""

    why: str
    hint: str = ""


def shared_tile(row: Wgmma, buffer: Buffer, view: View, free: str, depth: str) -> SharedTile | NoTile:
    """How the instruction reads a factor, or why it cannot.

    Parameters
    ----------
    row : Wgmma
    buffer : Buffer
        In shared memory.
    view : View
        The access, over the loops around it.
    free, depth : str
        The loops of the tile over the factor's rows (or columns) and over the depth.
    """
    name, size, shape = buffer.name, buffer.dtype.bytes, buffer.padded_shape
    if len(view.index) < 2 or any(e.variables() & {free, depth} for e in view.index[:-2]):
        return NoTile(f"the tile is not the last two axes of {name}")
    across, along = view.index[-2:]
    transposed = depth in across.variables()
    outer, inner = (depth, free) if transposed else (free, depth)
    first, column = across - var(outer), along - var(inner)
    if (first.variables() | column.variables()) & {free, depth}:
        return NoTile(f"rows and columns of the tile are not rows and columns of {name}")
    if transposed and not row.transposable:
        return NoTile(f"the depth runs across the rows of {name}, and elements of {size * 8} bits cannot be read so",
                      "an array whose rows run along the depth")
    wide, rows = (buffer.panel or shape[-1]), shape[-2]
    if not buffer.swizzle or wide * size != buffer.swizzle:
        return NoTile(f"the rows of {name} are not swizzled", f"swizzle('{name}', {min(wide * size, max(MODES))})")
    if rows % ROWS or not _divides(ROWS, first):
        return NoTile(f"the tile does not begin at a multiple of {ROWS} rows of {name}")
    if transposed:
        if not _divides(wide, column):
            return NoTile(f"the tile does not begin at a panel of {name}", f"tiles of a multiple of {wide} columns")
        return SharedTile(buffer.swizzle, True, rows * buffer.swizzle, STEP_BYTES // size * buffer.swizzle)
    if wide % row.k or not _divides(row.k, column):
        return NoTile(f"the depth of the tile, {row.k}, does not lie in one row of {wide} elements of {name}",
                      f"a depth that divides {wide}")
    return SharedTile(buffer.swizzle, False, rows * buffer.swizzle, STEP_BYTES)


def _divides(number: int, e: Expr) -> bool:
    """Whether the value is surely a multiple."""
    e = without_remainders(e)
    return gcd(e.const, *(c for _, c in e.terms)) % number == 0


def tiles_of(plan: Plan, leaf: Leaf, row: Instruction, loops: tuple[str, str, str]) -> tuple[SharedTile, ...]:
    """How an instruction reads its factors in shared memory, the left one first; nothing where both are in registers.

    Raises
    ------
    ValueError
        If it cannot: the plan was not judged.
    """
    if not isinstance(row, Wgmma):
        return ()
    rows, columns, depth = loops
    out: list[SharedTile] = []
    for slot in row.shared:
        view, free = leaf.view(slot), (rows, columns)[slot]
        found = shared_tile(row, plan.buffer_of[view.buffer], view, free, depth) if view else NoTile("it is in global memory")
        if isinstance(found, NoTile):
            raise ValueError(f"operand {slot} of {leaf.id}: {found.why}")
        out.append(found)
    return tuple(out)


def read_by_tiles(plan: Plan) -> frozenset[str]:
    """The shared arrays that a warpgroup's instructions read."""
    return frozenset(view.buffer for leaf, _, _ in plan.leaves if isinstance(row := instruction(leaf.mechanism), Wgmma)
                     for slot, view in leaf.views if slot in row.shared)


def written_by_threads(plan: Plan) -> frozenset[str]:
    """The shared arrays that threads write by themselves: all but those that bulk copies fill."""
    return frozenset(view.buffer for leaf, _, _ in plan.leaves if leaf.mechanism != "bulk"
                     for slot, view in leaf.views if slot == len(plan.statement_of[leaf.statement].reads))
