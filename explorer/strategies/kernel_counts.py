"""Counts of a kernel and of its statements, from which a plan's price is made."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..gpu.spec import Gpu


@dataclass(frozen=True)
class LeafCounts:
    """The counts of a statement of a kernel, in one launch.

    Attributes
    ----------
    leaf : str
    executions : int
        How often it runs, in all threads.
    busy : int
        Threads that run it.
    operations : int
        Arithmetic of all executions.
    requested_bytes : float
    requests : float
        By whole warps, of global memory.
    issued : float
        Operations and accesses of all lanes, those included that idle in a warp that works.
    steps : float
        Operations and accesses of one thread that wait for each other.
    waits, near_waits : float
        Loads that a thread waits for one after the other, from memory, and from the second-level cache.
    meetings : int
        How often a thread combines a result with others.
    share : float
        Of the grid's blocks, those that run it.
    tensor_us : float
        Microseconds of all tensor cores, where it is a tensor instruction: its operations are not issued one by one.
    """

    leaf: str
    executions: int
    busy: int
    operations: int
    requested_bytes: float
    requests: float
    issued: float
    steps: float
    waits: float
    near_waits: float
    meetings: int
    share: float = 1.0
    tensor_us: float = 0.0

    def scaled(self, part: float) -> LeafCounts:
        """The counts where so large a part of the executions takes place; the warps' requests are counted from those that do."""
        if part == 1.0:
            return self
        return replace(self, executions=max(1, round(self.executions * part)), operations=round(self.operations * part),
                       issued=self.issued * part, steps=self.steps * part, waits=self.waits * part,
                       near_waits=self.near_waits * part, meetings=round(self.meetings * part), tensor_us=self.tensor_us * part)


@dataclass(frozen=True)
class KernelCounts:
    """The counts of a kernel, in one launch of it.

    Attributes
    ----------
    kernel : str
    launches : int
        How often the host launches it.
    join : str
        How it is a phase of the launch of the kernel before it; "" for a launch of its own.
    blocks, threads : int
        Of the grid, and of a block.
    shared_bytes : int
        Of a block.
    read_bytes, written_bytes : int
        Of global memory.
    leaves : tuple of LeafCounts
    """

    kernel: str
    launches: int
    join: str
    blocks: int
    threads: int
    shared_bytes: int
    read_bytes: int
    written_bytes: int
    leaves: tuple[LeafCounts, ...]

    @property
    def moved_bytes(self) -> int:
        """To and from global memory."""
        return self.read_bytes + self.written_bytes

    @property
    def busy(self) -> int:
        """Threads of the grid with an instance to run."""
        return max((x.busy for x in self.leaves), default=1)

    @property
    def operations(self) -> int:
        """Arithmetic of all executions."""
        return sum(x.operations for x in self.leaves)

    def resident(self, gpu: Gpu) -> int:
        """Blocks that a multiprocessor holds at a time, by threads and shared memory alone."""
        shared = gpu.shared_bytes_per_sm // self.shared_bytes if self.shared_bytes else gpu.max_blocks_per_sm
        return max(1, min(gpu.max_threads_per_sm // max(self.threads, gpu.warp_size), gpu.max_blocks_per_sm, shared))
