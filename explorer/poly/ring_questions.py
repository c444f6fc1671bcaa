"""For which trip counts and slots is a ring right?  Hazards, phases, deadlock and counts, with all of them symbolic.

Asked of a pipelined loop's :class:`~explorer.poly.ring.Ring`, over its trip count K and a family of such loops: S slots, the
release distance R (a copy takes the slot of the tile R iterations before), and F of something in flight.  A copy of tile
``t + S`` takes the slot of tile ``t``: slots are not affine in S, but that is, and it is enough.  Copies are issued in order, so
that one that takes the slot of ``t`` later, for ``t + 2 S``, comes too early only where this one does.  So nothing is enumerated;
the answer is one Presburger set over K, S, R, F.  What fails:

- *late*: a tile is read before its copy is issued (or, of threads' own copies, made);
- *landed*: it is read before a wait has let its group through;
- *freed*: its slot is written again before a reader has ended, be it a product in flight, or a consumer whose release the
  producer waits for;
- *twice*: its slot is written again before its own copy has landed;
- *counts*: a group of bulk copies has no wait of its own, or a wait no group;
- *deadlock*: a wait is for what only happens behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Literal

import islpy as isl

from ..ir.expr import Expr, const, var
from .isl import alone, smallest
from .linear import Case, Condition, Tuple, at_least, build_map, build_set
from .ring import Copy, Ring, Use, Wait, is_asynchronous

K, S, R, F, T = (var(name) for name in ("K", "S", "R", "F", "t"))
NAMES = ("S", "R", "F", "K")
POINT = Tuple("", "a", (*NAMES, "t"))
Flight = Literal["products", "copies"]


@dataclass(frozen=True)
class Family:
    """Loops like one, with other slots S, release distances R, and F steps of products, or groups of copies, in flight.

    Attributes
    ----------
    ring : Ring
    flight : str
        What F counts.
    """

    ring: Ring
    flight: Flight

    @property
    def reach(self) -> Expr:
        """Iterations that copies may be ahead."""
        return S - R

    @property
    def ahead(self) -> Expr:
        """By which copies are ahead in the text; a producer's are in the iteration of their tile."""
        return const(0) if self.ring.has_roles else self.reach

    def groups_open(self, wait: Wait) -> Expr:
        """Groups of copies that a wait leaves open: they are as many more as copies are further ahead."""
        if self.flight == "copies":
            return F
        return const(wait.pending) + (self.ahead - self.ring.ahead) * self.ring.commits

    def products_open(self, wait: Wait) -> Expr:
        """Products that a wait leaves in flight."""
        return F * self.ring.products if self.flight == "products" else const(wait.pending)

    @property
    def releases_open(self) -> Expr:
        """Releases that the acquire does not wait for."""
        return self.reach - 1

    @property
    def own(self) -> dict[str, int]:
        """The place of the ring itself."""
        f = self.ring.products_in_flight if self.flight == "products" else self.ring.copies_in_flight
        return {"S": self.ring.slots, "R": self.ring.release_distance, "F": f}


@dataclass(frozen=True)
class Failure:
    """A way to fail, of two nodes: the first one comes too early for the second; `points` are (S, R, F, K, tile)."""

    reason: str
    first: str
    second: str
    points: isl.Set

    def __hash__(self) -> int:
        return hash((self.reason, self.first, self.second))


@lru_cache(maxsize=64)
@alone
def failures(family: Family) -> tuple[Failure, ...]:
    """All that can go wrong, each with where it does."""
    ring, out = family.ring, list[Failure]()

    def add(reason: str, first: str, second: str, *cases: Case) -> None:
        everywhere = (at_least(K, "a", 1), at_least(S, "a", 1), at_least(R, "a", 0), at_least(F, "a", 0), at_least(S - R, "a", 0))
        points = reduce(isl.Set.union, (build_set(POINT, (*everywhere, *case)) for case in cases)) if cases else None
        if points is not None and not points.is_empty():
            out.append(Failure(reason, first, second, points.coalesce()))

    for copy in ring.copies:
        for use in ring.uses:
            add("late", use.leaf, copy.leaf, *_late(family, copy, use))
            if is_asynchronous(ring):
                add("landed", use.leaf, copy.leaf, *_not_landed(family, copy, use))
            add("freed", copy.leaf, use.leaf, *_not_ended(family, copy, use))
        if is_asynchronous(ring):
            add("twice", copy.leaf, copy.leaf, *_twice(family, copy))
    for wait in ring.waits:
        add("deadlock", wait.node, wait.node, _instance((at_least(-family.groups_open(wait) - 1, "a", 0),)))
    for acquire in ring.acquires:
        add("deadlock", acquire.node, acquire.node, _instance((at_least(-family.releases_open - 1, "a", 0),)))
    if ring.mechanism == "bulk" and not ring.has_roles:
        out += _counts(family)
    return tuple(out)


def _at_least(e: Expr) -> Condition:
    return at_least(e, "a", 0)


def _instance(case: Case, last: Expr = T) -> Case:
    """Where tile ``t``, and another one, exist."""
    return (*case, _at_least(T), _at_least(K - 1 - T), _at_least(K - 1 - last), _at_least(last))


def _late(family: Family, copy: Copy, use: Use) -> tuple[Case, ...]:
    """The copy of tile t is issued behind iteration ``t - use.tile``, or in it and behind the use."""
    gap = const(use.tile) - family.ahead  # iterations from the use to the copy
    after = (_at_least(gap - 1),), *(((_at_least(gap), _at_least(-gap)),) if copy.position > use.position else ())
    return tuple(_instance((*case, _at_least(T - use.tile))) for case in after)


def _all_of(choices: list[tuple[Case, ...]]) -> tuple[Case, ...]:
    """A case of each of them, in every way."""
    return reduce(lambda found, more: tuple((*a, *b) for a in found for b in more), choices, ((),))


def _unlet(wait: Wait, position: int, step: Expr, every: int, still: Expr, opened: Expr, number: Expr) -> tuple[Case, ...]:
    """Where a wait has not let a group through, before a place in iteration `step`: it has not run, or leaves it open.

    Before iteration 0 `still` groups are closed, and `every` in each; the wait leaves `opened` of them open.
    """
    last = step if wait.position < position else step - 1
    return ((_at_least(-last - 1),), (_at_least(last), _at_least(number - (still + last * every + wait.before - opened))))


def _group(family: Family, copy: Copy, tile: Expr) -> Expr:
    return (tile - family.ahead) * family.ring.commits + _closed_first(family) + copy.group


def _closed_first(family: Family) -> Expr:
    """Groups that the prologue closes."""
    return family.ahead * family.ring.commits


def _not_landed(family: Family, copy: Copy, use: Use) -> tuple[Case, ...]:
    step = T - use.tile
    choices = [_unlet(w, use.position, step, family.ring.commits, _closed_first(family), family.groups_open(w),
                      _group(family, copy, T)) for w in family.ring.waits]
    return tuple(_instance((*case, _at_least(step))) for case in _all_of(choices))


def _twice(family: Family, copy: Copy) -> tuple[Case, ...]:
    if family.ring.has_roles:
        return tuple(_instance(case, T + S) for case in _unreleased(family, copy, copy.position, None))
    step = T + S - family.ahead
    choices = [_unlet(w, copy.position, step, family.ring.commits, _closed_first(family), family.groups_open(w),
                      _group(family, copy, T)) for w in family.ring.waits]
    return tuple(_instance(case, T + S) for case in _all_of(choices))


def _not_ended(family: Family, copy: Copy, use: Use) -> tuple[Case, ...]:
    """The copy of tile ``t + S`` is issued before the use of tile t has ended."""
    ring, step = family.ring, T - use.tile
    again = T + S - family.ahead
    used = (_at_least(step),)
    if ring.has_roles:
        cases = _unreleased(family, copy, use.position, use)
    elif use.product >= 0:
        cases = _all_of([_unlet(w, copy.position, again, ring.products, const(0), family.products_open(w),
                                step * ring.products + use.product) for w in ring.done])
    else:
        cases = ((_at_least(step - again - 1),),
                 *(((_at_least(step - again), _at_least(again - step)),) if copy.position < use.position else ()))
    return tuple(_instance((*case, *used), T + S) for case in cases)


def _unreleased(family: Family, copy: Copy, position: int, use: Use | None) -> tuple[Case, ...]:
    """No release that the producer waits for, before it copies tile ``t + S``, is behind the end of a use of tile t, or, where
    none is given, of the copy of tile t itself.
    """
    ring = family.ring
    acquire = next((w for w in ring.acquires if w.position < copy.position), None)
    if acquire is None:
        return ((),)
    last = T + S + acquire.before - family.releases_open - 1  # the last release that is waited for
    none = (_at_least(-last - 1),)
    if use is not None and use.product < 0:
        first = T - use.tile + (0 if position < ring.release else 1)
        return none, (_at_least(first - last - 1),)
    if use is None:
        choices = [_unlet(w, ring.release, last, ring.commits, const(0), family.groups_open(w), T * ring.commits + copy.group)
                   for w in ring.waits]
    else:
        choices = [_unlet(w, ring.release, last, ring.products, const(0), family.products_open(w),
                          (T - use.tile) * ring.products + use.product) for w in ring.done]
    return none, *((_at_least(last), *case) for case in _all_of(choices))


def _counts(family: Family) -> list[Failure]:
    """Groups of bulk copies in which there is one, and that no wait is for; and waits before the first group."""
    ring, out, step = family.ring, list[Failure](), var("k")
    wide, narrow = Tuple("", "a", (*NAMES, "t")), Tuple("", "b", (*NAMES, "k"))
    spare = max(-use.tile for use in ring.uses)  # iterations behind the last tile's own
    for copy in ring.copies:
        left = build_set(wide, (at_least(S, "a", 1), at_least(R, "a", 0), at_least(F, "a", 0), _at_least(S - R), *_instance(())))
        for w in ring.waits:
            same = [Condition(((var(n), "a", 1), (var(n), "b", -1)), 0, True) for n in NAMES]
            awaited = step * ring.commits + _closed_first(family) + w.before - family.groups_open(w) - 1
            hit = Condition(((awaited, "b", 1), (_group(family, copy, T), "a", -1)), 0, True)
            runs = (at_least(step, "b", 0), at_least(K + (spare - 1) - step, "b", 0))
            left = left.subtract(build_map(wide, narrow, (*same, hit, *runs)).domain())
        if not left.is_empty():
            out.append(Failure("counts", copy.leaf, ring.waits[0].node if ring.waits else "", left.coalesce()))
    return out


# -- answers -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Least:
    """The least instance that fails: slots, release distance, in flight, trip count, tile, and why."""

    S: int
    R: int
    F: int
    K: int
    tile: int
    reason: str
    first: str
    second: str


@alone
def least(family: Family, **fixed: int) -> Least | None:
    """The least failing instance: the fewest iterations first, then slots, release distance, in flight, tile.

    Parameters
    ----------
    family : Family
    **fixed : int
        Values of K, S, R, F that are given.
    """
    found: list[Least] = []
    for f in failures(family):
        points = _fixed(f.points, fixed)
        if not points.is_empty():
            k, s, r, in_flight, t = smallest(points.move_dims(isl.dim_type.param, 0, isl.dim_type.set, 3, 1).move_dims(
                isl.dim_type.set, 0, isl.dim_type.param, 0, 1))
            found.append(Least(s, r, in_flight, k, t, f.reason, f.first, f.second))
    return min(found, key=lambda x: (x.K, x.S, x.R, x.F, x.tile), default=None)


def _fixed(points: isl.Set, fixed: dict[str, int]) -> isl.Set:
    for name, value in fixed.items():
        points = points.fix_val(isl.dim_type.set, NAMES.index(name), isl.Val.int_from_si(points.get_ctx(), value))
    return points


@lru_cache(maxsize=64)
@alone
def failing(family: Family) -> isl.Set:
    """Where something fails: ``{ [S, R, F, K] }``."""
    nothing = build_set(Tuple("", "a", NAMES), (at_least(K, "a", 1), at_least(-K, "a", 0)))
    found = (f.points.project_out(isl.dim_type.set, len(NAMES), 1) for f in failures(family))
    return reduce(isl.Set.union, found, nothing).coalesce()


@alone
def fails(family: Family, s: int, r: int, f: int, k: int) -> bool:
    """Whether the loop with these sizes fails."""
    return not _fixed(failing(family), {"S": s, "R": r, "F": f, "K": k}).is_empty()
