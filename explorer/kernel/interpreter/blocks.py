"""What threads of a block, a warp or a cluster do together: barriers and collectives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.dtype import DType
from ...ir.operations import OPERATIONS
from ...ir.scalar import REDUCTIONS
from ..nodes import (
    Acquire,
    Await,
    Barrier,
    Collect,
    Combine,
    Contribute,
    Do,
    Drain,
    For,
    If,
    Multiply,
    Node,
    Ref,
    Release,
    WaitProducts,
    Way,
)
from ..traverse import walk
from . import boxes, fragments
from .flights import Access
from .lanes import Env, Lanes, Numbers
from .machine import Machine
from .meetings import Meeting, Steps
from .memory import held_as, poison
from .threads import Threads

_MEETING = (Acquire, Await, Barrier, Collect, Combine, Drain, Multiply, Release, WaitProducts)
"""Nodes in which threads wait for each other."""


class Blocks(Threads):
    """The threads of one kernel, with what makes them wait."""

    def __init__(self, machine: Machine, low: Any, prefix: int) -> None:
        super().__init__(machine, low)
        self.prefix = prefix
        self._waits: dict[int, bool] = {}
        self.values: dict[int, Numbers] = {}
        self.fragments: dict[tuple[int, Ref], fragments.Fragment] = {}
        self.products: dict[int, list[fragments.Product]] = {}

    def steps(self, nodes: Sequence[Node], lanes: Lanes, env: Env) -> Steps:
        """The nodes in order, with a pause wherever threads meet."""
        for node in nodes:
            if not len(lanes):
                return
            if not self.waits(node):
                self.node(node, lanes, env)
            elif isinstance(node, For):
                for some, inner in self.iterations(node, lanes, env):
                    yield from self.steps(node.body, some, inner)
            elif isinstance(node, If):
                chosen, others = self.branches(node, lanes, env)
                yield from self.steps(node.body, chosen, env)
                yield from self.steps(node.otherwise, others, env)
            else:
                yield from self.meet(node, lanes, env)

    def waits(self, node: Node) -> bool:
        """Whether threads meet in the node."""
        if id(node) not in self._waits:
            self._waits[id(node)] = any(isinstance(n, _MEETING) or (isinstance(n, (Do, Contribute)) and _taken(n))
                                        for n in walk((node,)))
        return self._waits[id(node)]

    def meet(self, node: Node, lanes: Lanes, env: Env) -> Steps:
        """A barrier, a collective, or parts that other blocks hand over."""
        if isinstance(node, (Do, Collect, Contribute)) and _taken(node):
            yield self.handed(node, lanes, env)
        if isinstance(node, Barrier):
            yield self.barrier(node, lanes)
        elif isinstance(node, Collect):
            yield from self.collect(node, lanes, env)
        elif isinstance(node, Multiply):
            fragments.collect(self, node, lanes, env)
            yield Meeting((self.prefix, id(node)), fragments.scope(node), lanes,
                          lambda group: fragments.multiply(self, Access(node, node.site, env), group), node.ids)
        elif isinstance(node, WaitProducts):
            yield Meeting((self.prefix, id(node)), "warpgroup", lanes,
                          lambda group: fragments.wait(self, node.pending, group), node.ids)
        elif isinstance(node, (Acquire, Await)):
            yield from boxes.wait(self, node, lanes, env)
        elif isinstance(node, Drain):
            for one in node.acquires:
                yield from boxes.wait(self, one, lanes, env)
        elif isinstance(node, Release):
            yield from boxes.release(self, node, lanes, env)
        elif isinstance(node, Combine):
            yield from self.combine_lanes(node, lanes, env)
        else:
            self.node(node, lanes, env)

    def handed(self, node: Do | Collect | Contribute, lanes: Lanes, env: Env) -> Meeting:
        """Until what other blocks hand over is there."""
        access = Access(node, node.site, env)
        reading = lanes.among(self.holds(node.inside if isinstance(node, Do) else node.guards, lanes, env))
        there = [self.where(access, ref, reading, node.operands) for ref in _taken(node)] if len(reading) else []
        return Meeting(id(node), "parts", lanes, nodes=node.ids,
                       ready=lambda: all(cells.known[where].all() for cells, where, _ in there))

    def barrier(self, node: Node, lanes: Lanes, part: str = "") -> Meeting:
        """All threads of the block."""
        clocks = self.machine.clocks

        def met(block: int) -> None:
            clocks.advance([block])
            if isinstance(node, Barrier) and node.proxy:
                clocks.fenced[block] = clocks.now[block]

        return Meeting((self.prefix, id(node), part), "block", lanes, met, node.ids)

    # -- collectives --------------------------------------------------------------------------------------------

    def collect(self, node: Collect, lanes: Lanes, env: Env) -> Steps:
        """Values are combined, then the target is updated."""
        access, wide = Access(node, node.site, env), self.dtype(node.site).wide
        mine = self.contribution(node, access, lanes)
        update = node.site.statement.update or "sum"
        if node.way.function:
            yield from self.combined(node, node.way, update, wide, mine[:, None], lanes, node.first_waits)
            mine = self.values[id(node)][lanes.index, 0]
        if node.way.blocks > 1:
            yield from self.over_clusters(node, update, wide, mine, lanes)
            mine = self.values[id(node)][lanes.index, 0]
        self.by_writers(node, access, lanes, mine, node.operands)

    def combine_lanes(self, node: Combine, lanes: Lanes, env: Env) -> Steps:
        """The values of a local array, all at once."""
        cells = self.machine.cells(node.local)[0]
        where = lanes.index[:, None] * cells.size + np.arange(node.count)
        yield from self.combined(node, node.way, node.update, node.local.dtype, cells.data[where], lanes, node.first_waits)
        cells.store(where, self.values[id(node)][lanes.index])

    def combined(self, node: Collect | Combine, way: Way, update: str, dtype: DType, mine: Numbers, lanes: Lanes,
                 first_waits: bool) -> Steps:
        """Every thread's values over its group, in :attr:`values`."""
        values, machine = self._values(node, dtype, mine.shape[1]), self.machine
        if first_waits:
            yield self.barrier(node, lanes, "first")
        values[lanes.index] = mine
        if way.function == "warp_reduce":
            yield Meeting((self.prefix, id(node)), "warp", lanes, lambda warp: self._reduce_warp(values, warp, update), node.ids)
            return

        def done(block: int) -> None:
            machine.use_scratch(way.scratch, block, node)
            self._reduce_block(values, block, way, update, dtype)

        yield Meeting((self.prefix, id(node)), "block", lanes, done, node.ids)

    def _values(self, node: Node, dtype: DType, width: int) -> Numbers:
        if id(node) not in self.values:
            self.values[id(node)] = np.zeros((len(self.machine.everyone), width), held_as(dtype, self.exact))
        return self.values[id(node)]

    def _reduce_warp(self, values: Numbers, warp: int, update: str) -> None:
        chosen = np.flatnonzero(self.machine.warps() == warp)
        values[chosen] = _fold(update, values[chosen], (0,))

    def _reduce_block(self, values: Numbers, block: int, way: Way, update: str, dtype: DType) -> None:
        threads, (x, y, z) = self.machine.threads, way.box
        rows = slice(block * threads, (block + 1) * threads)
        full = np.full((x * y * z, values.shape[1]), REDUCTIONS[update].identity(dtype), values.dtype)
        full[:threads] = values[rows]
        axes = tuple("zyx".index(a) for a in way.axes)
        out = np.broadcast_to(_fold(update, full.reshape(z, y, x, -1), axes), (z, y, x, values.shape[1]))
        if way.function.endswith("_first"):
            first = np.ones((z, y, x), bool)
            for axis in axes:
                first &= np.arange((z, y, x)[axis]).reshape([-1 if n == axis else 1 for n in range(3)]) == 0
            out = np.where(first[..., None], out, poison(dtype, self.exact))
        values[rows] = out.reshape(x * y * z, -1)[:threads]

    def over_clusters(self, node: Collect, update: str, dtype: DType, mine: Numbers, lanes: Lanes) -> Steps:
        """Threads with one number in the blocks of a cluster; the first block has the result."""
        values, machine = self._values(node, dtype, 1), self.machine
        values[lanes.index, 0] = mine

        def done(cluster: int) -> None:
            chosen = np.flatnonzero(machine.cluster_of == cluster)
            chosen = chosen[np.argsort(machine.rank[chosen], kind="stable")].reshape(-1, machine.threads)
            values[chosen[0]] = _fold(update, values[chosen], (0,))[0]
            machine.clocks.advance(np.unique(machine.block_of[chosen]).tolist())

        yield Meeting((self.prefix, id(node), "cluster"), "cluster", lanes, done, node.ids)


def _taken(node: Do | Collect | Contribute) -> list[Ref]:
    """What the statement reads that another block hands off."""
    return [o for o in node.operands if isinstance(o, Ref) and o.store.handed_off]


def _fold(update: str, values: Numbers, axes: tuple[int, ...]) -> Numbers:
    combine: Any = OPERATIONS[REDUCTIONS[update].operation].numpy
    for axis in axes:
        values = combine.reduce(values, axis=axis, keepdims=True).astype(values.dtype)
    return values
