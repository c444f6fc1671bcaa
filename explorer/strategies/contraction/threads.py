"""Tiles of results in the registers of threads: which rows and columns of a block's tile are a thread's own.

A thread reads neighbours of a factor together, 16 bytes at a time, and the threads beside it the next ones: its columns are
groups of a vector, and the groups of all threads of a row lie between them.  So the reads of a warp have no conflicts over the
banks of shared memory, and its stores fill whole sectors.  A factor whose rows lie along the depth is read along it: single rows
of all threads then take turns, and rows of its copy are one vector longer than the depth, in other banks each.
"""

from __future__ import annotations

from math import gcd

from .._steps import Builder
from .form import ProductForm
from .shapes import Tiling


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
    down, own_rows = _dealt(b, rows, t.down, form.left.together)
    across, own_columns = _dealt(b, columns, t.across, form.right.together)
    b.do("reorder", (down, across, *own_rows, *own_columns))
    b.do("bind", down, "thread.y").do("bind", across, "thread.x")
    return (*own_rows, *own_columns)


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
