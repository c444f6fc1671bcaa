"""How a block of threads adds up a few sums of each of its results."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

ALONE = 16
"""Sums of a result that a thread of the block adds up alone rather than share them."""
ROUND = 8
"""Sums that a thread adds up while a row of threads shares those of one result (on an H200, about 0.15 µs)."""


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
    rounds : int
        How often the block does so, for some of the results each time.
    """

    place: str
    share: int
    alone: int
    spread: int
    rounds: int = 1


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
    rounds = _rounds(results, y)
    if x > 1 and terms > alone and (rounds == 1 or terms > ROUND * rounds * y):
        even = terms // _rounds(terms, x)
        share = even if 2 * even > min(x, terms) else min(x, terms)
        return Sums("x", share, rounds * -(-terms // share), 1, rounds)
    if results > x:
        rounds = _rounds(results, x)
        return Sums("", 1, terms * (1 if rounds <= y else rounds), results // rounds, rounds)
    if y > 1 and rows == y and terms // y <= 2 * alone:
        return Sums("y", y, terms // y, results)
    if terms <= alone or y == 1:
        return Sums("", 1, terms, results)
    return Sums("y", min(y, terms), -(-terms // y), results)


@lru_cache(maxsize=4096)
def _rounds(results: int, threads: int) -> int:
    """Into how many equal shares results are taken, at most so many in each."""
    return next(n for n in range(-(-results // threads), results + 1) if results % n == 0)
