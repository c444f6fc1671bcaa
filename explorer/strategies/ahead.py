"""Early loads: copies into registers before the sums that separate them from their use."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from ._steps import Builder

WORDS = 8
"""Words of a thread that are asked for ahead, at most: with 8, odd rows of 413 to 3,989 elements took 4 to 10 % less on an H200;
with 16, rows of 11,385 a third more."""


def given(b: Builder, kernel: str) -> set[str]:
    """Arrays in global memory that a kernel reads and does not write."""
    statements = [b.plan.statement_of[leaf.statement] for leaf, _, k in b.plan.leaves if k.id == kernel]
    read = {a.array for s in statements for a in s.reads} - {s.target.array for s in statements}
    return {name for name in read if b.plan.array_of[name].role != "temporary"}


def staged(b: Builder, array: str, at: str, widths: Iterable[int], room: int) -> int:
    """Stage what a loop reads of an array in registers, at the start of its body, if that fits; the words that are left.

    Parameters
    ----------
    b : Builder
    array, at : str
    widths : iterable of int
        Elements of one access; the first that is possible.
    room : int
        Words of a thread.
    """
    before = b.schedule
    if not any(b.attempt("stage", array, at, space="register", vector=n, early=True) for n in widths):
        return room
    (made,) = (x for x in b.plan.buffers if x.name not in before.plan.buffer_of)
    words = -(-prod(made.shape) * made.dtype.bytes // 4)
    if words > room:
        b.schedule = before
        return room
    return room - words
