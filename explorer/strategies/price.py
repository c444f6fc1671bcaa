"""The price of a plan: about how long it takes on a GPU, one rule for every plan, whoever made it and wherever it is shown.

A kernel takes its launches and, for each of them, the longest of five times, none of which another makes shorter (S. Williams, A.
Waterman, D. Patterson, "Roofline", CACM 52(4), 2009, with a roof more for each level; :mod:`explorer.strategies.counts` counts):

- *memory*: the moved bytes at the GPU's bandwidth;
- *sectors*: the requested bytes at what the busy multiprocessors take in from the second-level cache and store, and the requests
  for them;
- *issue*: operations and accesses of all lanes at what the busy multiprocessors issue;
- *tensor*: operations of tensor instructions at what the busy multiprocessors' tensor cores compute;
- *path*: what one thread does one after the other, times the rounds in which the blocks are resident.  Few busy threads have
  long paths: this is what a schedule of 16 threads pays (J. D. C. Little, "A proof for the queuing formula L = λW", Operations
  Research 9(3), 1961).

A kernel whose copies bring another tile in each iteration of a loop computes in steps, which overlap as far as its stages and
blocks allow: what is in them is priced by the terms of :mod:`explorer.strategies.pipelines.terms`, with the start of its
pipelines and its results' way out, and is one of the times of which the longest counts.

The price ranks plans that differ by tenths or by factors.  Families of schedules rank their own parameters, which differ by
less, by models of their own; those rank, this is what is shown.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..gpu.spec import Gpu
from ..ir.memo import per_program
from ..ir.plan import Plan, initial
from ..ir.program import Program
from ..ir.tree import Kernel
from .counts import counted, least_bytes, longest, work
from .kernel_counts import KernelCounts, LeafCounts
from .pipelines.facts import stepped_time, steppings
from .pipelines.terms import Stepped
from .rows.model import CLOCK_HZ
from .stitching.rates import (
    ALONE_BYTES_PER_CYCLE,
    GRID_US,
    JOIN_US,
    LAUNCH_US,
    ROW_US,
    STORED_BYTES_PER_CYCLE,
    bandwidth_of,
)

LANES = 128
"""Lanes of arithmetic of a multiprocessor (CUDA C++ Programming Guide, "Arithmetic Instructions")."""
STEP_CYCLES = 4
"""From an operation's issue to the one that needs its result (Jia et al., "Dissecting the NVIDIA Volta GPU architecture via
microbenchmarking", 2018; the same up to Hopper)."""
MEMORY_US, CACHE_US = 0.6, 0.15
"""From a load's issue to its value, of a memory and a second-level cache that are not busy."""
REQUEST_CYCLES = 2
"""Of a warp's request to global memory, however few its bytes: 128 bytes take as many at what the first-level cache gives (64
bytes a cycle, as above).  One of shared memory takes one; f32 products of 4096 x 4096 x 4096, a thread an element, were 1.5
times as fast from tiles in shared memory on an RTX A6000 (S. Boehm, "How to optimize a CUDA matmul kernel", 2022)."""
STARTS_US = {"": LAUNCH_US, "grid": GRID_US}
"""A launch, and a barrier of the whole grid; other ways to join a kernel cost what a launch that joins parts does."""
ROOFS = ("memory", "sectors", "issue", "path", "tensor")
IN_STEPS = ("fill", "step", "load", "latency", "banks", "store")
TERMS = ("launch", "barrier", *ROOFS, *IN_STEPS)
"""What the microseconds of a kernel are for: of :data:`ROOFS` the longest counts, or where a kernel computes in steps those of
them and of :data:`IN_STEPS` that add up."""
RULE = ("each kernel: its launches, and the longest of five times: moved bytes at the bandwidth, requested sectors at the "
        "multiprocessors' rate, operations at theirs, those of tensor instructions at the tensor cores', and the path of one "
        "thread; few busy threads have long paths; in a loop whose copies bring tiles, the longest of a step's products, copies, "
        "waits and latency, as far as stages and resident blocks do not hide it")
"""The rule in words."""


@dataclass(frozen=True)
class KernelPrice:
    """A kernel's time.

    Attributes
    ----------
    counts : KernelCounts
    launch_us : float
        Of all its launches, or of the barriers of the grid that it stands behind.
    memory_us, sectors_us, issue_us, path_us, tensor_us : float
        Of all its launches, too; but for memory, of what is outside of its steps.
    steps : Stepped or None
        Of one launch, where it computes in steps.
    """

    counts: KernelCounts
    launch_us: float
    memory_us: float
    sectors_us: float
    issue_us: float
    path_us: float
    tensor_us: float = 0.0
    steps: Stepped | None = None

    @property
    def roofs(self) -> tuple[float, ...]:
        """The times of :data:`ROOFS`."""
        return self.memory_us, self.sectors_us, self.issue_us, self.path_us, self.tensor_us

    @property
    def parts(self) -> tuple[tuple[str, float], ...]:
        """What counts beside the launches, and how long each takes: one roof, or the terms of the steps."""
        roof = max(self.roofs)
        if self.steps is None or self.counts.launches * self.steps.total_us <= roof:
            return ((ROOFS[self.roofs.index(roof)], roof),)
        return tuple((name, self.counts.launches * us) for name, us in self.steps.parts)

    @property
    def bound(self) -> str:
        """The longest of them."""
        return max(self.parts, key=lambda part: part[1])[0]

    @property
    def total_us(self) -> float:
        """Launches, and these."""
        return self.launch_us + sum(us for _, us in self.parts)


@dataclass(frozen=True)
class Price:
    """A plan's time.

    Attributes
    ----------
    kernels : tuple of KernelPrice
        In launch order.
    """

    kernels: tuple[KernelPrice, ...]

    @property
    def total_us(self) -> float:
        """Of all kernels."""
        return sum(k.total_us for k in self.kernels)

    @property
    def terms(self) -> tuple[tuple[str, float], ...]:
        """The total by what it is for: launches, and of each kernel the terms that count."""
        sums: dict[str, float] = dict.fromkeys(TERMS, 0.0)
        for k in self.kernels:
            sums["barrier" if k.counts.join == "grid" else "launch"] += k.launch_us
            for name, us in k.parts:
                sums[name] += us
        return tuple(sums.items())

    @property
    def moved_bytes(self) -> int:
        """To and from global memory, temporaries there included."""
        return sum(k.counts.moved_bytes * k.counts.launches for k in self.kernels)

    @property
    def requested_bytes(self) -> float:
        """Sectors that the warps ask for."""
        return sum(x.requested_bytes * k.counts.launches for k in self.kernels for x in k.counts.leaves)

    @property
    def operations(self) -> int:
        """Arithmetic after inlining and recomputation."""
        return sum(k.counts.operations * k.counts.launches for k in self.kernels)

    @property
    def launches(self) -> int:
        """That the host makes."""
        return sum(k.counts.launches for k in self.kernels if not k.counts.join)

    @property
    def busy(self) -> int:
        """Busy threads of the kernel that takes longest."""
        return max(self.kernels, key=lambda k: k.total_us).counts.busy if self.kernels else 0

    def __str__(self) -> str:
        terms = ", ".join(f"{name} {_text(us, 3)}" for name, us in self.terms if us >= 0.005)
        lines = [f"{_text(self.total_us, 4)} µs: {terms}"]
        for k in self.kernels:
            c = k.counts
            lines.append(f"  {c.kernel}: {_text(k.total_us, 4)} µs ({k.bound}); {c.blocks:,} blocks of {c.threads}, "
                         f"{c.busy:,} threads busy; {c.moved_bytes:,} B moved, {c.operations:,} operations"
                         + f", {c.launches} launches" * (c.launches > 1))
        return "\n".join(lines)


def _text(us: float, digits: int) -> str:
    """A number in so many digits, or as many as it has before the point."""
    return f"{us:,.0f}" if us >= 10 ** (digits - 1) else f"{us:.{digits}g}"


@per_program(512)
def price(plan: Plan, gpu: Gpu, but: frozenset[str] = frozenset()) -> Price:
    """The price of a plan on a GPU, with what it was counted from; of its kernels `but` some."""
    return Price(tuple(_price(plan, k, gpu) for k in plan.kernels if k.id not in but))


def floor_us(program: Program, gpu: Gpu) -> float:
    """What no plan of a program goes below: a launch, and its inputs and results moved once."""
    return LAUNCH_US + max(MEMORY_US, least_bytes(initial(program)) / bandwidth_of(gpu))


def through_memory_us(program: Program, gpu: Gpu) -> float:
    """What no plan goes below whose kernels exchange the largest temporary: two launches, and it is written and read once."""
    largest = max((a.nbytes for a in program.temporaries), default=0)
    return 2 * LAUNCH_US + 2 * largest / bandwidth_of(gpu)


def computed_us(program: Program, gpu: Gpu) -> float:
    """The operations of a program as written by all lanes of the GPU."""
    return work(initial(program)) / (gpu.multiprocessors * LANES * clock_of(gpu))


def alone_us(program: Program, gpu: Gpu, threads: int) -> float:
    """What no plan goes below that leaves every result to one thread, or one result of all to the threads of a block.

    The default's plans are of this kind.
    """
    return LAUNCH_US + longest(initial(program), threads) * CACHE_US


def clock_of(gpu: Gpu) -> float:
    """Cycles of a microsecond."""
    return (gpu.clock_hz or CLOCK_HZ) / 1e6


def _price(plan: Plan, kernel: Kernel, gpu: Gpu) -> KernelPrice:
    c, clock = counted(plan, kernel, gpu), clock_of(gpu)
    found = steppings(plan, kernel)
    inside = {use.leaf.id for s in found for use in (*s.copies, *s.uses)}
    leaves = [x for x in c.leaves if x.leaf not in inside]
    active = min(gpu.multiprocessors, c.blocks)
    rounds = max(1.0, c.blocks / (gpu.multiprocessors * c.resident(gpu)))
    stored = c.written_bytes * (1 / STORED_BYTES_PER_CYCLE - 1 / ALONE_BYTES_PER_CYCLE)
    path = sum(x.share * (x.waits * MEMORY_US + x.near_waits * CACHE_US + x.meetings * ROW_US + x.steps * STEP_CYCLES / clock)
               for x in leaves)
    return KernelPrice(c, c.launches * STARTS_US.get(c.join, JOIN_US), c.launches * c.moved_bytes / bandwidth_of(gpu),
                       c.launches * (sum(map(_taken, leaves)) + stored) / (active * clock),
                       c.launches * sum(x.issued for x in leaves) / (active * LANES * clock), c.launches * rounds * path,
                       c.launches * sum(x.tensor_us for x in leaves) * gpu.multiprocessors / active,
                       stepped_time(plan, kernel, found, c, gpu, clock) if found else None)


def _taken(x: LeafCounts) -> float:
    """Cycles in which a multiprocessor serves the requests of a statement."""
    return max(x.requested_bytes / ALONE_BYTES_PER_CYCLE, x.requests * REQUEST_CYCLES)
