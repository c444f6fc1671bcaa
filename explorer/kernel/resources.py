"""Static resources of a kernel: shared memory, register arrays and launch extents, from its text alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from ..errors import ResourceError
from ..ir.plan import Plan
from ..ir.swizzle import ALIGNMENT, UNIT, places_of, shared_bytes
from ..ir.tree import Kernel, leaves
from ..poly.roles import with_producer
from .lines import Lines
from .sites import Store, declared_for

STATIC_SHARED_LIMIT = 48 * 1024
"""Bytes of shared memory that may be declared statically (CUDA C++ Programming Guide, "Shared memory")."""
MOST_PRIVATE = 64 * 1024
"""Bytes of register arrays that a kernel may declare; the stack of a thread on the CPU device has room for four times that."""


@dataclass(frozen=True)
class Resources:
    """Static facts of one kernel.

    Attributes
    ----------
    kernel : str
        The kernel's id.
    block, grid : tuple of int
        Launch extents (x, y, z).
    shared_bytes : int
        Shared memory per block, scratch of reductions excluded until the text is written.
    register_words : int
        32-bit registers per thread that register arrays take if they all live at once; a lower bound of what the
        compiler will use.
    """

    kernel: str
    block: tuple[int, int, int]
    grid: tuple[int, int, int]
    shared_bytes: int
    register_words: int

    @property
    def threads_per_block(self) -> int:
        """Threads of one block."""
        return prod(self.block)


def resources(plan: Plan, kernel: Kernel) -> Resources:
    """The static facts of one kernel of a plan."""
    used = {view.buffer for leaf, _ in leaves(kernel.body) for _, view in leaf.views}
    buffers = [b for b in plan.buffers if b.name in used]
    shared = shared_bytes(buffers)
    registers = sum(-(-b.nbytes // 4) for b in buffers if b.space == "register")
    extents = plan.extents[kernel.id]
    return Resources(kernel.id, with_producer(kernel, extents[3:]), extents[:3], shared, registers)


def require_room(kernel: str, stores: Iterable[Store]) -> None:
    """Refuse a kernel whose threads would keep far more than they have registers.

    Raises
    ------
    ResourceError
    """
    held = sum(prod(s.shape) * s.dtype.bytes for s in stores if s.space == "register")
    if held > MOST_PRIVATE:
        raise ResourceError(f"{kernel} would keep {held:,} bytes in each thread", why="a thread has 255 registers of 4 bytes",
                            hint="contract or stage fewer cells at once, or into shared memory")


def carve(plan: Plan, stores: Sequence[Store], scratch: Sequence[Store],
          aligned: Mapping[str, int]) -> tuple[list[Lines], int, int]:
    """Declarations of the shared arrays, each the line of its buffer, and their static and dynamic bytes.

    Up to 48 KiB they are ``__shared__`` arrays; above, references into one dynamic allocation.  Arrays in panels or swizzled
    begin at multiples of 1024 bytes; those with the largest such multiple stand first.

    Parameters
    ----------
    plan : Plan
    stores, scratch : sequence of Store
    aligned : mapping of str to int
        The arrays that are accessed 16 bytes at a time or more, and of what multiple they begin.
    """
    unit = {s.name: ALIGNMENT if s.placed else aligned.get(s.name, 0) for s in (*stores, *scratch)}
    every = sorted([*stores, *scratch], key=lambda s: -max(unit[s.name], UNIT))
    places, total = places_of([(prod(s.shape) * s.dtype.bytes, max(unit[s.name], UNIT)) for s in every])
    if total <= STATIC_SHARED_LIMIT:
        return [Lines((_static(s, unit[s.name]),), declared_for(plan, s)) for s in every], total, 0
    base = max(UNIT, *unit.values())
    lines = [Lines((f"extern __shared__ __align__({base}) unsigned char shared_memory[];",))]
    for s, offset in zip(every, places, strict=True):
        extents = "".join(f"[{n}]" for n in s.declared)
        form = f"(&{s.name}){extents}" if extents else f"&{s.name}"
        pointer = f"(*){extents}" if extents else "*"
        place = f"shared_memory + {offset}" if offset else "shared_memory"
        text = f"{s.dtype.cuda} {form} = *reinterpret_cast<{s.dtype.cuda} {pointer}>({place});"
        lines.append(Lines((text,), declared_for(plan, s)))
    return lines, 0, total


def _static(s: Store, alignment: int) -> str:
    extents = "".join(f"[{n}]" for n in s.declared)
    return f"__shared__ {f'__align__({alignment}) ' if alignment else ''}{s.dtype.cuda} {s.name}{extents};"
