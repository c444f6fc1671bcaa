"""What a spread of a reduction costs: the model by which the strategy chooses, every term of it in microseconds.

A multiprocessor gets its loads at the lower of two rates: its share of the memory's bandwidth (more, while others are idle), and
the bytes its resident threads keep in flight over the latency (Little's law).  Where a warp's access touches many lines, the L1
cache is what limits.  To that come the launches, one latency, the reduction across threads, a little for every block, wave of
blocks and batch of loads, and for parts the second launch with the partial results.  Kernels of a microsecond or two also pay for
instructions: what is written out comes from memory the first time, so short code is fast code there.

The constants were fitted on an H200 to 4,000 measured schedules of 196 reductions of all sizes.  The schedule that the model chose
among those measured was on average 3 % slower than the fastest; the worst, up to 28 %, were reductions of 1 to 3 µs (one 88 %).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import gcd, hypot, log2

from ..gpu.spec import Gpu
from .reduction_form import WRITTEN_OUT

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
    row, row_block, row_warp : float
        Shuffles of a row; the block's barrier where a row has more than a warp, and for each doubling of warps.
    column, column_value, column_block : float
        Columns meet: in any case, for each value and halving, and where that takes the block's barrier.
    again : float
        The share of this that each further wave of blocks pays.
    join, ticket, part, partial : float
        The launch that joins parts, or the tickets by which the last block does; for each part; the share of the memory's time for partial results.
    block, wave, batch : float
        For each block of a multiprocessor, each further wave of blocks, and each further batch of loads.
    code, division : float
        For each access written out, instructions coming from memory the first time; how much more where its address takes divisions.
    ragged : float
        How much longer an access takes to issue for each lane that has its own condition.
    threads : float
        For a block of 1,024 threads to be started.
    """

    launch: float = 0.345
    latency: float = 0.449
    alone: float = 124e3
    sharpness: float = 1.98
    line: float = 0.7
    access: float = 0.00176
    scattered: float = 0.0497
    row: float = 0.158
    row_block: float = 0.00973
    row_warp: float = 0.00361
    column: float = 0.0127
    column_value: float = 0.00971
    column_block: float = 0.103
    again: float = 0
    join: float = 0.997
    ticket: float = 0.808
    part: float = 0.00092
    partial: float = 0.341
    block: float = 0.0252
    wave: float = 0.00095
    batch: float = 0.0357
    code: float = 0.0126
    division: float = 2.34
    ragged: float = 0.556
    threads: float = 0.0993


H200 = Constants()
ODD = 64
"""Vectors of a row whose length they do not divide, from which on it is read in whole ones."""
LINE = 128
"""Bytes of a line of the L1 cache and of a full access to memory (CUDA C++ Best Practices Guide, "Coalesced Access")."""


@dataclass(frozen=True)
class Problem:
    """A canonical reduction.

    Attributes
    ----------
    rows : bool
        Whether the contiguous loop is reduced.
    length, results : int
        Elements reduced to one result, and results.
    run : int
        Contiguous elements of one role.
    itemsize : int
        Bytes of an element.
    inner : int
        Elements of the innermost reduced axes that are next to each other, where there are others: beyond, an index takes divisions.
    """

    rows: bool
    length: int
    results: int
    run: int
    itemsize: int
    inner: int = 0


@dataclass(frozen=True)
class Shape:
    """How a reduction is spread.

    Attributes
    ----------
    x, y : int
        Threads along the contiguous loop, and across it.
    vector : int
        Elements of one access.
    unroll : int
        Accesses of a thread that are written out, and so in flight together.
    parts : int
        Parts of the reduced loops that blocks of their own take.
    flat : bool
        Neighbouring threads take neighbouring results, whatever the axes between them.
    ticket : bool
        The last block of a result joins its parts, without another launch.
    """

    x: int
    y: int
    vector: int
    unroll: int
    parts: int
    flat: bool = False
    ticket: bool = False

    def blocks(self, p: Problem) -> int:
        """Blocks of the first launch."""
        if self.flat:
            return -(-p.results // (self.x * self.lanes(p))) * self.parts
        if p.rows:
            return -(-p.results // self.y) * self.parts
        return -(-p.run // (self.x * self.vector)) * (p.results // p.run) * self.parts

    def accesses(self, p: Problem) -> int:
        """Accesses of one thread."""
        return -(-p.length // ((self.x * self.vector if p.rows and not self.flat else self.y) * self.parts))

    def written_out(self, p: Problem) -> int:
        """Accesses of a thread that are in flight together."""
        whole = p.run if p.rows and self.flat and p.run <= WRITTEN_OUT else self.unroll
        return min(whole, self.accesses(p))

    def steady(self, p: Problem) -> bool:
        """Whether the accesses of a thread that are in flight together are a constant apart."""
        step = self.x * self.vector if p.rows and not self.flat else self.y
        return not p.inner or step % p.inner == 0 or p.inner % (step * self.unroll) == 0 or (
            p.rows and self.flat and p.run <= WRITTEN_OUT)

    def lanes(self, p: Problem) -> int:
        """Results of one thread."""
        return 1 if p.rows else self.vector


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
    warps = waves * resident * -(-threads // gpu.warp_size) * accesses
    lines = warps * _lines(p, s, width, gpu.warp_size) * c.line / ((gpu.clock_hz or 1.7e9) / 1e6)
    apart = 1.0 if s.steady(p) else c.division
    if p.rows and not s.flat and p.run % s.vector:
        apart += c.ragged * s.vector
    memory = hypot(memory, lines, warps * c.access * apart)
    combine = _combine(p, s, gpu.warp_size, c) * (1 + c.again * (waves - 1))
    turns = c.wave * (waves - 1) + c.block * waves * resident + c.batch * (-(-accesses // unroll) - 1) + c.threads * threads / 1024
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


def candidates(p: Problem, widest: int, gpu: Gpu) -> list[Shape]:
    """The shapes of a reduction, given the most elements of one access: also rows of odd length in whole vectors.

    Tickets are not among them.  On an H200 the second launch took less device time than 264 of 300 tickets: 14 % on average, much
    more where a hundred blocks take tickets of one result.  What a ticket saves is the gap between two launches.
    """
    vectors = {gcd(p.run, widest)}
    if p.rows and not p.inner and p.length >= ODD * widest:
        vectors.add(widest)
    return [s for vector in sorted(vectors) for s in shapes(p, vector, gpu)]


def shapes(p: Problem, vector: int, gpu: Gpu) -> list[Shape]:
    """The shapes worth considering: families that were measured."""
    flat = [(x, y, True) for x, y in _flat_grids(p, 1 if p.rows else vector)]
    out = []
    for x, y, results_first in [(x, y, False) for x, y in (_row_grids(p, vector) if p.rows else _column_grids(p, vector))] + flat:
        lanes = 1 if p.rows and results_first else vector
        one = Shape(x, y, lanes, 1, 1, results_first)
        most = one.accesses(p)
        for parts in _parts(one.blocks(p), most, x * y, gpu) if not p.rows or y == 1 else [1]:
            each = -(-most // parts)
            unrolls = (4, each) if each <= 16 else (2, 4, 8, 16)
            out += [Shape(x, y, lanes, n, parts, results_first) for n in sorted({min(n, each) for n in unrolls})]
    return list(dict.fromkeys(out))


def _flat_grids(p: Problem, lanes: int) -> list[tuple[int, int]]:
    """(x, y): neighbouring results to neighbouring threads, the reduced loops over y; for short rows and short runs of columns."""
    if p.run * p.itemsize > 256 if p.rows else p.run == p.results:
        return []
    return [(x, y) for x in (8, 16, 32, 64, 128) for y in (1, 2, 4, 8, 16, 32, *_whole(p))
            if 64 <= x * y <= 512 and y < 2 * p.length and x * lanes < 2 * p.results]


def _whole(p: Problem) -> tuple[int, ...]:
    """Threads for the inner reduced axes as a whole, or an even share of them: then no access takes a division."""
    if not p.inner:
        return ()
    return tuple(n for k in (1, 2, 4, 8) if p.inner % k == 0 and 2 <= (n := p.inner // k) <= 128)


def _row_grids(p: Problem, vector: int) -> list[tuple[int, int]]:
    """(x, y): part of a warp for a short row, several rows to a block; a block for a long one."""
    pieces = -(-p.length // vector)
    short = [x for x in (1, 2, 4, 8, 16, 32) if x * vector * p.itemsize >= min(64, p.length * p.itemsize) and x < 2 * pieces]
    found = [(x, max(1, threads // x)) for x in short for threads in (128, 256) if pieces <= 16 * x]
    whole = [(n // vector, 1) for n in _whole(p) if n % vector == 0 and n // vector >= 8]
    return found + whole + [(x, 1) for x in (32, 64, 128, 256, 512, 1024) if x <= pieces and pieces > 2 * x] or [(1, 128)]


def _column_grids(p: Problem, vector: int) -> list[tuple[int, int]]:
    """(x, y): 128 to 1,024 contiguous bytes for each row, as many rows as the block has threads left."""
    wide = [1 << n for n in range(9) if 128 <= (vector * p.itemsize << n) <= 1024] or [32]
    enough = [x for x in wide if x * vector < 2 * p.run]
    narrow = 1
    while narrow * vector < p.run:
        narrow *= 2
    across = enough or [min(narrow, wide[0])]
    found = [(x, threads // x) for x in across for threads in (128, 256, 512, 1024)
             if threads >= x and threads // x < 2 * max(p.length, 1)] or [(narrow, 1)]
    return found + [(x, y) for x in across for y in _whole(p) if 64 <= x * y <= 1024]


def _parts(blocks: int, most: int, threads: int, gpu: Gpu) -> list[int]:
    """Numbers of parts: powers of two as long as multiprocessors are idle, and those that give each up to four blocks of 512 threads."""
    found = {1}
    for waves in (1, 2, 4):
        parts = -(-gpu.multiprocessors * waves * 512 // max(threads, 64) // blocks)
        if 1 < parts <= min(most, 1024):
            found.add(parts)
    found |= {1 << n for n in range(2, 8) if 1 << n <= most and blocks << n <= 2 * gpu.multiprocessors}
    return sorted(found)
