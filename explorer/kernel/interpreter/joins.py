"""Interpretation of the phases of a launch: the blocks that run each, and their synchronisation.

As in the text of :mod:`explorer.kernel.phases`, behind a grid barrier every block goes on; joined by ``last_block`` the last one
to finish; joined by ``handoff`` or in a cluster a fixed one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ...ir.tree import BLOCK_ROLES
from .blocks import Blocks
from .boxes import end_copies
from .lanes import Env, Lanes, Numbers
from .machine import Machine
from .meetings import Meeting, Steps, TeamRunner
from .stores import end_stores


class Phases:
    """The kernels of one launch, run by all of its threads.

    Parameters
    ----------
    machine : Machine
    scalars : tuple of int
        Iterations of the loops that the host runs.
    """

    def __init__(self, machine: Machine, scalars: tuple[int, ...]) -> None:
        self.machine, launch = machine, machine.launch
        self.kernels, self.plan = launch.kernels, launch.plan
        self.phases = [Blocks(machine, low, n) for n, low in enumerate(launch.lows)]
        names = [low.variable[loop.id] for low in launch.lows for loop in low.launch_loops]
        self.scalars = dict(zip(names, scalars, strict=True))
        self.finished: dict[Any, list[int]] = {}
        self.last = np.zeros(machine.blocks, bool)
        for store in launch.stores.values():
            if store.handed_off:
                cells = machine.cells(store)[0]
                cells.written = None  # to read them is to wait for them
                cells.known[...] = False

    def run(self) -> bool:
        """Whether all threads come to the end."""
        ended = TeamRunner(self.machine).run(self.program)
        if ended:
            end_copies(self.machine)
            end_stores(self.machine)
        return ended

    def program(self, lanes: Lanes) -> Steps:
        """All phases, by some threads."""
        starts = [i for i, k in enumerate(self.kernels) if i == 0 or not k.by_one]
        for first, end in zip(starts, (*starts[1:], len(self.kernels)), strict=True):
            if first:
                yield Meeting(("grid", first), "grid", lanes, self._all_meet, (self.kernels[first].id,))
            yield from self.phase(first, lanes)
            if first + 1 < end:
                yield from self.behind(first, end, lanes)

    def phase(self, number: int, lanes: Lanes) -> Steps:
        """One kernel's body."""
        low = self.phases[number].low
        env: Env = {name: self.machine.at[role] for role, name in low.role_name.items()} | self.scalars
        yield from self.phases[number].steps(self.machine.launch.bodies[number], lanes, env)

    def behind(self, number: int, end: int, lanes: Lanes) -> Steps:
        """The phase behind one, and those behind that, by the blocks that go on."""
        kernel = self.kernels[number + 1]
        chosen = self.plan.joined_axes(kernel)
        every = self.plan.extents[self.kernels[number].id]
        others = [axis for axis in range(3) if axis not in chosen and every[axis] > 1]
        parts = prod(every[axis] for axis in others)
        if kernel.join == "handoff":
            lanes = lanes.among(self._at_end(others, every)[lanes.index])
            yield from self._going_on(number, lanes)
        elif parts == 1:
            yield from self._going_on(number, lanes)
        elif kernel.join == "cluster":
            yield Meeting(("cluster", number), "cluster", lanes, self._cluster_meets, (kernel.id,))
            lanes = lanes.among(self._at_end(others, every)[lanes.index])
        else:
            done = partial(self._finish, number, chosen, parts)
            yield Meeting(("last_block", number), "block", lanes, done, (kernel.id,))
            lanes = lanes.among(self.last[self.machine.block_of[lanes.index]])
        if len(lanes):
            yield from self.phase(number + 1, lanes)
            if number + 2 < end:
                yield from self.behind(number + 1, end, lanes)

    def _going_on(self, number: int, lanes: Lanes) -> Steps:
        if len(lanes):
            done = self.machine.clocks.advance
            yield Meeting(("on", number), "block", lanes, lambda block: done([block]), (self.kernels[number + 1].id,))

    def _at_end(self, axes: Sequence[int], extents: Sequence[int]) -> Numbers:
        """Threads of the last block along these axes."""
        out = np.ones(len(self.machine.everyone), bool)
        for axis in axes:
            out &= self.machine.at[BLOCK_ROLES[axis]] == extents[axis] - 1
        return out

    def _finish(self, number: int, axes: Sequence[int], parts: int, block: int) -> None:
        """A block counts itself as finished: the last one sees what the others wrote."""
        machine = self.machine
        machine.clocks.advance([block])
        thread = block * machine.threads
        key = number, *(int(machine.at[BLOCK_ROLES[axis]][thread]) for axis in axes)
        came = self.finished.setdefault(key, [])
        came.append(block)
        self.last[block] = len(came) == parts
        if self.last[block]:
            machine.clocks.learn(block, came)

    def _all_meet(self, _: int) -> None:
        self.machine.clocks.advance(range(self.machine.blocks))

    def _cluster_meets(self, cluster: int) -> None:
        machine = self.machine
        machine.clocks.advance(np.unique(machine.block_of[machine.cluster_of == cluster]).tolist())
