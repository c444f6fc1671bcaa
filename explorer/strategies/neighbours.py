"""Neighbours of a configuration: the nearest ones that differ in a free choice.

A configuration is a point with a value for each of its free choices, as data: numbers have an order, words have none.  Values
depend on each other (twice as many rows ask for twice as many warpgroups, and fewer stages fit), so that one step of one
choice alone is often no way at all.  A neighbour is therefore the nearest point that there is in each direction of each
choice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

Value = bool | int | float | str
Free = tuple[tuple[str, Value], ...]
"""The free choices of a way, each a name with its value."""


def free_choices(spread: Any = None, /, **others: Value) -> Free:
    """The fields of a frozen dataclass, and what is chosen besides.

    Parameters
    ----------
    spread : dataclass, optional
        A tiling, a shape, a spread.  Each number of a tuple is a choice of its own; what is neither a number nor a word is taken
        as the word that it is printed as.
    others : bool, int, float or str
    """
    own = [] if spread is None else [(f.name, getattr(spread, f.name)) for f in fields(spread)]
    return tuple(flat for name, value in [*own, *others.items()] for flat in _flat(name, value))


def _flat(name: str, value: Any) -> Iterator[tuple[str, Value]]:
    if isinstance(value, tuple) and value and all(isinstance(v, int) for v in value):
        yield from ((f"{name}[{n}]", v) for n, v in enumerate(value))
    else:
        yield name, value if isinstance(value, Value) else str(value)


class Space:
    """The configurations of one decision as points.

    Parameters
    ----------
    points : sequence of Free
        In the order in which they are preferred where they are equally near.
    """

    def __init__(self, points: Sequence[Free]) -> None:
        self._points = [dict(p) for p in points]
        values = defaultdict[str, set[Any]](set)
        for name, value in (pair for p in points for pair in p):
            values[name].add(value)
        self._levels = {name: {v: n for n, v in enumerate(sorted(known))} for name, known in values.items()
                        if not any(isinstance(v, str) for v in known)}

    def apart(self, here: int, there: int) -> tuple[int, int]:
        """How many free choices differ, and by how many steps in all: of the values that there are, in order.

        Another word is one step, and so is a choice that only one of the two has.
        """
        steps = [self._steps(name, here, there) for name in self._differing(here, there)]
        return len(steps), sum(steps)

    def neighbours(self, here: int) -> list[int]:
        """The nearest points in each direction of each free choice: less, more, each other word; with it, without it.

        Returns
        -------
        list of int
            Numbers of points, ascending.
        """
        nearest: dict[tuple[str, Value], tuple[tuple[int, int], int]] = {}
        for there in range(len(self._points)):
            found = self.apart(here, there), there
            for name in self._differing(here, there):
                way = name, self._direction(name, here, there)
                nearest[way] = min(nearest.get(way, found), found)
        return sorted({there for _, there in nearest.values()})

    def _differing(self, here: int, there: int) -> list[str]:
        a, b = self._points[here], self._points[there]
        return [name for name in {**a, **b} if name not in a or name not in b or a[name] != b[name]]

    def _steps(self, name: str, here: int, there: int) -> int:
        a, b, levels = self._points[here], self._points[there], self._levels.get(name)
        return abs(levels[a[name]] - levels[b[name]]) if levels and name in a and name in b else 1

    def _direction(self, name: str, here: int, there: int) -> Value:
        a, b = self._points[here], self._points[there]
        if name not in a or name not in b:
            return name in b
        return ("less", "more")[b[name] > a[name]] if name in self._levels else b[name]  # type: ignore[operator]
