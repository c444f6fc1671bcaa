"""Achieved memory bandwidth of a kernel, by the distribution of its rows over multiprocessors and threads.

A multiprocessor gets its loads at the lower of two rates: its share of the bandwidth (more while others are idle), and the bytes
that its resident threads keep in flight over the latency (Little's law).  The constants are a fit to measured row reductions on
an H200, coarser than :mod:`~explorer.strategies.reductions.model`, which ranks shapes of one reduction: here kernels are compared
with several kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...gpu.spec import Gpu
from ..rows.model import CLOCK_HZ

LAUNCH_US = 1.0
"""Shortest duration of a kernel, from its first instruction to the end of its last block."""
GRID_US = 5.0
"""A barrier of the whole grid in a cooperative launch, and what its blocks lose that walk in loops instead of being many.

On an H200, layer normalisation of 16384 × 768 with one barrier took 4.9 µs longer than in two launches, softmax of 16384 × 1024
with two 12.1 µs longer.  The barrier alone takes 1.2 µs.  Batch normalisation of 64 × 256 × 3136 took 107 µs longer: what is lost
has no bound here."""
LATENCY_US = 1.4
"""From a load's issue to its value under load, queues included."""
ALONE_BYTES_PER_CYCLE = 64
"""What one multiprocessor can take in from the second-level cache while the others are idle (Jia et al., "Dissecting the NVIDIA
Volta GPU architecture via microbenchmarking", 2018)."""
STORED_BYTES_PER_CYCLE = 32
"""What one multiprocessor stores: on an H200, 1, 8, 16 or 32 blocks of 512 or 1,024 threads that write 1 MiB each store 63 bytes
a nanosecond each, at 1.98 GHz, and read 88 to 190 of what lies in the second-level cache."""
SHARPNESS = 3.8
"""How sharply bandwidth sets in as loads in flight grow."""
JOIN_US, PART_US = 1.2, 0.03
"""The launch that joins parts, and what each part adds to it."""
WAVE_US = 0.012
"""For each further wave of blocks."""
ROW_US, BARRIER_US, STEP_US, AGAIN = 0.125, 0.03, 0.03, 0.025
"""Shuffles of a row; the block's barrier where a row has more than a warp; a step of a tree in shared memory; the share of
these that later waves pay again, since others compute meanwhile."""
FULL = 512
"""Threads of a block that reduces a part of a row."""


@dataclass(frozen=True)
class Spread:
    """Rows over threads.

    Attributes
    ----------
    rows, length : int
        How many, and elements of each.
    threads, per_block : int
        For one row, and rows of a block.
    vector, itemsize : int
        Elements of one access, bytes of one.
    unroll : int
        Accesses of a thread in flight together.
    """

    rows: int
    length: int
    threads: int
    per_block: int
    vector: int
    itemsize: int
    unroll: int

    def blocks(self) -> int:
        """Blocks of the grid."""
        return -(-self.rows // self.per_block)

    def resident(self, gpu: Gpu, most: int) -> int:
        """Blocks of one multiprocessor at a time, `most` of them allowed by registers and shared memory."""
        fit = gpu.max_threads_per_sm // max(self.threads * self.per_block, gpu.warp_size)
        return max(1, min(fit, most, gpu.max_blocks_per_sm, -(-self.blocks() // gpu.multiprocessors)))

    def waves(self, gpu: Gpu, most: int = 32) -> int:
        """Rounds of blocks."""
        return -(-self.blocks() // (min(gpu.multiprocessors, self.blocks()) * self.resident(gpu, most)))

    def loss(self, gpu: Gpu, most: int = 32) -> float:
        """How many times longer than at full bandwidth one pass over the rows takes, at least 1."""
        bandwidth = bandwidth_of(gpu)
        active, resident = min(gpu.multiprocessors, self.blocks()), self.resident(gpu, most)
        accesses = -(-self.length // (self.threads * self.vector))
        threads, width = self.threads * self.per_block, self.vector * self.itemsize
        flight = resident * threads * min(self.unroll, accesses) * width / LATENCY_US
        share = min(ALONE_BYTES_PER_CYCLE * (gpu.clock_hz or CLOCK_HZ) / 1e6, bandwidth / active)
        rate = (flight**-SHARPNESS + share**-SHARPNESS) ** (-1 / SHARPNESS)
        rounds = max(1.0, self.blocks() / (active * resident))  # blocks of several rounds do not wait for each other
        took = rounds * resident * threads * accesses * width / rate
        return max(1.0, took * bandwidth / max(1, self.rows * self.length * self.itemsize))


def stored_us(nbytes: int, blocks: int, gpu: Gpu) -> float:
    """Microseconds for what a kernel writes, by multiprocessors that have a block each."""
    return nbytes / (min(blocks, gpu.multiprocessors) * STORED_BYTES_PER_CYCLE * (gpu.clock_hz or CLOCK_HZ) / 1e6)


def bandwidth_of(gpu: Gpu) -> float:
    """Bytes per microsecond of a copy."""
    return (gpu.measured_bandwidth_bytes_per_s or gpu.memory_bandwidth_bytes_per_s) / 1e6


def best_parts(rows: int, length: int, vector: int, itemsize: int, gpu: Gpu, several: bool,
               number: int = 0, most: int = 32) -> tuple[float, float, int]:
    """The cheapest number of parts of a row (or this one): microseconds lost against the bandwidth, of joining, the number.

    `most` blocks are resident on one multiprocessor, where a launch has other phases.
    """
    ideal = rows * length * itemsize / bandwidth_of(gpu)
    found = []
    long = [parts for parts in (1 << exponent for exponent in range(1, 11)) if length // parts >= vector * gpu.warp_size]
    for parts in [number] if number else (long or [2]) if several else [1, *long]:
        each = -(-length // parts)
        threads = max(gpu.warp_size, min(FULL, each // vector))
        spread = Spread(rows * parts, each, threads, 1, vector, itemsize, 8)
        lost = (spread.loss(gpu, most) - 1) * ideal + WAVE_US * (spread.waves(gpu, most) - 1)
        join = JOIN_US + LATENCY_US + parts * (rows * 8 / bandwidth_of(gpu) + PART_US) if parts > 1 else 0.0
        found.append((lost, join, parts))
    return min(found, key=lambda f: f[0] + f[1])
