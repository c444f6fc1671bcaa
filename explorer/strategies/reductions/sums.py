"""How a block of threads adds up a few sums of each of its results."""

from __future__ import annotations

from dataclasses import dataclass

ALONE = 16
"""Sums of a result that a thread of the block adds up alone rather than share them."""


@dataclass(frozen=True)
class Sums:
    """How the threads of a block add up several sums of each of its results.

    Attributes
    ----------
    place : str
        The axis of threads that share the sums of a result, ``"x"`` or ``"y"``; "" where each thread adds up a result alone.
    share : int
        How many share them.
    alone : int
        Sums that one thread adds up.
    spread : int
        Threads along x that take neighbouring results, 1 where y does.
    """

    place: str
    share: int
    alone: int
    spread: int


def shared(results: int, terms: int, x: int, y: int, alone: int = ALONE, rows: int = 0) -> Sums:
    """How a block of (x, y) threads adds up so many sums of so many results.

    Parameters
    ----------
    results, terms : int
        Of the block; sums of each.
    x, y : int
        Threads.
    alone : int
        Sums that a thread takes alone rather than share them.
    rows : int
        Sums that stand outermost: as many threads along y have one each.
    """
    if terms > alone and results <= y and x > 1:
        return Sums("x", min(x, terms), -(-terms // x), 1)
    if results > x:
        rounds = next(n for n in range(-(-results // x), results + 1) if results % n == 0)
        return Sums("", 1, terms * (1 if rounds <= y else rounds), results // rounds)
    if y > 1 and rows == y and terms // y <= 2 * alone:
        return Sums("y", y, terms // y, results)
    if terms <= alone or y == 1:
        return Sums("", 1, terms, results)
    return Sums("y", min(y, terms), -(-terms // y), results)
