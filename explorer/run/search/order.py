"""What a search measures, and in which order: the models' favourites, a few drawn at random, then neighbours of the best so far.

A performance model ranks first, as in ALCOP (Huang et al., MLSys 2023).  What has been measured then leads on, by hill climbing:
from the best so far to what differs in one free choice (:mod:`explorer.strategies.neighbours`), the cheapest by the model
first, and from there as soon as one is faster.  Where several kernels have choices, each is climbed for itself, in turns.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ...gpu.spec import Gpu
from ...schedule import Schedule
from ...strategies.choices import Decision, Variant, as_written, decisions, variants
from ...strategies.neighbours import Space

BESIDE = 2
"""One of so many trials is a step from the best so far."""
DRAWN = 10
"""One of so many trials is drawn from those that the models do not favour: a model can be wrong, and steps stay near."""
COMBINED = 2
"""Trials that are kept for what is best in several kernels together."""

Change = tuple[str, str, str]
"""Stage, kernel and label of what differs from `auto`; empty words for nothing."""


@dataclass(frozen=True)
class Order:
    """The variants of one search.

    Attributes
    ----------
    first : tuple of Variant
        Measured whatever their times are; the first is the start.
    hills : tuple of Hill
        Where steps lead.
    steps : int
        How many there are at most.
    combined : int
        Trials left for what is best in several kernels together.
    """

    first: tuple[Variant, ...]
    hills: tuple[Hill, ...] = ()
    steps: int = 0
    combined: int = 0

    @classmethod
    def of(cls, schedule: Schedule, gpu: Gpu, trials: int, seed: int) -> Order:
        """The order for the variants of a program; one's own schedule comes second."""
        written = as_written(schedule)
        found = decisions(written, gpu)
        start, *others = variants(written, gpu, found=found)
        singles = [v for v in others if len(v.changes) == 1]
        own = [_given(schedule, gpu)] if schedule.steps and trials > 1 else []
        kept = COMBINED if len(found) > 1 else 0
        room = max(0, trials - 1 - len(own) - kept)
        drawn, steps = (room // DRAWN, room // BESIDE) if len(singles) > room else (0, 0)
        favoured = min(room, len(singles)) - drawn - steps
        some = random.Random(seed).sample(range(favoured, len(singles)), drawn)
        first = (start, *own, *singles[:favoured], *(singles[n] for n in sorted(some)))
        hills = tuple(Hill(d, {_change(v): v for v in singles}) for d in found)
        return cls(first, hills, steps, min(kept, trials - len(first) - steps))

    @property
    def most(self) -> int:
        """Trials at most."""
        return len(self.first) + self.steps + self.combined

    @property
    def labels(self) -> tuple[str, ...]:
        """What there is to measure: where the seed and the times are the same, the trials are, too."""
        further = (v.label for hill in self.hills for v in hill.variants.values()) if self.steps else ()
        return (*(v.label for v in self.first), *further)

    def beside(self, measured: Sequence[tuple[Variant, float]]) -> Variant | None:
        """The next step: of the kernel that has taken fewest; None where all has been measured.

        Parameters
        ----------
        measured : sequence of (Variant, float)
            All so far with their times, in the order of the search; infinite where one does not count.
        """
        times: dict[Change, float] = {}
        for variant, us in measured:
            times.setdefault(_change(variant), us)  # the start comes before one's own schedule
        taken = [_change(v) for v, _ in measured[len(self.first):]]
        turns = sorted(self.hills, key=lambda hill: sum(change in hill.variants for change in taken))
        return next((found for hill in turns if (found := hill.beside(times))), None)


@dataclass(frozen=True)
class Hill:
    """The configurations of one decision, to be climbed.

    Attributes
    ----------
    decision : Decision
    singles : mapping of Change to Variant
        Of all decisions.
    """

    decision: Decision
    singles: Mapping[Change, Variant] = field(repr=False)

    @cached_property
    def variants(self) -> dict[Change, Variant]:
        """The variants that differ from the start in this turn alone, the cheapest by the models first."""
        return {change: self.singles[change] for change in self._changes[1:]}

    @cached_property
    def _changes(self) -> list[Change]:
        """For each choice how the variant differs from the start, which is the first."""
        return [_NOTHING, *((c.stage, c.kernel, c.label) for c in self.decision.choices[1:])]

    @cached_property
    def _space(self) -> Space:
        return Space([c.free for c in self.decision.choices])

    def beside(self, times: Mapping[Change, float]) -> Variant | None:
        """The cheapest neighbour of the best so far; the nearest of the others where all of them have been measured."""
        known = {n: times[change] for n, change in enumerate(self._changes) if change in times}
        best = min(known, key=known.__getitem__, default=0)
        around = [n for n in self._space.neighbours(best) if n not in known]
        others = (n for n in range(len(self._changes)) if n not in known)
        found = around[0] if around else min(others, key=lambda n: self._space.apart(best, n), default=None)
        return None if found is None else self.variants[self._changes[found]]


_NOTHING: Change = "", "", ""


def _change(variant: Variant) -> Change:
    """How a variant differs from the start; those that combine several changes are no way of one turn."""
    if len(variant.changes) != 1:
        return _NOTHING
    (c,) = variant.changes
    return c.stage, c.kernel, c.label


def _given(schedule: Schedule, gpu: Gpu) -> Variant:
    """The user's own schedule as a variant."""
    mine: Variant = Variant("as given", as_written(schedule), gpu)
    mine.__dict__["schedule"] = schedule  # what the property would build
    return mine
