"""For which sizes a pipelined loop is right: an answer for all trip counts and slots, its grid, and its least counterexample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from ...errors import ExplorerError, TransformError, spoken
from ...ir.finding import YES, Finding, Verdict
from ...ir.plan import Plan
from ...poly.judge import judge
from ...poly.ring import Ring, leads, ring
from ...poly.ring_questions import Family, Least, fails, least
from ...poly.ring_text import (
    ALWAYS,
    NEVER,
    WORDS,
    Condition,
    Lead,
    condition,
    condition_by_lead,
    in_flight_words,
    told,
    trip_counts,
)
from ...schedule import Schedule
from ...strategies.pipelines.family import Kin, kin_of, required
from ...transforms.approximate import as_computed
from .result import Counterexample
from .smallest import smallest_first

MOST_STAGES = 12
"""That a grid shows; the condition holds for all."""
LOOKED_AT = 5
"""Stages that are looked at for the least instance of a pipeline that is beside others."""
TRIED = 40
"""Sizes that are looked at for some trip count."""
USUAL = (1, 2, 8, 16, 64)
"""Other sizes: rows of bulk copies are multiples of 16 bytes."""
SOUND = (3, 1, 1)
"""Stages, release distance and in flight of a pipeline that is right, if one is."""


@dataclass(frozen=True)
class GridCell:
    """One place of the grid.

    Attributes
    ----------
    slots, release_distance, in_flight : int
    trips : str
        For which trip counts K it is right: ``"for every trip count"``, ``"never"``, or a condition.
    why_not : str
        What goes wrong in the least instance; empty where nothing does.
    least : Least or None
        That instance.
    """

    slots: int
    release_distance: int
    in_flight: int
    trips: str
    why_not: str = ""
    least: Least | None = None

    @property
    def legal(self) -> bool:
        """Whether it is right for every trip count."""
        return self.trips == ALWAYS


@dataclass(frozen=True)
class Made:
    """A step that makes the pipeline of one place of the grid, whether it is legal or not."""

    kin: Kin
    slots: int
    release_distance: int
    in_flight: int

    def check(self, plan: Plan) -> Verdict:
        """It can be made of every plan of the family."""
        del plan
        return YES

    def rewrite(self, plan: Plan) -> Plan:
        """The plan with it."""
        return replace(self.kin, base=plan).plan(self.slots, self.release_distance, self.in_flight)

    def __str__(self) -> str:
        return (f"a pipeline of {self.kin.way.loop} with slots {self.slots}, release distance {self.release_distance}, "
                f"in flight {self.in_flight}")


@dataclass(frozen=True)
class PipelineConditions:
    """When the pipelines of a loop are right, with trip count and slots symbolic.

    Attributes
    ----------
    loop : str
    schedule : Schedule
        Whose pipeline is in question.
    kin : Kin
        The plans in question.
    family : Family
        The ring that they have in common.
    condition : Condition
    own : dict or None
        Stages, release distance and what is in flight in the schedule itself; None where it is not pipelined.
    trips : int
        Of the schedule.
    of : tuple of str
        The copies in question, where others of the loop are made otherwise.
    """

    loop: str
    schedule: Schedule
    kin: Kin
    family: Family
    condition: Condition
    own: dict[str, int] | None
    trips: int
    of: tuple[str, ...] = ()

    @property
    def bare(self) -> Schedule:
        """The schedule without the pipeline."""
        return required(self.schedule, self.loop, self.of)

    @spoken(TransformError)
    def legal(self, slots: int, release_distance: int, in_flight: int = 0, trips: int | None = None) -> bool:
        """Whether these sizes are right, for one trip count or for all.

        Parameters
        ----------
        slots : int
            Slots of each buffer, at least 1.
        release_distance : int
            A copy takes the slot of the tile so many iterations before, 0 to `slots`.
        in_flight : int
            See ``in_flight_words``.
        trips : int, optional
        """
        if trips is None:
            return self.cell(slots, release_distance, in_flight).legal
        sizes = self._sizes(slots, release_distance, in_flight)
        return not fails(self.family_of(*sizes[:2]), *sizes, trips)

    @spoken(TransformError)
    def cell(self, slots: int, release_distance: int, in_flight: int = 0) -> GridCell:
        """One place of the grid."""
        s, r, f = self._sizes(slots, release_distance, in_flight)
        family = self.family_of(s, r)
        worst = least(family, S=s, R=r, F=f)
        return GridCell(s, r, f, trip_counts(family, s, r, f), "" if worst is None else told(family, worst), worst)

    def grid(self, slots: int = 5, in_flight: int = 3) -> tuple[GridCell, ...]:
        """All places with up to so many slots and in flight."""
        most = in_flight if self.kin.varies else 0
        return tuple(self.cell(s, r, f) for s in range(1, min(slots, MOST_STAGES) + 1) for r in range(s + 1)
                     for f in range(most + 1))

    def least(self, **given: int) -> Least | None:
        """The least instance that fails, by trip count K first; S, R, F or K may be given."""
        if odd := next((name for name in given if name not in WORDS), None):
            raise TransformError(f"{odd} is no size of a pipeline", hint=", ".join(f"{n}: {w}" for n, w in WORDS.items()))
        if not self.of:
            return least(self.family, **given)
        places = ((s, r) for s in ((given["S"],) if "S" in given else range(1, LOOKED_AT + 1))
                  for r in ((given["R"],) if "R" in given else range(s + 1)))
        found = (least(self.family_of(s, r), **{**given, "S": s, "R": r}) for s, r in places)
        return min(filter(None, found), key=lambda x: (x.K, x.S, x.R, x.F, x.tile), default=None)

    def plan(self, slots: int, release_distance: int, in_flight: int = 0, trips: int | None = None) -> Plan:
        """The plan of one place, legal or not, at the schedule's own sizes or with so many trips."""
        sizes = self._sizes(slots, release_distance, in_flight)
        if trips is None or trips == self.trips:
            return self.kin.plan(*sizes)
        found = next((s for _, s in self._sized(trips)), None)
        if found is None:
            raise TransformError(f"no sizes of this program give {self.loop} {trips} iterations")
        return Made(self.kin, *sizes).rewrite(found.plan)

    @spoken(TransformError)
    def counterexample(self, slots: int, release_distance: int, in_flight: int = 0) -> Counterexample:
        """Run one place of the grid at the least trip count that fails, on the CPU device."""
        from .counterexample import shown  # what runs a plan takes ten times as long to import as a condition to find
        from .illegal import Trial

        cell = self.cell(slots, release_distance, in_flight)
        made = Made(self.kin, cell.slots, cell.release_distance, cell.in_flight)
        if cell.least is None:
            return Counterexample(str(made), False, f"{made} is right for every trip count")
        there = ring(self.kin.plan(cell.slots, cell.release_distance, cell.in_flight), self.loop, self.of)
        if not isinstance(there, Ring):  # steps behind the pipeline have moved its loop
            return Counterexample(str(made), False, f"the other steps of this schedule make no such pipeline: {there}")
        for sizes, small in self._sized(cell.least.K):
            plan = made.rewrite(small.plan)
            if finding := refusal(plan):
                return shown(made, Trial(sizes, as_computed(small.source, plan), plan, finding))
        return Counterexample(str(made), False, f"no sizes of this program give {self.loop} {cell.least.K} iterations")

    def family_of(self, s: int, r: int) -> Family:
        """Of these sizes: where other copies are in the loop, the groups are committed in an order that depends on them."""
        found = ring(self.kin.made(s, r), self.loop, self.of) if self.of else ""
        return Family(found, self.kin.flight) if isinstance(found, Ring) else self.family

    def _sizes(self, slots: int, release_distance: int, in_flight: int) -> tuple[int, int, int]:
        for name, value, low, high in (("slots", slots, 1, 1 << 16), ("release_distance", release_distance, 0, slots),
                                       ("in_flight", in_flight, 0, 1 << 16)):
            if type(value) is not int or not low <= value <= high:
                raise TransformError(f"{name}={value!r} is not a whole number from {low} to {high}",
                                     hint="a release distance is at most the number of slots")
        return slots, release_distance, in_flight

    def _sized(self, trips: int) -> Iterator[tuple[dict[str, int], Schedule]]:
        """The schedule without its pipeline at small sizes with so many trips."""
        own = dict(self.schedule.source.sizes)
        if self.schedule.definition is None:
            if trips == self.trips:
                yield own, self.bare
            return
        for name, value in own.items():
            for v in _near(value * trips, self.trips):
                allowed = {n: [v] if n == name else sorted({*(x for x in USUAL if x < m), m}) for n, m in own.items()}
                for sizes in islice(smallest_first({**own, name: v}, allowed), TRIED):
                    try:
                        found = self._at(sizes)
                        kin = replace(self.kin, base=found.plan)
                        plan = kin.made(self.own["S"], self.own["R"]) if self.of and self.own else kin.plan(*SOUND)
                        here = ring(plan, self.loop, self.of)
                    except ExplorerError:
                        continue
                    if not isinstance(here, Ring) or here.shape != self.family.ring.shape:
                        continue
                    if here.trips != trips:
                        break
                    if judge(plan).emittable:
                        yield sizes, found

    def _at(self, sizes: dict[str, int]) -> Schedule:
        assert self.schedule.definition is not None
        now = self.schedule.definition.schedule(**sizes)
        for step in self.bare.steps:
            now = now.apply(step, judge=False)
        return now

    def __str__(self) -> str:
        worst = self.least()
        lines = [f"the pipeline of {self.loop}, {self.family.ring.mechanism} copies of "
                 f"{', '.join(dict.fromkeys(c.statement for c in self.family.ring.copies))}: {self.condition}"]
        if self.kin.varies:
            lines.append(f"in flight: {in_flight_words(self.family.flight)}")
        if self.own:
            s, r, f = (self.own[n] for n in ("S", "R", "F"))
            here = ", ".join(f"{WORDS[n]} {self.own[n]}" for n in ("S", "R", "F"))
            trips = trip_counts(self.family, s, r, f)
            lines.append(f"this schedule: {here}: legal {trips if trips in (ALWAYS, NEVER) else f'iff {trips}'}")
        if worst:
            lines.append(f"least instance that fails: K = {worst.K}, S = {worst.S}, release distance {worst.R}, in flight "
                         f"{worst.F}: {told(self.family, worst)}")
        return "\n  ".join(lines)

    def __repr__(self) -> str:
        return str(self)


def _near(size: int, by: int) -> tuple[int, ...]:
    """Sizes near a quotient, round ones too."""
    exact = (max(1, size // by), -(-size // by))
    rounded = (*(-(-exact[1] // n) * n for n in (4, 8, 16)), *(max(n, exact[0] // n * n) for n in (16, 8, 4)))
    return tuple(dict.fromkeys((*exact, *rounded)))


def refusal(plan: Plan) -> Finding | None:
    """What the judge says of a plan."""
    found = judge(plan)
    return next(iter((*found.refusals, *found.obligations)), None)


def pipeline_conditions(schedule: Schedule, loop: str, flight: str = "", of: tuple[str, ...] = ()) -> PipelineConditions | str:
    """The conditions of a loop's pipelines, or of those of some copies; or a sentence why there are none."""
    kin = kin_of(schedule, loop, flight, of)
    if isinstance(kin, str):
        return kin
    own = ring(kin.alike(schedule.plan), loop, of)
    known = own if isinstance(own, Ring) and (of or not isinstance(kin.base, Plan)) else ring(kin.plan(*SOUND), loop, of)
    if isinstance(known, str):
        return known
    family = Family(known, kin.flight)
    mine = Family(own, kin.flight).own if isinstance(own, Ring) and own.shape == known.shape else None
    found = PipelineConditions(loop, schedule, kin, family, condition(family), mine, known.trips, of)
    try:
        return replace(found, condition=condition_by_lead(tuple(_leads(found, schedule.plan)))) if of else found
    except TransformError as error:  # its other steps need the pipeline
        return error.what


def _leads(found: PipelineConditions, plan: Plan) -> Iterator[Lead]:
    """The families of a pipeline that is beside others, by how far ahead its copies are made."""
    start = 0
    for n in (0, *(x for x in leads(plan, found.loop, found.of) if x)):
        if start < n:
            yield Lead(found.family_of(start + 1, 1), start, n - 1)
        yield Lead(found.family_of(n + 1, 1), n, n)
        start = n + 1
    yield Lead(found.family_of(start + 1, 1), start)
