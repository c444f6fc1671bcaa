"""Asynchronous copies: issued, closed in groups, landed at the latest when their thread waits for their group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..nodes import Copy
from .flights import Access, Flight
from .lanes import Env, Lanes, Numbers, spread
from .machine import Machine

if TYPE_CHECKING:
    from .threads import Threads


def issue(threads: Threads, node: Copy, lanes: Lanes, env: Env) -> None:
    """Threads start a copy: lanes that are not valid will be zeros."""
    machine, access = threads.machine, Access(node, node.site, env)
    valid = lanes.each(threads.holds(node.inside, lanes, env))
    if node.lanes > 1:
        valid = spread(valid[:, None], (len(lanes), node.lanes))
    number = np.arange(node.lanes) if node.lanes > 1 else 0
    for bound, before in (*((e, False) for e in node.begins), *((e, True) for e in node.ends)):
        limit = lanes.each(threads.number(bound, lanes, env))
        limit = limit[:, None] if node.lanes > 1 else limit
        valid = valid & (number < limit if before else number >= limit)
    to, where, good = threads.where(access, node.to, lanes)
    source, comes, there = threads.where(access, node.source, lanes, valid=valid)
    by, where, comes, valid = lanes.by(where)[good], where[good], comes[good], there[good]
    flight = Flight(access, by, machine.commits[by], to, where, source, comes, valid)
    if machine.watch:
        machine.note(access, source, comes[valid], by[valid], writes=False)
        machine.note(access, to, where, by, writes=True)
        if to.flight is None:
            to.flight = np.full(to.data.size, -1)
        to.flight[where] = by
    if machine.order.early:
        flight.land()
    machine.flights.append(flight)


def commit(machine: Machine, lanes: Lanes) -> None:
    """The threads' copies since their last commit are a group."""
    machine.commits[lanes.index] += 1


def wait(machine: Machine, pending: int, lanes: Lanes) -> None:
    """The threads' groups but the newest have landed."""
    waiting = np.zeros(len(machine.commits), bool)
    waiting[lanes.index] = True
    left: list[Flight] = []
    for flight in machine.flights:
        lands = waiting[flight.lanes] & (flight.group < machine.commits[flight.lanes] - pending)
        if lands.any():
            landed, flight = _part(flight, lands), _part(flight, ~lands)
            if not machine.order.early:
                landed.land()
            if machine.watch:
                assert landed.to.flight is not None
                landed.to.flight[landed.where] = -1
                machine.note(landed.access, landed.to, landed.where, landed.lanes, writes=True, lands=True)
        if flight.lanes.size:
            left.append(flight)
    machine.flights[:] = left


def _part(flight: Flight, chosen: Numbers) -> Flight:
    return Flight(flight.access, flight.lanes[chosen], flight.group[chosen], flight.to, flight.where[chosen], flight.source,
                  flight.comes[chosen], flight.valid[chosen])
