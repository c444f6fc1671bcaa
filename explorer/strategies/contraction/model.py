"""The time of a product's tiling: loads and products of a step overlap as far as stages and resident blocks allow.

The terms are those of ALCOP's model (Huang et al., MLSys 2023: load, compute and the pipelining that couples them, with tiling
and occupancy), on rates of one multiprocessor.  One with `r` resident blocks takes, for each step of their pipelines, the longest
of four times:

- *tensor*: the products of all its blocks at the rate of its instruction;
- *step*: the products of one block, and its waits and barriers, in which other blocks go on;
- *load*: their tiles at what it takes in from the second-level cache;
- *latency*: a load's latency, over the steps that each block has in flight.

To these a block adds the start of its pipeline and its results' way out.  The grid takes as many rounds as its blocks need.
Slices of the depth are more blocks with fewer steps; their sums are written, and read by one more launch.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ...gpu.spec import Gpu
from ...ir.instructions import Instruction, wgmma
from ...ir.tree import WARP_SIZE
from ..price import clock_of
from ..stitching.rates import LATENCY_US, LAUNCH_US, bandwidth_of
from ..tensor_rates import tensor_flops_per_s
from .form import ProductForm
from .shapes import GROUP_ROWS, Tiling, warp_instruction


@dataclass(frozen=True)
class Rates:
    """What one multiprocessor does with an engine (:class:`~explorer.strategies.contraction.shapes.Tiling`), in cycles and bytes.

    Attributes
    ----------
    load : float
        Bytes a cycle that it takes in from the second-level cache while all do.
    fill : float
        Cycles of a block's start and end in which it does nothing: others that are resident do.
    latency : float
        From a copy's issue to its bytes in shared memory, while others' are on their way.
    late : float
        Stages of a pipeline that hide none of it: the computing one, and what of the next one has gone by at the copies' issue.
    step, least_step : float
        Waits and barriers of a step beside its product; and of a step with them, however small that is.
    share : float
        Of its instruction's rate, where the operands are loaded in turn with the products.
    stored, through : float
        Bytes of results a cycle: for each byte of an element, where lanes write what they hold; through shared memory.
    """

    load: float
    fill: float
    latency: float
    late: float
    step: float
    least_step: float
    share: float
    stored: float
    through: float


RATES = {
    "warpgroup": Rates(44.0, 3000.0, 1930.0, 1.0, 150.0, 480.0, 1.0, 3.0, 17.5),
    "warp": Rates(34.0, 2630.0, 1530.0, 0.8, 400.0, 290.0, 0.52, 2.5, 5.4),
    "plain": Rates(64.0, 900.0, 900.0, 1.0, 60.0, 0.0, 1.0, 24.0, 24.0),
}
"""Fitted to times on an H200, of f16 products of 64 to 50,176 rows.

Of warpgroups: 14 products in up to 45 tilings each, to 14 %; the tiling that the model takes for cheapest is the fastest for 12
of them, and 3 and 4 % slower than that for the others.  Of warps: 10 products in 54 to 76 tilings, to 14 %; the fastest for 5,
1 to 2 % slower for three, 7 and 11 % for two.
"""
COPY_CYCLES = {True: 2.0, False: 4.0}
"""Of a warp's copy, by whether it is asynchronous (from 4 bytes a thread on) or goes through registers: its instructions by
what a multiprocessor issues (counted in the text, not measured)."""
LINE_BYTES, STRADDLING = 128, 1.5
"""Of a line of the second-level cache, and how much longer boxes take whose rows of so many bytes lie in two of them (1000 x 1504
x 776 took 11.2 µs where 512 x 3072 x 768 took 8.0, in as many blocks)."""
RESERVED = 32
"""Registers of a thread beside accumulators and fragments."""
TENSOR_CORES = 4
"""Of a multiprocessor; a warp keeps one of them busy."""
WARPS_PER_CYCLE = 4
"""Instructions of warps that a multiprocessor issues in a cycle."""
CACHED = 0.5
"""Share of the second-level cache that keeps a workspace between two launches."""
SHARED_CYCLES = 2.0
"""Of a warp's load of 16 bytes a thread from shared memory, where some threads read the same."""


@dataclass(frozen=True)
class ProductTime:
    """The terms of a tiling's time, in microseconds.

    Attributes
    ----------
    launch_us, fill_us, tensor_us, step_us, load_us, latency_us, store_us, memory_us : float
        Launch; start of the pipelines; the four of which the longest counts; results; global memory, which is a floor.
    resident, rounds : int
        Blocks of a multiprocessor at a time, where there are so many, and how often the grid fills the GPU.
    join_us : float
        The launch that adds the slices' sums up.
    """

    launch_us: float
    fill_us: float
    tensor_us: float
    step_us: float
    load_us: float
    latency_us: float
    store_us: float
    memory_us: float
    resident: int
    rounds: int
    join_us: float = 0.0

    @property
    def total_us(self) -> float:
        """All of it."""
        steps = max(self.tensor_us, self.step_us, self.load_us, self.latency_us)
        return self.launch_us + max(self.fill_us + steps + self.store_us, self.memory_us) + self.join_us

    @property
    def bound(self) -> str:
        """The longest of the four."""
        times = {"tensor": self.tensor_us, "step": self.step_us, "load": self.load_us, "latency": self.latency_us}
        return max(times, key=lambda name: times[name])


def instruction_of(form: ProductForm, t: Tiling) -> Instruction | None:
    """The instruction that a tiling uses."""
    if t.engine == "warpgroup":
        return wgmma(GROUP_ROWS, t.columns // t.across, t.depth, form.left.dtype, form.right.dtype, form.accumulator)
    return warp_instruction(form, t.step)


def product_cycles(form: ProductForm, t: Tiling, gpu: Gpu) -> float | None:
    """Cycles in which a multiprocessor computes one step of a block; None where it has no way to."""
    if t.engine == "plain":
        m, n = t.rows // t.down, t.columns // t.across
        wide = gpu.f32_flops_per_s / gpu.f64_flops_per_s if form.accumulator.bytes == 8 else 1.0
        loads = (m + -(-n // 4)) * SHARED_CYCLES  # rows lie apart, columns side by side
        return t.depth * -(-t.threads // 32) * max(m * n * wide / WARPS_PER_CYCLE, loads)
    row = instruction_of(form, t)
    if row is None:
        return None
    per_cycle = tensor_flops_per_s(row, gpu) / gpu.multiprocessors / (clock_of(gpu) * 1e6) / 2
    return t.rows * t.columns * t.depth / per_cycle / RATES[t.engine].share


def resident_blocks(form: ProductForm, t: Tiling, gpu: Gpu) -> int:
    """Blocks that a multiprocessor holds at a time."""
    words = -(-(t.registers(form) + RESERVED) // 8) * 8
    by_registers = gpu.registers_per_sm // (min(words, gpu.max_registers_per_thread) * t.threads)
    by_shared = gpu.shared_bytes_per_sm // (t.shared_bytes(form) + gpu.reserved_shared_bytes_per_block + 1024)
    return max(0, min(by_registers, by_shared, gpu.max_threads_per_sm // t.threads, gpu.max_blocks_per_sm))


def product_time(form: ProductForm, t: Tiling, gpu: Gpu, out_bytes: int = 2) -> ProductTime | None:
    """The time of a tiling; None where no block fits.

    Parameters
    ----------
    form : ProductForm
    t : Tiling
    gpu : Gpu
    out_bytes : int
        Of an element of the result.
    """
    rates, blocks = RATES[t.engine], t.blocks(form)
    computed, resident = product_cycles(form, t, gpu), min(resident_blocks(form, t, gpu), -(-blocks // gpu.multiprocessors))
    if computed is None or not resident:
        return None
    m, n, _ = form.extents
    cycles = clock_of(gpu)  # of a microsecond
    results = form.batches * m * n * out_bytes
    written = form.batches * m * n * t.slices * form.accumulator.bytes if t.slices > 1 else results
    out_bytes = form.accumulator.bytes if t.slices > 1 else out_bytes
    steps = t.chunk(form) // t.depth * prod(form.outer_extents)
    few = max(1.0, TENSOR_CORES * WARP_SIZE / t.threads) if t.engine == "warp" else 1.0
    alone = max(computed * few + rates.step, rates.least_step)
    sides = ((form.left, t.rows), (form.right, t.columns))
    lines = (n * f.dtype.bytes * (STRADDLING if f.pitch % LINE_BYTES and t.engine == "warpgroup" else 1.0) for f, n in sides)
    loaded = t.depth * sum(lines) / rates.load
    if t.engine != "warpgroup":
        loaded = max(loaded, sum(t.depth * n / f.vector / 32 * COPY_CYCLES[f.vector * f.dtype.bytes >= 4] for f, n in sides))
    waiting = rates.latency / max(0.5, t.stages - rates.late)
    stored = t.rows * t.columns * out_bytes / _store_rate(t, out_bytes)
    total = [0.0] * 6
    left, rounds = blocks, 0
    while left > 0 and rounds < 64:
        here = min(resident, -(-left // gpu.multiprocessors))
        left -= here * gpu.multiprocessors
        rounds += 1
        times = (rates.fill / here, steps * here * computed, steps * alone, steps * here * loaded, steps * waiting, here * stored)
        total = [a + b for a, b in zip(total, times, strict=True)]
    scale = 1.0 if left <= 0 else blocks / (blocks - left)
    filled, tensor, step, load, latency, store = (x * scale / cycles for x in total)
    moved = form.left.nbytes + form.right.nbytes + written
    return ProductTime(LAUNCH_US, filled, tensor, step, load, latency, store, moved / bandwidth_of(gpu), resident, rounds,
                       _join_us(written, results, gpu) if t.slices > 1 else 0.0)


def _store_rate(t: Tiling, out_bytes: int) -> float:
    """Bytes of results that a multiprocessor writes in a cycle."""
    rates = RATES[t.engine]
    return rates.through if t.through else min(rates.stored * out_bytes, rates.through)


def _join_us(written: int, results: int, gpu: Gpu) -> float:
    """The launch that reads the slices' sums, from the second-level cache as far as that has room, and writes the results."""
    cached = min(written, (gpu.l2_bytes or 0) * CACHED)
    near = cached / (RATES["warp"].load * gpu.multiprocessors * clock_of(gpu))
    return LAUNCH_US + LATENCY_US + near + (written - cached + results) / bandwidth_of(gpu)
