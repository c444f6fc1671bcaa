"""Sets of points with named coordinates, for those who ask exact questions without isl in their hands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

import islpy as isl

from ..ir.expr import Expr, var
from .isl import smallest
from .linear import Case, Tuple, build_map, build_set, equal

SIDE = "v"
"""The side on which a region's conditions are."""


@dataclass(frozen=True, eq=False)
class Region:
    """A set of integer points.

    Attributes
    ----------
    names : tuple of str
        The coordinates, in order.
    points : isl.Set
    """

    names: tuple[str, ...]
    points: isl.Set

    @classmethod
    def of(cls, names: tuple[str, ...], cases: Iterable[Case]) -> Region:
        """The points at which one of the conjunctions holds; the coordinates are on side :data:`SIDE`."""
        here = Tuple("", SIDE, names)
        empty = isl.Set.empty(build_set(here, ()).get_space())
        return cls(names, reduce(isl.Set.union, (build_set(here, case) for case in cases), empty))

    def intersect(self, other: Region) -> Region:
        """The points of both."""
        return Region(self.names, self.points.intersect(other.points))

    def union(self, other: Region) -> Region:
        """The points of either."""
        return Region(self.names, self.points.union(other.points))

    def subtract(self, other: Region) -> Region:
        """The points that the other lacks."""
        return Region(self.names, self.points.subtract(other.points))

    def is_subset(self, other: Region) -> bool:
        """Whether the other has all points."""
        return bool(self.points.is_subset(other.points))

    def is_empty(self) -> bool:
        """Whether there is no point."""
        return bool(self.points.is_empty())

    def is_disjoint(self, other: Region) -> bool:
        """Whether the two have no point in common."""
        return bool(self.points.is_disjoint(other.points))

    def onto(self, names: tuple[str, ...]) -> Region:
        """The points without the coordinates that are not among these, whose order is that of :attr:`names`."""
        points = self.points
        for place in reversed(range(len(self.names))):
            if self.names[place] not in names:
                points = points.project_out(isl.dim_type.set, place, 1)
        return Region(names, points)

    def least(self, names: tuple[str, ...]) -> dict[str, int]:
        """The lexicographically smallest point over some of the coordinates, in the order given; there is one."""
        return dict(zip(names, smallest(self.image({name: var(name) for name in names}, names).points), strict=True))

    def image(self, values: Mapping[str, Expr], names: tuple[str, ...]) -> Region:
        """The points that these values of the coordinates are."""
        there = [equal(values[name], SIDE, var(name), "w") for name in names]
        return Region(names, self.points.apply(build_map(Tuple("", SIDE, self.names), Tuple("", "w", names), there)))
