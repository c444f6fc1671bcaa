"""A plan made: its groups taken apart into kernels, each spread over the GPU, phases of one launch joined; all of it moves."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import prod

from ...errors import ScheduleError, TransformError
from ...gpu.spec import Gpu
from ...ir.plan import block_extents
from ...schedule import Schedule
from .._steps import Builder, own_temporaries
from ..default import default
from ..deferred import Memory, judged_once
from ..reductions import Block
from .cost import KernelCost
from .graph import APART, PARTS, Graph, name_of
from .kernels import read_before, spread
from .moves import demand_fusion, join_nests, separate
from .passes import share_passes
from .phases import apart, one_launch, shared_bytes
from .result import came_about, why_not


@dataclass(frozen=True)
class Stitched:
    """A plan by the model; with its schedule, once made.

    Attributes
    ----------
    schemes, chosen : dict of str to str
        Edge to scheme: as planned (after `recompute`, of the graph that is left), and as the schedule has it.
    groups : tuple of tuple of str
        Values of each kernel, in launch order.
    kernels : tuple of KernelCost
    recomputed : int
        Operations done again.
    terms : tuple of (str, float)
    again : tuple of str
        Values that are computed again.
    free : mapping of int to bool or None
        Group to whether blocks share a result; None where the model decides.
    asked : set of str
        Edges of the graph that is left whose scheme was asked for.
    barriers, whole : set of int
        Groups that are a phase of the launch before them, and those whose parts are joined in their launch.
    schedule : Schedule or None
    """

    schemes: dict[str, str]
    chosen: dict[str, str]
    groups: tuple[tuple[str, ...], ...]
    kernels: tuple[KernelCost, ...]
    recomputed: int
    terms: tuple[tuple[str, float], ...]
    again: tuple[str, ...]
    free: Mapping[int, bool | None]
    asked: Set[str]
    barriers: Set[int]
    whole: Set[int]
    schedule: Schedule | None = None

    @property
    def total_us(self) -> float:
        """The sum of the terms."""
        return sum(us for _, us in self.terms)

    @property
    def moved_bytes(self) -> int:
        """To and from global memory."""
        return sum(k.moved_bytes for k in self.kernels)

    @property
    def launches(self) -> int:
        """Launches, those that join parts included."""
        return sum(k.launches for k in self.kernels)


def make(plan: Stitched, schedule: Schedule, written: Graph, graph: Graph, fixed: Mapping[str, str], alone: bool, gpu: Gpu,
         memory: Memory) -> Stitched:
    """Make a plan.

    Parameters
    ----------
    plan : Stitched
    schedule : Schedule
        Where what is computed again is written into those that use it.
    written, graph : Graph
        Of the program as written, and of the schedule.
    fixed : mapping of str to str
        Edge to the scheme that it has to have in the end.
    alone : bool
        Whether the kernel is one of several: then others see to the rest.
    gpu : Gpu
    memory : Memory
        Of the search.

    Raises
    ------
    TransformError, IllegalSchedule
        If a move does not apply, the judge refuses, or a scheme did not come about.
    """
    key = (plan.again, plan.groups, tuple(tuple(_inside(plan, graph, g).items()) for g in plan.groups), tuple(plan.free.items()),
           plan.barriers, plan.whole, tuple(k.parts for k in plan.kernels))
    if key not in memory.made:
        try:
            memory.made[key] = judged_once(schedule, lambda s: _built(plan, s, graph, alone, gpu, memory), memory.steps)
        except ScheduleError as refusal:
            memory.made[key] = refusal
    made = memory.made[key]
    if isinstance(made, ScheduleError):
        raise made
    chosen = {}
    for e in written.edges:
        heirs = [] if e.into in graph.values else written.heirs(e, graph)
        chosen[name_of(e)] = "recompute" if e.array in plan.again else came_about(made.plan, e, plan.chosen[name_of(e)], heirs)
    for name, scheme in fixed.items():
        if chosen[name] != scheme:
            raise TransformError(f"{name} came out as {chosen[name]}, not as {scheme}", why=why_not(scheme),
                                 hint=f"{{'{name}': '{chosen[name]}'}}")
    return replace(plan, chosen=chosen, schedule=made)


def _built(plan: Stitched, schedule: Schedule, graph: Graph, alone: bool, gpu: Gpu, memory: Memory) -> Schedule:
    """The moves of a plan."""
    b = Builder(schedule)
    behind = len(b.plan.kernels) - 1 - [k.id for k in b.plan.kernels].index(graph.kernel)
    kernels = separate(b, graph.kernel, plan.groups)
    flat = {n for n, g in enumerate(plan.groups) if {n, n + 1} & plan.barriers and not set(g) & graph.reductions}
    for number in sorted(range(len(kernels)), key=lambda n: n in flat):  # with blocks as wide as those of the other phases
        blocks = _phases(b, kernels, plan, number)
        widest, beside = max(map(prod, blocks)), (max(x for x, _, _ in blocks), max(y for _, y, _ in blocks))
        threads = widest if number in flat and widest > 1 else 0
        key = (plan.groups[number], tuple(_inside(plan, graph, plan.groups[number]).items()), plan.free[number],
               plan.kernels[number].parts, threads, beside, *_state(b, kernels[number], gpu))
        work = partial(_spread, kernel=kernels[number], plan=plan, number=number, graph=graph, gpu=gpu, threads=threads,
                       beside=beside)
        b.schedule = memory.again(b.schedule, key, work)
    made = b.schedule if alone else default(b.schedule)
    made = _joined(made, plan, kernels, behind, gpu)
    for launch in made.plan.launched:
        if (shared := shared_bytes(made.plan, launch)) > gpu.shared_bytes_per_block_optin:
            names = ", ".join(x.name for x in made.plan.buffers if x.space == "shared")
            raise TransformError(f"{names} lie in {shared:,} bytes of shared memory",
                                 why=f"a block of the {gpu.name} has {gpu.shared_bytes_per_block_optin:,}",
                                 hint="'register', 'recompute' or 'cut'")
    if not alone and (open_ := made.judgement.obligations):
        raise TransformError(f"this cannot be emitted: {open_[0].what}", why=open_[0].why, hint="; or ".join(open_[0].hints))
    return made


def _inside(plan: Stitched, graph: Graph, group: tuple[str, ...]) -> dict[str, str]:
    """The schemes that the moves within a kernel have to bring about."""
    return {name_of(e): scheme for e in graph.edges if e.array in group and (scheme := plan.schemes[name_of(e)])
            and (name_of(e) in plan.asked or scheme == "shared" or (scheme == "register" and e.array in graph.reductions))}


def _state(b: Builder, kernel: str, gpu: Gpu) -> tuple[Hashable, ...]:
    """What the spreading of a kernel looks at: its tree, its statements and arrays, what is its own, what was read before."""
    plan = b.plan
    (node,) = (k for k in plan.kernels if k.id == kernel)
    used = [plan.statement_of[leaf.statement] for leaf, _, k in plan.leaves if k.id == kernel]
    arrays = tuple(plan.array_of[n] for n in dict.fromkeys(a.array for s in used for a in s.accesses))
    return node, tuple(used), arrays, tuple(own_temporaries(plan, kernel)), read_before(b, kernel, gpu)


def shares(graph: Graph, schemes: Mapping[str, str], asked: Set[str], group: tuple[str, ...]) -> bool | None:
    """Whether blocks share a result: as said at an edge, else as the model likes where all that leaves crosses the whole grid."""
    here = [e for e in graph.edges if e.array in group]
    inside = {name_of(e): schemes[name_of(e)] for e in here if graph.joins(e)}
    said = {s for name, s in inside.items() if name in asked or s in ("global", PARTS)}
    if said & {"global", PARTS}:
        return True
    leaving = {schemes[name_of(e)] for e in here if graph.apart(e, schemes[name_of(e)])}
    results = all(v in graph.reductions or graph.scalar(v) for v in group)
    return None if results and leaving <= {"global", "grid"} and not said - {"grid"} else False


def _spread(schedule: Schedule, kernel: str, plan: Stitched, number: int, graph: Graph, gpu: Gpu, threads: int,
            beside: Block) -> Schedule:
    """Join the nests of a group again and spread them."""
    b, group, schemes = Builder(schedule), plan.groups[number], plan.schemes
    here, told = [e for e in graph.edges if e.array in group], _inside(plan, graph, group)
    outside = {e.array for e in here if schemes[name_of(e)] in APART}
    how = {e.array: scheme for e in here if (scheme := told.get(name_of(e), "cut")) not in (*APART, PARTS)
           and (e.array in graph.reductions or scheme != "register" or e.array not in outside | graph.kept)}
    join_nests(b, kernel)
    for e in here:
        if name_of(e) in plan.asked and e.into in group:
            demand_fusion(b, e.producer, e.consumer)
    share_passes(b, kernel)
    free = plan.free[number]
    return spread(b.schedule, kernel, how, free, gpu, free is None and plan.kernels[number].parts, threads,
                  beside)


def _phases(b: Builder, kernels: list[str], plan: Stitched, number: int) -> list[tuple[int, int, int]]:
    """The blocks of the kernels that share a group's launch, as far as they are spread yet."""
    first, end = number, number + 1
    while first in plan.barriers:
        first -= 1
    while end in plan.barriers:
        end += 1
    names = [k.id for k in b.plan.kernels]
    phases = b.plan.kernels[names.index(kernels[first]) : names.index(kernels[end]) if end < len(kernels) else None]
    return [block_extents(k) for k in phases]


def _joined(schedule: Schedule, plan: Stitched, kernels: list[str], behind: int, gpu: Gpu) -> Schedule:
    """The kernels of one launch joined: those of groups behind a barrier, and those that join parts in their launch.

    `kernels` are the first of each group; `behind` the last group stand so many others.
    """
    names = [k.id for k in schedule.plan.kernels]
    first = [names.index(k) for k in kernels]
    last = len(names) - behind
    joined = {start for number, start in enumerate(first) if number in plan.barriers}
    for number, (start, end) in enumerate(pairwise((*first, last))):
        joined |= set(range(start + 1, end)) if number in plan.whole else set()
        if number not in plan.whole and {number, number + 1} & plan.barriers:  # its parts were asked to end a launch
            b = Builder(schedule)
            apart(b, names[start:end])
            schedule = b.schedule
    for start in sorted(set(range(first[0], last)) - joined):
        end = next(n for n in range(start + 1, last + 1) if n not in joined)
        if end > start + 1:
            schedule = one_launch(schedule, names[start:end], gpu)
    return schedule
