"""Capacity checks: whether a buffer fits the registers of a thread or the shared memory of a block, on any GPU."""

from __future__ import annotations

from ..ir.finding import Verdict, no
from ..ir.plan import Plan
from ..ir.swizzle import shared_bytes
from ..ir.tree import leaves

REGISTER_BYTES = 255 * 4
"""Registers of a thread, on every GPU of compute capability 3.5 or more (CUDA C++ Programming Guide, "Technical Specifications
per Compute Capability"); what is more lies in local memory, which is global memory."""
SHARED_BYTES = 227 << 10
"""Most shared memory of a block on any GPU (the same, compute capabilities 9.0 and 10.0)."""


def no_room(before: Plan, plan: Plan, hint: str) -> Verdict | None:
    """A refusal where a buffer that is new or has grown is more than a thread or a block has; else None."""
    for b in plan.buffers:
        old = before.buffer_of.get(b.name)
        if old and old.space == b.space and old.nbytes >= b.nbytes:
            continue
        if b.space == "register" and b.nbytes > REGISTER_BYTES:
            return no(f"{b.name} would take {b.nbytes:,} bytes of registers a thread", _shape(b.shape, b.dtype.bytes)
                      + f"; a thread has 255 registers of 4 bytes, {REGISTER_BYTES:,} in all", hint)
        if b.space == "shared" and (held := _shared(plan, b.name)) > SHARED_BYTES:
            return no(f"the kernel would take {held:,} bytes of shared memory a block, {b.nbytes:,} of them for {b.name}",
                      f"no GPU has more than {SHARED_BYTES:,} for a block", hint)
    return None


def _shape(shape: tuple[int, ...], size: int) -> str:
    return f"it has {'×'.join(map(str, shape)) or '1'} elements of {size} bytes"


def _shared(plan: Plan, name: str) -> int:
    """Bytes of shared memory of the kernels that use a buffer, the most of any."""
    most = 0
    for k in plan.kernels:
        used = {v.buffer for leaf, _ in leaves(k.body) for _, v in leaf.views}
        if name in used:
            most = max(most, shared_bytes(b for b in plan.buffers if b.name in used))
    return most
