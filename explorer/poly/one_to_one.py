"""Variables that are equal because enough functions of them are, by looking at every point of their box.

Blocks that take tiles in turn compute a tile's place from ``x = 132*n + b`` by quotients and remainders, ``x // 36``,
``x // 9 % 4 // 2``, ``x % 9 // 3`` and so on, some of them simplified.  Two accesses that agree in all of these agree in `n` and
`b`: no two points of the box have the same values.  The boxes are small, and looking is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import prod

import numpy as np

from ..ir.expr import Expr, var

MOST_POINTS = 1 << 15
"""Of the box of the variables."""
Ranges = tuple[tuple[str, tuple[int, int]], ...]


def told_apart(equalities: Iterable[Expr], ranges: Mapping[str, tuple[int, int]]) -> list[Expr]:
    """``v - w`` for variables of two sides that are surely equal where all of some expressions are 0.

    Parameters
    ----------
    equalities : iterable of Expr
        Over marked variables (``a:n``, ``b:n``); those that are one function of each of two sides, less the same of the other,
        are used.
    ranges : mapping
        Inclusive intervals of the marked variables.
    """
    equalities = [e for e in equalities if not e.const and len(_sides(e)) == 2]
    used = {name for e in equalities for name in e.variables()}
    functions: dict[tuple[str, str], list[Expr]] = {}
    for e in equalities:
        first, second = _sides(e)
        shared = {n: var(first + n.removeprefix(second)) for n in e.variables()
                  if n.startswith(second) and first + n.removeprefix(second) not in used}  # known to be equal
        if found := _function(e.substitute(shared), first, second):
            functions.setdefault((first, second), []).append(found)
    out: list[Expr] = []
    for (first, second), same in functions.items():
        names = sorted({name for f in same for name in f.variables()})
        two = {name for name in names if name in used and second + name.removeprefix(first) in used}
        sides = [[ranges.get(name), ranges.get(second + name.removeprefix(first)) or ranges.get(name)] for name in names]
        if any(None in pair for pair in sides):
            continue
        box = tuple((name, (min(r[0] for r in pair if r), max(r[1] for r in pair if r)))
                    for name, pair in zip(names, sides, strict=True))
        out += [var(name) - var(second + name.removeprefix(first)) for name in _determined(tuple(dict.fromkeys(same)), box)
                if name in two]
    return out


def _sides(e: Expr) -> list[str]:
    """The marks of the variables in an expression."""
    return sorted({name.partition(":")[0] + ":" for name in e.variables()})


def _function(e: Expr, first: str, second: str) -> Expr | None:
    """The function of the first side whose value the second side has, too, where an expression is 0."""
    parts = (Expr(((atom, -c),)) for atom, c in e.terms)
    theirs = sum((one for one in parts if any(name.startswith(second) for name in one.variables())), Expr())
    function = e + theirs
    renamed = theirs.substitute({n: var(first + n.removeprefix(second)) for n in theirs.variables() if n.startswith(second)})
    return function if function.terms and renamed == function else None


@lru_cache(maxsize=4096)
def _determined(functions: tuple[Expr, ...], box: Ranges) -> tuple[str, ...]:
    """The variables of a box that have one value wherever the functions have the same ones."""
    if not 0 < prod(max(0, high - low + 1) for _, (low, high) in box) <= MOST_POINTS:
        return ()
    grid = np.meshgrid(*(np.arange(low, high + 1) for _, (low, high) in box), indexing="ij")
    point = {name: axis.ravel() for (name, _), axis in zip(box, grid, strict=True)}
    at = np.zeros(grid[0].size, dtype=np.int64)
    for f in functions:  # points with the same values so far have one number
        value = np.broadcast_to(f.evaluate(point), grid[0].size)
        least = int(value.min())
        _, at = np.unique(at * (int(value.max()) - least + 1) + (value - least), return_inverse=True)
    count = int(at.max()) + 1
    if count == at.size:
        return tuple(point)
    order = np.argsort(at, kind="stable")
    first = np.flatnonzero(np.diff(at[order], prepend=-1))
    return tuple(name for name, axis in point.items()
                 if (np.minimum.reduceat(axis[order], first) == np.maximum.reduceat(axis[order], first)).all())
