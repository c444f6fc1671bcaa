"""The time of a product's tiling, before there is a plan: terms of :mod:`~explorer.strategies.pipelines.terms`, from its tiles.

The price of the plan that is built of it has the same terms, counted from the plan (:mod:`explorer.strategies.pipelines.facts`).
Slices of the depth are more blocks with fewer steps; their sums are written, and read by one more launch.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod

from ...gpu.spec import Gpu
from ...ir.instructions import Instruction, wgmma
from ...ir.layout import GROUP
from ...ir.tree import WARP_SIZE
from ...poly.traffic import WORD_BYTES
from ..pipelines.rates import (
    BANKED,
    COPY_ISSUED,
    LEAST_BOX,
    NARROW_CYCLES,
    RATES,
    RESERVED,
    STEP_ISSUED,
    TURN_ISSUED,
    WARPS_PER_CYCLE,
    blocks_by_registers,
    copy_cycles,
    results_cycles,
    shared_cycles,
    taken_in,
)
from ..pipelines.terms import Step, stepped
from ..price import clock_of
from ..stitching.rates import JOIN_US, LAUNCH_US, bandwidth_of
from ..tensor_rates import tensor_flops_per_s
from .epilogue_facts import PAIRED
from .form import Factor, ProductForm
from .results import WIDEST, part_of
from .shapes import GROUP_ROWS, Tiling, boxes, lines_of, warp_instruction

SECTOR_BYTES, SINGLE = 32, 0.5
"""Of a sector, of which shorter runs of results fill a part; and of the rate of stores, where lanes store no pairs."""
PIECE = 8
"""Results side by side that a warp stores from fragments: pairs of four lanes."""
CACHED = 0.5
"""Share of the second-level cache that keeps a workspace between two launches."""
SUMMED_BYTES = 34.0
"""A cycle, of which a multiprocessor adds up what it takes in from there."""
MASKED_CYCLES = 1600.0
"""Of a vector that is loaded, masked and stored while its thread waits, where a tile has zeros before its elements: an upper
triangle of 4096 x 4096 by 4096 columns took 150 µs in tiles of 128 rows, one on the right 204 in tiles of 256 columns (H200)."""
FEW_BLOCKS, ROOMY, UNROLLED = 3, 1.5, 16
"""Of bounds for tiles of one stage (:func:`needs_bounds`): blocks of which one fewer costs much; registers left for each that is
needed; a warp's products of a step, with as many of which NVRTC 13 still unrolls the loop of steps."""


@dataclass(frozen=True)
class ProductTime:
    """The terms of a tiling's time, in microseconds.

    Attributes
    ----------
    launch_us, fill_us, tensor_us, step_us, load_us, latency_us, store_us, memory_us : float
        Launch; start of the pipelines; the times of the steps; results; global memory, which is a floor.
    steps_us : float
        What the steps take: the longest of their times, and of the others what does not overlap with it.
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
    steps_us: float
    store_us: float
    memory_us: float
    resident: int
    rounds: int
    join_us: float = 0.0

    @property
    def total_us(self) -> float:
        """All of it."""
        return self.launch_us + max(self.fill_us + self.steps_us + self.store_us, self.memory_us) + self.join_us

    @property
    def bound(self) -> str:
        """The longest of the four."""
        times = {"tensor": self.tensor_us, "step": self.step_us, "load": self.load_us, "latency": self.latency_us}
        return max(times, key=lambda name: times[name])


def instruction_of(form: ProductForm, t: Tiling) -> Instruction | None:
    """The instruction that a tiling uses."""
    if t.engine == "warpgroup":
        return wgmma(GROUP_ROWS, t.columns // t.across, t.row(form), *form.types)
    return warp_instruction(form, t.step)


def product_cycles(form: ProductForm, t: Tiling, gpu: Gpu) -> float | None:
    """Cycles in which a multiprocessor computes one step of a block; None where it has no way to."""
    if t.engine == "plain":
        return _plain_cycles(form, t, gpu)
    row = instruction_of(form, t)
    if row is None:
        return None
    per_cycle = tensor_flops_per_s(row, gpu) / gpu.multiprocessors / (clock_of(gpu) * 1e6) / 2
    return t.rows * t.columns * t.depth / per_cycle / RATES[t.engine].share


def _plain_cycles(form: ProductForm, t: Tiling, gpu: Gpu) -> float:
    """Cycles of a step of threads: what their warps issue, or their passes over the banks of shared memory."""
    m, n, warps = t.rows // t.down, t.columns // t.across, -(-t.threads // WARP_SIZE)
    wide = gpu.f32_flops_per_s / gpu.f64_flops_per_s if form.accumulator.bytes == 8 else 1.0
    wide *= BANKED[any(f.together == 1 for f, _ in t.sides(form))]
    issued, passes = STEP_ISSUED + t.depth * m * n * wide, 0.0
    if 0 < t.step < t.depth:
        issued += TURN_ISSUED * t.depth / t.step
    for (f, size), own, threads in zip(t.sides(form), (m, n), (t.down, t.across), strict=True):
        together = gcd(own, f.together) if f.together > 1 else min(f.padding, t.step or t.depth)
        together = min(together, WIDEST // max(f.dtype.bytes, WORD_BYTES))
        loads = t.depth * own / together
        issued += loads + t.depth * size / f.vector / t.threads * COPY_ISSUED[_asynchronous(f, t)]
        passes += loads * (shared_cycles(threads) if together > 1 else 1.0)
    return warps * max(issued / WARPS_PER_CYCLE, passes)


def _asynchronous(f: Factor, t: Tiling) -> bool:
    """Whether threads copy a factor asynchronously."""
    return t.stages > 1 and f.vector * f.dtype.bytes >= WORD_BYTES


def _is_narrow(f: Factor, t: Tiling) -> bool:
    """Whether threads of plain arithmetic copy one word of a factor at a time, asynchronously."""
    return t.engine == "plain" and t.stages > 1 and f.vector * f.dtype.bytes == WORD_BYTES


def resident_blocks(form: ProductForm, t: Tiling, gpu: Gpu) -> int:
    """Blocks that a multiprocessor holds at a time."""
    words = -(-(t.registers(form) + RESERVED) // 8) * 8
    by_registers = 1 if t.taken(form) else gpu.registers_per_sm // (min(words, gpu.max_registers_per_thread) * t.launched)
    if t.engine == "plain":
        by_registers = blocks_by_registers(gpu, words, t.threads)
    by_shared = gpu.shared_bytes_per_sm // (t.shared_bytes(form) + gpu.reserved_shared_bytes_per_block + 1024)
    return max(0, min(by_registers, by_shared, gpu.max_threads_per_sm // t.launched, gpu.max_blocks_per_sm))


def held_blocks(form: ProductForm, t: Tiling, gpu: Gpu) -> int:
    """Blocks that a multiprocessor holds at a time, of those that there are for it."""
    return min(resident_blocks(form, t, gpu), -(-(t.persistent or t.blocks(form)) // gpu.multiprocessors))


def needs_bounds(form: ProductForm, t: Tiling, gpu: Gpu) -> bool:
    """Whether the compiler has to know how many blocks are meant.

    Of plain arithmetic always: its sums stand in registers.  Of a warp's instructions whose steps are copied to several stages,
    where two blocks are meant, or one.  The compiler takes a few registers too many for two (7 x 7 of 224 x 224, channels last:
    84.8 µs with 137, 68.8 with 128), or keeps to too few for blocks that shared memory has no place for (2144 x 302 x 134: 6.1 µs
    with 72, 4.5 with 106; on an A100 it spilled in two cases).  Of a warp's instructions where a step is loaded through registers
    (one stage), in three cases, all measured on an H200.

    - Where loads have conditions and all registers fit, it puts one off until another is stored, to save registers that nobody
      needs: 1000 x 1504 x 776 took 21.9 instead of 19.8 µs, in tiles of 64 x 64 x 64.
    - Where half as many registers more are left, it does so, too: 1024 x 1024 x 1024 took 26.9 to 32.1 instead of 18.4 µs, in
      tiles of 128 x 64 x 64.  Steps of few products it unrolls instead, and loads several at once if it may; no price knows that.
    - Where sums, fragments and loads take more registers than a few blocks leave, it takes a few too many: 4096 x 4096 x 4096
      took 912 µs with 130, in one block, and 540 with 128, in two, in tiles of 128 x 128 x 32.

    Of 48 tilings, 16 ask for a bound: they took 0.83 of the time without, on average, at most 1.07.  The others would have taken
    0.66 to 1.97 of it.
    """
    if t.engine != "warp":
        return t.engine == "plain"
    if t.stages > 1:
        return held_blocks(form, t, gpu) < FEW_BLOCKS
    ragged = any(n % size for n, size in zip(form.extents, (t.rows, t.columns, t.depth), strict=True))
    loaded = sum(n * f.dtype.bytes for f, n in t.sides(form)) * t.depth // (WORD_BYTES * t.threads)
    blocks = max(1, held_blocks(form, t, gpu))
    needed, left = t.registers(form) + RESERVED + loaded, gpu.registers_per_sm // (blocks * t.launched)
    if needed > left:
        return blocks <= FEW_BLOCKS
    return ragged or (needed * ROOMY <= left and _products(form, t) > UNROLLED)


def _products(form: ProductForm, t: Tiling) -> int:
    """Products of a warp in one step."""
    row = instruction_of(form, t)
    return t.rows * t.columns * t.depth // (t.threads // WARP_SIZE * row.m * row.n * row.k) if row else 0


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
    rates, blocks, turns = RATES[t.engine], t.persistent or t.blocks(form), t.turns(form)
    computed, resident = product_cycles(form, t, gpu), held_blocks(form, t, gpu)
    if computed is None or not resident:
        return None
    m, n, _ = form.extents
    cycles = clock_of(gpu)  # of a microsecond
    results = form.batches * m * n * out_bytes
    written = form.batches * m * n * t.slices * form.accumulator.bytes if t.slices > 1 else results
    out_bytes = form.accumulator.bytes if t.slices > 1 else out_bytes
    steps = max(1, round(t.chunk(form) // t.depth * form.filled)) * prod(form.outer_extents)
    sides = t.sides(form)
    longer = [lines_of(form, f, t) for f, _ in sides]
    lines = (n * f.dtype.bytes * x / shared for (f, n), x, shared in zip(sides, longer, reversed(t.mates), strict=True))
    loaded = t.depth * sum(lines) / taken_in(rates, t.depth // t.row(form), (f.pitch for f, _ in sides))
    if t.engine != "warpgroup":
        loaded = max(loaded, sum(t.depth * n / f.vector / WARP_SIZE * (
            NARROW_CYCLES if _is_narrow(f, t) else copy_cycles(t.engine, _asynchronous(f, t), f.vector * f.dtype.bytes))
            for f, n in sides))
    stored = t.rows * t.columns * out_bytes / _store_rate(form, t, out_bytes)
    if t.slices == 1:
        stored += results_cycles(t.rows * t.columns * form.work, t.threads * resident)
    stored += sum(MASKED_CYCLES * (n // t.depth + 1) * t.depth * n / (f.vector * t.threads)
                  for (f, n), cut, first in zip(sides, form.cut, form.first, strict=True) if cut and first)
    narrow = sum(t.depth * n / t.threads for f, n in sides if _is_narrow(f, t))
    even = _is_even(form, t) and max(longer) == 1.0
    step = Step(t.engine, steps * turns, t.stages, computed, 0.0, 0.0, loaded, narrow=narrow, even=even)
    whole = stepped((step,), stored * turns, blocks, t.threads, resident, gpu.multiprocessors, cycles, 1 if t.producer else turns,
                    prod(t.mates))
    ((_, us),) = whole.steps
    moved = form.left.nbytes + form.right.nbytes + written
    return ProductTime(LAUNCH_US, whole.fill, us.tensor, us.step, us.load, us.latency,
                       us.together(rates.norm), whole.store, moved / bandwidth_of(gpu),
                       resident, whole.rounds, join_us(written, results, gpu) if t.slices > 1 else 0.0)


def _is_even(form: ProductForm, t: Tiling) -> bool:
    """Whether large boxes are loaded in the only loop of a block."""
    least = min(t.rows * form.left.dtype.bytes, t.columns * form.right.dtype.bytes) * t.depth
    one = t.turns(form) == 1 and not form.gathered and prod(form.outer_extents) == 1 and t.depth <= t.row(form)
    return t.engine == "warpgroup" and one and least >= LEAST_BOX


def _store_rate(form: ProductForm, t: Tiling, out_bytes: int) -> float:
    """Bytes of results that a multiprocessor writes in a cycle: by their sectors.

    A warp's load from shared memory and its store are six or seven instructions, two cycles (in machine code for sm_90, NVRTC 13,
    whose compiler takes four turns together): also with 2 bytes a lane, its bytes take longer.
    """
    rates, run = RATES[t.engine], boxes(form, t)[1]
    begins = min(WIDEST, (form.aligned or WIDEST) * out_bytes // PAIRED)
    piece = PIECE * out_bytes
    direct = min(rates.stored * out_bytes, rates.through) * _filled(piece, begins) / _filled(piece, WIDEST)
    apart = 1.0 if t.slices > 1 else min(1.0, _side_by_side(form, t) * out_bytes / SECTOR_BYTES)
    if not t.through:
        return direct * apart * (SINGLE if form.across or begins < 2 * out_bytes else 1.0)
    lanes, row = (GROUP, t.columns) if t.engine == "warpgroup" else (WARP_SIZE, t.columns // t.across)
    beside, whole = out_bytes * (run[-1] if len(run) > 1 else row), rates.through
    if begins < WIDEST:  # a lane stores as much as every row allows, and what a warp stores begins anywhere in a sector
        turn = min(WARP_SIZE, part_of(max(1, row * out_bytes // begins), begins, lanes))
        whole *= _filled(min(beside, begins * turn), begins)
    elif len(run) > 1:
        whole *= min(1.0, beside / SECTOR_BYTES)
    return apart * (max(direct, whole) if len(run) > 1 else whole)


def _side_by_side(form: ProductForm, t: Tiling) -> int:
    """Results of a tile that follow each other in memory, at least: in runs of so many elements they leave."""
    found = sorted((step, min(size, holds), holds) for own, tile in zip(form.result_steps, boxes(form, t), strict=True)
                   for (step, holds), size in zip(own, tile, strict=False) if size > 1 or step == 1)
    run = 1
    for step, size, holds in found:
        if step != run:
            break
        run *= size
        if size < holds:
            break
    return run if found else SECTOR_BYTES


def _filled(run: int, begins: int) -> float:
    """What part of the sectors that it touches a run of so many bytes fills, on average over all multiples of `begins`."""
    return run / (run + SECTOR_BYTES - begins)


def join_us(written: int, results: int, gpu: Gpu) -> float:
    """The launch that reads the slices' sums, from the second-level cache as far as that has room, and writes the results."""
    cached = min(written, (gpu.l2_bytes or 0) * CACHED)
    near = cached / (SUMMED_BYTES * gpu.multiprocessors * clock_of(gpu))
    return JOIN_US + near + (written - cached + results) / bandwidth_of(gpu)
