"""How many integer points satisfy conditions: all but one variable enumerated, that one counted between its bounds.

isl 0.27 counts by going through the points of all dimensions but one, one at a time: 4096 x 4096 x 4096 whose last loop ends with
``min(i, j)`` took 4 s, and then gave up.  Here a slab of them is one array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from ..errors import Undecided
from ..ir.expr import Ranges, var
from ..ir.program import Constraint

MOST, SLAB = 1 << 28, 1 << 20
"""Points of the enumerated variables at most (some seconds), and of one array of them."""


def count_points(conditions: Sequence[Constraint], ranges: Ranges) -> int:
    """The points within intervals that satisfy all conditions.

    Parameters
    ----------
    conditions : sequence of Constraint
    ranges : mapping of str to (int, int)
        First and last value of each variable.

    Raises
    ------
    Undecided
        If there are too many points to go through.
    """
    if any(low > high for low, high in ranges.values()):
        return 0
    extent = {name: high - low + 1 for name, (low, high) in ranges.items()}
    plain = [name for name in ranges if all(_is_linear(c, name) for c in conditions)]
    counted = max(plain, key=lambda name: extent[name], default="")
    others = sorted((name for name in ranges if name != counted), key=lambda name: -extent[name])
    if (points := prod(extent[name] for name in others)) > MOST:
        raise Undecided("the instances of a statement could not be counted",
                        why=f"{points:,} values of {', '.join(others)} are more than {MOST:,}", hint="smaller sizes")
    total, step = 0, max(1, SLAB * (extent[others[0]] if others else 1) // points)
    for first in range(0, extent[others[0]] if others else 1, step):
        values = {name: np.arange(ranges[name][0], ranges[name][1] + 1) for name in others}
        if others:
            values[others[0]] = values[others[0]][first: first + step]
        grids = np.meshgrid(*values.values(), indexing="ij", sparse=True) if values else []
        total += _in_slab(conditions, dict(zip(values, grids, strict=True)), counted, ranges)
    return total


def _is_linear(c: Constraint, name: str) -> bool:
    """Whether a variable stands in no quotient or remainder of a condition."""
    return name not in (c.expr - var(name) * c.expr.coefficient(name)).variables()


def _in_slab(conditions: Sequence[Constraint], values: Mapping[str, np.ndarray], counted: str, ranges: Ranges) -> int:
    """The points of some values of the enumerated variables."""
    shape = np.broadcast_shapes(*(v.shape for v in values.values())) if values else ()
    low, high = ranges.get(counted, (0, 0))
    lows, highs = np.full(shape, low), np.full(shape, high)
    for c in conditions:
        k = c.expr.coefficient(counted) if counted else 0
        rest = np.broadcast_to(np.asarray((c.expr - var(counted) * k).evaluate(values) if k else c.expr.evaluate(values)), shape)
        for sign in (1, -1) if c.equality else (1,):
            if not k:
                highs = np.where(sign * rest >= 0, highs, lows - 1)
            elif sign * k > 0:
                lows = np.maximum(lows, -(sign * rest // (sign * k)))
            else:
                highs = np.minimum(highs, sign * rest // (-sign * k))
    return int(np.maximum(highs - lows + 1, 0).sum())
