"""The order in which the threads of a launch run: which go together, and which go first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...ir.tree import WARP_SIZE
from .lanes import Numbers

Place = tuple[tuple[str, int], ...]
"""Coordinates of threads, ``(("block.x", 3), ("thread.x", 0))``: all threads that have them."""

TEAMS = {"grid": "all blocks at once", "block": "block after block", "warp": "warp after warp", "thread": "thread after thread"}
SEQUENCES = ("ascending", "descending", "shuffled")


@dataclass(frozen=True)
class Order:
    """One of the orders that CUDA allows.

    Threads of a team run every node together: all of them read before one of them writes, and of several that write one element
    the last one's value stays.  A team runs until it has to wait; then the first one that can goes on.

    Attributes
    ----------
    team : str
        ``"grid"``, ``"block"``, ``"warp"`` or ``"thread"``.
    sequence : str
        ``"ascending"``, ``"descending"`` or ``"shuffled"``, of the threads' numbers.
    seed : int
        Of the shuffle.
    first, last : tuple of (str, int)
        Coordinates of the threads that go before all others, and behind them.
    early : bool
        Whether asynchronous copies land as soon as they are issued; otherwise they do at the wait for their group.
    """

    team: str = "grid"
    sequence: str = "ascending"
    seed: int = 0
    first: Place = ()
    last: Place = ()
    early: bool = False

    def __str__(self) -> str:
        parts = [f"{TEAMS[self.team]}, {self.sequence}"]
        parts += [f"{word} {_words(place)}" for word, place in (("first", self.first), ("last", self.last)) if place]
        return ", ".join([*parts, *(["asynchronous copies landing at once"] if self.early else [])])

    def lanes(self, at: Mapping[str, Numbers]) -> Numbers:
        """The numbers of all threads in this order.

        Parameters
        ----------
        at : mapping of str to ndarray
            Every thread's coordinate of each role.
        """
        numbers = np.arange(len(at["thread.x"]))
        if self.sequence == "descending":
            numbers = numbers[::-1]
        elif self.sequence == "shuffled":
            numbers = np.random.default_rng(self.seed).permutation(numbers)
        rank = _among(self.last, at).astype(int) - _among(self.first, at)
        return numbers[np.argsort(rank[numbers], kind="stable")]

    def teams(self, at: Mapping[str, Numbers], threads: int) -> list[Numbers]:
        """The teams, in the order in which they start.

        Parameters
        ----------
        at : mapping of str to ndarray
        threads : int
            Of a block.
        """
        lanes = self.lanes(at)
        if self.team == "grid":
            return [lanes]
        warps = lanes // threads * -(-threads // WARP_SIZE) + lanes % threads // WARP_SIZE
        key = {"block": lanes // threads, "warp": warps, "thread": lanes}[self.team]
        _, first, number = np.unique(key, return_index=True, return_inverse=True)
        ranked = np.argsort(first[number], kind="stable")
        return np.split(lanes[ranked], np.flatnonzero(np.diff(key[ranked])) + 1)


def _among(place: Place, at: Mapping[str, Numbers]) -> Numbers:
    """Whether each thread has these coordinates; no thread has none."""
    out = np.full(len(at["thread.x"]), bool(place))
    for role, value in place:
        out &= at[role] == value
    return out


def _words(place: Place) -> str:
    return " ".join(f"{role}={value}" for role, value in place)
