"""From choices to a stitched schedule: the cheapest plan that agrees with them by the model, and its moves."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Set
from contextlib import suppress
from itertools import combinations

from ...errors import ScheduleError, TransformError, noun
from ...gpu.spec import Gpu
from ...poly.producer_consumer import ValueEdge
from ...schedule import Schedule
from .._steps import Builder
from ..deferred import Memory
from ..fuse_reduction import fuse_reduction
from ..price import price
from .cost import TERMS, KernelCost
from .graph import APART, PARTS, Graph, name_of
from .group import arithmetic
from .make import Stitched, make, shares
from .model import kernel_costs
from .moves import join_nests
from .rates import LATENCY_US, LAUNCH_US

MOST_LEVELS = 4
"""Stages of reductions for which every set of cuts is compared; beyond, one cut or none."""
WORTH = 1.05
"""A kernel is cut where that saves more than 5 %: by so much the model of reductions is off, on average, at most."""
TRIED = 2
"""Plans at least that are made, the cheapest first, until one is legal and has the schemes that were asked for."""


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
            raise TransformError(f"stitching takes a schedule, not a {noun(schedule)}",
                                 hint="program.schedule(M=…) makes one")
        if not kernel and len(schedule.plan.kernels) > 1:
            raise TransformError("stitching begins with one kernel", why=f"there are {len(schedule.plan.kernels)}",
                                 hint="stitch the program as written")
        self.kernel, self.gpu, self.whole = kernel or next(k.id for k in schedule.plan.kernels), gpu, not kernel
        inside = [x for _, above, k in schedule.plan.leaves if k.id == self.kernel for x in above]
        if bound := next((x for x in inside if x.role != "seq"), None):
            raise TransformError(f"{bound.id} is already {bound.role}", why="stitching begins with loops in time",
                                 hint="stitch the program as written")
        if empty := next((x for x in inside if x.extent == 0), None):
            raise TransformError(f"{empty.id} has no iterations", why="what costs nothing has no cheapest way",
                                 hint="sizes above 0, or strategies.default")
        self.schedule = fuse_reduction(schedule) if self.whole else schedule
        self.graph = Graph.of(self.schedule.plan, self.kernel)
        self._prepared: dict[tuple[str, ...], tuple[Schedule, Graph]] = {(): (self.schedule, self.graph)}
        self._made: dict[tuple, Stitched | ScheduleError] = {}
        self._memory = Memory()
        self._planned: dict[tuple, list[Stitched]] = {}
        self._plain: dict[tuple, Stitched] = {}
        self._costs: dict[tuple[str, ...], dict[Hashable, KernelCost]] = {}
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
        """The cheapest plans, as far as the one without cuts that were not asked for."""
        key = tuple(sorted(fixed.items()))
        if key not in self._planned:
            self._planned[key] = self._ranked(fixed, key)
        return self._planned[key]

    def _ranked(self, fixed: Mapping[str, str], key: tuple) -> list[Stitched]:
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
        different: list[Stitched] = []
        for one in ranked:
            if not any((one.again, one.schemes) == (s.again, s.schemes) for s in different):
                different.append(one)
        plain = next(n for n, s in enumerate(different) if (found[0].again, found[0].schemes) == (s.again, s.schemes))
        self._plain[key] = different[plain]  # its refusal is about what was asked, and no more
        return different[: max(TRIED, plain + 1)]

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
        if key not in self._made and fixed and (own := self._own()) and fixed.items() <= own.chosen.items():
            self._made[key] = own  # what was asked for is what the model has
        if key not in self._made:
            for plan in self._plans(fixed):
                try:
                    self._made[key] = self._cheaper(self._make(plan, fixed), fixed, key)
                    break
                except ScheduleError as refusal:
                    if key not in self._made or plan is self._plain.get(key):
                        self._made[key] = refusal
        found = self._made[key]
        if isinstance(found, ScheduleError):
            raise found
        return found

    def _make(self, plan: Stitched, fixed: Mapping[str, str]) -> Stitched:
        schedule, graph = self._inlined(plan.again)
        return make(plan, schedule, self.graph, graph, fixed, not self.whole, self.gpu, self._memory)

    def _cheaper(self, made: Stitched, fixed: Mapping[str, str], key: tuple) -> Stitched:
        """What was made; where it is little but launches, and nothing was asked for, the plan without cuts if that is cheaper.

        The model of rows multiplies latency by what a row wastes of its sectors, which short rows do; the price does not.
        """
        plain = self._plain[key]
        if fixed or plain.launches >= made.launches or self._us(made) > made.launches * (LAUNCH_US + LATENCY_US):
            return made
        with suppress(ScheduleError):
            other = self._make(plain, fixed)
            if self._us(other) < self._us(made):
                return other
        return made

    def _us(self, made: Stitched) -> float:
        assert made.schedule is not None
        others = frozenset(k.id for k in self.schedule.plan.kernels) - {self.kernel}
        return price(made.schedule.plan, self.gpu, others).total_us

    def _own(self) -> Stitched | None:
        """What the model makes where nothing is asked for; None where that cannot be made."""
        try:
            return self.made({})
        except ScheduleError:
            return None

    def apart(self, name: str) -> Stitched:
        """The cheapest plan with a cut at an edge (or, where there can be none, the one with a kernel for each value)."""
        try:
            return self.planned({name: "cut"})
        except ScheduleError:
            schemes = {name_of(e): "cut" for e in self.graph.edges}
            return self._priced(self.graph, schemes, tuple((v,) for v in self.graph.values), {}, frozenset())

    def consumer(self, found: Stitched, e: ValueEdge) -> KernelCost:
        """The kernel that uses an edge's value; the first one where the consumer is computed again wherever it is used."""
        into = self.graph.left(e.into, self._inlined(found.again)[1])
        return next(k for k in found.kernels if into & {*k.values})

    def _plan(self, candidate: Mapping[str, str], fixed: Mapping[str, str]) -> Stitched:
        again = tuple(dict.fromkeys(n.partition("->")[0] for n, s in candidate.items() if s == "recompute"))
        _, graph = self._inlined(again)
        rest = self._handed_on(candidate, fixed, graph)
        asked = {name_of(o) for n in fixed if (e := self.graph.edge(n)) for o in self.graph.heirs(e, graph)} & rest.keys()
        schemes = graph.complete(rest, self.loose)
        groups = graph.groups(schemes)
        barriers = graph.barriers(schemes, groups, asked)
        schemes = graph.told(schemes, groups, barriers)
        free = {n: shares(graph, schemes, asked, g) for n, g in enumerate(groups)}
        return self._priced(graph, schemes, groups, free, asked, barriers, again)

    def _handed_on(self, candidate: Mapping[str, str], fixed: Mapping[str, str], graph: Graph) -> dict[str, str]:
        """The schemes of the graph that is left: an edge into a value that is computed again hands its scheme on."""
        rest: dict[str, tuple[str, str]] = {}
        for name in sorted(candidate, key=lambda n: n not in fixed):
            scheme, e = candidate[name], self.graph.edge(name)
            assert e is not None
            for heir in self.graph.heirs(e, graph) if scheme != "recompute" else ():
                one, by = rest.setdefault(name_of(heir), (scheme, name))
                if one != scheme and name in fixed and by in fixed:
                    inner = next(v for n in (name, by) if (v := n.partition("->")[2]) not in graph.values)
                    raise TransformError(f"{name} cannot be {scheme} while {by} is {one}",
                                         why=f"{inner} is computed again, so both are {name_of(heir)}",
                                         hint=f"{{'{name}': '{one}'}}")
        return {name: scheme for name, (scheme, _) in rest.items()}

    def _priced(self, graph: Graph, schemes: dict[str, str], groups: tuple[tuple[str, ...], ...], free: Mapping[int, bool | None],
                asked: Set[str], barriers: Set[int] = frozenset(), again: tuple[str, ...] = ()) -> Stitched:
        whole = frozenset(n for n, g in enumerate(groups) if graph.whole(g, schemes, asked, bool({n, n + 1} & barriers)))
        kernels = kernel_costs(graph, groups, schemes, free, self.gpu, barriers, whole, self._costs.setdefault(again, {}))
        more = max(0, arithmetic(graph) - arithmetic(self.graph))
        sums = {t: sum(k.terms[t] for k in kernels) for t in TERMS}
        sums["recompute"] += more / (self.gpu.f32_flops_per_s / 1e6)
        chosen = {name_of(e): "recompute" if e.array in again else _scheme(schemes, self.graph.heirs(e, graph))
                  for e in self.graph.edges}
        return Stitched(schemes, chosen, groups, kernels, more, tuple(sums.items()), again, free, asked, barriers,
                        whole)

    def _inlined(self, arrays: tuple[str, ...]) -> tuple[Schedule, Graph]:
        if arrays not in self._prepared:
            b = Builder(self.schedule)
            for array in arrays:
                b.do("inline", array)
            self._prepared[arrays] = (b.schedule, Graph.of(b.plan, self.kernel))
        return self._prepared[arrays]

    def _candidates(self, fixed: Mapping[str, str]) -> Iterator[dict[str, str]]:
        """The choices alone; with ends of launches or barriers between stages; each also with rows elsewhere, or in a thread."""
        level, graph = self._levels(), self.graph
        top = range(1, max(level.values(), default=0) + 1)
        sizes = range(len(top) + 1) if len(top) <= MOST_LEVELS else (0, 1, len(top))
        named = {n.partition("->")[0] for n in fixed}
        settled = graph.reductions | graph.kept | named
        spread_out = [v for v in graph.values if v not in settled and not graph.scalar(v)]
        results = graph.reductions - named
        meant = self._meant(fixed)
        for cuts, scheme, asked in ((c, s, m) for n in sizes for c in combinations(top, n)
                                    for s in (("global", "grid") if c else ("global",)) for m in meant):
            chosen = dict(asked)
            for e in graph.edges:
                if any(level[e.array] < c <= level[e.into] for c in cuts):
                    chosen.setdefault(name_of(e), graph.boundary(e, scheme))
            yield chosen
            full = graph.complete(chosen, self.loose)
            crossing = {v for v in spread_out if any(e.array == v and full[name_of(e)] in APART for e in graph.edges)}
            if crossing:
                yield {**chosen, **{name_of(e): "recompute" for e in graph.edges if e.array in crossing}}
            if rows := set(spread_out) - crossing:
                for instead in ("shared", "recompute"):
                    yield {**chosen, **{name_of(e): instead for e in graph.edges if e.array in rows}}
            if results and not crossing:
                yield {**chosen, **{name_of(e): "register" for e in graph.edges if e.array in results and
                                    full[name_of(e)] not in (*APART, PARTS)}}

    def _meant(self, fixed: Mapping[str, str]) -> tuple[dict[str, str], ...]:
        """What the choices may mean.

        A barrier stands behind a reduction, or between its parts and what joins them; a reduction in parts that uses another
        one's result has that from before, or is made in one pass with it.
        """
        graph = self.graph
        joins = {n: e.array for n, s in fixed.items() if s in ("global", "grid") and (e := graph.edge(n)) and graph.joins(e)}
        inside = {n: PARTS for n in joins if fixed[n] == "grid"}
        passes = {name_of(o): "shuffle" for o in graph.edges if o.into in joins.values() and o.array in graph.reductions}
        found = [dict(fixed), {**fixed, **inside}, {**passes, **fixed, **inside}]
        return tuple(found[n] for n in range(3) if found[n] not in found[:n])

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
        """Edges into nests that no fusion brings together with the others; what stands under no loop may stand beside any."""
        graph = self.graph
        crossing = [e for e in graph.edges if graph.nest[e.array] != graph.nest[e.into]]
        if not crossing:
            return frozenset()
        b = Builder(self.schedule)
        join_nests(b, self.kernel)
        nest = Graph.of(b.plan, self.kernel).nest
        return frozenset(name_of(e) for e in crossing if nest[e.array] != nest[e.into] and nest[e.into] in b.plan.loops)


def _scheme(schemes: Mapping[str, str], edges: list[ValueEdge]) -> str:
    """The scheme of an edge, or of those that took its place when its consumer was written into others."""
    scheme = next((schemes[name_of(e)] for e in edges), "register")
    return "grid" if scheme == PARTS else scheme
