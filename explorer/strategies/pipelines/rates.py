"""What one multiprocessor does with the steps of an engine, in cycles and bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from ...gpu.spec import Gpu
from ...ir.tree import WARP_SIZE
from ...poly.traffic import SECTOR_BYTES, WORD_BYTES


@dataclass(frozen=True, kw_only=True)
class Rates:
    """What one multiprocessor does with an engine: instructions of a warpgroup, of a warp, or plain arithmetic.

    Attributes
    ----------
    load, deep : float
        Bytes a cycle that it takes in from the second-level cache while all do; and where a step's products have several panels,
        so that twice the bytes come between two waits, and no row begins inside of a sector (of 64 x 2696 x 4040, whose do,
        tiles of one panel took 11.2 to 13.0 µs, of two 11.9 to 12.9; H200).
    beside : float
        How much faster for each further resident block, where all blocks of the grid are resident and ask for the same large
        boxes of whole lines at nearly the same time.
    fill : float
        Cycles of a block's start and end in which it does nothing: others that are resident do, but start with it.
    latency, behind : float
        Cycles from a copy's issue to its bytes in shared memory, while others' are on their way: as many, and so many more for
        each cycle in which a multiprocessor takes in a block's step.
    quiet : float
        To its first bytes, where the block's other copies have landed.
    late : float
        What is taken from the stages, by whose rest a load's latency is divided: the computing one, and a share of the next one.
    step, least_step : float
        Waits and barriers of a step beside its product; and of a step with them, however small that is.
    waited : float
        More of a step whose block waits for its products at once.
    released : float
        Cycles by which the next copy of a pipeline of two stages begins later where ``wgmma`` stay in flight, which still read
        its slot: 50 to 210 a step, of five products (H200).
    share : float
        Of its instruction's rate, where the operands are loaded between the products: in turn, or ahead.  The compiler makes the
        same of both texts (NVRTC 13 for sm_90, tiles of 128 x 128 x 32 with two to five stages: equally many instructions, with
        three and five stages in the same order), and 4096 x 4096 x 4096 took 411 to 425 µs ahead (H200).
    apart : float
        Cycles of a step in which a block's warps wait for each other, where it is the only one; several are seldom at one point.
    stored, through : float
        Results a cycle: in elements, where lanes write what they hold; in bytes, through shared memory.
    norm : float
        How computing, loads and latency of a step add up: the `norm`-th root of the sum of their `norm`-th powers
        (:func:`~explorer.strategies.pipelines.terms.together`); infinite where the longest alone counts.
    """

    load: float
    deep: float
    fill: float
    latency: float
    quiet: float
    late: float
    step: float
    least_step: float
    share: float
    stored: float
    through: float
    behind: float = 0.0
    beside: float = 0.0
    waited: float = 0.0
    released: float = 0.0
    apart: float = 0.0
    norm: float = inf


RATES = {
    "warpgroup": Rates(load=44.0, deep=63.0, fill=1550.0, latency=950.0, behind=1.25, quiet=520.0, late=0.8, step=15.0,
                       least_step=375.0, waited=357.0, released=150.0, share=1.0, stored=3.0, through=17.5, beside=0.25,
                       norm=5.0),
    "warp": Rates(load=28.8, deep=28.8, fill=1600.0, latency=1300.0, behind=0.25, quiet=635.0, late=0.8, step=235.0,
                  least_step=430.0, share=0.636, stored=2.5, through=5.4, norm=5.0),
    "plain": Rates(load=64.0, deep=64.0, fill=900.0, latency=900.0, quiet=460.0, late=1.0, step=60.0, least_step=0.0, share=1.0,
                   stored=24.0, through=24.0, apart=150.0),
}
"""Fitted to times on an H200.

Of tensor instructions: 114 cells of an ablation (one tile of each of six products, 1 to 5 stages, each with and without the
second level of its pipeline), 1,500 tilings of three f16 products, and 34 products in the tiling that `auto` takes
(`benchmarks/product_fit.py` draws the figures up); `deep` to 91 tilings of 512 x 1024 x 4096 and 512 x 768 x 3072 (H100).
Of plain arithmetic: f32 products (see :data:`NARROW_CYCLES`).
"""
COPY_CYCLES = {True: 2.0, False: 4.0}
"""Of a warp's copy, by whether it is asynchronous (from 4 bytes a thread on) or goes through registers: its instructions by
what a multiprocessor issues (counted in the text, not measured)."""
SINGLE_CYCLES = 22.0
"""Of a warp's copy of an element of 1 or 2 bytes a thread through registers, beside tensor instructions: five products of f16
with odd rows took 15 to 30 (H200)."""
NARROW_CYCLES, NARROW_APART = 6.0, 35.0
"""Of plain arithmetic, whose rows begin anywhere: cycles of a warp's asynchronous copy of one word a thread, and from one of a
thread's to its next.  Fitted with 7 products of f32 in 14 to 17 tilings each (H200), to 5 %: the one that the model takes for
cheapest takes 1.00 to 1.04 times as long as the fastest."""
LINE_BYTES = 128
"""Of a line of the second-level cache.  A shorter row of a box takes as long as a whole line: 3 x 3 filters over 8 channels a
group, in rows of 32 bytes, took 110 µs where their bytes would have taken 28."""
STRADDLING = {128: 1.0, 32: 1.1}
"""How much longer boxes take whose rows begin at multiples of so many bytes: of a line, or of a sector, so that they lie in two
lines."""
SPLIT = 1.8
"""And where rows begin inside of sectors (1000 x 1504 x 776 took 11.2 µs where 512 x 3072 x 768 took 8.0, in as many blocks; both
are of 1,400 tilings of nine shapes, H100)."""
CLUSTER_CYCLES = 1200.0
"""Of blocks that are a cluster, beside what they do otherwise: they wait for each other before their first copy, and the last of
them ends all.  Where loads were not what counted, products took 0.1 to 0.6 µs longer in clusters of two (512 x 2304 x 768, 1024 x
1024 x 1024, H100)."""
PAIR, CLUSTERED = 2, 120 / 132
"""Share of the multiprocessors that clusters of more than two blocks have, one block each: 66 of two, 30 of four and 15 of eight
are there at a time (``cuOccupancyMaxActiveClusters``, H200).  128 tiles take two rounds in clusters of four: 512 x 4096 x 1024
15.4 µs instead of 8.9 in clusters of two (H100)."""
BEYOND = 1.75
"""What a row of a box that lies beyond the array takes more than one that is read, as a multiple of that one: 4 x 11008 x 4096
took 44.6 µs in tiles of 64 x 64 x 64 with 6 stages, 64 x 11008 x 4096 in the same 24.9 (H200)."""
LEAST_BOX = 8192
"""Bytes of a box from which on resident blocks load faster together (:attr:`Rates.beside`).  Of tilings of 64 x 64 x 64, three of
which are resident, 512 x 3072 x 768 took 0.73 of what one alone would let expect; none gained where rows begin inside of a line
(1000 x 1504 x 776), in smaller boxes, in steps of two panels, or in the nested loops of a convolution (H200, H100)."""
RESERVED = 32
"""Registers of a thread beside accumulators and fragments."""
TENSOR_CORES = 4
"""Of a multiprocessor; a warp keeps one of them busy."""
WARPS_PER_CYCLE = 4
"""Instructions of warps that a multiprocessor issues in a cycle."""
RESULT_ISSUED, RESULT_WARPS = 1.75, 8
"""Instructions of a thread for each operation that follows its sums, conversions and addresses included; and warps that issue as
many as a multiprocessor can: fewer wait for their own.  GELU with the fast `erf`, 11 operations more than ReLU, took
19 issues more a result (4096 x 4096 x 1024 in tiles of 128 x 256, H100)."""
COPY_ISSUED, STEP_ISSUED, TURN_ISSUED = {True: 4.0, False: 8.0}, 20.0, 5.0
"""Instructions of a warp in steps of plain arithmetic beside products and loads: of each copy of 32 threads, by whether it is
asynchronous; of a step; and of each turn of a loop inside it (counted in machine code for sm_90, NVRTC 13, of tiles of
64 x 64 x 8 to 128 x 128 x 32, with whole and with odd rows)."""
BANKED = {True: 1.2, False: 1.16}
"""Issue cycles of a multiply-add in tiles of registers, by whether a thread reads vectors of a factor along the depth.

They are what register bank conflicts leave in the order that :mod:`~explorer.strategies.contraction.threads` makes; plans in
another order are charged the same.  In machine code they are 1.26 (64 x 64 results a block) and 1.17 (64 x 128, transposed), were
each bank to serve one read a cycle (sm_90, NVRTC 13).  These fit 476 tilings of seven f32 products best (H200): 34 of each way to
write it, with steps of 16 and at most two stages, of which the model's first choices take 1.00 to 1.08 times as long as the
fastest.
"""
SHARED_CYCLES, SHARED_LANES = 2.0, 8
"""Of a warp's load of 16 bytes a thread from shared memory, where some threads read the same; and lanes that a cycle serves,
where more than twice as many read different ones (128 bytes a cycle)."""


def shared_cycles(different: int) -> float:
    """Cycles of a warp's load of 16 bytes a thread from shared memory, of which so many threads read different ones."""
    return max(SHARED_CYCLES, min(different, WARP_SIZE) / SHARED_LANES)


def copy_cycles(engine: str, asynchronous: bool, nbytes: int) -> float:
    """Cycles of a warp's copy of so many bytes a thread."""
    single = engine != "plain" and not asynchronous and nbytes < WORD_BYTES
    return SINGLE_CYCLES if single else COPY_CYCLES[asynchronous]


def blocks_by_registers(gpu: Gpu, words: int, threads: int) -> int:
    """Blocks whose registers a multiprocessor has: each of its quarters has a part, and whole warps."""
    parts = gpu.warp_allocation_granularity
    return gpu.registers_per_sm // parts // (min(words, gpu.max_registers_per_thread) * WARP_SIZE) * parts // -(
        -threads // WARP_SIZE)


def taken_in(rates: Rates, panels: int, pitches: Iterable[int]) -> float:
    """Bytes a cycle that a multiprocessor takes in of boxes, where arrays have rows of so many bytes."""
    return rates.deep if panels > 1 and all(pitch % SECTOR_BYTES == 0 for pitch in pitches) else rates.load


def of_lines(row: int, pitch: int, rows: int = 1, there: int = 1) -> float:
    """How much longer boxes take than whole lines: rows of so many bytes, of an array of rows of `pitch` bytes.

    Of the `rows` of a box, at most as many as the array has are `there`.
    """
    longer = max(1.0, LINE_BYTES / row) * next((more for grain, more in STRADDLING.items() if pitch % grain == 0), SPLIT)
    return longer * (1.0 + BEYOND * max(0.0, 1.0 - there / rows))


def of_sectors(row: int, pitch: int) -> float:
    """How much longer threads' copies of rows of so many bytes take, of an array of rows of `pitch` bytes, than whole sectors.

    A row that begins inside of a sector ends inside of another: of 128 bytes, five sectors are read for four (1000 x 1504 x 776
    took 1.07 to 1.1 times as long as 512 x 3072 x 768 for each step, in as many blocks; H200).
    """
    return 1.0 if pitch % SECTOR_BYTES == 0 else 1.0 + SECTOR_BYTES / row


def results_cycles(operations: float, threads: int) -> float:
    """Cycles of what a block computes of its sums, of so many operations, while so many threads of a multiprocessor do so."""
    waiting = max(1.0, RESULT_WARPS * WARP_SIZE / threads)
    return operations * RESULT_ISSUED / (WARPS_PER_CYCLE * WARP_SIZE) * waiting
