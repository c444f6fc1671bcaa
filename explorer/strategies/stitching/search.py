"""From choices to a stitched schedule: the cheapest plan that agrees with them by the model, and its moves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from ...errors import ScheduleError, TransformError
from ...gpu.spec import Gpu
from ...poly.edges import ValueEdge
from ...schedule import Schedule
from .._steps import Builder
from ..default import default
from ..gather import gather
from .graph import APART, Graph, name_of
from .kernels import spread
from .model import TERMS, KernelCost, arithmetic, kernel_costs
from .moves import demand_fusion, join_nests, separate, share_passes
from .rates import LATENCY_US, LAUNCH_US
from .result import came_about, why_not

MOST_LEVELS = 4
"""Stages of reductions for which every set of cuts is compared; beyond, one cut or none."""
WORTH = 1.05
"""A kernel is cut where that saves more than 5 %: by so much the model of reductions is off, on average, at most."""
TRIED = 2
"""Plans that are made, the cheapest first, until one is legal and has the schemes that were asked for."""


@dataclass(frozen=True)
class Stitched:
    """A plan by the model; with its schedule, once made.

    Attributes
    ----------
    schemes, chosen : dict of str to str
        Edge to scheme: as planned (after `recompute`, of the graph that is left), and as the schedule has it.
    groups : tuple of tuple of str
    kernels : tuple of KernelCost
    recomputed : int
        Operations done again.
    terms : tuple of (str, float)
    schedule : Schedule or None
    """

    schemes: dict[str, str]
    chosen: dict[str, str]
    groups: tuple[tuple[str, ...], ...]
    kernels: tuple[KernelCost, ...]
    recomputed: int
    terms: tuple[tuple[str, float], ...]
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
        """Kernels, those that join parts included."""
        return sum(k.launches for k in self.kernels)


class Search:
    """The stitchings of one kernel.

    Parameters
    ----------
    schedule : Schedule
    gpu : Gpu
    kernel : str
        Which kernel (default: the first; then the whole program is one).

    Raises
    ------
    TransformError
        If loops of the kernel are bound already.
    """

    def __init__(self, schedule: Schedule, gpu: Gpu, kernel: str = "") -> None:
        if not isinstance(schedule, Schedule):
            raise TransformError(f"stitching takes a schedule, not a {type(schedule).__name__}",
                                 hint="program.schedule(M=…) makes one")
        if not kernel and len(schedule.plan.kernels) > 1:
            raise TransformError("stitching begins with one kernel", why=f"there are {len(schedule.plan.kernels)}",
                                 hint="stitch the program as written")
        self.kernel, self.gpu, self.whole = kernel or next(k.id for k in schedule.plan.kernels), gpu, not kernel
        inside = [x for _, above, k in schedule.plan.leaves if k.id == self.kernel for x in above]
        if bound := next((x for x in inside if x.role != "seq"), None):
            raise TransformError(f"{bound.id} is already {bound.role}", why="stitching begins with loops in time",
                                 hint="stitch the program as written")
        self.schedule = gather(schedule) if self.whole else schedule
        self.graph = Graph.of(self.schedule.plan, self.kernel)
        self._prepared: dict[tuple[str, ...], tuple[Schedule, Graph]] = {(): (self.schedule, self.graph)}
        self._made: dict[tuple, Stitched | ScheduleError] = {}
        self.loose = self._loose()

    def planned(self, fixed: Mapping[str, str]) -> Stitched:
        """The cheapest plan with these schemes, by the model; not tried yet.

        Raises
        ------
        TransformError
            If they cannot be together.
        """
        return self._plans(fixed)[0]

    def _plans(self, fixed: Mapping[str, str]) -> list[Stitched]:
        """The cheapest plans, and the one without cuts that were not asked for."""
        self._one_storage(fixed)
        found: list[Stitched] = []
        first: ScheduleError | None = None
        for candidate in self._candidates(fixed):
            try:
                found.append(self._plan(candidate, fixed))
            except ScheduleError as refusal:
                first = first or refusal
        if not found:
            raise first or TransformError("nothing to stitch")
        least = min(len(s.groups) for s in found)
        ranked = sorted(found, key=lambda s: round(s.total_us * (WORTH if len(s.groups) > least else 1), 2))
        different = list({tuple(s.chosen.items()): s for s in reversed(ranked)}.values())
        different.sort(key=ranked.index)
        return [*different[:TRIED], *(s for s in found[:1] if s not in different[:TRIED])]

    def worthwhile(self) -> bool:
        """Whether a cut could save anything: rows are read again, or lose more than another launch costs."""
        base = self._plan({}, {})
        return any(k.reads > 1 or k.launches > 1 for k in base.kernels) or dict(base.terms)["spread"] > LAUNCH_US + LATENCY_US

    def made(self, fixed: Mapping[str, str]) -> Stitched:
        """The cheapest plan with these schemes, made with moves.

        Raises
        ------
        TransformError, IllegalSchedule
            If a move does not apply, the judge refuses, or a scheme did not come about.
        """
        key = tuple(sorted(fixed.items()))
        if key not in self._made:
            for plan in self._plans(fixed):
                try:
                    self._made[key] = self._make(plan, fixed)
                    break
                except ScheduleError as refusal:
                    self._made[key] = refusal
        found = self._made[key]
        if isinstance(found, ScheduleError):
            raise found
        return found

    def apart(self, name: str) -> Stitched:
        """The cheapest plan with a cut at an edge (or, where there can be none, the one with a kernel for each value)."""
        try:
            return self.planned({name: "cut"})
        except ScheduleError:
            schemes = {name_of(e): "cut" for e in self.graph.edges}
            return self._priced(self.graph, schemes, tuple((v,) for v in self.graph.values), {}, {})

    def _plan(self, candidate: Mapping[str, str], fixed: Mapping[str, str]) -> Stitched:
        again = tuple(dict.fromkeys(n.partition("->")[0] for n, s in candidate.items() if s == "recompute"))
        _, graph = self._inlined(again)
        rest = {n: s for n, s in candidate.items() if s != "recompute" and graph.edge(n)}
        schemes = graph.complete(rest, self.loose)
        groups = graph.groups(schemes)
        chosen = {name_of(e): "recompute" if e.array in again else _scheme(graph, schemes, e) for e in self.graph.edges}
        return self._priced(graph, schemes, groups, {n: parts(graph, schemes, fixed, g) for n, g in enumerate(groups)}, chosen)

    def _priced(self, graph: Graph, schemes: dict[str, str], groups: tuple[tuple[str, ...], ...], free: Mapping[int, bool | None],
                chosen: dict[str, str]) -> Stitched:
        kernels = kernel_costs(graph, groups, schemes, free, self.gpu)
        again = max(0, arithmetic(graph) - arithmetic(self.graph))
        sums = {t: sum(k.terms[t] for k in kernels) for t in TERMS}
        sums["recompute"] += again / (self.gpu.f32_flops_per_s / 1e6)
        return Stitched(schemes, chosen, groups, kernels, again, tuple(sums.items()))

    def _inlined(self, arrays: tuple[str, ...]) -> tuple[Schedule, Graph]:
        if arrays not in self._prepared:
            b = Builder(self.schedule)
            for array in arrays:
                b.do("inline", array)
            self._prepared[arrays] = (b.schedule, Graph.of(b.plan, self.kernel))
        return self._prepared[arrays]

    def _candidates(self, fixed: Mapping[str, str]) -> Iterator[dict[str, str]]:
        """The choices alone; with grid barriers between stages; each also with spread temporaries computed again."""
        level, graph = self._levels(), self.graph
        top = range(1, max(level.values(), default=0) + 1)
        sizes = range(len(top) + 1) if len(top) <= MOST_LEVELS else (0, 1, len(top))
        named = {n.partition("->")[0] for n in fixed}
        settled = graph.reductions | graph.kept | named
        spread_out = [v for v in graph.values if v not in settled and not graph.scalar(v)]
        for cuts in (c for n in sizes for c in combinations(top, n)):
            chosen = dict(fixed)
            for e in graph.edges:
                if any(level[e.array] < c <= level[e.into] for c in cuts):
                    chosen.setdefault(name_of(e), graph.boundary(e, "global"))
            yield chosen
            full = graph.complete(chosen, self.loose)
            crossing = [v for v in spread_out if any(e.array == v and full[name_of(e)] in APART for e in graph.edges)]
            if crossing:
                yield {**chosen, **{name_of(e): "recompute" for e in graph.edges if e.array in crossing}}

    def _levels(self) -> dict[str, int]:
        """How many reductions come, one after the other, before a value; results of one level stay with it."""
        graph, level = self.graph, dict.fromkeys(self.graph.values, 0)
        for _ in graph.values:
            for e in graph.edges:
                step = e.array in graph.reductions or level[e.array] > 0 or graph.scalar(e.array)
                wide = not graph.scalar(e.into)
                level[e.into] = max(level[e.into], level[e.array] + (step and wide and (
                    e.array in graph.reductions or graph.scalar(e.array))))
        return level

    def _one_storage(self, fixed: Mapping[str, str]) -> None:
        """A value lies in one place, and is computed again for all that use it or for none."""
        held: dict[str, tuple[str, str]] = {}
        for name, scheme in fixed.items():
            array = name.partition("->")[0]
            other = held.setdefault(array, (name, scheme))
            differ = other[1] != scheme and (("recompute" in (scheme, other[1])) or not {scheme, other[1]} & set(APART))
            if differ:
                raise TransformError(f"{name} cannot be {scheme} while {other[0]} is {other[1]}",
                                     why=f"{array} is one array: it lies in one place, or is computed again wherever it is used",
                                     hint=f"{{'{name}': '{other[1]}'}}")

    def _loose(self) -> frozenset[str]:
        """Edges between nests that no fusion brings together."""
        graph = self.graph
        crossing = [e for e in graph.edges if graph.nest[e.array] != graph.nest[e.into]]
        if not crossing:
            return frozenset()
        b = Builder(self.schedule)
        join_nests(b, self.kernel)
        nest = Graph.of(b.plan, self.kernel).nest
        return frozenset(name_of(e) for e in crossing if nest[e.array] != nest[e.into])

    def _make(self, plan: Stitched, fixed: Mapping[str, str]) -> Stitched:
        again = tuple(dict.fromkeys(n.partition("->")[0] for n, s in plan.chosen.items() if s == "recompute"))
        schedule, graph = self._inlined(again)
        b = Builder(schedule)
        kernels = separate(b, self.kernel, plan.groups)
        for number, (kernel, group) in enumerate(zip(kernels, plan.groups, strict=True)):
            here = [e for e in graph.edges if e.array in group]
            outside = {e.array for e in here if plan.schemes[name_of(e)] in APART}
            how = {e.array: scheme for e in here if name_of(e) in fixed and (scheme := plan.schemes[name_of(e)]) not in APART
                   and (e.array in graph.reductions or scheme != "register" or e.array not in outside | graph.kept)}
            join_nests(b, kernel)
            for e in here:
                if name_of(e) in fixed and e.into in group:
                    demand_fusion(b, e.producer, e.consumer)
            share_passes(b, kernel)
            free = parts(graph, plan.schemes, fixed, group)
            b = Builder(spread(b.schedule, kernel, how, free, self.gpu, free is None and plan.kernels[number].launches > 1))
        made = default(b.schedule) if self.whole else b.schedule
        if self.whole and (open_ := made.judgement.obligations):
            raise TransformError(f"this cannot be emitted: {open_[0].what}", why=open_[0].why, hint="; or ".join(open_[0].hints))
        chosen = {name_of(e): "recompute" if e.array in again else came_about(made.plan, e, plan.chosen[name_of(e)])
                  for e in self.graph.edges}
        for name, scheme in fixed.items():
            if chosen[name] != scheme:
                raise TransformError(f"{name} came out as {chosen[name]}, not as {scheme}", why=why_not(scheme),
                                     hint=f"{{'{name}': '{chosen[name]}'}}")
        return Stitched(plan.schemes, chosen, plan.groups, plan.kernels, plan.recomputed, plan.terms, made)


def _scheme(graph: Graph, schemes: Mapping[str, str], e: ValueEdge) -> str:
    """The scheme of an edge, or of one that took its place when its consumer was written into others."""
    return schemes.get(name_of(e)) or next((schemes[name_of(o)] for o in graph.edges if o.array == e.array), "register")


def parts(graph: Graph, schemes: Mapping[str, str], fixed: Mapping[str, str], group: tuple[str, ...]) -> bool | None:
    """Whether blocks share a result: as said at an edge, else as the model likes where all that leaves crosses the whole grid."""
    here = [e for e in graph.edges if e.array in group]
    said = {schemes[name_of(e)] for e in here if graph.joins(e) and (name_of(e) in fixed or schemes[name_of(e)] == "global")}
    if "global" in said:
        return True
    leaving = {schemes[name_of(e)] for e in here if graph.apart(e, schemes[name_of(e)])}
    results = all(v in graph.reductions or graph.scalar(v) for v in group)
    return None if results and leaving <= {"global"} and not said else False
