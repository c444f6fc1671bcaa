"""Stitching: a scheme for every edge between two values of a program, chosen by the user or by a model whose terms are shown.

The schemes are those of FusionStitching (Zheng et al., 2020: thread, warp and block composition, kernel packing) and of
AStitch (Zheng et al., ASPLOS 2022: global composition behind a barrier of the whole grid; here also behind the end of a launch),
with computing again and cutting as the alternatives.  Which are legal is not looked up: the moves are tried, the judge answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace

from ..errors import IllegalSchedule, ScheduleError, TransformError, outspoken, shown, spoken
from ..gpu.spec import Gpu, target_gpu
from ..ir.finding import YES, Verdict
from ..poly.producer_consumer import ValueEdge
from ..schedule import Schedule
from .price import price
from .rows.form import row_form
from .stitching.graph import APART, SCHEMES, name_of
from .stitching.search import Search, Stitched


@outspoken(ScheduleError)
@dataclass(frozen=True)
class Option:
    """One scheme for one edge; the other edges get what is then best.

    Attributes
    ----------
    scheme : str
    verdict : Verdict
        Whether the moves apply and the result is legal; a refusal has the finding with the pair of instances, where there is one.
    saved_bytes, saved_launches : int
        Global memory traffic and launches, against a cut at this edge.
    registers, shared_bytes : int
        Of a thread, and of a block, of the kernel that makes the consumer (estimates of the model).
    recomputed_flops : int
        Operations that are done again.
    occupancy : float
        Of that kernel, 0 to 1.
    terms : tuple of (str, float)
        Microseconds of the whole program, by name.
    total_us : float
        Their sum.
    """

    scheme: str
    verdict: Verdict
    saved_bytes: int = 0
    saved_launches: int = 0
    registers: int = 0
    shared_bytes: int = 0
    recomputed_flops: int = 0
    occupancy: float = 0.0
    terms: tuple[tuple[str, float], ...] = ()
    total_us: float = 0.0

    def __str__(self) -> str:
        if not self.verdict:
            return f"{self.scheme:9s} illegal: {self.verdict.what}"
        shown = ", ".join(f"{name} {us:.3g}" for name, us in self.terms if abs(us) >= 0.005)
        return (f"{self.scheme:9s} {self.total_us:8.2f} µs ({shown}); saves {self.saved_bytes:,} B and {self.saved_launches} "
                f"launches; {self.registers} registers, {self.shared_bytes:,} B shared, occupancy {self.occupancy:.0%}"
                + (f", {self.recomputed_flops:,} operations again" if self.recomputed_flops else ""))


@outspoken(ScheduleError)
@dataclass(frozen=True)
class Edge:
    """A value read by the statements that make another.

    Attributes
    ----------
    id : str
        ``"total->y"``.
    producer, consumer : str
        Statements: the last that writes the array, the first that reads it for the other.
    array : str
    kind : str
        ``"1:1"`` element by element, ``"1:many"`` broadcast, ``"many:1"`` reduction, ``"many:many"``; exact.
    lines : tuple of int
        Source lines of the two statements, 0 where unknown.
    options : tuple of Option
        In the order of the schemes.
    """

    id: str
    producer: str
    consumer: str
    array: str
    kind: str
    lines: tuple[int, int]
    options: tuple[Option, ...] = ()

    def __str__(self) -> str:
        return "\n".join([f"{self.id}  {self.producer} → {self.consumer}, {self.kind}", *(f"    {o}" for o in self.options)])


@outspoken(ScheduleError)
@dataclass(frozen=True)
class Stitching:
    """A stitched program.

    Attributes
    ----------
    edges : tuple of Edge
        Without options; :func:`edges` tries those.
    chosen : dict of str to str
        Edge to the scheme that the schedule has.
    groups : tuple of tuple of str
        The values of each kernel; a reduction in parts has a launch more, which joins them.
    terms : tuple of (str, float)
        Microseconds by the model.
    schedule : Schedule
    barriers : set of int
        Groups that are a phase of the launch of the group before them, behind a barrier of the grid.
    """

    edges: tuple[Edge, ...]
    chosen: dict[str, str]
    groups: tuple[tuple[str, ...], ...]
    terms: tuple[tuple[str, float], ...]
    schedule: Schedule
    barriers: Set[int] = frozenset()

    @property
    def total_us(self) -> float:
        """The sum of the terms."""
        return sum(us for _, us in self.terms)

    def __str__(self) -> str:
        width = max((len(e.id) for e in self.edges), default=0)
        lines = [f"{e.id:{width}s}  {e.kind:9s}  {self.chosen[e.id]}" for e in self.edges]
        lines += [f"kernel {n}: {', '.join(group)}" + (", behind a barrier of the grid" if n - 1 in self.barriers else "")
                  for n, group in enumerate(self.groups, 1)]
        lines.append(f"{self.total_us:.2f} µs: " + ", ".join(f"{name} {us:.3g}" for name, us in self.terms if abs(us) >= 0.005))
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)


@spoken(TransformError, "edges(schedule)")
def edges(schedule: Schedule, gpu: Gpu | str | None = None) -> tuple[Edge, ...]:
    """The edges of a program, with every scheme tried on each.

    Parameters
    ----------
    schedule : Schedule
        A program as written (loops in time only).
    gpu : Gpu or str, optional
        By default the H200.

    Returns
    -------
    tuple of Edge
    """
    return tuple(each_edge(schedule, gpu))


def each_edge(schedule: Schedule, gpu: Gpu | str | None = None) -> Iterator[Edge]:
    """The edges of :func:`edges` one after the other: for those who show what is known so far."""
    search = Search(schedule, target_gpu(gpu))
    for e in search.graph.edges:
        yield _edge(search, e, tuple(_option(search, name_of(e), scheme) for scheme in SCHEMES))


@spoken(TransformError, "stitching(schedule)")
def stitching(schedule: Schedule, choices: Mapping[str, str] | None = None, gpu: Gpu | str | None = None) -> Stitching:
    """Stitch a program and say how.

    Parameters
    ----------
    schedule : Schedule
        A program as written (loops in time only).
    choices : mapping of str to str, optional
        Edge to scheme; the model chooses for the others.
    gpu : Gpu or str, optional
        By default the H200.

    Returns
    -------
    Stitching

    Raises
    ------
    TransformError, IllegalSchedule
        If there is no such edge or scheme, or a choice is not legal; the message says which, why, and what fits.
    """
    if choices is not None and not isinstance(choices, Mapping):
        raise TransformError(f"choices are schemes by edge, not {shown(choices)}", hint='stitch(schedule, {"mean": "shared"})')
    search = Search(schedule, target_gpu(gpu))
    fixed = dict(choices or {})
    for name, scheme in fixed.items():
        if search.graph.edge(name) is None:
            known = ", ".join(name_of(e) for e in search.graph.edges)
            raise TransformError(f"there is no edge {name!r}", why="" if known else "no value of the program is read by another",
                                 hint=f"one of {known}" if known else "no choices, or strategies.auto")
        if scheme not in SCHEMES:
            raise TransformError(f"there is no scheme {scheme!r} for {name}", hint=f"one of {', '.join(SCHEMES)}")
    try:
        found = search.made(fixed)
    except ScheduleError as refusal:
        raise _explained(search, fixed, refusal) from refusal
    plain = tuple(_edge(search, e, ()) for e in search.graph.edges)
    assert found.schedule is not None
    terms = price(found.schedule.plan, search.gpu).terms
    return Stitching(plain, found.chosen, found.groups, terms, found.schedule, found.barriers)


@spoken(TransformError, "stitch(schedule)")
def stitch(schedule: Schedule, choices: Mapping[str, str] | None = None, gpu: Gpu | str | None = None) -> Schedule:
    """The schedule of :func:`stitching`: every step an ordinary move that can be replayed."""
    return stitching(schedule, choices, gpu).schedule


def cut_long_rows(schedule: Schedule, kernel: str, gpu: Gpu) -> Schedule:
    """Cut a chain of loops over rows where the model says so: few rows leave multiprocessors idle, long ones fit no registers.

    Returns
    -------
    Schedule
        The same where the kernel is no such chain, or one kernel is best.
    """
    form = row_form(schedule, kernel)
    if form is None or len(form.rows) < 2:
        return schedule
    search = Search(schedule, gpu, kernel)
    if not search.worthwhile():
        return schedule
    plan = search.planned({})
    if not set(plan.chosen.values()) & set(APART) and all(k.reads == 1 and k.launches == 1 for k in plan.kernels):
        return schedule
    return search.made({}).schedule or schedule


def _edge(search: Search, e: ValueEdge, options: tuple[Option, ...]) -> Edge:
    line = {s.name: s.line for s in search.graph.plan.program.statements}
    return Edge(name_of(e), e.producer, e.consumer, e.array, e.kind, (line[e.producer], line[e.consumer]), options)


def _option(search: Search, name: str, scheme: str) -> Option:
    try:
        found = search.made({name: scheme})
        verdict = YES
    except ScheduleError as refusal:
        verdict = _verdict(refusal)
        try:
            found = search.planned({name: scheme})
        except ScheduleError:
            return Option(scheme, verdict)
    return _priced(search, name, scheme, verdict, found)


def _priced(search: Search, name: str, scheme: str, verdict: Verdict, found: Stitched) -> Option:
    base = search.apart(name)
    edge = search.graph.edge(name)
    assert edge is not None
    kernel, bytes_, launches, terms = search.consumer(found, edge), found.moved_bytes, found.launches, found.terms
    if found.schedule is not None:
        counted = price(found.schedule.plan, search.gpu)
        bytes_, launches, terms = counted.moved_bytes, counted.launches, counted.terms
        base_bytes, base_launches = _apart(search, name)
    else:
        base_bytes, base_launches = base.moved_bytes, base.launches
    return Option(scheme, verdict, base_bytes - bytes_, base_launches - launches, kernel.registers, kernel.shared_bytes,
                  found.recomputed, kernel.occupancy, terms, sum(us for _, us in terms))


def _apart(search: Search, name: str) -> tuple[int, int]:
    """Bytes and launches with a cut at an edge; where there can be none, by the model."""
    try:
        made = search.made({name: "cut"}).schedule
    except ScheduleError:
        made = None
    if made is None:
        base = search.apart(name)
        return base.moved_bytes, base.launches
    counted = price(made.plan, search.gpu)
    return counted.moved_bytes, counted.launches


def _verdict(refusal: ScheduleError) -> Verdict:
    given = refusal.details.get("verdict")
    if isinstance(given, Verdict) and not given:
        return given
    return Verdict(refusal.what, refusal.why, refusal.hint, refusal.details.get("finding"))


def _explained(search: Search, fixed: Mapping[str, str], refusal: ScheduleError) -> ScheduleError:
    """The refusal, with the edge that it is about and the schemes that fit there; in the finding too, which is what is shown."""
    verdict, name, fits = _verdict(refusal), "", tuple[str, ...]()
    for edge, scheme in fixed.items():
        if not (alone := _option(search, edge, scheme).verdict):
            verdict, name = alone, edge
            fits = tuple(s for s in SCHEMES if s != scheme and _option(search, edge, s).verdict)
            break
    if name:
        what = f"{name} cannot be {fixed[name]!r}: {verdict.what}"
        hint = f"one of {', '.join(fits)}" if fits else verdict.hint
    else:
        what = f"the choices {', '.join(f'{n}: {s}' for n, s in fixed.items())} do not go together: {verdict.what}"
        hint = verdict.hint
    finding = verdict.finding
    if finding is None:
        return TransformError(what, where=_place(search, name), why=verdict.why, hint=hint, verdict=verdict, edge=name, fits=fits)
    shown = replace(finding, what=what, hints=tuple(dict.fromkeys((hint, *finding.hints))) if hint else finding.hints)
    return IllegalSchedule(what, where="; ".join(filter(None, (_place(search, name), finding.where))), why=verdict.why, hint=hint,
                           finding=shown, verdict=verdict, edge=name, fits=fits, program=search.schedule.source)


def _place(search: Search, name: str) -> str:
    """An edge and its source lines in words."""
    e = search.graph.edge(name)
    if e is None:
        return ""
    made, used = _edge(search, e, ()).lines
    known = f", made at line {made}, used at line {used}" if made and used else ""
    return f"edge {name} ({e.producer} → {e.consumer}{known})"
