"""Copies on their way in the interpreter, and the phases of mbarriers in which bulk copies are counted."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..nodes import Node
from ..sites import Site
from .lanes import Env, Numbers
from .memory import Cells


@dataclass(frozen=True)
class Access:
    """A node that touches memory, and the variables around it when it did."""

    node: Node
    site: Site
    env: Env

    @property
    def nodes(self) -> tuple[str, ...]:
        """Ids of the plan's nodes."""
        return self.node.ids or (self.site.leaf.id,)


@dataclass
class Flight:
    """An asynchronous copy on its way: for each thread its group, and the elements."""

    access: Access
    lanes: Numbers
    group: Numbers
    to: Cells
    where: Numbers
    source: Cells
    comes: Numbers
    valid: Numbers

    def land(self) -> None:
        """The elements as they are now are at their place."""
        value, known = np.where(self.valid, self.source.data[self.comes], 0), self.source.known[self.comes] | ~self.valid
        self.to.store(self.where, value, known)


Key = tuple[str, int, int]
"""An mbarrier: the name of its array, its block, and its number there."""


@dataclass
class Phase:
    """One phase of an mbarrier: what is counted in it, and who knows that it is complete."""

    number: int
    block: int
    waited: Numbers
    missing: int = 1
    flights: list[Flight] = field(default_factory=list[Flight])
    known_since: int | None = None

    @property
    def arrived(self) -> bool:
        """Whether nobody is missing."""
        return self.missing <= 0


@dataclass
class Boxes:
    """The mbarriers of a launch.

    Attributes
    ----------
    threads : int
        Of the launch.
    phases : list of Phase
        All that there were; a box is marked with the number of its own.
    open : dict
        How many phases of an mbarrier are complete, and the one that is not.
    last : dict
        The newest one that is.
    arrivals : dict
        How many complete a phase, where it is not one.
    """

    threads: int
    phases: list[Phase] = field(default_factory=list[Phase])
    open: dict[Key, tuple[int, Phase]] = field(default_factory=dict[Key, tuple[int, Phase]])
    last: dict[Key, Phase] = field(default_factory=dict[Key, Phase])
    arrivals: dict[Key, int] = field(default_factory=dict[Key, int])

    def begin(self, key: Key, done: int = 0) -> None:
        """A phase begins."""
        self.phases.append(Phase(len(self.phases), key[1], np.zeros(self.threads, bool), self.arrivals.get(key, 1)))
        self.open[key] = done, self.phases[-1]

    def passed(self, key: Key, parity: int) -> bool:
        """Whether the phase of this parity is complete; one in which a thread has arrived is, if that is asked."""
        done, phase = self.open[key]
        if done % 2 == parity and phase.arrived:
            self.complete(key)
            return True
        return done % 2 != parity

    def complete(self, key: Key) -> None:
        """All boxes of the open phase have landed at the latest now."""
        done, phase = self.open[key]
        for flight in phase.flights:
            flight.land()
        self.last[key] = phase
        self.begin(key, done + 1)

    def unseen(self, cells: Cells, where: Numbers, lanes: Numbers, now: Numbers, threads: int) -> Numbers:
        """Which of these elements belong to a box that its thread cannot know to have landed."""
        assert cells.phase is not None
        marks = cells.phase[where]
        out = np.zeros(marks.shape, bool)
        for number in np.unique(marks[marks >= 0]):
            phase = self.phases[int(number)]
            knows = phase.waited[lanes]
            if phase.known_since is not None:
                knows = knows | ((lanes // threads == phase.block) & (now[lanes // threads] > phase.known_since))
            out |= (marks == number) & ~knows
        return out
