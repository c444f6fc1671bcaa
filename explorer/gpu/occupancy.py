"""Occupancy: the blocks of a kernel that fit on one multiprocessor, the limiting resource, and launch limits.

The arithmetic is that of ``cuda_occupancy.h`` in the CUDA Toolkit (``cudaOccMaxActiveBlocksPerMultiprocessor``), with the
shared memory carve-out at its largest, which is what the driver picks when a kernel asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

from ..errors import ResourceError
from .spec import Gpu, round_up


class LaunchShape(Protocol):
    """The part of a launch that limits are about (code generation's ``Launch`` has it)."""

    @property
    def kernel(self) -> str:
        """Name."""
        ...

    @property
    def grid(self) -> tuple[int, int, int]:
        """Extents (x, y, z) in blocks."""
        ...

    @property
    def block(self) -> tuple[int, int, int]:
        """Extents (x, y, z) in threads."""
        ...

    @property
    def static_shared_bytes(self) -> int:
        """Declared in the text."""
        ...

    @property
    def dynamic_shared_bytes(self) -> int:
        """Asked for at launch."""
        ...


@dataclass(frozen=True)
class Occupancy:
    """The resident blocks of one multiprocessor.

    Attributes
    ----------
    blocks_per_sm, active_warps : int
    fraction : float
        Active warps over the most the multiprocessor holds, 0 to 1.
    limits : mapping of str to int
        Blocks that each resource alone would allow: ``warps``, ``blocks``, ``registers``, ``shared``, and ``barriers`` where
        the kernel uses some and the GPU counts them.
    limiter : str
        The resource with the smallest limit; of equals the first in the order above.
    """

    blocks_per_sm: int
    active_warps: int
    fraction: float
    limits: Mapping[str, int]
    limiter: str

    def __str__(self) -> str:
        return f"{self.fraction:.0%} ({self.blocks_per_sm} blocks, {self.active_warps} warps; limited by {self.limiter})"


def occupancy(gpu: Gpu, threads_per_block: int, registers_per_thread: int, shared_bytes_per_block: int,
              barriers_per_block: int = 0) -> Occupancy:
    """Resident blocks per multiprocessor of a kernel.

    Parameters
    ----------
    gpu : Gpu
    threads_per_block, registers_per_thread : int
        Registers as the compiler reports them; 0 where unknown (then registers never limit).
    shared_bytes_per_block : int
        Static plus dynamic shared memory.
    barriers_per_block : int
        Named barriers, as the compiler reports them.

    Returns
    -------
    Occupancy
        With `blocks_per_sm` 0 when the block does not fit at all.

    Notes
    -----
    Registers are allocated to warps in units of 256, warps to one of four sub-partitions with a quarter of the registers
    each, and shared memory in units of 128 bytes (256 on 7.5) plus 1 KiB that the driver keeps from 8.0 on.
    """
    if threads_per_block < 1:
        raise ResourceError("A block needs at least one thread.", why=f"threads per block: {threads_per_block}")
    warps = -(-threads_per_block // gpu.warp_size)
    shared = round_up(shared_bytes_per_block + gpu.reserved_shared_bytes_per_block, gpu.shared_allocation_unit)
    limits = {
        "warps": gpu.max_warps_per_sm // warps if threads_per_block <= gpu.max_threads_per_block else 0,
        "blocks": gpu.max_blocks_per_sm,
        "registers": _register_limit(gpu, threads_per_block, warps, registers_per_thread),
        "shared": _shared_limit(gpu, shared_bytes_per_block, shared),
    }
    if barriers_per_block and gpu.barriers_per_sm:
        limits["barriers"] = gpu.barriers_per_sm // barriers_per_block
    limiter = min(limits, key=lambda name: limits[name])
    blocks = limits[limiter]
    return Occupancy(blocks, blocks * warps, blocks * warps / gpu.max_warps_per_sm, limits, limiter)


def check_launch(gpu: Gpu, launch: LaunchShape, registers: int | None = None) -> None:
    """Accept a launch that the GPU can take.

    Parameters
    ----------
    gpu : Gpu
    launch : Launch
        Anything with `kernel`, `grid`, `block`, `static_shared_bytes` and `dynamic_shared_bytes`.
    registers : int, optional
        Registers per thread, once a compiler has said.

    Raises
    ------
    ResourceError
        Naming every limit exceeded, the numbers, and what to shrink; `breaches` has them as data.
    """
    where = f"kernel {launch.kernel} on {gpu}"
    if min(*launch.grid, *launch.block) < 1:
        raise ResourceError("The launch is empty.", where=where, why=f"grid {launch.grid}, block {launch.block}", breaches=(),
                            hint="give every size that binds to the grid or the block at least one iteration")
    breaches = gpu.limits_check(launch.grid, launch.block, static_shared_bytes=launch.static_shared_bytes,
                                dynamic_shared_bytes=launch.dynamic_shared_bytes, registers_per_thread=registers)
    if breaches:
        raise ResourceError(f"The launch is too big for the {gpu.name}.", where=where, why="; ".join(map(str, breaches)),
                            hint="; ".join(dict.fromkeys(b.shrink for b in breaches)), breaches=breaches)
    if getattr(launch, "cooperative", False):
        _check_resident(gpu, launch, registers or 0, where)


def _check_resident(gpu: Gpu, launch: LaunchShape, registers: int, where: str) -> None:
    """Refuse a cooperative launch whose blocks do not all fit at once: those that run would wait for those that cannot."""
    fill = occupancy(gpu, prod(launch.block), registers, launch.static_shared_bytes + launch.dynamic_shared_bytes)
    blocks, room = prod(launch.grid), gpu.multiprocessors * fill.blocks_per_sm
    if blocks > room:
        raise ResourceError(
            f"The grid does not fit the {gpu.name} at once, and its blocks wait for each other.", where=where,
            why=f"{blocks:,} blocks; {gpu.multiprocessors} multiprocessors hold {fill.blocks_per_sm} each, {room:,} in all "
                f"(limited by {fill.limiter})",
            hint=f"at most {room:,} blocks (bind a block loop with a count: the blocks then stride over the rest), "
                 "or join(…, 'last_block') where no block waits", breaches=(), blocks=blocks, room=room)


class Held(Protocol):
    """An array in global memory (code generation's ``Buffer``)."""

    @property
    def name(self) -> str:
        """Name."""
        ...

    @property
    def kind(self) -> str:
        """``"workspace"`` for what the schedule needs beyond the program's arrays."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes."""
        ...


def check_memory(gpu: Gpu, buffers: Sequence[Held]) -> None:
    """Accept arrays and workspaces that the GPU's memory can hold together.

    Raises
    ------
    ResourceError
        Naming the largest and their bytes; `nbytes` is the sum.
    """
    total = sum(b.nbytes for b in buffers)
    if total <= gpu.memory_bytes:
        return
    largest = sorted(buffers, key=lambda b: -b.nbytes)[:4]
    work = sum(b.nbytes for b in buffers if b.kind == "workspace")
    raise ResourceError(
        f"The arrays do not fit the memory of the {gpu.name}.",
        why=f"{total:,} bytes are needed and {int(gpu.memory_bytes):,} are there; "
            + ", ".join(f"{b.name}: {b.nbytes:,}{' (workspace)' if b.kind == 'workspace' else ''}" for b in largest),
        hint="smaller sizes" + ("; fewer blocks that share an element, or how='atomic'" if work > total // 4 else ""),
        nbytes=total)


def waves(gpu: Gpu, grid: tuple[int, int, int], blocks_per_sm: int) -> float:
    """How many times the grid fills the whole GPU; a fraction just above an integer wastes most of the last wave."""
    return prod(grid) / (gpu.multiprocessors * blocks_per_sm) if blocks_per_sm else float("inf")


def _register_limit(gpu: Gpu, threads: int, warps: int, registers: int) -> int:
    """Blocks that the register file allows."""
    if registers == 0:
        return gpu.max_blocks_per_sm
    if registers > gpu.max_registers_per_thread or gpu.registers_of_block(threads, registers) > gpu.registers_per_block:
        return 0
    per_warp = round_up(registers * gpu.warp_size, gpu.register_allocation_unit)
    parts = gpu.warp_allocation_granularity
    return gpu.registers_per_sm // parts // per_warp * parts // warps


def _shared_limit(gpu: Gpu, asked: int, allocated: int) -> int:
    """Blocks that shared memory allows."""
    if asked > gpu.shared_bytes_per_block_optin:
        return 0
    return gpu.shared_bytes_per_sm // allocated if allocated else gpu.max_blocks_per_sm
