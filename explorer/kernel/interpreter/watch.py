"""Fault detection in the interpreter: races, uninitialised reads, accesses out of bounds, divergent barriers.

Every block has a clock, which its barriers advance, and knows how far it has seen the clocks of others.  Two accesses of one
element by different threads are a race if one writes, not both are atomic, and the earlier one's time is not among what the later
one's block has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...ir.finding import Instance
from .lanes import Numbers

MOST = 32
"""Hazards that are kept."""


@dataclass(frozen=True)
class Hazard:
    """What no order of threads makes right, at the first place where it happened.

    Attributes
    ----------
    kind : str
        ``"race"``, ``"uninitialised"``, ``"bounds"``, ``"in flight"`` or ``"barrier"``.
    what : str
        In a sentence.
    nodes : tuple of str
        Ids of the plan's nodes.
    array : str
    element : tuple of int
    source, sink : Instance or None
        The earlier access and the later one.
    """

    kind: str
    what: str
    nodes: tuple[str, ...] = ()
    array: str = ""
    element: tuple[int, ...] = ()
    source: Instance | None = None
    sink: Instance | None = None

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


class Marks:
    """For each element the last two threads that touched it, when, and in which access."""

    def __init__(self, size: int) -> None:
        self.lane = np.full((2, size), -1, np.int64)
        self.time = np.zeros((2, size), np.int64)
        self.access = np.zeros((2, size), np.int64)
        self.atomic = np.zeros((2, size), bool)

    def add(self, where: Numbers, lanes: Numbers, times: Numbers, access: int, atomic: bool = False) -> None:
        """Threads touch elements; of more than two that touch one, two are remembered."""
        other = (self.lane[0, where] != lanes) & (self.lane[0, where] >= 0)
        moved = where[other]
        for kept in (self.lane, self.time, self.access, self.atomic):
            kept[1, moved] = kept[0, moved]
        self._put(0, where, lanes, times, access, atomic)
        again = self.lane[0, where] != lanes
        self._put(1, where[again], lanes[again], times[again], access, atomic)

    def _put(self, slot: int, where: Numbers, lanes: Numbers, times: Numbers, access: int, atomic: bool) -> None:
        self.lane[slot, where], self.time[slot, where] = lanes, times
        self.access[slot, where], self.atomic[slot, where] = access, atomic


class Clocks:
    """The blocks' times, what each has seen of others, and up to when instructions that read by themselves see its writes.

    Parameters
    ----------
    blocks : int
    threads : int
        Of a block.
    meeting : bool
        Whether blocks ever wait for each other.
    """

    def __init__(self, blocks: int, threads: int, meeting: bool) -> None:
        self.threads, self.now, self.fenced = threads, np.zeros(blocks, np.int64), np.zeros(blocks, np.int64)
        self.seen = np.zeros((blocks, blocks), np.int64) if meeting else None

    def advance(self, blocks: Sequence[int]) -> None:
        """Blocks meet: each has seen what all of them had."""
        chosen = np.asarray(blocks)
        self.now[chosen] += 1
        if self.seen is not None:
            known = self.seen[chosen].max(axis=0)
            known[chosen] = self.now[chosen]
            self.seen[chosen] = known

    def learn(self, block: int, others: Sequence[int]) -> None:
        """One block has seen what others had when they came."""
        if self.seen is not None:
            self.seen[block] = np.maximum(self.seen[block], self.seen[np.asarray(others)].max(axis=0))

    def unordered(self, lanes: Numbers, others: Numbers, times: Numbers) -> Numbers:
        """Whether other threads' accesses at these times may still happen beside those of `lanes`."""
        mine, theirs = lanes // self.threads, np.maximum(others, 0) // self.threads
        if self.seen is None:
            late = (mine != theirs) | (times >= self.now[mine])
        else:
            late = times >= self.seen[mine, theirs]
        return (others >= 0) & (others != lanes) & late


class Hazards(list[Hazard]):
    """What has been found, one for each kind, nodes and array."""

    def report(self, kind: str, nodes: tuple[str, ...], array: str, say: Callable[[], Hazard]) -> None:
        """Keep what `say` says, unless the like of it is known."""
        if len(self) < MOST and not any((h.kind, h.nodes, h.array) == (kind, nodes, array) for h in self):
            self.append(say())
