"""Bulk stores in the interpreter: the engine reads a box at once, or when its thread waits for that, as late as can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..nodes import BulkStore
from .boxes import in_array, in_shared
from .flights import Access, Flight
from .lanes import Env, Lanes
from .machine import Machine
from .watch import Hazard

if TYPE_CHECKING:
    from .threads import Threads


def issue(threads: Threads, node: BulkStore, lanes: Lanes, env: Env) -> None:
    """Each of the threads asks for a box to be stored."""
    machine, access = threads.machine, Access(node, node.site, env)
    source, to = machine.cells(node.source.store)[0], machine.cells(node.map.store)[0]
    first = [lanes.each(threads.number(e, lanes, env)) for e in node.first]
    base, own = threads.place(access, node.source, lanes)[1], lanes.each(threads.copies(node.source, lanes, source))
    for n, lane in enumerate(lanes.index):
        if any(int(f[n]) < 0 for f in first):
            machine.hazards.report("before the array", access.nodes, to.name, lambda: Hazard(
                "before the array", f"{', '.join(access.nodes)} stores a box that begins before {to.name}; no GPU has that",
                access.nodes, to.name))
        where, valid = in_array([int(f[n]) for f in first], node.map.box, node.map)
        by, comes = in_shared(machine, access, source, node.source, int(base[n]), node.map.box, node.map.swizzle, int(lane))
        by, where, comes = by[valid], where[valid], comes[valid] + own[n]
        flight = Flight(access, by, by, to, where, source, comes, np.ones(where.shape, bool))
        if machine.watch and len(where):
            machine.note(access, source, comes, by, writes=False)
            machine.unknown(access, source, comes, by)
            machine.unfenced(access, source, comes, int(lane))
            machine.note(access, to, where, by, writes=True)
            source.lent = np.full(source.data.size, -1) if source.lent is None else source.lent
            source.lent[comes] = lane
        if machine.order.early:
            flight.land()
        machine.stores.append(flight)


def wait(machine: Machine, lanes: Lanes) -> None:
    """The engine has read all that the threads have asked it to store."""
    left: list[Flight] = []
    for flight in machine.stores:
        if len(flight.lanes) and not np.isin(flight.lanes[0], lanes.index):
            left.append(flight)
            continue
        if not machine.order.early:
            flight.land()
        if flight.source.lent is not None:
            flight.source.lent[flight.comes] = -1
    machine.stores[:] = left


def end_stores(machine: Machine) -> None:
    """No box may still be read when its block ends, and gives its shared memory back."""
    for flight in machine.stores:
        access, name = flight.access, flight.source.name
        machine.hazards.report("in flight", access.nodes, name, lambda access=access, name=name: Hazard(
            "in flight", f"{', '.join(access.nodes)} may still read {name} when its block ends: nobody waits for that",
            access.nodes, name))
    machine.stores.clear()
