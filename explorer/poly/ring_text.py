"""Conditions on the sizes of a pipeline as people read them, and the least instance that fails, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import islpy as isl

from ..ir.expr import var
from ..ir.finding import Finding, Proof
from ..ir.plan import Plan
from ..ir.tree import Loop
from .isl import alone
from .linear import Tuple, at_least, build_set
from .ring import Ring, Use, ring, ways
from .ring_questions import NAMES, Family, Flight, Least, failing, fails, least

WORDS = {"S": "slots", "R": "release distance", "F": "in flight", "K": "trip count"}
NEVER, ALWAYS = "never", "for every trip count"
_D = isl.dim_type


@dataclass(frozen=True)
class Condition:
    """When the loops of a family are right.

    Attributes
    ----------
    always : str
        Where for every trip count: ``in flight <= release distance and release distance <= slots - 1``.
    otherwise : str
        Up to which trip count elsewhere; empty where there is none.
    """

    always: str
    otherwise: str = ""

    def __str__(self) -> str:
        if self.always == NEVER:
            return f"legal only where {self.otherwise}" if self.otherwise else "never legal: it fails for every trip count K >= 1"
        more = f"; otherwise only where {self.otherwise}" if self.otherwise else ""
        return f"legal iff {self.always}{more}"


@dataclass(frozen=True)
class Lead:
    """The loops of a family whose copies are made from `least` to `most` iterations ahead (None: any number)."""

    family: Family
    least: int
    most: int | None = None


@alone
def condition(family: Family) -> Condition:
    """When the loops of a family are right, over slots, release distance, and what is in flight."""
    return _condition(failing(family), _everywhere())


@alone
def condition_by_lead(leads: Sequence[Lead]) -> Condition:
    """The same where the family depends on how far ahead the copies are made: beside others, groups change their order."""
    everywhere = _everywhere()
    bad = everywhere.subtract(everywhere)
    for lead in leads:
        ahead = var("S") - var("R")
        bounds = [at_least(ahead, "a", lead.least), *([] if lead.most is None else [at_least(-ahead, "a", -lead.most)])]
        bad = bad.union(failing(lead.family).intersect(build_set(Tuple("", "a", NAMES), bounds)))
    return _condition(bad.coalesce(), everywhere)


@alone
def trip_counts(family: Family, s: int, r: int, f: int) -> str:
    """For which trip counts the loop with these sizes is right: :data:`ALWAYS`, :data:`NEVER`, or a condition on K."""
    points = failing(family)
    for name, value in (("F", f), ("R", r), ("S", s)):
        points = points.fix_val(_D.set, NAMES.index(name), isl.Val.int_from_si(points.get_ctx(), value))
    left = points.project_out(_D.set, 0, 3)
    some = build_set(Tuple("", "a", ("K",)), (at_least(var("K"), "a", 1),))
    right = some.subtract(left).coalesce()
    if right.is_equal(some):
        return ALWAYS
    return NEVER if right.is_empty() else texts(right, ("K",), some, {"K": "K"})


def _everywhere() -> isl.Set:
    s, r, f, k = map(var, NAMES)
    least_ones = (at_least(s, "a", 1), at_least(r, "a", 0), at_least(s - r, "a", 0), at_least(f, "a", 0), at_least(k, "a", 1))
    return build_set(Tuple("", "a", NAMES), least_ones)


def _condition(bad: isl.Set, everywhere: isl.Set) -> Condition:
    k = NAMES.index("K")
    names, whole = NAMES[:k], everywhere.project_out(_D.set, k, 1)
    wrong = bad.project_out(_D.set, k, 1)
    always = whole.subtract(wrong).coalesce()
    still = everywhere.subtract(bad).subtract(always.insert_dims(_D.set, k, 1)).coalesce()
    ever = still.project_out(_D.set, k, 1).insert_dims(_D.set, k, 1).intersect(everywhere)
    kept = ever.gist(still) if still.is_empty() else still.gist(ever).coalesce()
    told = NEVER if always.is_empty() else ALWAYS if always.is_equal(whole) else texts(always, names, whole)
    return Condition(told, "" if still.is_empty() else texts(kept, NAMES, everywhere))


def texts(points: isl.Set, names: tuple[str, ...], within: isl.Set, words: dict[str, str] = WORDS) -> str:
    """A set as a condition, what holds `within` left out."""
    parts: list[str] = []
    points.gist(within).coalesce().foreach_basic_set(lambda b: parts.append(_conjunction(b, names, words)))
    return " or ".join(f"({p})" if len(parts) > 1 and " and " in p else p for p in sorted(parts, key=len))


def _conjunction(points: isl.BasicSet, names: tuple[str, ...], words: dict[str, str]) -> str:
    found: list[str] = []
    points.foreach_constraint(lambda c: found.append(_row(c, names, words)))
    return " and ".join(sorted(filter(None, found))) or "always"


def _row(c: isl.Constraint, names: tuple[str, ...], words: dict[str, str]) -> str:
    """A constraint with positive terms on either side."""
    def value(of: isl.Val) -> int:
        return int(cast("int", of.to_python()))

    factors = {words[n]: value(c.get_coefficient_val(_D.set, i)) for i, n in enumerate(names)}
    inner = [value(c.get_coefficient_val(_D.div, i)) for i in range(c.dim(_D.div))]
    constant, by = value(c.get_constant_val()), next((abs(x) for x in inner if x), 0)
    if by:
        if not c.is_equality():
            return ""
        (name, factor), = ((n, x) for n, x in factors.items() if x)
        return f"{name} % {by} == {-factor * constant % by}"
    left = {n: x for n, x in factors.items() if x > 0}
    right = {n: -x for n, x in factors.items() if x < 0}
    if c.is_equality():
        return f"{_sum(left, max(constant, 0))} == {_sum(right, max(-constant, 0))}"
    if not right:  # a lower bound
        return f"{_sum(left, 0)} >= {-constant}"
    if not left:
        return f"{_sum(right, 0)} <= {constant}"
    tail = f" + {constant}" if constant > 0 else f" - {-constant}" if constant < 0 else ""
    return f"{_sum(right, 0)} <= {_sum(left, 0)}{tail}"


def _sum(terms: dict[str, int], constant: int) -> str:
    parts = [n if x == 1 else f"{x} * {n}" for n, x in sorted(terms.items(), key=lambda t: list(WORDS.values()).index(t[0])
                                                              if t[0] in WORDS.values() else 0)]
    return " + ".join([*parts, *([str(constant)] if constant or not parts else [])])


# -- the least instance --------------------------------------------------------------------------------------------------


def flight_of(found: Ring) -> Flight:
    """What is in flight in a loop, as far as it can be varied: products of a warpgroup, else groups of copies."""
    return "products" if found.done or found.has_roles else "copies"


def in_flight_words(flight: Flight) -> str:
    """What F counts."""
    return "steps whose products are in flight" if flight == "products" else "groups of copies that a wait leaves open"


def _use(family: Family, at: Least) -> Use | None:
    return next((u for u in family.ring.uses if u.leaf in (at.first, at.second)), None)


def _iteration(family: Family, at: Least) -> int:
    """The iteration in which the tile of the least instance is used."""
    use = _use(family, at)
    return at.tile - (use.tile if use else 0)


def told(family: Family, at: Least) -> str:
    """What goes wrong in the least instance."""
    use, t, k = _use(family, at), at.tile, _iteration(family, at)
    if at.reason == "late":
        return f"{at.first} reads tile {t} in iteration {k} before {at.second} is issued"
    if at.reason == "landed":
        return f"{at.first} reads tile {t} in iteration {k}, and no wait has let the group of {at.second} through"
    if at.reason == "freed":
        how = "is complete" if use is not None and use.product >= 0 else "has read it"
        return f"{at.first} brings tile {t + at.S} into the slot of tile {t} before {at.second} of iteration {k} {how}"
    if at.reason == "twice":
        return f"{at.first} brings tile {t + at.S} into the slot of tile {t}, which has not landed there yet"
    if at.reason == "counts":
        return f"no wait is for the group of tile {t} alone"
    return f"{at.first} waits in iteration {k} for what comes behind it, for ever"


def proof_of(plan: Plan, finding: Finding) -> Proof | None:
    """For which sizes a refusal of a pipelined loop holds, with the least trip count that fails; None where it is of none."""
    if finding.source is None or finding.sink is None:
        return None
    loops = dict.fromkeys(x.id for node in finding.nodes for x in _around(plan, node))
    for name, of in ((x, of) for x in loops for of in ways(plan, x)):
        found = ring(plan, name, of)
        if isinstance(found, Ring):
            family = Family(found, flight_of(found))
            own = family.own
            if own["S"] < own["R"] or own["R"] < 0 or not fails(family, own["S"], own["R"], own["F"], found.trips):
                continue
            worst = least(family, **own)
            if worst is not None:
                here, trips = ((WORDS[n], own[n]) for n in ("S", "R", "F")), trip_counts(family, own["S"], own["R"], own["F"])
                whose = f"{name}, its groups in this order," if len(ways(plan, name)) > 1 else name
                return Proof(f"{whose} is {condition(family)}", (*here, ("K", worst.K), (name, _iteration(family, worst))),
                             finding.source, finding.sink, told(family, worst), trips)
    return None


def sentence(plan: Plan, finding: Finding) -> str:
    """The condition behind a refusal, where it is one of a pipelined loop, with the least trip count that fails; else empty."""
    proof = proof_of(plan, finding)
    if proof is None:
        return ""
    *own, (_, trips), _ = proof.least
    here = ", ".join(f"{name} {value}" for name, value in own)
    return f"{proof.condition}; with {here} it fails first for K = {trips}: {proof.says}"


def _around(plan: Plan, node: str) -> tuple[Loop, ...]:
    hit = plan.find(node)
    return tuple(x for x in (hit[1] if hit else ()) if not x.is_place)
