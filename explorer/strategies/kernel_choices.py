"""What may be chosen when a kernel is spread: for each strategy its parameters around the rule's, priced by the models.

A list begins with what :func:`~explorer.strategies.auto.auto` takes; the others follow, the cheapest first by the estimate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import log, prod
from typing import Any

from ..errors import ScheduleError, TransformError
from ..gpu.spec import Gpu
from ..ir.plan import Plan
from ..ir.tree import Loop, walk
from ..schedule import Schedule
from . import row_column, rows
from ._steps import Builder, chain, own_temporaries
from .contraction import contraction, least_us, ranked
from .contraction.arrange import ways
from .contraction.shapes import Tiling
from .default import THREADS, default
from .elementwise import THREADS as FLAT
from .elementwise import each_of, elementwise, is_elementwise
from .elementwise import vector_width as flat_width
from .neighbours import Free, free_choices
from .reductions import priced, reduce
from .reductions.form import reduction_form
from .reductions.shapes import Shape
from .row_column.form import bring_together, row_column_form
from .rows.form import row_form
from .rows.form import vector_width as row_width
from .rows.model import RowSpread, RowWork, row_us, row_work
from .stitch import cut_long_rows
from .stitching.graph import name_of
from .stitching.rates import LATENCY_US, LAUNCH_US, WAVE_US, Spread, bandwidth_of
from .stitching.search import Search
from .windows import priced as priced_windows
from .windows import ready_windows, windows

SAME = 0.02
"""Estimates nearer to each other than this share are not told apart: what is nearer to the rule's choice comes first."""
BLOCKS = (64, 128, 256, 512)
"""Threads of a block that are worth trying where threads do not work together."""
KEPT: dict[str | None, str] = {"shared": ", kept in shared memory", "": ", read again"}
"""Where a row lies between loops, in words, if it is not in registers."""
NEARLY = 0.1
"""Numbers of parts nearer to each other than this share are one choice."""
JOINED = {"launch": "by another launch", "cluster": "in a cluster", "handoff": "by handoff", "last_block": "by the last block"}
"""How parts are joined, in words."""
OTHER_STAGES = 0.1
"""What other stages of one tile count as dearer, each, when choices are ordered."""
SLOWEST = 2.0
"""Spreads of rows that take so many times the cheapest are not worth trying."""


@dataclass(frozen=True)
class Choice:
    """One way to take a turn of :func:`~explorer.strategies.auto.auto`.

    Attributes
    ----------
    stage, kernel : str
        Whose turn it is, as :data:`~explorer.strategies.auto.Decide` says.
    label : str
        In words.
    rank_us : float or None
        Microseconds of this kernel by a model; None where no model knows it.
    take : callable
        From the schedule before the turn to the one after it.
    free : Free
        What is chosen, as data (:mod:`~explorer.strategies.neighbours`).
    """

    stage: str
    kernel: str
    label: str
    rank_us: float | None
    take: Callable[[Schedule], Schedule]
    free: Free

    def __call__(self, schedule: Schedule) -> Schedule:
        """Take the turn.

        Raises
        ------
        TransformError, IllegalSchedule
            If this way does not fit the kernel.
        """
        new = self.take(schedule)
        if new is schedule and self.label != APART:
            raise TransformError(f"{self.label} does not fit {self.kernel or 'this program'}")
        return new


APART = "no column sums along rows"
"""The label of the one choice that leaves a schedule as it is."""


def spread_choices(schedule: Schedule, kernel: str, gpu: Gpu) -> list[Choice]:
    """The ways to spread a kernel that nothing is bound in, by the strategy that fits it; none if only the default does."""
    nodes = list(walk(next(k.body for k in schedule.plan.kernels if k.id == kernel)))
    if any(isinstance(n, Loop) and (n.is_place or n.extent == 0) for n in nodes):
        return []
    for find in (_contractions, _elementwise, _reductions, _rows):
        try:
            if found := find(schedule, kernel, gpu):
                return _ranked(found)
        except ScheduleError:
            continue
    return []


def ride_choices(schedule: Schedule, kernel: str, gpu: Gpu) -> list[Choice]:
    """The ways to fuse column sums into rows; none where there is nothing to fuse."""
    b = Builder(schedule, judged=False)
    try:
        bring_together(b, kernel)
        form = row_column_form(b.plan, kernel)
        base = row_column.choose(b.schedule, form, gpu) if form else None
    except ScheduleError:
        return []
    if form is None or base is None:
        return []
    count = prod(b.plan.loops[n].extent for n in form.outer)
    out = []
    for threads, side, blocks in _around(*((n, 2 * n, n // 2) for n in (base.threads, base.rows, base.blocks))):
        s = replace(base, threads=threads, rows=side, blocks=min(blocks, -(-count // side) if side else 0))
        if s == base or (s.blocks > 1 and threads >= 8 and 32 <= threads * side <= 1024):
            label = f"rows and columns fused, {s.threads} threads a row, {_count(s.rows, 'row')} side by side, {s.blocks} blocks"
            take = partial(_fused, kernel=kernel, gpu=gpu, spread=s)
            out.append(Choice("row_column", kernel, label, None, take, free_choices(s)))
    return _ranked([*out, Choice("row_column", kernel, APART, None, lambda s: s, ())])


def rest_choices(schedule: Schedule) -> list[Choice]:
    """Threads of the blocks of what gets the default schedule."""
    return [Choice("rest", "", f"default, {n} threads", None, partial(default, threads=n), free_choices(threads=n))
            for n in dict.fromkeys((THREADS, *BLOCKS))]


def _fused(schedule: Schedule, kernel: str, gpu: Gpu, spread: row_column.Spread) -> Schedule:
    return row_column.fuse_row_column(schedule, kernel, gpu, spread)


def _ranked(found: list[Choice]) -> list[Choice]:
    """The first, and the others by estimate; those without one, and those that cost about the same, keep their order."""
    labels = [c.label for c in found]
    first, *others = [c for n, c in enumerate(found) if labels.index(c.label) == n]
    return [first, *sorted(others, key=lambda c: float("inf") if c.rank_us is None else int(log(c.rank_us) / SAME))]


def _around(*values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Every combination, those with fewer changes from the first first; of as many, the last value changes before the others."""
    numbered = product(*(list(enumerate(dict.fromkeys(v))) for v in values))
    return [tuple(v for _, v in row) for row in sorted(numbered, key=lambda row: sum(n for n, _ in row))]


def _contractions(schedule: Schedule, kernel: str, gpu: Gpu) -> list[Choice]:
    """Tilings of a product, and shapes of sums over windows.

    Tilings that differ in their stages alone, in their clusters, or in how warps divide a block's tile, cost about the same: each
    one counts as dearer than the one before it, so that a short search sees many tiles.
    """
    found, alike = list[Choice](), Counter[tuple[str, Tiling]]()
    for w in sorted(ways(schedule, kernel, gpu), key=lambda w: least_us(w, gpu)):
        for t, us in ranked(w.form, gpu):
            tile = replace(t, stages=0, down=0, across=0) if t.engine == "warp" else replace(t, stages=0, mates=(1, 1))
            before = alike[w.label, tile]
            alike[w.label, tile] += 1
            found.append(Choice("spread", kernel, f"{t}{', ' * bool(w.label)}{w.label}",
                                (w.copy_us + us.total_us) * (1 + OTHER_STAGES * before),
                                partial(contraction, kernel=kernel, gpu=gpu, tiling=t, way=w.label),
                                free_choices(t, way=w.label)))
    _, form = ready_windows(schedule, kernel)
    others = [Choice("spread", kernel, str(shape), us, partial(windows, kernel=kernel, gpu=gpu, shape=shape), free_choices(shape))
              for shape, us in (priced_windows(form, gpu) if form else ())]

    def cost(c: Choice) -> float:
        return c.rank_us or 0.0

    firsts = sorted((*found[:1], *others[:1]), key=cost)  # what the strategies themselves take, of tilings that cost the same
    return [*firsts[:1], *sorted((*firsts[1:], *found[1:], *others[1:]), key=cost)]


def _reductions(schedule: Schedule, kernel: str, gpu: Gpu) -> list[Choice]:
    form = reduction_form(schedule, kernel)
    if form is None:
        return []

    def take(s: Schedule, shape: Shape) -> Schedule:
        return reduce(s, kernel, gpu, shape)

    return [Choice("spread", kernel, _words(shape, form.rows), us, partial(take, shape=shape), free_choices(shape))
            for shape, us in _unlike(priced(schedule, form, gpu))]


def _unlike(found: Iterable[tuple[Shape, float]]) -> Iterator[tuple[Shape, float]]:
    """Those with another number of parts, by more than a little, than each before that is like them otherwise."""
    before: dict[Shape, list[int]] = {}
    for shape, us in found:
        alike = before.setdefault(replace(shape, parts=1), [])
        if all(abs(shape.parts - n) > NEARLY * n for n in alike):
            alike.append(shape.parts)
            yield shape, us


def _words(s: Shape, by_rows: bool) -> str:
    """A shape as a person says it."""
    kind = "flat" if s.flat else "rows" if by_rows and not s.kept else "columns"
    if s.staged:
        kind = "rows in shared memory,"
    elif by_rows and s.flat and s.vector > 1:
        kind = f"{s.each} whole rows a thread," if s.each > 1 else "whole rows,"
    parts = f", {s.parts} parts joined {JOINED[s.join]}" if s.parts > 1 else ""
    rows = f" over {s.period} rows" if s.period > 1 else ""
    inside = " and the axes inside" if s.kept else ""
    flight = "" if s.staged else f", {s.unroll} in flight"
    return f"{kind} {s.x}×{s.y} threads, {s.vector} wide{rows}{inside}{flight}{parts}"


def _elementwise(schedule: Schedule, kernel: str, gpu: Gpu) -> list[Choice]:
    if not is_elementwise(schedule, kernel) or elementwise(schedule, kernel) is schedule:
        return []
    nest = chain(next(k.body for k in schedule.plan.kernels if k.id == kernel)[0])
    base, width = each_of(schedule, nest), flat_width(schedule, nest)
    space, moved = prod(x.extent for x in nest), _moved(schedule.plan, kernel)
    item = max(1, moved // max(space, 1))
    out = []
    for backwards, threads, each in _around((False, True), (FLAT, *BLOCKS, 1024), (base, 1, 2, 4, 8)):
        piece = threads * width * each
        at = Spread(-(-space // piece), piece, threads, 1, width, item, each)
        label = f"flat, {threads} threads, {each} in flight" + ", from the end" * backwards
        take = partial(elementwise, kernel=kernel, threads=threads, each=each, backwards=backwards)
        free = free_choices(threads=threads, each=each, backwards=backwards)
        out.append(Choice("spread", kernel, label, _streamed(moved, at, gpu), take, free))
    return out


def _rows(schedule: Schedule, kernel: str, gpu: Gpu) -> list[Choice]:
    form = row_form(schedule, kernel)
    if form is None or form.extent == 0:
        return []
    work, widest = row_work(schedule, form), row_width(schedule, form)
    base, known = rows.spread_of(work, widest, gpu), dict(rows.spreads(work, widest, gpu))
    others = [s for s, us in known.items() if us <= SLOWEST * known[base]] if known else []
    near = [replace(base, threads=n, shared=False) for n in (base.threads, 2 * base.threads, base.threads // 2)
            if gpu.warp_size < n <= min(1024, -(-form.extent // base.vector))]
    found = [(s, "shared" if s.shared else "register") for s in (base, *others)] if known else [(s, None) for s in (base, *near)]
    out = []
    for s, keep in [*found, *product(near, ("shared", ""))]:
        label = f"{_count(s.threads, 'thread')} a row, {_count(s.side(work), 'row')} a block, {s.vector} wide{KEPT.get(keep, '')}"
        take = partial(rows.rows, kernel=kernel, threads=s.threads, vector=s.vector, gpu=gpu, block=s.block, keep=keep)
        free = free_choices(threads=s.threads, rows=s.side(work), vector=s.vector, kept=str(keep))
        out.append(Choice("spread", kernel, label, _row_us(work, s, keep, len(form.rows), gpu), take, free))
    return _cuts(schedule, kernel, gpu, out) if len(form.rows) > 1 else out


def _row_us(work: RowWork, s: RowSpread, keep: str | None, passes: int, gpu: Gpu) -> float:
    """Microseconds of rows in one kernel, wherever they are kept; without a place they are read again."""
    if keep:
        return row_us(work, replace(s, shared=keep == "shared"), gpu)
    nbytes = work.nbytes + (passes - 1) * work.count * work.extent * work.again
    return row_us(replace(work, nbytes=nbytes, kept=work.kept - work.again, again=0), s, gpu)


def _cuts(schedule: Schedule, kernel: str, gpu: Gpu, whole: list[Choice]) -> list[Choice]:
    """The ways to spread rows in one kernel, and the cuts of the chain; first what the rule takes."""
    search = Search(schedule, gpu, kernel)
    own, by_rule = search.planned({}), cut_long_rows(schedule, kernel, gpu) is not schedule
    base = own.total_us if by_rule or whole[0].rank_us is None else whole[0].rank_us
    out: dict[str, Choice] = {}
    for fixed in ({name_of(e): scheme} for e in search.graph.edges for scheme in ("cut", "global")):
        try:
            plan = search.planned(fixed)
        except ScheduleError:
            continue
        label = "cut: " + " | ".join(", ".join(group) for group in plan.groups) + ", in parts" * ("global" in fixed.values())
        us, take = base + plan.total_us - own.total_us, partial(_made, kernel=kernel, gpu=gpu, fixed=fixed)
        out.setdefault(label, Choice("spread", kernel, label, us, take, free_choices(**plan.schemes)))
    if not by_rule:
        return [*whole, *out.values()]
    first = Choice("spread", kernel, "cut by the model", own.total_us, partial(cut_long_rows, kernel=kernel, gpu=gpu),
                   free_choices(**own.schemes))
    return [first, *(replace(c, rank_us=None) for c in whole), *out.values()]  # two models do not compare


def _made(schedule: Schedule, kernel: str, gpu: Gpu, fixed: dict[str, str]) -> Schedule:
    made = Search(schedule, gpu, kernel).made(fixed).schedule
    return schedule if made is None else made


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"


def _moved(plan: Plan, kernel: str) -> int:
    """Bytes of the arrays in global memory that a kernel uses: read once, written once."""
    own = set(own_temporaries(plan, kernel))
    statements = [plan.statement_of[leaf.statement] for leaf, _, k in plan.leaves if k.id == kernel]
    read = {r.array for s in statements for r in s.reads} - own
    written = {s.target.array for s in statements} - own
    return sum(plan.array_of[a].nbytes for names in (read, written) for a in _known(plan, names))


def _known(plan: Plan, names: Iterable[str]) -> list[str]:
    return [n for n in names if n in plan.array_of]


def _streamed(moved: int, at: Spread, gpu: Gpu) -> float:
    """Microseconds to move so many bytes once, spread like that."""
    return LAUNCH_US + LATENCY_US + moved / bandwidth_of(gpu) * at.loss(gpu) + WAVE_US * (at.waves(gpu) - 1)
