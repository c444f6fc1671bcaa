"""Sizes to try, from little work to much: independently of each other, and alike for what only large tiles show."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations, zip_longest
from math import prod

TRIED = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 33, 40, 48, 64, 65, 96, 128, 129, 256, 300)
"""Values of a size: small ones, and a little more than the usual tiles."""

Sizes = dict[str, int]


def smallest_first(own: Mapping[str, int], allowed: Mapping[str, Iterable[int]] | None = None) -> Iterator[Sizes]:
    """Sizes none of which is larger than a schedule's own.

    Parameters
    ----------
    own : mapping of str to int
        The schedule's.
    allowed : mapping of str to iterable of int, optional
        The values that some sizes may take; a size with one value is fixed.

    Yields
    ------
    dict of str to int
        Each once: in turns the next by the product of all sizes, and the next with some sizes alike and the others small.
    """
    values = {name: _values(most, (allowed or {}).get(name)) for name, most in own.items()}
    seen: set[tuple[int, ...]] = set()
    for pair in zip_longest(_by_work(list(values.values())), _alike(list(values.values()))):
        for sizes in pair:
            if sizes is not None and sizes not in seen:
                seen.add(sizes)
                yield dict(zip(own, sizes, strict=True))


def _values(most: int, allowed: Iterable[int] | None) -> list[int]:
    if allowed is not None:
        return sorted({value for value in allowed if 0 < value <= most}) or [most]
    return sorted({*(value for value in TRIED if value < most), most})


def _by_work(values: list[list[int]]) -> Iterator[tuple[int, ...]]:
    """All combinations by their product, then by their sum: a best-first walk of the grid of positions."""
    def entry(at: tuple[int, ...]) -> tuple[int, int, tuple[int, ...]]:
        sizes = [column[n] for column, n in zip(values, at, strict=True)]
        return prod(sizes), sum(sizes), at

    start = (0,) * len(values)
    heap: list[tuple[int, int, tuple[int, ...]]] = [entry(start)]
    known: set[tuple[int, ...]] = {start}
    while heap:
        *_, at = heapq.heappop(heap)
        yield tuple(column[n] for column, n in zip(values, at, strict=True))
        for axis, n in enumerate(at):
            further = (*at[:axis], n + 1, *at[axis + 1:])
            if n + 1 < len(values[axis]) and further not in known:
                known.add(further)
                heapq.heappush(heap, entry(further))


def _alike(values: list[list[int]]) -> Iterator[tuple[int, ...]]:
    """Some sizes at one value, the others at their second smallest."""
    small = [column[min(1, len(column) - 1)] for column in values]
    for value in sorted({v for column in values for v in column}):
        for count in range(1, len(values) + 1):
            for chosen in combinations(range(len(values)), count):
                if all(value <= values[n][-1] for n in chosen):
                    yield tuple(_nearest(column, value) if n in chosen else small[n] for n, column in enumerate(values))


def _nearest(column: list[int], value: int) -> int:
    """The smallest that is at least `value`."""
    return next(v for v in column if v >= value)
