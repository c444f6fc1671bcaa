"""Where a node of the IR runs: the physical coordinates and loop variables that satisfy the conditions around it, as isl sets.

Warps and lanes are digits of ``threadIdx.x``, names that a pass gave to divisions are their values, coordinates of one place are
0: what is left is one variable for each coordinate and for each loop of the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce
from itertools import product

from ...ir.expr import Expr, const, quotient, remainder, var
from ...ir.tree import WARP_SIZE
from ...poly.linear import Condition as Row
from ...poly.linear import Tuple, at_least, at_most
from ...poly.region import SIDE, Region
from ..conditions import Condition
from ..sites import Lowered

Conj = tuple[Condition, ...]
"""All of them hold."""
Cases = tuple[Conj, ...]
"""One of the conjunctions holds."""
EVERYWHERE: Cases = ((),)
REMEMBERED = 8192
"""Regions that are kept: an attention of 160 steps has 2,500, and asks for them 67,000 times."""


def negated(conj: Conj) -> Cases:
    """Where one of the conditions does not hold, as disjoint cases."""
    out: list[Conj] = []
    before: Conj = ()
    for c in conj:
        out += [(*before, n) for n in _not(c)]
        before = (*before, c)
    return tuple(out)


def _not(c: Condition) -> tuple[Condition, ...]:
    if c.equality:
        return Condition(c.expr - 1), Condition(-c.expr - 1)
    return (Condition(-c.expr - 1),)


def both(a: Cases, b: Cases) -> Cases:
    """Where both hold."""
    return tuple((*x, *y) for x, y in product(a, b))


def none_of(cases: Cases) -> Cases:
    """Where none of the conjunctions holds."""
    return reduce(both, (negated(one) for one in cases), EVERYWHERE)


def change(cases: Cases, values: Mapping[str, Expr]) -> Cases:
    """The cases with variables replaced."""
    return tuple(tuple(replace(c, expr=c.expr.substitute(values)) for c in conj) for conj in cases)


@dataclass(frozen=True)
class Space:
    """Variables with their ranges, in one order for all who have the same ones."""

    ranges: tuple[tuple[str, tuple[int, int]], ...]

    @classmethod
    def of(cls, ranges: Mapping[str, tuple[int, int]]) -> Space:
        """The space of these variables."""
        return cls(tuple(sorted(ranges.items())))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The variables, in order."""
        return tuple(name for name, _ in self.ranges)

    def rows(self, side: str = SIDE) -> tuple[Row, ...]:
        """The ranges as conditions on one side of a relation."""
        return tuple(row for name, (low, high) in self.ranges
                     for row in (at_least(var(name), side, low), at_most(var(name), side, high)))

    def side(self, side: str = SIDE) -> Tuple:
        """The variables as a tuple of isl."""
        return Tuple("", side, self.names)

    def points(self, cases: Cases = EVERYWHERE) -> Region:
        """The points at which one of the cases holds."""
        return _points(self, cases)


@lru_cache(maxsize=REMEMBERED)
def _points(space: Space, cases: Cases) -> Region:
    """The points of a space, remembered: one step changes few conditions of a text, and every question asks for them."""
    return Region.of(space.names, [(*space.rows(), *rows(conj)) for conj in cases])


@lru_cache(maxsize=REMEMBERED)
def overlap(one: Region, other: Region) -> Region:
    """The points of both, remembered as regions of conditions are."""
    return one.intersect(other)


@lru_cache(maxsize=REMEMBERED)
def without(one: Region, other: Region) -> Region:
    """The points that the other lacks, remembered."""
    return one.subtract(other)


@lru_cache(maxsize=REMEMBERED)
def merged(parts: tuple[Region, ...]) -> Region:
    """The points of one of the regions, of which there is one at least; remembered."""
    return reduce(Region.union, parts)


@lru_cache(maxsize=REMEMBERED)
def onto(region: Region, names: tuple[str, ...]) -> Region:
    """The region without the other coordinates, remembered."""
    return region.onto(names)


def rows(conj: Iterable[Condition], side: str = SIDE) -> tuple[Row, ...]:
    """Conditions on one side of a relation."""
    return tuple(Row(((c.expr, side, 1),), 0, c.equality) for c in conj)


class Coordinates:
    """The physical coordinates of a kernel, and what its names stand for.

    Parameters
    ----------
    low : Lowered

    Attributes
    ----------
    ranges : dict of str to (int, int)
        The coordinates with more than one place, and the counters of the loops that the host runs.
    values : dict of str to Expr
        What stands for the other names.
    """

    def __init__(self, low: Lowered) -> None:
        self.low = low
        self.ranges: dict[str, tuple[int, int]] = {}
        self.values: dict[str, Expr] = {}
        size, name = low.role_extents, low.role_name
        for role in ("block.x", "block.y", "block.z", "thread.x", "thread.y", "thread.z"):
            if size[role] > 1:
                self.ranges[name[role]] = (0, size[role] - 1)
            else:
                self.values[name[role]] = const(0)
        x = self.at("thread.x")
        self.values[name["warp"]] = quotient(x, WARP_SIZE, self.ranges)
        self.values[name["lane"]] = remainder(x, WARP_SIZE, self.ranges)
        self.ranges |= {low.variable[x.id]: x.range for x in low.launch_loops}

    def at(self, role: str) -> Expr:
        """A coordinate."""
        name = self.low.role_name[role]
        return self.values.get(name, var(name))

    @property
    def threads(self) -> tuple[str, ...]:
        """Names of the thread coordinates with several places."""
        names = (self.low.role_name[f"thread.{a}"] for a in "xyz")
        return tuple(n for n in names if n in self.ranges)

    @property
    def shared(self) -> tuple[str, ...]:
        """Names of what is equal for all threads of a block: its coordinates, and the host's counters."""
        return tuple(n for n in self.ranges if n not in self.threads)

    @property
    def thread(self) -> Expr:
        """The number of a thread in its block."""
        x, y, _ = self.low.block
        return self.at("thread.x") + self.at("thread.y") * x + self.at("thread.z") * (x * y)
