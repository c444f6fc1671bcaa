"""What a spread of a reduction costs: the model by which the strategy chooses, every term of it in microseconds.

A multiprocessor gets its loads at the lower of two rates: its share of the memory's bandwidth (more, while others are idle), and
the bytes its resident threads keep in flight over the latency (Little's law).  Where a warp's access touches many lines, the L1
cache is what limits.  To that come the launches, one latency, the reduction across threads, a little for every block, wave of
blocks and batch of loads, and for parts the second launch with the partial results.  Kernels of a microsecond or two also pay for
instructions: what is written out comes from memory the first time, so short code is fast code there.

The constants were fitted on an H200 to 2,000 measured schedules of 156 reductions of all sizes.  The schedule that the model
chose among those measured was on average 2.7 % slower than the fastest; the worst, up to 34 %, were reductions of 1 to 3 µs.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import hypot, log2

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
    sharpness : float
        How sharply bandwidth sets in as loads in flight grow.
    line, access : float
        Cycles of the L1 cache for each line of 128 bytes that a warp touches, and microseconds to issue a warp's access.
    scattered : float
        How much more the memory takes for the shortest pieces of columns.
    narrow : float
        How much more it takes where a row has less than a warp, for each halving.
    row, row_block, row_warp : float
        Shuffles of a row; the block's barrier where a row has more than a warp, and for each doubling of warps.
    column, column_value, column_block : float
        Columns meet: in any case, for each value and halving, and where that takes the block's barrier.
    again : float
        The share of this that each further wave of blocks pays.
    join, ticket, part, partial : float
        The launch that joins parts, or the tickets by which the last block does; for each part; the share of the memory's time
        for partial results.
    block, wave, batch : float
        For each block of a multiprocessor, each further wave of blocks, and each further batch of loads.
    code, division : float
        For each access written out, instructions coming from memory the first time; how much more where its address takes
        divisions.
    ragged : float
        How much longer an access takes to issue for each lane that has its own condition.
    threads : float
        For a block of 1,024 threads to be started.
    """

    launch: float = 0.345
    latency: float = 0.407
    alone: float = 130e3
    sharpness: float = 1.97
    line: float = 0.7
    access: float = 0.0018
    scattered: float = 0.133
    narrow: float = 0.02
    row: float = 0.177
    row_block: float = 0.00846
    row_warp: float = 0.00826
    column: float = 0.0134
    column_value: float = 0.0103
    column_block: float = 0.142
    again: float = 0
    join: float = 1.07
    ticket: float = 0.808
    part: float = 0.00102
    partial: float = 3.14
    block: float = 0.025
    wave: float = 0
    batch: float = 0.0175
    code: float = 0.0126
    division: float = 2.22
    ragged: float = 0.894
    threads: float = 0.0698


H200 = Constants()
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
    blocks, threads, accesses = s.blocks(p), s.x * s.y, s.accesses(p)
    unroll = s.written_out(p)
    resident = max(1, min(gpu.max_threads_per_sm // max(threads, gpu.warp_size), -(-blocks // gpu.multiprocessors),
                          gpu.max_blocks_per_sm))
    active = min(gpu.multiprocessors, blocks)
    waves = -(-blocks // (active * resident))
    width = (s.lanes(p) if s.flat else s.vector) * p.itemsize
    rate = _soft_least(resident * threads * unroll * width / c.latency, min(c.alone, bandwidth / active), c.sharpness)
    memory = waves * resident * threads * accesses * width / rate * (1 + c.scattered * _scattered(p, s, width))
    if p.rows and not s.flat:
        memory *= 1 + c.narrow * log2(max(1.0, gpu.warp_size / s.x))
    warps = waves * resident * -(-threads // gpu.warp_size) * accesses
    lines = warps * _lines(p, s, width, gpu.warp_size) * c.line / ((gpu.clock_hz or 1.7e9) / 1e6)
    apart = 1.0 if s.steady(p) else c.division
    if p.rows and not s.flat and p.run % s.vector:
        apart += c.ragged * s.vector
    memory = hypot(memory, lines, warps * c.access * apart)
    combine = _combine(p, s, gpu.warp_size, c) * (1 + c.again * (waves - 1))
    turns = c.wave * (waves - 1) + c.block * waves * resident + c.batch * (-(-accesses // unroll) - 1)
    turns += c.threads * threads / 1024
    join = (c.ticket if s.ticket else c.join) + s.parts * (c.part + c.partial * p.results * 8 / bandwidth) if s.parts > 1 else 0.0
    code = c.code * unroll * (1 + width / p.itemsize / 4) * apart
    return Cost(c.launch, c.latency, memory, combine, turns, join, code)


def _soft_least(a: float, b: float, sharpness: float) -> float:
    """The lower of two rates, less where they are near each other: loads do not arrive evenly."""
    return (a**-sharpness + b**-sharpness) ** (-1 / sharpness)


def _scattered(p: Problem, s: Shape, width: int) -> float:
    """How far the pieces that a row of threads reads are from whole lines, 0 to 1."""
    if p.rows and (s.flat or s.x >= 32):
        return 0.0
    return max(0.0, (LINE - min(s.x * width, p.run * p.itemsize)) / LINE)


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
        return c.row * (s.x > 1) + (c.row_block + c.row_warp * log2(s.x / warp) if s.x > warp else 0.0)
    if s.y == 1:
        return 0.0
    return c.column + c.column_value * s.lanes(p) * log2(s.y) + c.column_block * (s.x * s.y > warp)
