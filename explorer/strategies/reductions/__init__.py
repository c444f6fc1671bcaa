"""Reductions of any shape: canonical rows and columns, spread over threads and, where there are few results, over blocks.

Panamera (Zhao et al., PACT 2022) brings every reduction into one of three forms by coalescing neighbouring axes of one role:
all-, x- (rows) and y-reductions (columns), parallel loops on the block's y axis and reduced ones on x, or the other way round.
Here the contiguous axis decides: where it is reduced, a group of lanes walks it (rows); where it is parallel, neighbouring
lanes take neighbouring results and the block's y axis walks the reduced loops (columns). Few results mean few blocks: then each
block reduces a part and a second launch joins the parts, always in one order.
How many threads, parts and loads in flight: the cheapest by the model of model.py.
"""

from __future__ import annotations

from itertools import groupby
from math import prod

import numpy as np

from ...gpu.spec import Gpu, default_gpu
from ...schedule import Schedule
from .._steps import Builder
from ..deferred import judged_once
from ..rows.form import WIDE
from .ahead import ask_ahead
from .families import MOST_THREADS, candidates
from .form import ReductionForm, reduction_form
from .model import H200, Constants, timed
from .nests import shaped
from .shapes import Problem, Shape
from .work import together, work

Block = tuple[int, int]
IN_FLIGHT = 256
"""Bytes that a thread keeps in flight at most, of all arrays it reads: a quarter of its registers."""


def problem_of(schedule: Schedule, form: ReductionForm) -> Problem:
    """The canonical reduction that a kernel is."""
    loops, array = schedule.plan.loops, schedule.plan.array_of[form.array]
    length, results = prod(loops[n].extent for n in form.reduced), prod(loops[n].extent for n in form.parallel)
    runs = [(reduced, prod(loops[n].extent for n in names))
            for reduced, names in groupby(reversed(form.axes), key=lambda n: n in form.reduced)]
    inner = next(extent for reduced, extent in runs if reduced)
    beside = next((extent for reduced, extent in runs if not reduced), 1)
    kind = form.rows, length, results, runs[0][1], array.dtype.bytes
    if inner == length:
        return Problem(*kind, 0, beside)
    outside = [n for n, (reduced, _) in enumerate(runs) if reduced][1:]
    return Problem(*kind, inner, beside, prod(extent for _, extent in runs[: outside[0]]),
                   runs[outside[0]][1] if len(outside) > 1 else 0)


def priced(schedule: Schedule, form: ReductionForm, gpu: Gpu, constants: Constants = H200) -> list[tuple[Shape, float]]:
    """The shapes worth considering and their microseconds by the model, the cheapest first.

    Of equal ones, those with fewer parts come first, then those with fewer rows a thread.
    """
    array, problem = schedule.plan.array_of[form.array], problem_of(schedule, form)
    read = {r.array for s in schedule.plan.program.statements if s.name in _names(schedule, form) for r in s.reads}
    every = candidates(problem, WIDE // array.dtype.bytes, gpu)
    if read != {form.array}:
        every = [s for s in every if not s.staged]
    if len(form.updates) > 1:  # several updates share vectors where all lanes have rows
        every = [s for s in every if problem.length % s.period == problem.results % s.each == 0]
    every = [s for s in every if s.period == 1 or _whole_periods(schedule, form, s)]
    most = IN_FLIGHT // (array.dtype.bytes * len(read))
    held = [s for s in every if s.written_out(s.seen(problem)) * s.vector <= most]
    shapes = held or every
    times = np.asarray(timed(together(work(problem, s, gpu) for s in shapes), constants).total).tolist()
    found = zip(shapes, times, strict=True)
    return sorted(found, key=lambda f: (round(f[1], 2), f[0].parts, f[0].each, f[0].x, -f[0].unroll))


def _whole_periods(schedule: Schedule, form: ReductionForm, shape: Shape) -> bool:
    """Whether the rows that are taken as one follow each other in memory: all rows do, or a whole number of periods."""
    rows = [n for n in form.axes if n in form.reduced and not (shape.kept and n in form.kept)]
    apart = max((n for n, name in enumerate(form.axes[: form.axes.index(rows[-1])]) if name not in rows), default=-1)
    inner = [n for n in rows if n in form.axes[apart + 1 :]]
    return inner == rows or prod(schedule.plan.loops[n].extent for n in inner) % shape.period == 0


def _names(schedule: Schedule, form: ReductionForm) -> set[str]:
    """The names of the statements that reduce."""
    return {leaf.statement for leaf, _, _ in schedule.plan.leaves if leaf.id in form.updates}


def choose(schedule: Schedule, form: ReductionForm, gpu: Gpu, parts: bool | None = None, beside: Block = (1, 1)) -> Shape:
    """The cheapest shape by the model (:mod:`explorer.strategies.reductions.model`); of equal ones, the one with fewer parts.

    Parameters
    ----------
    schedule : Schedule
    form : ReductionForm
    gpu : Gpu
    parts : bool, optional
        Whether several blocks share a result: True (where some shape does), False, or None where the model decides.
    beside : (int, int)
        Threads along x and y of a block that has to hold this one's threads too, where some shape leaves it small enough.
    """
    found = [shape for shape, _ in priced(schedule, form, gpu)]
    found = [s for s in found if max(s.x, beside[0]) * max(s.y, beside[1]) <= MOST_THREADS] or found
    return next((s for s in found if parts is None or (s.parts > 1) == parts), found[0])


def reduce(schedule: Schedule, kernel: str = "", gpu: Gpu | None = None, shape: Shape | None = None) -> Schedule:
    """Schedule the reductions of a kernel.

    Parameters
    ----------
    schedule : Schedule
    kernel : str
        Which kernel (default: the first).
    gpu : Gpu, optional
        By default the H200.
    shape : Shape, optional
        By default the one that :func:`choose` gives.

    Returns
    -------
    Schedule
        Legal; the same schedule where the kernel is not one reduction under parallel loops.
    """
    kernel = kernel or schedule.plan.kernels[0].id
    form = reduction_form(schedule, kernel)
    if form is None:
        return schedule
    gpu = gpu or default_gpu()
    shape = shape or choose(schedule, form, gpu)
    blocks = shape.room(shape.seen(problem_of(schedule, form)), gpu)
    return judged_once(schedule, lambda s: _made(s, form, shape, blocks))


def _made(schedule: Schedule, form: ReductionForm, shape: Shape, blocks: int) -> Schedule:
    """The steps; with so many blocks of the first launch on a multiprocessor, if not 0."""
    b = Builder(schedule)
    for leaf, _, _ in schedule.plan.leaves:
        if leaf.id in form.updates:
            target = b.plan.statement_of[leaf.statement].target.array
            if b.plan.array_of[target].role != "temporary":
                b.do("accumulate", target)
    made = Builder(shaped(b, form, shape))
    ask_ahead(made, form.kernel)
    if blocks:
        made.do("launch_bounds", form.kernel, blocks)
    return made.schedule
