"""Bulk copies in the interpreter: mbarriers with their phases, boxes that land late or at once, and who has waited for them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ...ir.expr import Expr
from ...ir.plan import Buffer
from ...ir.swizzle import cells as panelled
from ...ir.swizzle import swizzled
from ...ir.tree import WARP_SIZE
from ..nodes import Acquire, Arrive, Await, Begin, BulkCopy, Mbarriers, Ref, Release, TensorMap
from .flights import Access, Flight, Key
from .lanes import Env, Lanes, Numbers
from .machine import Machine
from .meetings import Meeting, Steps
from .memory import Cells
from .watch import Hazard

if TYPE_CHECKING:
    from .threads import Threads


def _keys(threads: Threads, counted: Mbarriers, slot: Expr, lanes: Lanes, env: Env) -> list[Key]:
    """The mbarrier of each of the threads."""
    blocks = threads.machine.block_of[lanes.index]
    slots = lanes.each(threads.number(slot, lanes, env))
    return [(counted.name, int(b), int(s)) for b, s in zip(blocks, slots, strict=True)]


def _known(machine: Machine, keys: list[Key], nodes: tuple[str, ...]) -> bool:
    """Whether all of these mbarriers are ready."""
    odd = next((key for key in keys if key not in machine.boxes.open), None)
    if odd is not None:
        machine.hazards.report("uninitialised", nodes, odd[0], lambda: Hazard(
            "uninitialised", f"{', '.join(nodes)} uses {odd[0]}[{odd[2]}], which is not ready", nodes, odd[0], (odd[2],)))
    return odd is None


def begin(threads: Threads, node: Begin, lanes: Lanes) -> None:
    """The mbarriers of the threads' blocks are ready."""
    machine, name = threads.machine, node.mbarriers.name
    for block in machine.block_of[lanes.index]:
        if (name, int(block), 0) in machine.boxes.open:
            machine.hazards.report("in flight", node.ids, name, lambda: Hazard(
                "in flight", f"{name} is made ready again while it is in use", node.ids, name))
        for slot in range(node.mbarriers.count):
            machine.boxes.arrivals[name, int(block), slot] = node.mbarriers.arrivals
            machine.boxes.begin((name, int(block), slot))


def issue(threads: Threads, node: BulkCopy, lanes: Lanes, env: Env) -> None:
    """Each of the threads asks for a box."""
    machine, access = threads.machine, Access(node, node.site, env)
    keys = _keys(threads, node.counted, node.slot, lanes, env)
    if not _known(machine, keys, access.nodes):
        return
    to, source = machine.cells(node.to.store)[0], machine.cells(node.map.store)[0]
    first = [lanes.each(threads.number(e, lanes, env)) for e in node.first]
    base, own = threads.place(access, node.to, lanes)[1], lanes.each(threads.copies(node.to, lanes, to))
    for n, (lane, key) in enumerate(zip(lanes.index, keys, strict=True)):
        comes, valid = in_array([int(f[n]) for f in first], node.box, node.map)
        by, where = in_shared(machine, access, to, node.to, int(base[n]), node.box, node.map.swizzle, int(lane))
        flight = Flight(access, by, by, to, where + own[n], source, comes, valid)
        phase = machine.boxes.open[key][1]
        if machine.watch:
            machine.note(access, source, flight.comes[flight.valid], by[flight.valid], writes=False)
            if not threads.low.kernel.has_roles:  # else releases order it behind all reads (`poly.roles`)
                machine.note(access, to, flight.where, by, writes=True, kept=False)
            if to.phase is None:
                to.phase = np.full(to.data.size, -1)
            to.phase[flight.where] = phase.number
        phase.flights.append(flight)
        if machine.order.early:
            flight.land()


def in_array(first: Sequence[int], box: Sequence[int], known: TensorMap) -> tuple[Numbers, Numbers]:
    """The elements of an array on which a box falls that begins at one of them, and which of them there are."""
    inside = (at + np.arange(n) * step for at, n, step in zip(first, box, known.steps, strict=True))
    index = np.meshgrid(*inside, indexing="ij")
    valid, found = np.ones(box, bool), np.zeros(box, np.int64)
    for i, extent, stored in zip(index, known.shape, known.stored, strict=True):
        valid &= (i >= 0) & (i < extent)
        found = found * stored + np.clip(i, 0, extent - 1)
    return found.reshape(-1), valid.reshape(-1)


def in_shared(machine: Machine, access: Access, cells: Cells, ref: Ref, first: int, box: Sequence[int], swizzle: int,
              lane: int) -> tuple[Numbers, Numbers]:
    """The thread, once for each element, and the elements of its copy of a shared array on which a box falls."""
    assert ref.store.buffer is not None
    where = _places(ref.store.buffer, first, prod(box), swizzle)
    by, wrong = np.full(where.shape, lane), (where < 0) | (where >= cells.size)
    if wrong.any():
        machine.outside(access, cells, where, wrong, by)
        where = np.where(wrong, 0, where)
    return by, where


def _places(buffer: Buffer, first: int, count: int, mode: int) -> Numbers:
    """The elements of a shared array, row-major, on which a box falls that begins at one of them."""
    extents = panelled(buffer, [Expr()] * len(buffer.padded_shape), {})[1]
    shape = buffer.padded_shape
    begin: list[Numbers] = _unravelled(np.asarray(first % max(buffer.size, 1)), shape)
    if len(extents) > len(shape):
        *outer, row, column = begin
        begin = [*outer, column // buffer.panel, row, column % buffer.panel]
    lying = int(np.ravel_multi_index(begin, extents)) + np.arange(count)
    lying = swizzled(swizzled(lying, mode, buffer.dtype.bytes), buffer.swizzle, buffer.dtype.bytes)
    inside = np.clip(lying, 0, buffer.size - 1)
    found = _unravelled(inside, extents)
    if len(extents) > len(shape):
        *outer, panel, row, column = found
        found = [*outer, row, panel * buffer.panel + column]
    return np.where(lying == inside, np.ravel_multi_index(found, shape), lying)


def _unravelled(flat: Numbers, shape: tuple[int, ...]) -> list[Numbers]:
    """The indices of places in an array."""
    found: list[Numbers] = []
    for n in reversed(shape):
        found.insert(0, flat % n)
        flat = flat // n
    return found


def release(threads: Threads, node: Release, lanes: Lanes, env: Env) -> Steps:
    """Each warp has read a slot: one arrival, when all of its lanes have come."""
    machine = threads.machine
    yield Meeting(id(node), "warp", lanes, nodes=node.ids)
    first = lanes.among(machine.thread_of[lanes.index] % WARP_SIZE == 0)
    if len(first):
        arrive(threads, node, first, env)


def arrive(threads: Threads, node: Arrive | Release, lanes: Lanes, env: Env) -> None:
    """The threads have asked for all boxes of a group, or released a slot."""
    machine = threads.machine
    keys = _keys(threads, node.mbarriers, node.slot, lanes, env)
    if not _known(machine, keys, node.ids):
        return
    for key in keys:
        phase = machine.boxes.open[key][1]
        if phase.arrived:
            machine.hazards.report("in flight", node.ids, key[0], lambda key=key: Hazard(
                "in flight", f"{', '.join(node.ids)} closes a group on {key[0]}[{key[2]}] while copies of the group before may "
                "still be on their way", node.ids, key[0], (key[2],)))
        before = machine.boxes.last.get(key)
        if before is not None and before.flights and before.known_since is None:
            machine.hazards.report("in flight", node.ids, key[0], lambda key=key: Hazard(
                "in flight", f"{', '.join(node.ids)} arrives on {key[0]}[{key[2]}] again, and nobody has waited for the phase "
                "before", node.ids, key[0], (key[2],)))
        phase.missing -= 1
        if not phase.arrived:
            continue
        if machine.order.early or not phase.flights:
            machine.boxes.complete(key)


def end_copies(machine: Machine) -> None:
    """No copy may still be on its way when its block ends."""
    for phase in machine.boxes.phases:
        if phase.flights and phase.known_since is None:
            access, to = phase.flights[0].access, phase.flights[0].to
            machine.hazards.report("in flight", access.nodes, to.name, lambda access=access, to=to: Hazard(
                "in flight", f"{', '.join(access.nodes)} may still copy to {to.name} when its block ends: nobody waits for it",
                access.nodes, to.name))


def wait(threads: Threads, node: Await | Acquire, lanes: Lanes, env: Env) -> Steps:
    """Until the phases of this parity are complete."""
    machine = threads.machine
    keys = _keys(threads, node.mbarriers, node.slot, lanes, env)
    if not _known(machine, keys, node.ids):
        return
    parities = [int(p) for p in lanes.each(threads.number(node.parity, lanes, env))]
    once = list(dict.fromkeys(zip(keys, parities, strict=True)))
    missing = "slots that nobody releases" if isinstance(node, Acquire) else "bulk copies of a group that nobody closes"
    yield Meeting(id(node), "parts", lanes, nodes=node.ids, ready=lambda: all([machine.boxes.passed(*x) for x in once]),
                  missing=missing)
    for lane, key in zip(lanes.index, keys, strict=True):
        if (phase := machine.boxes.last.get(key)) is not None:
            phase.waited[lane] = True
            if phase.known_since is None:
                phase.known_since = int(machine.clocks.now[key[1]])
