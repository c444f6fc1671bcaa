"""The price of a plan: about how long it takes on a GPU, one rule for every plan, whoever made it and wherever it is shown.

A kernel takes its launches and, for each of them, the longest of five times, none of which another makes shorter (S. Williams, A.
Waterman, D. Patterson, "Roofline", CACM 52(4), 2009, with a roof more for each level; :mod:`explorer.strategies.counts` counts):

- *memory*: the moved bytes at the GPU's bandwidth;
- *sectors*: the requested bytes at what the busy multiprocessors take in from the second-level cache;
- *issue*: operations and accesses of all lanes at what the busy multiprocessors issue;
- *tensor*: operations of tensor instructions at what the busy multiprocessors' tensor cores compute;
- *path*: what one thread does one after the other, times the rounds in which the blocks are resident.  Few busy threads have
  long paths: this is what a schedule of 16 threads pays (J. D. C. Little, "A proof for the queuing formula L = λW", Operations
  Research 9(3), 1961).

The price ranks plans that differ by tenths or by factors.  Families of schedules rank their own parameters, which differ by
less, by models of their own; those rank, this is what is shown.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..gpu.spec import Gpu
from ..ir.memo import per_program
from ..ir.plan import Plan, initial
from ..ir.program import Program
from .counts import KernelCounts, counted, least_bytes, longest, work
from .rows.model import CLOCK_HZ
from .stitching.rates import ALONE_BYTES_PER_CYCLE, GRID_US, JOIN_US, LAUNCH_US, ROW_US, bandwidth_of

LANES = 128
"""Lanes of arithmetic of a multiprocessor (CUDA C++ Programming Guide, "Arithmetic Instructions")."""
STEP_CYCLES = 4
"""From an operation's issue to the one that needs its result (Jia et al., "Dissecting the NVIDIA Volta GPU architecture via
microbenchmarking", 2018; the same up to Hopper)."""
MEMORY_US, CACHE_US = 0.6, 0.15
"""From a load's issue to its value, of a memory and a second-level cache that are not busy."""
STARTS_US = {"": LAUNCH_US, "grid": GRID_US}
"""A launch, and a barrier of the whole grid; other ways to join a kernel cost what a launch that joins parts does."""
ROOFS = ("memory", "sectors", "issue", "path", "tensor")
TERMS = ("launch", "barrier", *ROOFS)
"""What the microseconds of a kernel are for; of the last five the longest counts."""
RULE = ("each kernel: its launches, and the longest of five times: moved bytes at the bandwidth, requested sectors at the "
        "multiprocessors' rate, operations at theirs, those of tensor instructions at the tensor cores', and the path of one "
        "thread; few busy threads have long paths")
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
        Of all its launches, too.
    """

    counts: KernelCounts
    launch_us: float
    memory_us: float
    sectors_us: float
    issue_us: float
    path_us: float
    tensor_us: float = 0.0

    @property
    def roofs(self) -> tuple[float, ...]:
        """The times of :data:`ROOFS`."""
        return self.memory_us, self.sectors_us, self.issue_us, self.path_us, self.tensor_us

    @property
    def bound(self) -> str:
        """The term that counts."""
        return ROOFS[self.roofs.index(max(self.roofs))]

    @property
    def total_us(self) -> float:
        """Launches, and the longest of the others."""
        return self.launch_us + max(self.roofs)


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
        """The total by what it is for: launches, and of each kernel the term that counts."""
        sums: dict[str, float] = dict.fromkeys(TERMS, 0.0)
        for k in self.kernels:
            sums["barrier" if k.counts.join == "grid" else "launch"] += k.launch_us
            sums[k.bound] += k.total_us - k.launch_us
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
        lines = [f"{self.total_us:.4g} µs: " + ", ".join(f"{name} {us:.3g}" for name, us in self.terms if us >= 0.005)]
        for k in self.kernels:
            c = k.counts
            lines.append(f"  {c.kernel}: {k.total_us:.4g} µs ({k.bound}); {c.blocks:,} blocks of {c.threads}, {c.busy:,} threads "
                         f"busy; {c.moved_bytes:,} B moved, {c.operations:,} operations"
                         + f", {c.launches} launches" * (c.launches > 1))
        return "\n".join(lines)


@per_program(512)
def price(plan: Plan, gpu: Gpu, but: frozenset[str] = frozenset()) -> Price:
    """The price of a plan on a GPU, with what it was counted from; of its kernels `but` some."""
    return Price(tuple(_price(counted(plan, k, gpu), gpu) for k in plan.kernels if k.id not in but))


def floor_us(program: Program, gpu: Gpu) -> float:
    """What no plan of a program goes below: a launch, and its inputs and results moved once."""
    return LAUNCH_US + max(MEMORY_US, least_bytes(initial(program)) / bandwidth_of(gpu))


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


def _price(c: KernelCounts, gpu: Gpu) -> KernelPrice:
    clock = clock_of(gpu)
    active = min(gpu.multiprocessors, c.blocks)
    rounds = max(1.0, c.blocks / (gpu.multiprocessors * c.resident(gpu)))
    path = sum(x.share * (x.waits * MEMORY_US + x.near_waits * CACHE_US + x.meetings * ROW_US + x.steps * STEP_CYCLES / clock)
               for x in c.leaves)
    return KernelPrice(c, c.launches * STARTS_US.get(c.join, JOIN_US), c.launches * c.moved_bytes / bandwidth_of(gpu),
                       c.launches * sum(x.requested_bytes for x in c.leaves) / (active * ALONE_BYTES_PER_CYCLE * clock),
                       c.launches * sum(x.issued for x in c.leaves) / (active * LANES * clock), c.launches * rounds * path,
                       c.launches * sum(x.tensor_us for x in c.leaves) * gpu.multiprocessors / active)
