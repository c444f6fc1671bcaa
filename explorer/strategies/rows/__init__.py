"""Rows: a chain of loops over one row of an array, with reductions between them, each row read once and written once.

Softmax, layer normalisation and their like are memory-bound chains of row loops (FusionStitching, Zheng et al., 2020: thread,
warp and block composition; AStitch, Zheng et al., ASPLOS 2022: how rows are packed into blocks or split over them; the online
and register-resident forms are common knowledge since Apex). The row belongs to a group of threads: a part of a warp, a warp,
or a block, as the model says (:mod:`~explorer.strategies.rows.model`). What several loops read stays in packed registers
between them, reductions are collected by warp shuffles.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from ...gpu.spec import Gpu, default_gpu
from ...schedule import Schedule
from .._steps import Builder, own_temporaries
from ..deferred import judged_once
from .ahead import ask_ahead
from .form import RowForm, read_again, row_form, vector_width
from .model import RESERVED, RowSpread, RowWork, group_size, priced, row_work

UNROLL = 16
"""Accesses of one thread in a row loop that are written out."""
BLOCK = 256
"""Threads of a block of several rows that registers do not hold."""
REGISTERS = 128
"""Words of a row that one thread may keep; beyond, the row lies in shared memory or is read again."""
WORKING, STREAM, LEAST = 12, 6, 24
"""Registers that a thread needs beside the row, and for each access at one place of a row; the least of both.

Of softmax (2 accesses) 1,024 threads keep 40 words in their 64 registers, of layer normalisation (4) 28; with 4 more they spill.
"""


@lru_cache(maxsize=4096)
def spreads(work: RowWork, widest: int, gpu: Gpu) -> tuple[tuple[RowSpread, float], ...]:
    """The spreads that read their rows once, the cheapest first, with their microseconds."""
    def most(s: RowSpread) -> int:
        return kept_words(s.threads * s.side(work, gpu.warp_size), work.streams, gpu)

    return tuple(priced(work, widest, gpu, most))


def kept_words(threads: int, streams: int, gpu: Gpu) -> int:
    """Words of rows that one of so many threads of a block may keep in registers, beside so many accesses at one place."""
    return min(REGISTERS, gpu.registers_per_sm // threads - working(streams))


def working(streams: int) -> int:
    """Registers of a thread beside its row."""
    return max(LEAST, WORKING + STREAM * streams)


def rows(schedule: Schedule, kernel: str = "", threads: int | None = None, vector: int | None = None,
         how: Mapping[str, str] | None = None, gpu: Gpu | None = None, block: int | None = None,
         keep: str | None = None) -> Schedule:
    """Give every row to a group of threads that reads it once.

    Parameters
    ----------
    schedule : Schedule
    kernel : str
        Which kernel (default: the first).
    threads : int, optional
        Threads for one row; by default by the model.
    vector : int, optional
        Elements of one access; by default by the model, 16 bytes at most.
    how : mapping of str to str, optional
        Temporary to ``"register"``, ``"shuffle"`` or ``"shared"``: how a result is collected, or where the temporary lives.  By
        default shuffles and registers.  What is named must be possible.
    gpu : Gpu, optional
        By default the H200: its registers and shared memory hold the rows.
    block : int, optional
        Threads of a block that holds several rows, side by side; a row of more than a warp has a block for itself.
    keep : str, optional
        Where what several loops read of a row lies between them: ``"register"``, ``"shared"``, or ``""`` for nowhere, so that it
        is read again.  By default what the model says, and of the others the first that holds it.

    Returns
    -------
    Schedule
        Legal; the same schedule where the kernel is no chain of rows.

    Raises
    ------
    TransformError, IllegalSchedule
        If `how` names something that is not possible.
    """
    kernel = kernel or schedule.plan.kernels[0].id
    form = row_form(schedule, kernel)
    if form is None or form.extent == 0:
        return schedule
    gpu = gpu or default_gpu()
    work = row_work(schedule, form)
    spread = spread_of(work, vector_width(schedule, form), gpu, threads, vector)
    return judged_once(schedule, lambda s: _made(s, form, work, spread, how or {}, gpu, block or spread.block, keep))


def _made(schedule: Schedule, form: RowForm, work: RowWork, spread: RowSpread, how: Mapping[str, str], gpu: Gpu, block: int,
          keep: str | None) -> Schedule:
    """The steps."""
    b = Builder(schedule)
    shared = read_again(b.schedule, form)
    scope = _outer(b, form, spread.threads, block)
    inner = [_spread(b, nest, spread.threads, spread.vector) for nest in form.rows]
    if scope:
        left = _keep(b, scope, shared, spread, work, gpu, keep)
        ask_ahead(b, scope, form.kernel, spread, work, left)
    _store(b, form.kernel, how)
    for loop, lanes in inner:
        if lanes:
            b.attempt("vectorize", lanes)
        if b.extent(loop) <= UNROLL:
            b.attempt("unroll", loop)
    return b.schedule


def spread_of(work: RowWork, widest: int, gpu: Gpu, threads: int | None = None, vector: int | None = None) -> RowSpread:
    """The cheapest with these threads and this vector, where they are given; by the row's length where none keeps its rows."""
    fit = [s for s, _ in spreads(work, vector or widest, gpu) if threads in (None, s.threads) and vector in (None, s.vector)]
    if fit:
        return fit[0]
    vector = vector or widest
    return RowSpread(threads or group_size(work.extent, vector), vector, BLOCK)


def _outer(b: Builder, form: RowForm, threads: int, block: int) -> str:
    """Bind the parallel loops; the innermost loop around a row."""
    if not form.outer:
        return ""
    free = tuple(x for x in form.outer if b.plan.loops[x].role == "seq")
    loop = free[0]
    if len(free) > 1:
        b.do("coalesce", free)
    if len(free) < len(form.outer):
        b.do("bind", loop, "block.x")
        return form.outer[-1]
    rows_per_block = max(1, block // threads) if threads <= 32 else 1
    rows_per_block = min(rows_per_block, b.extent(loop))
    if rows_per_block == 1:
        b.do("bind", loop, "block.x")
        return loop
    inner = b.plan.fresh(f"{loop}.r")
    b.do("split", loop, rows_per_block, inner=inner).do("bind", loop, "block.x").do("bind", inner, "thread.y")
    return inner


def _spread(b: Builder, nest: tuple[str, ...], threads: int, vector: int) -> tuple[str, str]:
    """Divide one row loop among the threads; its loop in time and its lanes ("" without)."""
    loop, lanes = nest[0], ""
    if len(nest) > 1:
        b.do("coalesce", nest)
    if vector > 1:
        lanes = b.plan.fresh(f"{loop}.v")
        b.do("split", loop, vector, inner=lanes)
    part = b.plan.fresh(f"{loop}.t")
    b.do("split", loop, threads, inner=part).do("bind", part, "thread.x")
    return loop, lanes


def _keep(b: Builder, scope: str, shared: list[str], spread: RowSpread, work: RowWork, gpu: Gpu, keep: str | None) -> int:
    """Rows that are read again into registers or shared memory, as long as there is room; words that a thread has left."""
    most, room = kept_words(spread.threads, work.streams, gpu), gpu.shared_bytes_per_block_optin - RESERVED
    elements, words, nbytes = spread.accesses(work) * spread.vector, 0, 0
    for array in shared:
        size = b.plan.array_of[array].dtype.bytes
        needed, row = -(-elements * size // 4), elements * spread.threads * size
        space = keep if keep is not None else "register" if not spread.shared and words + needed <= most else \
            "shared" if spread.threads > gpu.warp_size and nbytes + row <= room else ""
        if space and (b.attempt("stage", array, scope, space=space, vector=spread.vector)
                      or b.attempt("stage", array, scope, space=space)):
            words += needed * (space == "register")
            nbytes += row * (space == "shared")
    return most - words


def _store(b: Builder, kernel: str, how: Mapping[str, str]) -> None:
    """Reductions collected, temporaries into registers."""
    updates = [(s.target.array, s.name) for s in b.plan.program.statements if s.update and _within(b, kernel, s.name)]
    for array, statement in updates:
        if how.get(array) != "register":
            (b.do if array in how else b.attempt)("collect", statement, how.get(array, "shuffle"))
    results = {array for array, _ in updates}
    for array in [a for a, scheme in how.items() if a not in results and scheme == "shuffle"]:
        b.do("collect", array, "shuffle")
    for name in dict.fromkeys((*own_temporaries(b.plan, kernel), *(a for a in how if a not in results))):
        if name not in b.plan.buffer_of:
            chosen = name in how and name not in results
            (b.do if chosen else b.attempt)("contract", name, how[name] if chosen else "register")


def _within(b: Builder, kernel: str, statement: str) -> bool:
    hit = b.plan.resolve(statement)
    return hit is not None and hit[2].id == kernel
