"""Maps and constraints, point by point: for domains too small to be worth isl's elimination of many floors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ir.expr import Expr
from ..ir.program import Constraint
from .relations import bounds

FEWEST, MOST = 1 << 12, 1 << 19
"""Points of a side: below, isl takes a few milliseconds for two maps; beyond, the arrays take longer than it does."""
MOST_SLOW = 1 << 23
"""Points of a side where isl does not come to an end soon: four million take a second or two, and took isl minutes."""


def inverts(dims: tuple[str, ...], constraints: tuple[Constraint, ...], forward: Mapping[str, Expr], when: Mapping[str, Expr],
            boxes: tuple[tuple[str, int, int], ...], most: int = MOST) -> bool | None:
    """Whether two maps invert each other wherever one leads from its own side to the other; None where that is too much to try.

    Parameters
    ----------
    dims : tuple of str
        Dimensions of a statement.
    constraints : tuple of Constraint
        Its domain.
    forward, when : mapping of str to Expr
        Each dimension over the loops, each loop over the dimensions.
    boxes : tuple of (str, int, int)
        Loops, where they start, and their extents.
    most : int
        Points of a side that are not too much.
    """
    known = bounds(constraints)
    if any(d not in known for d in dims):
        return None
    sides = [{x: (start, start + extent - 1) for x, start, extent in boxes}, {d: known[d] for d in dims}]
    if not FEWEST < max(map(size, sides)) <= most:
        return None
    loops, points = map(_grid, sides)
    return (_there_and_back(loops, forward, when, lambda found: _within(found, constraints))
            and _there_and_back(points, when, forward, lambda found: _boxed(found, sides[0]), _within(points, constraints)))


def first_broken(box: Mapping[str, tuple[int, int]], held: tuple[Constraint, ...], wanted: tuple[Constraint, ...]
                 ) -> tuple[int, ...] | None:
    """The smallest point of a box at which all of `held` hold and some of `wanted` does not, or None."""
    points = _grid(box)
    odd = np.broadcast_to(_within(points, held) & ~_within(points, wanted), (size(box),))
    first = int(odd.argmax()) if odd.any() else -1
    return tuple(int(axis[first]) for axis in points.values()) if first >= 0 else None


def size(box: Mapping[str, tuple[int, int]]) -> int:
    """How many points a box has."""
    return prod(max(0, high - low + 1) for low, high in box.values())


Values = Mapping[str, NDArray[Any]]


def _grid(side: Mapping[str, tuple[int, int]]) -> Values:
    """Every point of a box, one array for each variable."""
    axes = np.meshgrid(*(np.arange(low, high + 1, dtype=np.int64) for low, high in side.values()), indexing="ij")
    return {name: axis.ravel() for name, axis in zip(side, axes, strict=True)}


def _there_and_back(start: Values, one: Mapping[str, Expr], other: Mapping[str, Expr], inside: Callable[[Values], Any],
                    own: Any = True) -> bool:
    """Whether each point that one map leads inside is led back by the other."""
    there = {name: np.asarray(e.evaluate(start)) for name, e in one.items()}
    counted = inside(there) & own
    return all(bool(np.all(~counted | (other[name].evaluate(there) == value))) for name, value in start.items())


def _within(values: Values, constraints: tuple[Constraint, ...]) -> Any:
    """Where all constraints hold."""
    held = np.True_
    for c in constraints:
        value = c.expr.evaluate(values)
        held = held & (value == 0 if c.equality else value >= 0)
    return held


def _boxed(values: Values, side: Mapping[str, tuple[int, int]]) -> Any:
    """Where all values lie in their intervals."""
    held = np.True_
    for name, (low, high) in side.items():
        held = held & (values[name] >= low) & (values[name] <= high)
    return held
