"""Conditions on the pairs of two accesses that agree in some expressions, by looking at every point of either side.

Where a tile's rows are cut into images, and a fragment's registers and lanes into rows, the pairs are known by equalities of
quotients in thirds and in eighths, which no digits take apart.  Each side alone has few points: their values are put side by
side, as a database joins two tables, and the condition is checked for each value that both have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ..ir.expr import Expr

MOST_POINTS = 1 << 19
"""Of a side."""
FIT = 1 << 62
"""Values of all expressions together that a whole number can tell apart."""
Ranges = tuple[tuple[str, tuple[int, int]], ...]


@dataclass(frozen=True)
class _Side:
    """One side of a pair: its variables; its part of each equality, and of what is asked; variables that both sides share."""

    box: Ranges
    parts: tuple[Expr, ...]
    common: tuple[str, ...]


def holds_on_pairs(equalities: Iterable[Expr], asked: Expr, equality: bool, ranges: Mapping[str, tuple[int, int]]) -> bool:
    """Whether ``asked == 0`` (``>= 0``) surely holds wherever all of some expressions are 0.

    Parameters
    ----------
    equalities : iterable of Expr
        Over marked variables (``a:n``, ``b:n``) of two sides; a variable of one side that stands for that of both may occur
        beside those of the other.
    asked : Expr
    equality : bool
    ranges : mapping
        Inclusive intervals of the marked variables.

    Returns
    -------
    bool
        False, too, where the sides cannot be told apart, or have too many points.
    """
    every = (*_tied([*equalities], asked), asked)
    if not frozenset[str]().union(*(e.variables() for e in every)) <= ranges.keys():
        return False
    marks = sorted({_mark(name) for e in every for name in e.variables()})
    if len(marks) != 2:
        return False
    mixed = {name for e in every for atom, _ in e.terms for name in _mixed(Expr(((atom, 1),)))}
    ways = dict.fromkeys(frozenset(name for name in mixed if _mark(name) == mark) for mark in marks)
    return any(_agree(*sides, equality) for shared in ways if (sides := _sides(every, marks, shared, ranges)))


def _mark(name: str) -> str:
    return name.partition(":")[0]


def _mixed(e: Expr) -> frozenset[str]:
    """The variables of an expression where they are of several sides."""
    return e.variables() if len({_mark(name) for name in e.variables()}) > 1 else frozenset()


def _sides(every: Sequence[Expr], marks: Sequence[str], shared: frozenset[str], ranges: Mapping[str, tuple[int, int]]
           ) -> tuple[_Side, _Side] | None:
    """The two parts of each expression where some variables stand for those of both sides; None where a term has both others."""
    first, second = list[Expr](), list[Expr]()
    for e in every:
        mine = Expr((), e.const)
        for atom, c in e.terms:
            one = Expr(((atom, c),))
            sides = {_mark(name) for name in one.variables() - shared}
            if len(sides) > 1:
                return None
            mine = mine + one if sides <= {marks[0]} else mine
        first.append(mine)
        second.append(mine - e)
    boxes = []
    for mark, parts in zip(marks, (first, second), strict=True):
        names = shared.union(*(e.variables() for e in parts))
        assert all(name in shared or _mark(name) == mark for name in names)
        boxes.append(tuple((name, ranges[name]) for name in sorted(names)))
    common = tuple(sorted(shared))
    return _Side(boxes[0], tuple(first), common), _Side(boxes[1], tuple(second), common)


def _tied(equalities: Sequence[Expr], asked: Expr) -> list[Expr]:
    """The equalities that have something to do with what is asked."""
    found, names, left = list[Expr](), asked.variables(), [*equalities]
    while near := [e for e in left if e.variables() & names]:
        found += near
        left = [e for e in left if e not in near]
        names = names.union(*(e.variables() for e in near))
    return found


@lru_cache(maxsize=4096)
def _agree(first: _Side, second: _Side, equality: bool) -> bool:
    """Whether the last parts of two sides agree (or the first is no less) for all points that agree in the others."""
    sizes = [prod(max(0, high - low + 1) for _, (low, high) in side.box) for side in (first, second)]
    if 0 in sizes or max(sizes) > MOST_POINTS:
        return 0 in sizes  # a side without points has no pairs
    tables = [_table(side) for side in (first, second)]
    columns = [[table[n] for table in tables] for n in range(len(tables[0]) - 1)]
    keys, reach = [np.zeros(table[-1].size, np.int64) for table in tables], 1
    for pair in columns:
        low, high = min(int(x.min()) for x in pair), max(int(x.max()) for x in pair)
        keys = [key + (x - low) * reach for key, x in zip(keys, pair, strict=True)]
        reach *= high - low + 1
        if reach > FIT:
            return False
    (names, least, most), (others, lowest, highest) = (_spread(key, table[-1]) for key, table in zip(keys, tables, strict=True))
    _, here, there = np.intersect1d(names, others, assume_unique=True, return_indices=True)
    if equality:
        return bool((least[here] == highest[there]).all() and (most[here] == lowest[there]).all())
    return bool((least[here] >= highest[there]).all())


def _table(side: _Side) -> list[Any]:
    """The values of what both sides share, and of a side's parts, at every point of its box."""
    grid = np.meshgrid(*(np.arange(low, high + 1, dtype=np.int64) for _, (low, high) in side.box), indexing="ij")
    point = {name: axis.ravel() for (name, _), axis in zip(side.box, grid, strict=True)}
    values = (*(point[name] for name in side.common), *(e.evaluate(point) for e in side.parts))
    return [np.broadcast_to(np.asarray(v, np.int64), (grid[0].size if grid else 1,)) for v in values]


def _spread(key: Any, values: Any) -> tuple[Any, Any, Any]:
    """The different keys, with the least and the largest value of each."""
    order = np.argsort(key, kind="stable")
    names, starts = np.unique(key[order], return_index=True)
    return names, np.minimum.reduceat(values[order], starts), np.maximum.reduceat(values[order], starts)
