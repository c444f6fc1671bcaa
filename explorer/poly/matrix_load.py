"""Fragments loaded from shared memory by ``ldmatrix``: the one place where it is decided whether a copy is such a load.

One instruction loads one, two or four matrices of eight rows of 16 bytes.  Lane ``8 * m + q`` of the warp says where row `q` of
matrix `m` begins; then lane ``4 * q + c`` has 4 bytes of row `q`, those in its c-th word.  Transposed, of elements of 16 bits,
lane ``4 * c + p`` has elements `c` of rows ``2 * p`` and ``2 * p + 1`` (PTX ISA, "ldmatrix").
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np

from ..ir.expr import Expr, const, quotient, remainder, var
from ..ir.layout import LANES
from ..ir.plan import Plan
from ..ir.regroup import without_remainders
from ..ir.scalar import Read
from ..ir.tree import Leaf, Loop, ranges

ROW_BYTES, WORD = 16, 4
"""Bytes of a row of a matrix, and of what one lane gets of it."""
MECHANISM = "ldmatrix"


@dataclass(frozen=True)
class MatrixLoad:
    """A load of matrices.

    Attributes
    ----------
    count : int
        Matrices: 1, 2 or 4.
    transposed : bool
    register, lane : str
        The loops over the fragment.
    row : tuple of Expr
        Index of the first element of the row that each lane names, over the lane's own number (the loop `lane`).
    """

    count: int
    transposed: bool
    register: str
    lane: str
    row: tuple[Expr, ...]


@dataclass(frozen=True)
class NoLoad:
    """Why a copy is no such load, and what would help."""

    what: str
    why: str
    hint: str = ""


def matrix_load(plan: Plan, leaf: Leaf, above: tuple[Loop, ...]) -> MatrixLoad | NoLoad:
    """The load that a copy is, or why it is none.

    Parameters
    ----------
    plan : Plan
    leaf : Leaf
    above : tuple of Loop
        The loops around it, outermost first.
    """
    statement = plan.statement_of[leaf.statement]
    target, source = leaf.view(len(statement.reads)), leaf.view(0)
    to = plan.buffer_of[target.buffer] if target else None
    come = plan.buffer_of[source.buffer] if source else None
    if to is None or come is None or target is None or source is None or (to.space, come.space) != ("register", "shared") or (
            statement.value != Read(0) or statement.update or leaf.collect or to.dtype != come.dtype):
        return NoLoad(f"{leaf.id} copies no fragment from shared memory",
                      "matrices are loaded from shared memory into the registers of a warp",
                      "stage the array into shared memory, and from there into registers, and tensorize first")
    register, lane = above[-2:] if len(above) > 1 else (None, None)
    if register is None or lane is None or not _of_a_fragment(register, lane) or (
            (target.index[-1:], register.extent) != ((var(register.id),), to.shape[-1])):
        return NoLoad(f"{leaf.id} does not stand alone in loops over the registers and the lanes of a fragment",
                      "a whole warp loads the matrices together", "tensorize the product first")
    scope, at, own = ranges(above), dict(leaf.at), {register.id, lane.id}
    for c in (*statement.domain, *statement.inside):
        e = c.expr.substitute(at, scope)
        if e.variables() & own and (c.equality or e.interval(scope)[0] < 0):
            return NoLoad(f"{leaf.id} does not copy every element of its fragments", f"some lanes have none (where {c} fails)",
                          "stage whole tiles into shared memory, with zeros beyond the edge")
    size = to.dtype.bytes
    packed = max(WORD // size, 1)
    count, rest = divmod(register.extent, packed)
    if size > WORD or rest or count not in (1, 2, 4) or (come.panel or come.padded_shape[-1]) * size % ROW_BYTES:
        return NoLoad(f"{leaf.id} fills {register.extent} elements of {size} bytes a lane",
                      "an instruction loads 1, 2 or 4 words of 4 bytes, from rows of whole 16 bytes")
    for transposed in (False, True) if size == 2 else (False,):
        rows = _rows(source.index, register.id, lane.id, packed, count, transposed)
        if _is_load(source.index, rows, register, lane, packed, transposed):
            if not _aligned(rows[-1], ROW_BYTES // size):
                return NoLoad(f"the rows that {leaf.id} loads do not begin at multiples of 16 bytes", f"column {rows[-1]}",
                              "tiles of a multiple of 16 bytes")
            return MatrixLoad(count, transposed, register.id, lane.id, rows)
    return NoLoad(f"the lanes of {leaf.id} do not share rows of 16 bytes of {come.name}",
                  f"its elements lie at [{', '.join(map(str, source.index))}]")


def _of_a_fragment(register: Loop, lane: Loop) -> bool:
    """Whether two loops, with nothing else in them, can run over the registers and the lanes of a fragment."""
    whole = lane.role == "lane" and lane.extent == LANES and not lane.start and not register.start
    return whole and register.role in ("seq", "unroll", "tensor") and len(register.body) == len(lane.body) == 1


def _rows(index: tuple[Expr, ...], register: str, lane: str, packed: int, count: int, transposed: bool) -> tuple[Expr, ...]:
    """Where the row that each lane names begins: where the lane that gets its first element finds that."""
    known = {lane: (0, LANES - 1)}
    matrix = remainder(quotient(var(lane), 8, known), count, known)
    row = remainder(var(lane), 8, known)
    if transposed:
        first = {register: matrix * packed + remainder(row, 2, known), lane: quotient(row, 2, known)}
    else:
        first = {register: matrix * packed, lane: row * 4}
    return tuple(e.substitute(first, known) for e in index)


def _is_load(index: tuple[Expr, ...], rows: tuple[Expr, ...], register: Loop, lane: Loop, packed: int, transposed: bool) -> bool:
    """Whether the instruction brings every lane its elements: for all registers and lanes, whatever the other loops are."""
    own = {register.id, lane.id}
    if any(not isinstance(atom, str) and atom.expr.variables() & own and not atom.expr.variables() <= own
           for e in index for atom, _ in e.terms):
        return False
    others = {name: const(0) for e in index for name in e.variables() if name not in own}
    r, at = np.meshgrid(np.arange(register.extent), np.arange(LANES), indexing="ij")
    matrix, part = r // packed, r % packed
    row, column = (2 * (at % 4) + part, at // 4) if transposed else (at // 4, packed * (at % 4) + part)
    for axis, (e, first) in enumerate(zip(index, rows, strict=True)):
        found = e.substitute(others).evaluate({register.id: r, lane.id: at})
        begins = first.substitute(others).evaluate({lane.id: 8 * matrix + row})
        if not np.array_equal(np.broadcast_to(found, r.shape), begins + (column if axis == len(index) - 1 else 0) + 0 * r):
            return False
    return True


def _aligned(e: Expr, elements: int) -> bool:
    """Whether a row surely begins at a multiple of so many elements."""
    e = without_remainders(e)
    return gcd(e.const, *(c for _, c in e.terms)) % elements == 0
