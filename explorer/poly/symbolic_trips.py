"""Conditions over a symbolic trip count K: where something fails, for which K it does not, and the least instance.

Points are over K and the variables of what fails.  The points that fail are projected onto K; the legal K are the complement.
isl decides that, and nothing is enumerated.  K is a variable like others: :data:`TRIPS` is no name that a kernel or a program
may have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import islpy as isl

from ..ir.expr import Expr, var
from .feasible import FAR
from .isl import alone, smallest
from .linear import Case, Tuple, at_least, build_set, equal, joint_set
from .ring_text import texts

TRIPS = "#K"
"""The variable of the trip count."""
SHOWN = "K"
NEVER = f"never legal: it fails for every {SHOWN} >= 1"
_D = isl.dim_type


@dataclass(frozen=True, eq=False)
class Failing:
    """Where something fails.

    Attributes
    ----------
    names : tuple of str
        The coordinates behind the trip count.
    points : isl.Set
        ``{ [K, names…] }``.
    """

    names: tuple[str, ...]
    points: isl.Set

    @cached_property
    def trips(self) -> isl.Set:
        """The trip counts that fail."""
        return self.points.project_out(_D.set, 1, len(self.names)).coalesce()

    @alone
    def least(self) -> dict[str, int]:
        """The least point: the fewest iterations, then the smallest values in order of the names; there is one."""
        return dict(zip((SHOWN, *self.names), smallest(self.points), strict=True))


@alone
def failing(tuples: Sequence[Tuple], cases: Iterable[Case], order: Sequence[tuple[str, str]]) -> Failing | None:
    """Where one of the cases holds, over the trip count and some variables, each with its side; None where none ever does.

    Each tuple that has :data:`TRIPS` says the same of it.
    """
    names = tuple(f"{side}:{name}" for side, name in order)
    first = Tuple("", "#", (TRIPS, *names))
    own = [(side, v) for _, side, variables in tuples for v in variables]
    tied = [equal(var(TRIPS), "#", var(TRIPS), side) for side, v in own if v == TRIPS]
    tied += [equal(var(f"{side}:{name}"), "#", var(name), side) for side, name in order]
    some = at_least(var(TRIPS), "#", 1)
    parts = [joint_set((first, *tuples), (some, *tied, *case)).project_out(_D.set, 1 + len(names), len(own)) for case in cases]
    points = reduce(isl.Set.union, parts) if parts else None
    return None if points is None or points.is_empty() else Failing(names, points)


@alone
def condition(trips: Sequence[Failing]) -> str:
    """When nothing fails, in words over K."""
    some = build_set(Tuple("", "a", (SHOWN,)), (at_least(var(SHOWN), "a", 1),))
    bad = reduce(isl.Set.union, (f.trips for f in trips)).coalesce()
    right = some.subtract(bad).coalesce()
    if right.is_empty():
        return NEVER
    return f"legal iff {texts(right, (SHOWN,), some, {SHOWN: SHOWN})}"


def least(found: Sequence[Failing], order: Sequence[str]) -> tuple[Failing, dict[str, int]]:
    """The least point of several answers, by the trip count and then by the names in order."""
    each = [(f, f.least()) for f in found]
    return min(each, key=lambda x: (x[1][SHOWN], *(x[1].get(n, 0) for n in order)))


def moved(e: Expr, name: str, trips: int, last: int, ranges: Mapping[str, tuple[int, int]], ahead: frozenset[int]) -> Expr:
    """An expression that is at least 0 where something runs, for any trip count, where it is what ends a loop's work.

    Parameters
    ----------
    e : Expr
    name : str
        The loop's variable.
    trips, last : int
        The trip count and the last iteration for which the text was made.
    ranges : mapping
        Of the other variables.
    ahead : frozenset of int
        By how many iterations something runs ahead in the loop: its work ends so many iterations before the loop.
    """
    by = -e.coefficient(name)
    if by <= 0:
        return e
    rest = e + var(name) * by
    if name in rest.variables():
        return e
    most = rest.interval(ranges)[1]
    if most >= FAR:
        return e  # nothing is known of the other variables
    short = last - most // by
    return e + (var(TRIPS) - trips) * by if short <= 0 or short in ahead else e
