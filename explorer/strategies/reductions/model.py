"""What a spread of a reduction costs: the model by which the strategy chooses, every term of it in microseconds.

What decides is the slowest of the memory, the L2 cache, the fullest multiprocessor, the cache lines that its warps touch, and
what it issues: the instructions of its warps and the blocks it starts.  A multiprocessor gets its loads at the lower of what it
can take in and the bytes that its resident threads keep in flight over the latency (Little's law); threads of later waves are not
loading while they begin and while they reduce.  The memory takes longer for short pieces of columns, and for those that do not
begin where lines do: their ends are read in vain.  To that come the launches, one latency, the reduction across threads, a little
for every block and batch of loads, and for parts what joins them, with the partial results.  Kernels of a microsecond or two also
pay for what is written out.

The constants were fitted on an H200 to 28,264 measured schedules of 1,498 reductions of all sizes, which are kept with the fit
(``benchmarks/reduction_fit.py``).  The schedule that the model chooses among those measured is on average 4 % slower than the
fastest, a part of which is the clock's noise, and up to 40 %; times near the fastest are predicted within 13 %.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import log2

from ...gpu.spec import Gpu
from .shapes import Problem, Shape


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
    row, row_block, row_warp, row_member : float
        Shuffles of a row; the block's barrier where a row has more than a warp, and for each doubling of warps; for each value
        of one of several rows that shuffles leave.
    column, column_value, column_block, column_member : float
        Columns meet: in any case, for each value and halving, and where that takes the block's barrier; for each value of a
        column that shuffles leave.
    again, wave : float
        The share of this during which the threads of a later wave do not load, and how long they do not besides.
    join, ticket, signal, signal_columns, take, part, partial : float
        The launch that joins parts, the tickets by which the last block does, or the signals that one waits for; for each
        further part that a thread takes there, and each further batch in a launch; for each part; the share of the memory's
        time for partial results.
    cluster, cluster_part, crowd, crowd_power : float
        The barrier of a cluster, and for each of its blocks; how much longer loads take where clusters have 16 blocks, as those
        do not fit the groups of multiprocessors evenly, and with which power of their blocks that grows.
    start, block, batch : float
        For each block that a multiprocessor starts with, for each that it issues, and each further batch of loads.
    code, code_width, division, division_rows : float
        For each access written out, and how much more for each of its elements; how much more where its address takes
        divisions, and where threads do so side by side in a row.
    ragged : float
        How much longer an access takes to issue for each lane that has its own condition.
    threads : float
        For a block of 1,024 threads to be started.
    """

    launch: float = 0.593
    latency: float = 0.2
    alone: float = 1.7e+05
    first: float = 2.47
    soft: float = 4.74
    sharpness: float = 2.67
    line_flat: float = 0.415
    cache: float = 9e+06
    row_member: float = 0.00238
    column_member: float = 1.72e-07
    line: float = 0.0216
    access: float = 0.00131
    scattered: float = 0.0987
    misfit: float = 0.104
    read: float = 0.937
    start: float = 0.00196
    row: float = 0.0339
    row_block: float = 0.0359
    row_warp: float = 0.0184
    column: float = 0.0515
    column_value: float = 0.0124
    column_block: float = 0.0146
    again: float = 4.72
    join: float = 0.894
    ticket: float = 1.2
    signal: float = 0.713
    signal_columns: float = 0.899
    take: float = 0.156
    cluster: float = 0.332
    cluster_part: float = 0.00749
    crowd: float = 0.229
    crowd_power: float = 0.418
    part: float = 0.000395
    partial: float = 5.6
    block: float = 0.0645
    wave: float = 0.00265
    batch: float = 0.0862
    code: float = 0.00474
    code_width: float = 1
    division: float = 1.83
    division_rows: float = 2.13
    ragged: float = 0.448
    threads: float = 0.15


H200 = Constants()
WIDE_CLUSTER = 16
"""Blocks of the largest clusters."""
SECTOR = 32
"""Bytes of a sector of the L2 cache (Nsight Compute, "Memory Chart")."""
LINE = 128
"""Bytes of a line of the L1 cache and of a full access to memory (CUDA C++ Best Practices Guide, "Coalesced Access")."""


@dataclass(frozen=True)
class Cost:
    """The terms, in microseconds."""

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
    """What a shape costs on a GPU.

    Parameters
    ----------
    p : Problem
    s : Shape
    gpu : Gpu
    c : Constants
    """
    bandwidth = (gpu.measured_bandwidth_bytes_per_s or gpu.memory_bandwidth_bytes_per_s) / 1e6
    blocks, threads, launched = s.blocks(p), s.x * s.y, s.launched(p)
    accesses, unroll = s.accesses(p), s.written_out(p)
    each, batches = -(-blocks // gpu.multiprocessors), -(-accesses // unroll)
    resident = max(1, min(gpu.max_threads_per_sm // max(launched, gpu.warp_size), each, gpu.max_blocks_per_sm))
    waves = -(-blocks // (min(gpu.multiprocessors, blocks) * resident))
    width = (s.lanes(p) if s.flat else s.vector) * p.itemsize
    combine, begin = _combine(p, s, gpu.warp_size, c), c.threads * launched / 1024
    loading = batches * c.latency
    idle = (c.wave + c.again * combine + begin) * (waves - 1) / waves
    in_flight = resident * threads * unroll * width / c.latency * loading / (loading + idle)
    fit = 1 + c.misfit * _misfit(p, s)
    fullest = each * threads * accesses * width / _soft_least(in_flight, c.alone, c.soft) * fit
    memory = p.length * p.results * p.itemsize / bandwidth * c.read * (fit + c.scattered * _scattered(p, s, width))
    crowded = 1 + c.crowd * (s.parts / WIDE_CLUSTER) ** c.crowd_power if s.clustered else 1.0
    warps = -(-threads // gpu.warp_size) * accesses
    line = c.line_flat if p.rows and s.flat else c.line
    lines = waves * resident * warps * _lines(p, s, width, gpu.warp_size) * line / ((gpu.clock_hz or 1.7e9) / 1e6)
    cache = p.length * p.results * p.itemsize * _sectors(p, s, width) / c.cache
    apart = 1.0 if s.steady(p) else c.division_rows if p.rows and not s.flat else c.division
    if p.rows and not s.flat and p.run % s.vector:
        apart += c.ragged * s.vector
    issued = each * (warps * c.access * apart + c.block)
    memory = sum(t**c.sharpness for t in (memory * crowded, fullest * crowded, cache, lines, issued)) ** (1 / c.sharpness)
    turns = c.start * min(resident, each) + c.batch * (batches - 1) + begin
    join = _join(p, s, bandwidth, c) if s.parts > 1 else 0.0
    code = c.code * unroll * (1 + c.code_width * width / p.itemsize) * apart
    return Cost(c.launch, c.first * c.latency, memory, combine, turns, join, code)


def _join(p: Problem, s: Shape, bandwidth: float, c: Constants) -> float:
    """Parts become one."""
    if s.clustered:
        return c.cluster + c.cluster_part * s.parts
    signal = (c.signal if p.rows and not s.flat else c.signal_columns) + c.take * (s.takes(p) - 1)
    fixed = {"launch": c.join + c.take * (s.rounds(p) - 1), "ticket": c.ticket, "signal": signal}[s.join]
    return fixed + s.parts * (c.part + c.partial * p.results * 8 / bandwidth)


def _soft_least(a: float, b: float, sharpness: float) -> float:
    """The lower of two rates, less where they are near each other: loads do not arrive evenly."""
    return (a**-sharpness + b**-sharpness) ** (-1 / sharpness)


def _scattered(p: Problem, s: Shape, width: int) -> float:
    """How far the pieces that a row of threads reads are from whole lines, 0 to 1."""
    if p.rows and (s.flat or s.x >= 32):
        return 0.0
    return max(0.0, (LINE - min(s.x * width, p.run * p.itemsize)) / LINE)


def _misfit(p: Problem, s: Shape) -> float:
    """What is read in vain at the ends of pieces of columns that do not begin where lines do, over the pieces' length."""
    if p.rows or p.run * p.itemsize % LINE == 0:
        return 0.0
    return min(1.0, LINE / 2 / (min(s.x * s.vector, p.run) * p.itemsize))


def _sectors(p: Problem, s: Shape, width: int) -> float:
    """Bytes of the sectors that pieces touch, over the bytes of the pieces."""
    if p.rows and s.flat:
        return 1.0  # lanes read on in theirs
    whole, piece = p.run * p.itemsize % SECTOR == 0, max(1, min(s.x * width, p.run * p.itemsize))
    if whole and piece <= SECTOR:
        return SECTOR / piece
    return 1.0 if whole and piece % SECTOR == 0 else (piece + SECTOR - p.itemsize) / piece


def _lines(p: Problem, s: Shape, width: int, warp: int) -> int:
    """Lines that one access of a warp touches."""
    beside = min(warp, s.x)
    if p.rows and s.flat:
        return min(beside, -(-beside * p.run * p.itemsize // LINE))
    span = beside * width
    piece = max(1, min(span, p.run * p.itemsize))
    return (warp // beside) * max(1, span // piece) * -(-piece // LINE)


def _combine(p: Problem, s: Shape, warp: int, c: Constants) -> float:
    """The reduction across threads."""
    if p.rows and not s.flat:
        left = s.x >> _halvings(s.x, warp) if s.x > 1 and s.y > 1 else 0
        block = c.row_block + c.row_warp * log2(s.x / warp) if s.x > warp else 0.0
        return c.row * (s.x > 1) + block + c.row_member * left
    if s.y == 1:
        return 0.0
    left = s.y >> (_halvings(s.y, warp // s.x) if s.x <= warp and warp % s.x == 0 else 0)
    met = c.column_value * log2(s.y) + c.column_member * left
    return c.column + met * s.lanes(p) + c.column_block * (s.x * s.y > warp)


def _halvings(threads: int, warp: int) -> int:
    """How often shuffles of a warp halve a group of threads."""
    n = 0
    while threads >> n & 1 == 0 and 2 << n <= warp:
        n += 1
    return n
