"""What a spread of a reduction costs: the model by which the strategy chooses, every term of it in microseconds.

What decides is the slowest of the memory, the L2 cache, the fullest multiprocessor, the cache lines that its warps touch, and
what it issues: the instructions of its warps and the blocks it starts.  A multiprocessor gets its loads at the lower of what it
can take in and the bytes that its resident threads keep in flight over the latency (Little's law); threads of later waves are not
loading while they begin and while they reduce.  The memory takes longer for short pieces of columns, and for those that do not
begin where lines do: their ends are read in vain.  To that come the launches, one latency, the reduction across threads, a little
for every block and batch of loads, and for parts what joins them, with the partial results.  Kernels of a microsecond or two also
pay for what is written out.  Loads that a thread writes out count as in flight as far as its registers hold them: with those that
the kernel asks for (:mod:`~explorer.transforms.launch_bounds`), or, where it cannot ask, the 12 words that ptxas keeps.

The constants were fitted on an H200 to 52,949 measured schedules of 4,662 reductions of all sizes; with 2,418 later ones, of
large reductions, no better ones were found, with 10,257 of many short rows, `rest`, the words of an access, `copied` and
`narrow` were added, and with 8,144 of rows of odd length `ragged` counts the accesses that ask for the ends of a row. All are
kept with the fit (``benchmarks/reduction_fit.py``). The schedule that the model chooses among those measured is on average
3.2 % slower than the fastest, a part of which is the clock's noise; times near the fastest are predicted within 11 %.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from ...gpu.spec import Gpu
from .shapes import Problem, Shape
from .work import Work, work


@dataclass(frozen=True)
class Constants:
    """What was fitted; times in microseconds.

    Attributes
    ----------
    launch : float
        Shortest duration of a kernel beyond its latency.
    latency : float
        From a load's issue to its value under load, queues included.
    alone : float
        Bytes per microsecond that one multiprocessor can take in while the others are idle.
    first : float
        Of that, what the first load takes.
    soft, sharpness : float
        How sharply a multiprocessor's limit sets in as its loads in flight grow; how sharply the slowest of memory, fullest
        multiprocessor, cache lines and instructions decides (the order of a norm).
    read : float
        Time to read a byte, beside that to copy it there and back, by half.
    line, line_flat, access : float
        Cycles of the L1 cache for each line of 128 bytes that a warp touches, and where each lane walks a row of its own;
        microseconds to issue a warp's access.
    cache : float
        Bytes per microsecond of the L2 cache, whose sectors of 32 bytes are read whole.
    scattered, misfit : float
        How much more the memory takes for the shortest pieces of columns, and for pieces of 64 bytes that begin anywhere.
    row, row_block, row_warp, row_member, row_twice : float
        Shuffles of a row; the block's barrier where a row has more than a warp, and for each doubling of warps; for each value
        of one of several rows that shuffles leave, and where there are more of them than lanes of a warp.
    column, column_value, column_block, column_member : float
        Columns meet: in any case, for each value and halving, and where that takes the block's barrier; for each value of a
        column that shuffles leave.
    again, wave : float
        The share of this during which the threads of a later wave do not load, and how long they do not besides.
    join, last_block, handoff, handoff_columns, take, part, partial : float
        The launch that joins parts, the counter by which the last block does, or the words that one waits for; for each
        further part that a thread takes there, and each further batch in a launch; for each part; the share of the memory's
        time for partial results.
    cluster, cluster_part, crowd, crowd_power : float
        The barrier of a cluster, and for each of its blocks; how much longer loads take where clusters have 16 blocks, as those
        do not fit the groups of multiprocessors evenly, and with which power of their blocks that grows.
    second_stage, second_stage_value, second_stage_shared : float
        Sums of a result meet in a block; for each that a thread adds up alone, and each halving of those who share them.
    start, block, batch : float
        For each block that a multiprocessor starts with, for each that it issues, and each further batch of loads.
    code, code_width, division, division_rows : float
        For each access written out, and how much more for each of its elements; how much more where its address takes
        divisions, and where threads do so side by side in a row.
    ragged : float
        How much longer an access takes to issue for each lane that has its own condition.
    rest : float
        A text for the last thread, which has fewer rows than the others.
    copied, narrow : float
        Rows that a block copies to shared memory before it adds them up: for blocks of 256 threads; for each value of a row that
        is shorter than the words there.
    threads : float
        For a block of 1,024 threads to be started.
    """

    launch: float = 0.714
    latency: float = 0.2
    alone: float = 1.7e+05
    first: float = 1.88
    soft: float = 1.5
    sharpness: float = 2.37
    line_flat: float = 0.477
    cache: float = 9e+06
    row_member: float = 0.00749
    row_twice: float = 0.0821
    column_member: float = 6.32e-06
    line: float = 1.01
    access: float = 0.00133
    scattered: float = 0.129
    misfit: float = 0.000891
    read: float = 0.9
    start: float = 0.0287
    row: float = 0.0459
    row_block: float = 5.98e-05
    row_warp: float = 0.00665
    column: float = 0.0638
    column_value: float = 0.00908
    column_block: float = 0.0508
    again: float = 5.09
    join: float = 1.08
    last_block: float = 0.000449
    handoff: float = 0.935
    handoff_columns: float = 1.07
    take: float = 0.301
    cluster: float = 0.431
    cluster_part: float = 0.00542
    second_stage: float = 0.00605
    second_stage_value: float = 0.00569
    second_stage_shared: float = 0.0395
    crowd: float = 0.306
    crowd_power: float = 0.436
    part: float = 4.37e-08
    partial: float = 4.97
    block: float = 0.047
    wave: float = 0.0636
    batch: float = 0.0922
    code: float = 0.0021
    code_width: float = 0.764
    division: float = 2.55
    division_rows: float = 2.58
    ragged: float = 0.7
    rest: float = 0.07
    copied: float = 0.1
    narrow: float = 0.011
    threads: float = 0.115


H200 = Constants()


@dataclass(frozen=True)
class Cost:
    """The terms, in microseconds; numbers, or arrays as those of the work."""

    launch: float
    latency: float
    memory: float
    combine: float
    waves: float
    join: float
    code: float

    @property
    def total(self) -> float:
        """Their sum."""
        return sum(getattr(self, f.name) for f in fields(self))


def cost(p: Problem, s: Shape, gpu: Gpu, c: Constants = H200) -> Cost:
    """What a shape costs on a GPU."""
    return timed(work(p, s, gpu), c)


def timed(w: Work, c: Constants = H200) -> Cost:
    """What work costs: of one spread, or of many at once where the work's attributes are arrays."""
    combine = c.row * w.row + c.row_block * w.row_block + c.row_warp * w.row_warp + c.row_member * w.row_member
    combine += c.row_twice * w.row_twice + c.second_stage * w.second_stage
    combine += c.second_stage_value * w.second_stage_value + c.second_stage_shared * w.second_stage_shared
    combine += c.column * w.column + c.column_block * w.column_block
    combine += c.column_value * w.column_value + c.column_member * w.column_member
    begin = c.threads * w.launched
    apart = 1 + (c.division - 1) * w.divided + (c.division_rows - 1) * w.divided_rows + c.ragged * w.ragged
    return Cost(
        launch=c.launch,
        latency=c.first * c.latency,
        memory=_memory(w, c, (c.wave + c.again * combine + begin) * w.later, apart),
        combine=combine + c.copied * w.copied + c.narrow * w.narrow,
        waves=c.start * w.begun + c.batch * (w.batches - 1) + begin,
        join=_join(w, c),
        code=c.code * (w.unroll + c.code_width * w.written) * apart + c.rest * w.rest,
    )


def _memory(w: Work, c: Constants, idle: float, apart: float) -> float:
    """The slowest of the memory, the fullest multiprocessor, the cache, the lines and the instructions."""
    loading = w.batches * c.latency
    rate = _soft_least(w.held / c.latency * loading / (loading + idle), c.alone, c.soft)
    fit, crowded = 1 + c.misfit * w.misfit, 1 + c.crowd * w.crowd**c.crowd_power
    memory = w.stream * c.read * (fit + c.scattered * w.scattered) * crowded
    fullest = w.fullest / rate * fit * crowded
    lines = c.line * w.lines + c.line_flat * w.lines_flat
    issued = c.access * w.warps * apart + c.block * w.blocks
    return sum(t**c.sharpness for t in (memory, fullest, w.sectors / c.cache, lines, issued)) ** (1 / c.sharpness)


def _join(w: Work, c: Constants) -> float:
    """Parts become one."""
    waits = c.join * w.launch + c.last_block * w.last_block + c.handoff * w.handoff + c.handoff_columns * w.handoff_columns
    passed = c.take * w.take + c.part * w.part + c.partial * w.partial
    near = c.cluster * w.cluster + c.cluster_part * w.cluster_part
    return waits + passed + near


def _soft_least(a: float, b: float, sharpness: float) -> float:
    """The lower of two rates, less where they are near each other: loads do not arrive evenly."""
    return (a**-sharpness + b**-sharpness) ** (-1 / sharpness)
