"""What a spread of a chain of rows costs: the model by which :mod:`~explorer.strategies.rows` chooses.

Rows are moved at the memory's bandwidth, if nothing takes longer: the cache lines that warps touch, the reductions of warps that
hold few elements each, the blocks that the GPU starts one by one, and the rounds of resident blocks, each of which waits for its
loads, its arithmetic and its reductions one after the other.  Threads that keep more of a row leave room for fewer others.

The constants were fitted on an H200 to 3,870 measured schedules of 219 chains (softmax, layer and root-mean-square normalisation,
with residuals, cross-entropy, attention's softmax; f16 and f32; rows of 16 to 32,768 elements, odd lengths and primes).  The
schedule that the model chose among those measured was on average 2.6 % slower than the fastest, and up to 23 %; the rule before
it, by the row's length alone, 19 % and up to 3.7 times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log2, prod

from ...gpu.spec import Gpu
from ...ir.expr import Expr, Ranges
from ...ir.operations import SPECIAL
from ...ir.plan import Plan
from ...ir.program import Statement
from ...ir.scalar import Call, Read, walk
from ...ir.tree import Leaf, ranges
from ...schedule import Schedule
from .._steps import leaves_of, own_temporaries
from .form import RowForm

WORD, LINE = 4, 128
"""Bytes of a register; of a line of the L1 cache (CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory")."""
EACH = 32
"""Most accesses of one thread in a loop over a row that were measured."""
LONG_BYTES = 65536
"""Rows of more are better off in shared memory, where it holds two of them: of so long ones registers hold one, and nothing is
loaded while it is computed.  f16 rows of 40,000 took 83 instead of 100 µs on an H200, 50,000 114 instead of 123; where one row
fits either way, registers are faster (65,536: 151 against 178 µs)."""
SIDES = (64, 128, 256, 512)
"""Threads of a block that holds several rows."""
GRANULE = 8
"""Registers are given to threads by as many (CUDA occupancy calculator)."""
RESERVED = 2048
"""Bytes of shared memory that a block's rows leave to the reductions and the system."""
SHARED_BYTES_PER_CYCLE = 128
"""Of one multiprocessor's shared memory: 32 banks of 4 bytes (CUDA C++ Programming Guide, "Shared Memory")."""
CLOCK_HZ = 1.7e9
"""Where the catalogue has no clock."""


@dataclass(frozen=True)
class RowWork:
    """What a chain does with its rows.

    Attributes
    ----------
    count, extent : int
        Rows, and elements of each.
    nbytes : int
        Bytes of global memory that are moved.
    kept, again : int
        Bytes of an element that threads keep between loops; those of them that are read from memory, and not computed.
    itemsize : int
        Of the narrowest array that rows walk.
    streams : int
        Accesses to global memory at one place of a row.
    sums : int
        Reductions.
    operations : int
        For an element, conversions of narrow types among them, without :data:`SPECIAL` ones.
    """

    count: int
    extent: int
    nbytes: int
    kept: int
    again: int
    itemsize: int
    streams: int
    sums: int
    operations: int


@dataclass(frozen=True)
class RowSpread:
    """Rows over threads.

    Attributes
    ----------
    threads, vector : int
        Threads for one row, elements of an access.
    block : int
        Threads of a block that holds several rows.
    shared : bool
        Whether rows lie in shared memory between loops, and not in registers.
    """

    threads: int
    vector: int
    block: int
    shared: bool = False

    def side(self, work: RowWork, warp: int = 32) -> int:
        """Rows of a block; one that needs more than a warp has a block for itself."""
        return max(1, min(self.block // self.threads, work.count)) if self.threads <= warp else 1

    def accesses(self, work: RowWork) -> int:
        """Of one thread in a loop over a row."""
        return -(-work.extent // (self.vector * self.threads))

    def words(self, work: RowWork) -> int:
        """Words of a row that one thread keeps in registers."""
        return -(-self.accesses(work) * self.vector * (work.kept - work.again * self.shared) // 4)

    def row_bytes(self, work: RowWork) -> int:
        """Bytes of shared memory for a row, with what no whole access fills."""
        return self.accesses(work) * self.vector * self.threads * work.again * self.shared


@dataclass(frozen=True)
class RowConstants:
    """What was fitted.

    Attributes
    ----------
    launch : float
        Microseconds of a kernel with its first load.
    latency : float
        Microseconds that a later round of blocks waits for its loads, beside its arithmetic and its reductions.
    rounds : float
        So many rounds, and more, are counted as fractions: blocks then do not end together.
    begin : float
        Microseconds until a block of 1,024 threads of a later round begins.
    block, line, row : float
        Nanoseconds to start a block, for all of the GPU; of a multiprocessor for a line that a warp touches, and for a warp's
        part in a reduction.
    read : float
        Time to move a byte, beside that to copy it.
    combine, step, fold : float
        Microseconds of a reduction: in any case, for each step of its shuffles, for each doubling of warps.
    operation, access : float
        Nanoseconds of a thread for an operation on an element of its own, and for an access to memory.
    sharpness : float
        How sharply the slowest of all these decides (the order of a norm).
    registers, word, alone : float
        Registers of a thread beside its row, for each word that it keeps, and for each element that does not share its word: what
        is narrower than a word and read one by one (NVRTC 13: 42 registers for 13 halves, 39 for 17, 64 for 25).
    """

    launch: float = 1.29
    latency: float = 0.264
    rounds: float = 4.2
    begin: float = 0.013
    block: float = 0.494
    line: float = 0.617
    row: float = 9.86
    read: float = 1.08
    combine: float = 0.00469
    step: float = 0.0239
    fold: float = 0.0425
    operation: float = 1.06
    access: float = 2.35
    sharpness: float = 5.83
    registers: float = 18.3
    word: float = 1.01
    alone: float = 1.2


H200 = RowConstants()


def row_us(work: RowWork, s: RowSpread, gpu: Gpu, c: RowConstants = H200) -> float:
    """Microseconds of a chain that is spread like that."""
    side, each = s.side(work, gpu.warp_size), s.accesses(work)
    threads = side * s.threads
    blocks, warps = -(-work.count // side), -(-threads // gpu.warp_size)
    busy = -(-blocks // gpu.multiprocessors)
    resident = _resident(work, s, warps, gpu, c)
    rounds = max(1.0, blocks / (min(gpu.multiprocessors, blocks) * max(1, min(resident, busy))))
    rounds = ceil(rounds) if rounds < c.rounds else rounds
    deep, wide = log2(min(s.threads, gpu.warp_size)), log2(max(1.0, s.threads / gpu.warp_size))
    alone = work.sums * (c.combine * (s.threads > 1) + c.step * deep + c.fold * wide)
    alone += each * (s.vector * work.operations * c.operation + work.streams * c.access) / 1e3
    limits = (work.nbytes / (gpu.measured_bandwidth_bytes_per_s or gpu.memory_bandwidth_bytes_per_s) * 1e6 * c.read,
              busy * warps * work.sums * (s.threads > 1) * c.row / 1e3,
              busy * warps * each * work.streams * _lines(work, s, gpu.warp_size) * c.line / 1e3,
              blocks * c.block / 1e3,
              shared_us(work.count * s.row_bytes(work) * (work.sums + 2), gpu),  # written, read by each loop
              rounds * (alone + c.latency))
    most = sum(t**c.sharpness for t in limits) ** (1 / c.sharpness)
    bare = alone + c.latency if resident == 1 else 0.0  # no other block loads while this one computes
    return c.launch + alone + most + (rounds - 1) * (c.begin * threads / 1024 + bare)


def _resident(work: RowWork, s: RowSpread, warps: int, gpu: Gpu, c: RowConstants) -> int:
    """Blocks that a multiprocessor holds at a time."""
    threads = warps * gpu.warp_size
    most = min(255, gpu.registers_per_sm // threads)
    kept = c.alone * s.accesses(work) if s.vector * work.kept < WORD and not s.shared else c.word * s.words(work)
    registers = min(most, max(16.0, c.registers + kept))
    registers = ceil(registers / GRANULE) * GRANULE
    held = min(gpu.max_blocks_per_sm, min(gpu.max_threads_per_sm, gpu.registers_per_sm // registers) // threads)
    return min(held, gpu.shared_bytes_per_sm // (s.row_bytes(work) + RESERVED)) if s.shared else held


def _two(work: RowWork, s: RowSpread, gpu: Gpu) -> bool:
    """Whether shared memory holds two blocks of one long row each, and of one array."""
    alone = s.threads > gpu.warp_size and work.again == work.itemsize
    return alone and LONG_BYTES < s.row_bytes(work) <= gpu.shared_bytes_per_sm // 2 - RESERVED


def _lines(work: RowWork, s: RowSpread, warp: int) -> int:
    """Lines that an access of a warp touches: those of its rows' pieces, and no more than its rows have."""
    beside = min(warp, s.threads)
    rows = warp // beside
    whole = -(-rows * work.extent * work.itemsize // LINE) + (rows > 1)
    return min(rows * -(-beside * s.vector * work.itemsize // LINE), whole)


def shared_us(nbytes: int, gpu: Gpu) -> float:
    """Microseconds in which all multiprocessors write or read so many bytes of shared memory."""
    return nbytes / (gpu.multiprocessors * SHARED_BYTES_PER_CYCLE * (gpu.clock_hz or CLOCK_HZ) / 1e6)


def priced(work: RowWork, widest: int, gpu: Gpu, most: Callable[[RowSpread], int]) -> list[tuple[RowSpread, float]]:
    """The spreads that read their rows once, the cheapest first, with their microseconds; none where there are no rows.

    Parameters
    ----------
    work : RowWork
    widest : int
        Elements of the widest access that the rows allow.
    gpu : Gpu
    most : callable
        Words of a row that a thread may keep in registers, of a spread.
    """
    if not work.count:
        return []
    found = [RowSpread(1 << e, vector, block, shared)
             for vector in dict.fromkeys((widest, max(1, widest // 2), max(1, widest // 4)))
             for e in range(11) for block in (SIDES if 1 << e <= gpu.warp_size else SIDES[-1:])
             for shared in (False, True)]
    fit = [s for s in found if s.threads < 2 * -(-work.extent // s.vector) and s.accesses(work) <= EACH
           and s.words(work) <= most(s) and (not s.shared or _two(work, s, gpu))]
    return sorted(((s, row_us(work, s, gpu)) for s in fit), key=lambda f: f[1])


def group_size(extent: int, vector: int) -> int:
    """Threads for one row: 2 to 4 accesses each up to 1,024, up to 8 beyond, and as few idle threads as possible.

    The rule for rows that registers do not hold, and for those with which column sums ride.
    """
    pieces = -(-extent // vector)
    wanted = 2 if pieces <= 128 else 4 if pieces <= 1024 else 8
    best, least = 1, float("inf")
    for exponent in range(11):
        size = 1 << exponent
        each = -(-pieces // size)
        idle = size * each / pieces
        off = max(wanted / each, each / wanted)
        cost = idle * idle * (off if off > 1.6 else 1.0) * (1.1 if size > 512 else 1.0)
        if cost <= least:
            best, least = size, cost
    return best


def row_work(schedule: Schedule, form: RowForm) -> RowWork:
    """The work of a kernel as written."""
    plan = schedule.plan
    own, scope = set(own_temporaries(plan, form.kernel)), ranges(tuple(plan.loops.values()))
    statements = [(leaf, plan.statement_of[leaf.statement]) for leaf, _, k in plan.leaves if k.id == form.kernel]
    targets, used = {s.target.array for _, s in statements}, {a.array for _, s in statements for a in s.accesses}
    sums, operations, made, times = 0, 0, set[str](), dict[str, int]()
    for nest in form.rows:
        here = set[str]()
        for leaf in leaves_of(plan.loops[nest[0]]):
            s = plan.statement_of[leaf.statement]
            here |= {a.array for a in s.accesses if not _fixed(leaf, a.index, nest, scope)}
            sums += s.update is not None and _fixed(leaf, s.target.index, nest, scope)
            operations += operations_of(plan, s)
        made |= here & own
        for name in here - own:
            times[name] = times.get(name, 0) + 1
    again = {name for name, n in times.items() if n > 1 and name not in targets}
    streams = sum(1 if name in again or name in targets else n for name, n in times.items())
    sizes = {name: plan.array_of[name].dtype.bytes for name in used}
    kept, read = (sum(sizes[n] for n in names) for names in (made | again, again))
    return RowWork(prod(plan.loops[x].extent for x in form.outer), form.extent, sum(plan.array_of[a].nbytes for a in used - own),
                   kept, read, min((sizes[n] for n in times), default=4), streams, sums, operations)


def _fixed(leaf: Leaf, index: tuple[object, ...], nest: tuple[str, ...], scope: Ranges) -> bool:
    """Whether an access does not move with any loop of a nest."""
    at = dict(leaf.at)
    return not any(set(nest) & e.substitute(at, scope).variables() for e in index if isinstance(e, Expr))


def operations_of(plan: Plan, s: Statement) -> int:
    """Operations of a statement for one element, without :data:`SPECIAL` ones."""
    nodes = list(walk(s.value))
    narrow = sum(isinstance(n, Read) and plan.array_of[s.reads[n.slot].array].dtype.bytes < 4 for n in nodes)
    return narrow + sum(isinstance(n, Call) and n.op not in SPECIAL for n in nodes) + (s.update is not None)
