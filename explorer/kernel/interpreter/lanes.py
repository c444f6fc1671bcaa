"""A subset of the threads of a launch, and views of the per-thread values for it."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]
Env = dict[str, Any]
"""C variable to its value: an integer, or one for each thread of the launch."""


class Lanes:
    """Some threads of the launch, in the order in which they run.

    Parameters
    ----------
    index : ndarray
        Their numbers: those of block 0 first.
    """

    def __init__(self, index: Numbers) -> None:
        self.index = index
        self._own: dict[int, tuple[Numbers, Any]] = {}

    def __len__(self) -> int:
        return len(self.index)

    def of(self, value: Any) -> Any:
        """These threads' part of what all threads have."""
        if not isinstance(value, np.ndarray):
            return value
        own = cast(Numbers, value)
        if own.flags.writeable:  # a name's values, not a coordinate
            return own[self.index]
        found = self._own.get(id(own))
        if found is None:
            part: Numbers = own[self.index]
            found = self._own[id(own)] = own, int(part[0]) if len(part) == 1 else part
        return found[1]

    def each(self, value: Any) -> Numbers:
        """A value for each of them."""
        return spread(value, (len(self.index),))

    def by(self, where: Numbers) -> Numbers:
        """The thread of each of these elements, which each has one or several of."""
        return self.index if where.ndim == 1 else np.repeat(self.index[:, None], where.shape[1], axis=1)

    def among(self, chosen: Any) -> Lanes:
        """Those of them that are chosen."""
        if np.ndim(chosen) == 0:
            return self if chosen else Lanes(self.index[:0])
        return self if chosen.all() else Lanes(self.index[chosen])


def spread(value: Any, shape: tuple[int, ...]) -> Numbers:
    """A value in each place of a shape."""
    values = np.asarray(value)
    if values.shape == shape:
        return values
    return np.broadcast_to(values, shape) if values.ndim else np.full(shape, values)


def fixed(values: Numbers) -> Numbers:
    """The values, which will not change."""
    values.flags.writeable = False
    return values
