"""What a spread of a reduction costs: the model by which the strategy chooses, every term of it in microseconds.

A multiprocessor gets its loads at the lower of two rates: its share of the memory's bandwidth (more, while others are idle), and
the bytes its resident threads keep in flight over the latency (Little's law).  To that come the launches, one latency, the
reduction across threads, a little for every wave of blocks, and for parts the second launch with the partial results.

The constants were fitted on an H200 to 1,400 measured schedules of 73 reductions of all sizes.  The schedule that the model chose
among those measured was on average 4 % slower than the fastest; the worst, up to 40 %, were reductions of 2 to 5 µs.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import log2

from ..gpu.spec import Gpu

LAUNCH_US = 1.0
"""Shortest duration of a kernel, from its first instruction to the end of its last block."""
LATENCY_US = 1.4
"""From a load's issue to its value under load, queues included."""
ALONE_BYTES_PER_US = 40e3
"""What one multiprocessor can take in while the others are idle."""
WAVE_US, BATCH_US, PART_US = 0.012, 0.07, 0.03
"""For each further wave of blocks, for each further batch of loads, for each part that is joined."""
SHARPNESS = 3.8
"""How sharply bandwidth sets in as loads in flight grow."""
JOIN_US = 1.2
"""The launch that joins the parts."""


ROWS_US, BARRIER_US = 0.125, 0.03
"""Shuffles of a row, and the block's barrier where a row has more than a warp."""
COLUMN_US, ELEMENT_US, AGAIN = 0.02, 0.03, 0.025
"""Columns meet in shared memory: for the first step, for each element and halving, and the share that later waves pay again."""
SEGMENT, SCATTERED = 128, 0.7
"""Bytes that belong together in the memory, and how much more the shortest pieces of columns cost."""


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
    """

    rows: bool
    length: int
    results: int
    run: int
    itemsize: int


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
    """

    x: int
    y: int
    vector: int
    unroll: int
    parts: int

    def blocks(self, p: Problem) -> int:
        """Blocks of the first launch."""
        if p.rows:
            return -(-p.results // self.y) * self.parts
        return -(-p.run // (self.x * self.vector)) * (p.results // p.run) * self.parts

    def accesses(self, p: Problem) -> int:
        """Accesses of one thread."""
        return -(-p.length // ((self.x * self.vector if p.rows else self.y) * self.parts))


@dataclass(frozen=True)
class Cost:
    """The terms, in microseconds."""

    launch: float
    latency: float
    memory: float
    combine: float
    waves: float
    join: float

    @property
    def total(self) -> float:
        """Their sum."""
        return sum(getattr(self, f.name) for f in fields(self))


def cost(p: Problem, s: Shape, gpu: Gpu) -> Cost:
    """What a shape costs on a GPU.

    Parameters
    ----------
    p : Problem
    s : Shape
    gpu : Gpu
    """
    bandwidth = (gpu.measured_bandwidth_bytes_per_s or gpu.memory_bandwidth_bytes_per_s) / 1e6
    blocks, threads, accesses = s.blocks(p), s.x * s.y, s.accesses(p)
    resident = max(1, min(gpu.max_threads_per_sm // max(threads, gpu.warp_size), -(-blocks // gpu.multiprocessors),
                          gpu.max_blocks_per_sm))
    active = min(gpu.multiprocessors, blocks)
    waves = -(-blocks // (active * resident))
    width = s.vector * p.itemsize
    flight = resident * threads * min(s.unroll, accesses) * width
    rate = _soft_least(flight / LATENCY_US, min(ALONE_BYTES_PER_US, bandwidth / active))
    piece = min(s.x * width, p.run * p.itemsize, SEGMENT)
    scattered = 1.0 if p.rows else 1 + SCATTERED * (SEGMENT - piece) / SEGMENT
    memory = waves * resident * threads * accesses * width / rate * scattered
    meet = COLUMN_US + ELEMENT_US * s.vector * log2(s.y) if s.y > 1 else 0.0
    combine = ROWS_US + BARRIER_US * (s.x > gpu.warp_size) if p.rows else meet
    combine *= 1 + AGAIN * (waves - 1)
    batches = -(-accesses // s.unroll)
    join = JOIN_US + s.parts * (p.results * 8 / bandwidth + PART_US) if s.parts > 1 else 0.0
    return Cost(LAUNCH_US, LATENCY_US, memory, combine, WAVE_US * (waves - 1) + BATCH_US * (batches - 1), join)


def _soft_least(a: float, b: float) -> float:
    """The lower of two rates, less where they are near each other: loads do not arrive evenly."""
    return (a**-SHARPNESS + b**-SHARPNESS) ** (-1 / SHARPNESS)


def shapes(p: Problem, vector: int, gpu: Gpu) -> list[Shape]:
    """The shapes worth considering: families that were measured."""
    grids = _row_grids(p, vector) if p.rows else _column_grids(p, vector)
    out = []
    for x, y in grids:
        most = Shape(x, y, vector, 1, 1).accesses(p)
        for parts in _parts(Shape(x, y, vector, 1, 1).blocks(p), most, x * y, gpu) if not p.rows or y == 1 else [1]:
            each = -(-most // parts)
            unrolls = (each,) if x <= gpu.warp_size and p.rows and each <= 16 else (2, 4, 8)
            out += [Shape(x, y, vector, n, parts) for n in sorted({min(n, each) for n in unrolls})]
    return out


def _row_grids(p: Problem, vector: int) -> list[tuple[int, int]]:
    """(x, y): part of a warp for a short row, several rows to a block; a block for a long one."""
    pieces = -(-p.length // vector)
    short = [x for x in (1, 2, 4, 8, 16, 32) if x * vector * p.itemsize >= min(64, p.length * p.itemsize) and x < 2 * pieces]
    found = [(x, max(1, threads // x)) for x in short for threads in (128, 256) if pieces <= 16 * x]
    return found + [(x, 1) for x in (32, 64, 128, 256, 512, 1024) if x <= pieces and pieces > 4 * x] or [(1, 128)]


def _column_grids(p: Problem, vector: int) -> list[tuple[int, int]]:
    """(x, y): 128 to 1,024 contiguous bytes for each row, as many rows as the block has threads left."""
    wide = [1 << n for n in range(9) if 128 <= (vector * p.itemsize << n) <= 1024] or [32]
    enough = [x for x in wide if x * vector < 2 * p.run]
    narrow = 1
    while narrow * vector < p.run:
        narrow *= 2
    return [(x, threads // x) for x in enough or [min(narrow, wide[0])] for threads in (128, 256, 512, 1024)
            if threads >= x and threads // x < 2 * max(p.length, 1)] or [(narrow, 1)]


def _parts(blocks: int, most: int, threads: int, gpu: Gpu) -> list[int]:
    """Numbers of parts that give each multiprocessor up to four blocks of 512 threads."""
    found = {1}
    for waves in (1, 2, 4):
        parts = -(-gpu.multiprocessors * waves * 512 // max(threads, 64) // blocks)
        if 1 < parts <= min(most, 1024):
            found.add(parts)
    return sorted(found)
