"""Row and column reductions in one kernel: every array read once, for the rows and for the sums over all rows.

A gradient of a normalisation, or of a bias, walks rows and sums over them.  One launch does both, as hand-written kernels do
(Apex' `layer_norm_cuda_kernel.cu`; "persistent" blocks): each block takes rows in a loop, each thread always the same columns,
whose sums it keeps in registers over all its rows.  At the end the rows that a block works on side by side meet in shared
memory, the block stores one partial sum for each column, and a small second launch joins those, always in one order.

Sizes.  A row belongs to threads by its length (:func:`~explorer.strategies.rows.model.group_size`), and to more
where its columns would take more than `REGISTERS` of a thread: a register for every element of a row that is kept (compilers
keep 16-bit elements widened) and for every sum.  Each multiprocessor gets one block of about `BLOCK` threads, with as many rows
side by side as that makes (few columns: several blocks, if a block has fewer rows than that).  Little's law asks for 32 to 40 kB
in flight on an H200, which 12 warps with six accesses of 16 bytes for each thread are.  Rows of odd length are read in narrow
accesses: where a multiprocessor would have less than that in flight, fewer threads take a row each, if more rows then fit.
"""

from __future__ import annotations

from math import gcd, prod

from ...errors import ScheduleError
from ...gpu.spec import Gpu, default_gpu
from ...ir.plan import Plan
from ...schedule import Schedule
from .._steps import Builder, leaves_of
from ..rows import UNROLL
from ..rows.form import WIDE
from ..rows.model import group_size
from .form import RowColumn, accompany, axes, bring_together, row_column_form
from .moves import Rider, Spread, fold

REGISTERS = 168
"""Most registers of a thread: 12 warps are then resident on a multiprocessor with 65,536 registers."""
OTHERS = 40
"""Registers of a thread beside its columns: addresses, temporaries, values of the row."""
BLOCK = 384
"""Threads on a multiprocessor: those 12 warps."""
IN_FLIGHT = 32 << 10
"""Bytes of rows that a multiprocessor should have in flight."""


def choose(schedule: Schedule, form: RowColumn, gpu: Gpu) -> Spread | None:
    """The spread by the rule of this module's text; None where the columns of one row do not fit in a block's registers."""
    plan = schedule.plan
    walked = [plan.array_of[name] for name in _walked(plan, form)]
    vector = gcd(form.extent, WIDE // min((a.dtype.bytes for a in walked if a.role != "temporary"), default=4))
    sums = sum(plan.array_of[target].dtype.wide.bytes for target in _targets(plan, form))
    column = (sums + sum(max(a.dtype.bytes, 4) for a in walked if a.role != "out")) // 4

    def registers(threads: int) -> int:
        return -(-form.extent // (threads * vector)) * vector * column + OTHERS

    def fits(threads: int) -> bool:
        return form.extent <= threads * vector * UNROLL and registers(threads) <= REGISTERS

    threads = group_size(form.extent, vector)
    while threads < 1024 and not fits(threads):
        threads *= 2
    count = prod(plan.loops[name].extent for name in form.outer)

    def spread(threads: int) -> Spread | None:
        held = gpu.registers_per_sm // registers(threads) // threads
        if held == 0:
            return None
        side = max(1, min(round(BLOCK / threads), held, -(-count // gpu.multiprocessors)))
        while _two_stage_elements(form, threads, side) * sums > gpu.shared_bytes_per_block_optin:
            side -= 1
        enough = max(1, min(held // side, BLOCK // (threads * side)))
        return Spread(threads, vector, side, min(gpu.multiprocessors * enough, -(-count // side)))

    def in_flight(s: Spread | None) -> int:
        read = sum(a.dtype.bytes for a in walked if a.role in ("in", "inout"))
        return min(IN_FLIGHT, s.rows * -(-s.blocks // gpu.multiprocessors) * form.extent * read) if s else 0

    fewer = [n for n in (threads // 2, threads // 4) if n and fits(n)]
    return max(map(spread, (threads, *fewer)), key=in_flight)


def _two_stage_elements(form: RowColumn, threads: int, rows: int) -> int:
    """Elements in shared memory where the rows of a block meet, for one sum."""
    step = fold(form, threads, rows) * threads
    return rows * -(-form.extent // step) * step if rows > 1 else 0


def _targets(plan: Plan, form: RowColumn) -> list[str]:
    """The arrays of the sums."""
    return [plan.statement_of[plan.resolve(x)[0].statement].target.array for x in form.sums]  # type: ignore[index]


def _walked(plan: Plan, form: RowColumn) -> list[str]:
    """The parameters that the row nests walk element by element, and temporaries that live from one nest to another."""
    found: dict[str, set[str]] = {}
    for nest in form.nests:
        for leaf in leaves_of(plan.loops[nest[0]]):
            statement = plan.statement_of[leaf.statement]
            for access in statement.accesses:
                walked = axes(leaf, access)
                if walked and walked[-1] == nest[-1] and (leaf.id not in form.sums or access is not statement.target):
                    found.setdefault(access.array, set()).add(nest[0])
    return [name for name, nests in found.items() if len(nests) > 1 or plan.array_of[name].role != "temporary"]


def fuse_row_column(schedule: Schedule, kernel: str = "", gpu: Gpu | None = None, spread: Spread | None = None) -> Schedule:
    """Schedule row nests with the column reductions that read the same arrays.

    Parameters
    ----------
    schedule : Schedule
        A program as written, its results started and updated under the same loops
        (:func:`~explorer.strategies.fuse_reduction.fuse_reduction`).
    kernel : str
        Which kernel (default: the first).
    gpu : Gpu, optional
        By default the H200.
    spread : Spread, optional
        By default the one that :func:`choose` gives.

    Returns
    -------
    Schedule
        Legal; the same schedule where no column reduction can ride along, or where the columns do not fit in registers.

    Notes
    -----
    The steps are judged together, by the judgement of their result, and one by one where that refuses.  Columns along several
    axes become one loop whose part of an array is no box: such an array is read by each of the loops, from the cache.
    """
    kernel = kernel or schedule.plan.kernels[0].id
    for company in (True, False):
        for judged in (False, True):
            b = Builder(schedule, judged)
            try:
                if company and not accompany(b, kernel):
                    break
                bring_together(b, kernel)
                form = row_column_form(b.plan, kernel)
                chosen = spread or (choose(b.schedule, form, gpu or default_gpu()) if form else None)
                if form is None or chosen is None or not _fits(b.plan, form, chosen):
                    break
                Rider(b, form, chosen).take()
            except ScheduleError:
                break
            if b.schedule.judgement.emittable:
                return b.schedule
    return schedule


def _fits(plan: Plan, form: RowColumn, spread: Spread) -> bool:
    """Whether the loops over the columns can be written out, and there is more than one block to sum over."""
    several = spread.blocks > 1 and len(list(leaves_of(plan.loops[form.outer[0]]))) > 1
    return several and -(-form.extent // (spread.threads * spread.vector)) <= UNROLL
