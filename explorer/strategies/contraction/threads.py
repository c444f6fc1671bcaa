"""Tiles of results in the registers of threads: which rows and columns of a block's tile are a thread's own, and their order.

A thread reads neighbours of a factor together, 16 bytes at a time: it owns groups of a vector of columns, which alternate with
those of the other threads in its row.  So the reads of a warp have no conflicts over the banks of shared memory, and its stores
fill whole sectors.  A factor whose rows lie along the depth is read in vectors along it: rows are dealt out one at a time, and
those of its copy are one vector longer than the depth, in other banks each.  Or its copy is stored transposed, and is read as the
other one.

An instruction (``FFMA``) reads three registers from two banks.  As far as machine code and its stalls tell (sm_90), a bank serves
one read a cycle; an operand that the instruction before had, too, comes from the reuse cache.  The order of the tile
(:func:`serpentine`) and single stores of results (:func:`deep`) are made for that.
"""

from __future__ import annotations

from math import gcd, prod

from .._steps import Builder
from .form import ProductForm
from .shapes import Tiling

DEEP = 256
"""Depth from which on register bank conflicts count for more than the width of stores (chosen, not fitted)."""


def deep(form: ProductForm) -> bool:
    """Whether results are stored one by one, from a tile that is walked in serpentine order.

    A vector that is stored stands in neighbouring registers, in the same banks as the factor's vector that it is multiplied with.
    Single results may stand in any registers.  4096 x 4096 x 4096 of f32 on an H200, in tiles of 64 x 64, by texts written by
    hand: 3,126 µs with neither, 3,022 in this order, 3,033 with single stores, 2,898 with both.
    """
    return form.extents[2] * prod(form.outer_extents) >= DEEP


def spread_over_threads(b: Builder, form: ProductForm, t: Tiling, rows: str, columns: str) -> tuple[str, ...]:
    """Deal the rows and columns of a block's tile out to its threads; the loops over a thread's own, rows before columns.

    Before::

        for i.w in 0…64
            for j.w in 0…64
                S

    After, for 8 × 8 threads that read columns 4 at a time::

        for i.w.t in 0…8                # thread.y
            for j.w.t in 0…8            # thread.x
                for i.w in 0…8
                    for j.w in 0…2
                        for j.w.v in 0…4
                            S           # row 8*i.w + i.w.t, column 32*j.w + 4*j.w.t + j.w.v
    """
    (left, _), (right, _) = t.sides(form)
    down, own_rows = _dealt(b, rows, t.down, left.together)
    across, own_columns = _dealt(b, columns, t.across, right.together)
    b.do("reorder", (down, across, *own_rows, *own_columns))
    b.do("bind", down, "thread.y").do("bind", across, "thread.x")
    return (*own_rows, *own_columns)


def serpentine(b: Builder, rows: list[str], columns: list[str]) -> list[str]:
    """Walk every second row of a thread's tile from its last column to its first; all loops over the tile.

    The first result of a row then shares its column with the last one of the row before, so that each multiply-add has an operand
    in common with the one before it, which the reuse cache keeps.  Machine code keeps about this order (NVRTC 13, sm_90).  Where
    no loop over rows has an even number of them, nothing changes.

    Before::

        for i in 0…8
            for j in 0…8
                S

    After::

        for i in 0…4
            for i.u in 0…1
                for j in 0…8
                    S           # row 2*i, column j
            for i.u.2 in 0…1
                for j.2 in 0…8
                    S           # row 2*i + 1, column 7 - j.2
    """
    row = next((x for x in reversed(rows) if b.extent(x) % 2 == 0), "")
    if not row:
        return [*rows, *columns]
    pair = row
    if b.extent(row) > 2:
        pair = b.plan.fresh(f"{row}.u")
        b.do("split", row, 2, inner=pair)
    above = [x for x in dict.fromkeys((*rows, row)) if x != pair]
    if row != rows[-1]:
        b.do("reorder", (*above, pair, *columns))
    known = set(b.plan.loops)
    b.do("cut", pair, 1)
    twins = [x for x in b.plan.loops if x not in known]
    for loop in twins:
        if b.extent(loop) > 1:
            b.do("reverse", loop)
    return [*above, pair, *columns, *twins]


def _dealt(b: Builder, loop: str, threads: int, together: int) -> tuple[str, list[str]]:
    """Give each of some threads its groups of at most so many neighbours; the loop over the threads, and those over its own."""
    each = b.extent(loop) // threads
    width = gcd(each, together)
    groups, thread, own = each // width, loop, list[str]()
    if width > 1 or groups == 1:
        own.append(b.plan.fresh(f"{loop}.v"))
        b.do("split", loop, width, inner=own[0])
    if groups > 1:
        thread = b.plan.fresh(f"{loop}.t")
        b.do("split", loop, threads, inner=thread)
        own.insert(0, loop)
    return thread, own
