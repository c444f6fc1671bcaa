"""The figure of partial results: the values of a reduction after each stage, how they are combined, and idle lanes.

All counts are exact: distinct values of the loops that are left after each kind of addition, counted by isl over the statement's
domain.  A count that isl cannot finish within its budget is the size of the loops' box, and the figure says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import ceil, prod

from ...gpu.occupancy import occupancy, waves
from ...ir.expr import var
from ...ir.instructions import Wgmma, instruction
from ...ir.layout import GROUP
from ...ir.plan import Plan
from ...ir.tree import JOINED, WARP_SIZE, Kernel, Leaf, Loop
from ...kernel.resources import resources
from ...poly.count import footprint
from ...poly.sites import Site, launch_extents, sites
from ...schedule import Schedule
from ...transforms._reduction import updates
from .asked import Asked, Look

HOWS = {
    "shuffle": "exchanged between lanes (a tree of shuffles), warps over shared memory", "shared": "a tree in shared memory",
    "atomic": "atomic updates of one address", "cluster": "through distributed shared memory of a cluster",
}
"""How values of several places are joined."""


@dataclass(frozen=True)
class Level:
    """How many values there are after one kind of addition.

    Attributes
    ----------
    leaf : str
    words : str
        What was done to get there.
    count : int
    exact : bool
    """

    leaf: str
    words: str
    count: int
    exact: bool


@dataclass(frozen=True)
class Lanes:
    """What the threads of a kernel do in the iterations of one update.

    Attributes
    ----------
    leaf, kernel : str
    slots : int
        Threads of the launch times iterations of the update's own loops in time.
    active : int
        Slots that add a term.
    guarded : int
        Slots that a condition turns off.
    outside : int
        Slots of threads and blocks that the update's loops do not reach.
    exact : bool
    """

    leaf: str
    kernel: str
    slots: int
    active: int
    guarded: int
    outside: int
    exact: bool

    @property
    def idle(self) -> float:
        """Share of the slots that add nothing, 0 to 1."""
        return 1 - self.active / self.slots if self.slots else 0.0


@dataclass(frozen=True)
class Wave:
    """The grid of a kernel on a GPU: blocks, how many run at a time, rounds, and how full the last is (0 to 1)."""

    kernel: str
    blocks: int
    threads: int
    at_once: int
    rounds: float

    @property
    def last(self) -> float:
        """How full the last round is."""
        return self.rounds - ceil(self.rounds) + 1 if self.rounds else 0.0


@dataclass(frozen=True)
class Partials:
    """One reduction on its way.

    Attributes
    ----------
    array, gpu : str
    levels : tuple of Level
        From the terms to the results.
    lanes : tuple of Lanes
        One for each update.
    waves : tuple of Wave
        One for each kernel with updates.
    open : bool
        Whether updates of one element still run at several places without being joined.
    """

    array: str
    gpu: str
    levels: tuple[Level, ...]
    lanes: tuple[Lanes, ...]
    waves: tuple[Wave, ...]
    open: bool


def partials(schedule: Schedule, asked: Asked, look: Look) -> Partials | str:
    """The chosen reduction, or a sentence where there is none."""
    plan = schedule.plan
    arrays = reductions(plan)
    if not arrays:
        return f"No statement of {schedule.source.name} updates an element several times: there are no partial results."
    near = next((a for a in arrays if look.node and look.node in {a, *(leaf.id for leaf, _, _ in _updates(plan, a))}), arrays[0])
    array = asked.one_of("of", "reduction", arrays, near)
    gpu = asked.gpu(look)
    found = _updates(plan, array)
    levels: list[Level] = []
    lanes, is_open = [], False
    for leaf, above, kernel in found:
        site = _site(plan, leaf, kernel)
        levels += _levels(plan, site, above, kernel, first=not levels or plan.statement_of[leaf.statement].origin == "program")
        lanes.append(_lanes(plan, site, above, kernel))
        u = updates(plan, leaf, above)
        is_open |= any(x.is_place and x.extent > 1 and x.id not in dict(leaf.collect) for x in u.carrying)
    rounds = []
    for kernel in dict.fromkeys(k for _, _, k in found):
        r = resources(plan, kernel)
        fit = occupancy(gpu, r.threads_per_block, 0, r.shared_bytes).blocks_per_sm
        rounds.append(Wave(kernel.id, prod(r.grid), r.threads_per_block, fit * gpu.multiprocessors,
                           waves(gpu, r.grid, fit) if fit else 0.0))
    return Partials(array, gpu.name, tuple(levels), tuple(lanes), tuple(rounds), is_open)


def reductions(plan: Plan) -> tuple[str, ...]:
    """Arrays that are reduced, in order of the first update of each or of its partial results."""
    into = {r.array: s.target.array for s in plan.program.statements if s.origin == "combine" for r in s.reads
            if r.array != s.target.array}

    def result(array: str) -> str:
        return result(into[array]) if array in into else array

    own = [plan.statement_of[leaf.statement] for leaf, _, _ in plan.leaves]
    return tuple(dict.fromkeys(result(s.target.array) for s in own if s.update))


def _updates(plan: Plan, array: str) -> list[tuple[Leaf, tuple[Loop, ...], Kernel]]:
    """The updates of an array and of its partial results, in order."""
    names, size = {array}, 0
    while len(names) > size:
        size = len(names)
        for s in plan.program.statements:
            if s.origin == "combine" and s.target.array in names:
                names |= {r.array for r in s.reads}
    return [entry for entry in plan.leaves if (s := plan.statement_of[entry[0].statement]).update and s.target.array in names]


def _site(plan: Plan, leaf: Leaf, kernel: Kernel) -> Site:
    """The site of a leaf's target."""
    return next(s for s in sites(plan)[kernel.id] if s.leaf.id == leaf.id and s.writes)


def _levels(plan: Plan, site: Site, above: tuple[Loop, ...], kernel: Kernel, first: bool) -> list[Level]:
    """The values before an update (its terms), and after the additions over time, over threads, over blocks."""
    carrying = [x for x in updates(plan, site.leaf, above).carrying if x.extent > 1]
    how = dict(site.leaf.collect)
    time = [x for x in carrying if not x.is_place]
    threads = [x for x in carrying if x.is_thread]
    blocks = [x for x in carrying if x.is_block]
    left = [x.id for x in above]
    out = [Level(site.leaf.id, "terms", *distinct(site, left))] if first else []
    place = " ".join(filter(None, ("in each thread" if any(x.is_thread for x in above) else "", "one after the other")))
    joins = f" {JOINED[kernel.join]}" if not first and plan.kernels.index(kernel) and _reads_parts(plan, site, kernel) else ""
    for loops, kind in ((time, "time"), (threads, "threads"), (blocks, "blocks")):
        if not loops:
            continue
        left = [name for name in left if name not in {x.id for x in loops}]
        names = ", ".join(x.id for x in loops)
        ways = dict.fromkeys(HOWS[how[x.id]] for x in loops if x.id in how)
        words = f"added over {names}, {place}" if kind == "time" else \
            f"{kind} {names}: {'; '.join(ways)}" if ways else f"{kind} {names}: not joined yet"
        if ways or kind == "time":
            out.append(Level(site.leaf.id, words + joins, *distinct(site, left)))
        else:
            out.append(Level(site.leaf.id, words, *distinct(site, [*left, *(x.id for x in loops)])))
            left += [x.id for x in loops]
        joins = ""
    return out


def _reads_parts(plan: Plan, site: Site, kernel: Kernel) -> bool:
    """Whether an update reads what an earlier kernel has made."""
    read = {r.array for r in site.statement.reads} - {site.statement.target.array}
    return any(k.id != kernel.id and plan.statement_of[leaf.statement].target.array in read for leaf, _, k in plan.leaves)


def _lanes(plan: Plan, site: Site, above: tuple[Loop, ...], kernel: Kernel) -> Lanes:
    """Slots of lanes and iterations; the lanes of a tensor instruction add all terms of its tile together."""
    active, exact = distinct(site, [x.id for x in above])
    box = prod(x.extent for x in above)
    places = prod(x.extent for x in above if x.is_place)
    launched = prod(launch_extents(plan, kernel))
    if row := instruction(site.leaf.mechanism):
        tile, lanes = prod(x.extent for x in above[-3:]), GROUP if isinstance(row, Wgmma) else WARP_SIZE
        box, active = box // tile * lanes, round(active / tile * lanes)
        places *= lanes
    slots = launched * (box // places if places else 0)
    return Lanes(site.leaf.id, kernel.id, slots, active, box - active, slots - box, exact)


def distinct(site: Site, loops: Iterable[str]) -> tuple[int, bool]:
    """How many combinations of values some of a site's loops take, the others taking any; and whether that is exact.

    The product over groups of loops that no condition ties together.
    """
    wanted = set(loops)
    groups = [{x.id} for x in site.above]
    for guard in site.guards:
        tied = [g for g in groups if g & guard.expr.variables()]
        groups = [g for g in groups if g not in tied] + ([set().union(*tied)] if tied else [])
    total, exact = 1, True
    extent = {x.id: x.extent for x in site.above}
    guarded = {v for guard in site.guards for v in guard.expr.variables()}
    for group in groups:
        here = sorted(group & wanted)
        if not here:
            continue
        if not group & guarded:
            total *= prod(extent[name] for name in here)
            continue
        count, sure = footprint(replace(site, cell=tuple(map(var, here))))
        total, exact = total * count, exact and sure
    return total, exact
