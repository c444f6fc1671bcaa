"""Fragments moved from and to shared memory by ``ldmatrix`` and ``stmatrix``: the one place where it is decided what is one.

One instruction moves one, two or four matrices of eight rows of 16 bytes.  Lane ``8 * m + q`` of the warp says where row `q` of
matrix `m` begins; lane ``4 * q + c`` gets, or gives, 4 bytes of row `q`, those in its c-th word.  Transposed, of elements of 16
bits, lane ``4 * c + p`` has elements `c` of rows ``2 * p`` and ``2 * p + 1`` (PTX ISA, "ldmatrix", "stmatrix").
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import gcd

import numpy as np

from ..ir.expr import Expr, Ranges, const, quotient, remainder, var
from ..ir.layout import LANES
from ..ir.plan import Plan
from ..ir.regroup import without_remainders
from ..ir.scalar import Read
from ..ir.tree import Leaf, Loop, ranges
from .lane_reads import in_whole_warps

ROW_BYTES, WORD = 16, 4
"""Bytes of a row of a matrix, and of what one lane gets of it."""
LOAD, STORE = "ldmatrix", "stmatrix"
MOVES = (LOAD, STORE)
"""Mechanisms of leaves that are such instructions."""
FIRST_STORES = 90
"""The first architecture that has ``stmatrix``."""


@dataclass(frozen=True)
class MatrixMove:
    """A load or a store of matrices.

    Attributes
    ----------
    count : int
        Matrices: 1, 2 or 4.
    transposed : bool
    register, lane : str
        The loops over the fragment; the second over the lanes of a warp, or the threads of a warpgroup.
    row : tuple of Expr
        Index of the first element of the row that each lane names, over the lane's own number (the loop `lane`).
    first : Expr
        Index of the first register along the last dimension of the fragment's array.
    """

    count: int
    transposed: bool
    register: str
    lane: str
    row: tuple[Expr, ...]
    first: Expr


@dataclass(frozen=True)
class NoMove:
    """Why a copy is no such instruction, and what would help."""

    what: str
    why: str
    hint: str = ""


def matrix_move(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], mechanism: str) -> MatrixMove | NoMove:
    """The load or store that a copy is, or why it is none.

    Parameters
    ----------
    plan : Plan
    leaf : Leaf
    above : tuple of Loop
        The loops around it, outermost first.
    mechanism : str
        One of `MOVES`.
    """
    statement, stores = plan.statement_of[leaf.statement], mechanism == STORE
    views = (leaf.view(0), leaf.view(len(statement.reads)))
    held, there = views if stores else views[::-1]
    fragment, shared = (plan.buffer_of[v.buffer] if v else None for v in (held, there))
    verb, moved = ("stores", "to") if stores else ("loads", "from")
    if fragment is None or shared is None or held is None or there is None or statement.value != Read(0) or statement.update or (
            (fragment.space, shared.space) != ("register", "shared") or leaf.collect or fragment.dtype != shared.dtype) or (
            not held.index or not there.index):
        return NoMove(f"{leaf.id} copies no fragment {moved} shared memory",
                      f"matrices move {moved} shared memory, and the registers of a warp hold them",
                      "outline the result twice, and contract it to registers and to shared memory" if stores else
                      "stage the array into shared memory, and from there into registers, and tensorize first")
    register, lane = above[-2:] if len(above) > 1 else (None, None)
    fragments = register and lane and _of_a_fragment(register, lane, stores) and in_whole_warps(plan, leaf, lane)
    if register is None or lane is None or not fragments or not (
            first := _first(held.index, register, fragment.shape[-1], stores)):
        return NoMove(f"{leaf.id} does not stand alone in loops over the registers and the lanes of a fragment",
                      "a whole warp moves the matrices together", "" if stores else "tensorize the product first")
    scope, at, own = ranges(above), dict(leaf.at), {register.id, lane.id}
    for c in (*statement.domain, *statement.inside):
        e = c.expr.substitute(at, scope)
        fails = e.interval(scope)[0] < 0
        if fails and not stores and c in statement.inside:
            return NoMove(f"{leaf.id} holds zeros beyond {shared.name}",
                          f"an instruction loads whole matrices, where {c} fails, too",
                          "a tile no larger than the array, or whole tiles in shared memory, with zeros beyond the edge")
        if e.variables() & own and fails and (c.equality or not is_uniform(e, own, scope)):
            return NoMove(f"{leaf.id} does not copy every element of its fragments", f"some lanes have none (where {c} fails)",
                          "stage whole tiles into shared memory, with zeros beyond the edge")
    size = fragment.dtype.bytes
    packed = max(WORD // size, 1)
    count, rest = divmod(register.extent, packed)
    if size > WORD or rest or count not in (1, 2, 4) or (shared.panel or shared.padded_shape[-1]) * size % ROW_BYTES:
        return NoMove(f"{leaf.id} {verb} {register.extent} elements of {size} bytes a lane",
                      f"an instruction {verb} 1, 2 or 4 words of 4 bytes, {moved} rows of whole 16 bytes",
                      f"split({register.id!r}, {4 * packed})" if stores and register.extent % (4 * packed) == 0 else "")
    for transposed in (False, True) if size == 2 else (False,):
        rows = _rows(there.index, register.id, lane, packed, count, transposed)
        if _is_move(there.index, rows, register, lane, packed, transposed):
            if not _aligned(rows[-1], ROW_BYTES // size):
                return NoMove(f"the rows that {leaf.id} {verb} do not begin at multiples of 16 bytes", f"column {rows[-1]}",
                              "tiles of a multiple of 16 bytes")
            return MatrixMove(count, transposed, register.id, lane.id, rows, first[0])
    return NoMove(f"the lanes of {leaf.id} do not share rows of 16 bytes of {shared.name}",
                  f"its elements lie at [{', '.join(map(str, there.index))}]")


def is_uniform(e: Expr, own: Collection[str], scope: Ranges) -> bool:
    """Whether ``e >= 0`` says the same for all values of its `own` variables, whatever the others are.

    Their part is between `low` and `high`, and the rest is some number more than a multiple of its coefficients' divisor: the
    least rest with which it can hold, it holds with all of them.
    """
    mine = [Expr((term,)) for term in e.terms if Expr((term,)).variables() & set(own)]
    if any(not m.variables() <= set(own) for m in mine):
        return False
    low, high = (sum(m.interval(scope)[end] for m in mine) for end in (0, 1))
    step = gcd(*(c for atom, c in e.terms if not Expr(((atom, c),)).variables() & set(own)))
    return -high + (e.const + high) % step + low >= 0 if step else e.const + low >= 0 or e.const + high < 0


def _first(index: tuple[Expr, ...], register: Loop, extent: int, stores: bool) -> tuple[Expr, ...]:
    """The fragment's first register of its array, in a tuple; an empty one where it does not lie in one piece, or is no array.

    A load fills an array whole, a store may take a part of one.
    """
    if not index:
        return ()
    *outer, last = index
    first = last - var(register.id)
    if register.id in set[str]().union(first.variables(), *(e.variables() for e in outer)):
        return ()
    return (first,) if stores or (first == const(0) and extent == register.extent) else ()


def _of_a_fragment(register: Loop, lane: Loop, stores: bool) -> bool:
    """Whether two loops, with nothing else in them, can run over the registers and the lanes of a fragment."""
    group = (stores and lane.role == "thread.x") or (lane.role == "lane" and lane.extent == LANES)
    whole = group and not lane.start and not register.start
    return whole and register.role in ("seq", "unroll", "tensor") and len(register.body) == len(lane.body) == 1


def _rows(index: tuple[Expr, ...], register: str, loop: Loop, packed: int, count: int, transposed: bool) -> tuple[Expr, ...]:
    """Where the row that each lane names begins: where the lane that has its first element finds that."""
    lane, known = loop.id, {loop.id: (0, loop.extent - 1)}
    warp = quotient(var(lane), LANES, known) * LANES
    matrix = remainder(quotient(var(lane), 8, known), count, known)
    row = remainder(var(lane), 8, known)
    if transposed:
        first = {register: matrix * packed + remainder(row, 2, known), lane: warp + quotient(row, 2, known)}
    else:
        first = {register: matrix * packed, lane: warp + row * 4}
    return tuple(e.substitute(first, known) for e in index)


def _is_move(index: tuple[Expr, ...], rows: tuple[Expr, ...], register: Loop, lane: Loop, packed: int, transposed: bool) -> bool:
    """Whether the instruction moves every lane's elements: for all registers and lanes, whatever the other loops are."""
    own = {register.id, lane.id}
    if any(not isinstance(atom, str) and atom.expr.variables() & own and not atom.expr.variables() <= own
           for e in index for atom, _ in e.terms):
        return False
    others = {name: const(0) for e in index for name in e.variables() if name not in own}
    r, thread = np.meshgrid(np.arange(register.extent), np.arange(lane.extent), indexing="ij")
    matrix, part, at = r // packed, r % packed, thread % LANES
    row, column = (2 * (at % 4) + part, at // 4) if transposed else (at // 4, packed * (at % 4) + part)
    for axis, (e, first) in enumerate(zip(index, rows, strict=True)):
        found = e.substitute(others).evaluate({register.id: r, lane.id: thread})
        begins = first.substitute(others).evaluate({lane.id: thread - at + 8 * matrix + row})
        if not np.array_equal(np.broadcast_to(found, r.shape), begins + (column if axis == len(index) - 1 else 0) + 0 * r):
            return False
    return True


def _aligned(e: Expr, elements: int) -> bool:
    """Whether a row surely begins at a multiple of so many elements."""
    e = without_remainders(e)
    return gcd(e.const, *(c for _, c in e.terms)) % elements == 0
