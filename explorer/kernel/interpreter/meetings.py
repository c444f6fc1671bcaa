"""Synchronisation in the interpreter: where threads wait for each other, and the scheduling of those that go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from .lanes import Lanes
from .machine import Machine
from .watch import Hazard


@dataclass(frozen=True)
class Meeting:
    """All threads of a group come to one place before any of them goes on.

    Attributes
    ----------
    key : hashable
        The place: threads that wait elsewhere do not count.
    scope : str
        ``"warp"``, ``"warpgroup"``, ``"block"``, ``"cluster"`` or ``"grid"``; ``"parts"``: until a condition holds.
    lanes : Lanes
        The threads that come.
    done : callable
        What happens when the group with a number is complete.
    nodes : tuple of str
        Ids of the plan's nodes.
    ready : callable or None
        For ``"parts"``: whether the threads can go on.
    missing : str
        What they wait for then, in words.
    """

    key: Any
    scope: str
    lanes: Lanes
    done: Callable[[int], None] = lambda group: None
    nodes: tuple[str, ...] = ()
    ready: Callable[[], bool] | None = None
    missing: str = "parts that no block hands over"


Steps = Iterator[Meeting]


@dataclass
class _Team:
    """Threads that run together, and the groups that they wait for."""

    steps: Steps
    waits: Meeting | None = None
    missing: set[tuple[Any, int]] = field(default_factory=set[tuple[Any, int]])

    @property
    def can_run(self) -> bool:
        ready = self.waits.ready if self.waits else None
        return ready() if ready else not self.missing


class TeamRunner:
    """Runs teams, each until it has to wait.

    Parameters
    ----------
    machine : Machine
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.group_of = {"warp": machine.warps(), "warpgroup": machine.warpgroups(), "block": machine.block_of,
                         "cluster": machine.cluster_of,
                         "grid": np.zeros_like(machine.block_of)}
        self.sizes = {scope: np.bincount(groups) for scope, groups in self.group_of.items()}
        self.here: dict[tuple[Any, int], int] = {}

    def run(self, program: Callable[[Lanes], Steps]) -> bool:
        """All threads run a program; whether they came to its end."""
        order, machine = self.machine.order, self.machine
        teams = [_Team(program(Lanes(index))) for index in order.teams(machine.at, machine.threads)]
        draw = np.random.default_rng(order.seed) if order.sequence == "shuffled" else None
        while teams:
            able = [team for team in teams if team.can_run] if draw else list(islice((t for t in teams if t.can_run), 1))
            if not able:
                self.report(teams)
                return False
            team = able[int(draw.integers(len(able)))] if draw else able[0]
            team.waits = next(team.steps, None)
            if team.waits is None:
                teams.remove(team)
            elif team.waits.ready is None:
                self.arrive(team, teams)
        return True

    def arrive(self, team: _Team, teams: list[_Team]) -> None:
        """A team's threads have come; complete groups go on."""
        meeting = team.waits
        assert meeting is not None
        groups, counts = np.unique(self.group_of[meeting.scope][meeting.lanes.index], return_counts=True)
        for group, count in zip(groups.tolist(), counts.tolist(), strict=True):
            key = (meeting.key, meeting.scope), group
            self.here[key] = self.here.get(key, 0) + count
            team.missing.add(key)
            if self.here[key] == self.sizes[meeting.scope][group]:
                del self.here[key]
                meeting.done(group)
                for other in teams:
                    other.missing.discard(key)

    def report(self, teams: list[_Team]) -> None:
        """Nobody can go on: some threads wait where others do not come."""
        stuck = next(team.waits for team in teams if team.waits)
        where = " and ".join(dict.fromkeys(", ".join(t.waits.nodes) or t.waits.scope for t in teams if t.waits))
        lane = self.machine.place(int(stuck.lanes.index[0]))
        kind = stuck.missing if stuck.ready else f"threads of its {stuck.scope} that do not come"
        nodes = tuple(dict.fromkeys(n for t in teams if t.waits for n in t.waits.nodes))
        self.machine.hazards.report("barrier", nodes, "", lambda: Hazard(
            "barrier", f"thread {lane} waits at {where} for {kind}", nodes))
