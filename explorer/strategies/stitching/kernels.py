"""One stitched kernel: rows, a reduction or elements, with the schemes that its edges have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from ...gpu.spec import Gpu
from ...ir.expr import Expr
from ...ir.plan import grid_extents
from ...ir.tree import Loop
from ...schedule import Schedule
from .._steps import Builder, chain, leaves_of
from ..elementwise import THREADS, elementwise, is_elementwise
from ..reductions import Block, choose, reduce
from ..reductions.form import ReductionForm, reduction_form
from ..reductions.shapes import Shape
from ..rows import rows
from ..split_rows import split_rows


def spread(schedule: Schedule, kernel: str, how: Mapping[str, str], parts: bool | None, gpu: Gpu, several: bool = False,
           threads: int = 0, beside: Block = (1, 1)) -> Schedule:
    """Spread one kernel's values over the GPU.

    Parameters
    ----------
    schedule : Schedule
    kernel : str
    how : mapping of str to str
        Scheme of the values that stay within the kernel, where it was asked for.
    parts : bool or None
        Whether blocks of the grid share the work on one result; None where the model may decide.
    gpu : Gpu
    several : bool
        Whether parts are to be preferred where the model may decide.
    threads : int
        Of a block that takes elements; 0 for the usual.
    beside : (int, int)
        Threads along x and y of the blocks that reduce in the same launch.

    Returns
    -------
    Schedule
        The same where the kernel has no form that is known.
    """
    if is_elementwise(schedule, kernel):
        b = Builder(schedule)
        _memory_order(b, kernel)
        new = elementwise(b.schedule, kernel, threads or THREADS, backwards=read_before(b, kernel, gpu))
        return _stored(new, how) if new is not b.schedule else schedule
    form = reduction_form(schedule, kernel)
    if form is not None and (parts is not False or set(how.values()) <= {"shuffle"}):
        return reduce(schedule, kernel, gpu, _shape(schedule, form, parts or several or parts, gpu, beside))
    if parts is not False and not how and (split := split_rows(schedule, kernel, gpu)) is not schedule:
        return split
    alone = "register" in {s for v, s in how.items() if v in _reduced(schedule, kernel)}
    return rows(schedule, kernel, threads=1 if alone else None, vector=1 if alone else None, how=how, gpu=gpu)


def _reduced(schedule: Schedule, kernel: str) -> set[str]:
    return {s.target.array for leaf, _, k in schedule.plan.leaves
            if k.id == kernel and (s := schedule.plan.statement_of[leaf.statement]).update}


def _shape(schedule: Schedule, form: ReductionForm, parts: bool | None, gpu: Gpu, beside: Block) -> Shape:
    """The model's shape, with several parts or with one as it is asked for."""
    shape = choose(schedule, form, gpu, parts, beside)
    if not parts or shape.parts > 1:
        return shape if parts is None else replace(shape, parts=shape.parts if parts else 1)
    loops = schedule.plan.loops
    length = prod(loops[n].extent for n in form.reduced)
    vector = 1 if shape.flat and form.rows else shape.vector
    most = max(1, length // (2 * (vector if form.rows else 1)))
    walkers = 1 << min(8, most.bit_length() - 1)  # threads that walk the reduced loops, so that each of two parts has a turn
    x, y = (min(walkers, max(shape.x, 32)), 1) if form.rows else (shape.x, min(walkers, shape.y))
    accesses = -(-length // ((x * vector) if form.rows else y))
    return replace(shape, x=x, y=y, vector=vector, parts=min(2, accesses), unroll=1, flat=False, each=1, staged=False)


def _stored(schedule: Schedule, how: Mapping[str, str]) -> Schedule:
    """An elementwise kernel's temporaries where they were asked to be."""
    b = Builder(schedule)
    for array, scheme in how.items():
        if scheme == "shuffle":
            b.do("collect", array, "shuffle")
        elif array in {t.name for t in b.plan.program.temporaries}:
            b.do("contract", array, scheme)
    return b.schedule


def _memory_order(b: Builder, kernel: str) -> None:
    """The loops of an elementwise nest in the order of the axes that its result has in memory."""
    nest = chain(next(k.body for k in b.plan.kernels if k.id == kernel)[0])
    leaf = list(leaves_of(nest[0]))[-1]
    at, names = dict(leaf.at), [x.id for x in nest]
    index = [e.substitute(at) for e in b.plan.statement_of[leaf.statement].target.index if isinstance(e, Expr)]
    wanted = tuple(n for e in index for n in names if e == Expr(((n, 1),)))
    if len(wanted) == len(names) and list(wanted) != names:
        b.attempt("reorder", wanted)


def read_before(b: Builder, kernel: str, gpu: Gpu) -> bool:
    """Whether the kernel walks an array that an earlier kernel read from front to back and that is larger than the cache."""
    arrays = b.plan.array_of
    here: set[str] = set()
    before: set[str] = set()
    for leaf, above, owner in b.plan.leaves:
        if owner.id == kernel:
            at = dict(leaf.at)
            moving = {x.id for x in above if isinstance(x, Loop)}
            here |= {r.array for r in b.plan.statement_of[leaf.statement].reads
                     if moving <= {v for e in r.index if isinstance(e, Expr) for v in e.substitute(at).variables()}}
        elif [k.id for k in b.plan.kernels].index(owner.id) < [k.id for k in b.plan.kernels].index(kernel):
            before |= {r.array for r in b.plan.statement_of[leaf.statement].reads}
    return any(arrays[a].nbytes > (gpu.l2_bytes or 0) for a in here & before)


def blocks(schedule: Schedule, kernel: str) -> int:
    """Blocks of a kernel."""
    x, y, z = grid_extents(next(k for k in schedule.plan.kernels if k.id == kernel))
    return x * y * z
