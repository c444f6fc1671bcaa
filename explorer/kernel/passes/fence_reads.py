"""A fence keeps the compiler from reading accumulators before the wait for their products, where halves are stored one by one.

Before::

    wgmma_wait<0>(total);
    for i in 0…112: c_t[…] = __float2half(total[i]);

After::

    wgmma_wait<0>(total);
    fence_reads();
    for i in 0…112: c_t[…] = __float2half(total[i]);

``ptxas`` of NVRTC 13.5 merges two stores of 16 bits to neighbouring addresses, and scheduled the conversion of both (``F2FP``)
in front of the wait: the last products were missing in both.  It moves nothing in front of a branch, so the fence is a branch
that is never taken.  Vector stores are converted behind the wait, and get no fence: in the loop of a persistent kernel it spilled
148 bytes.
"""

from __future__ import annotations

from dataclasses import replace

from ..lower import Context
from ..nodes import Do, Node, Ref, WaitProducts
from ..traverse import map_bodies, walk

WORD_BYTES = 4
"""Of a register: stores of narrower values are what the compiler merges."""


def fence_reads(body: tuple[Node, ...], context: Context) -> tuple[Node, ...]:
    """The body with fenced waits for products, if a thread stores computed values narrower than a register one by one."""
    def fenced(node: Node) -> Node:
        if isinstance(node, WaitProducts) and not node.pending:
            return replace(node, fenced=True)
        return map_bodies(node, lambda inner: tuple(map(fenced, inner)))

    return tuple(map(fenced, body)) if any(map(_is_narrow_store, walk(body))) else body


def _is_narrow_store(node: Node) -> bool:
    """Whether a node stores a computed value narrower than a register to shared or global memory."""
    if not isinstance(node, Do) or not isinstance(node.target, Ref):
        return False
    to = node.target.store
    computed = not all(isinstance(x, Ref) and x.store.space in ("shared", "global") for x in node.operands)
    return computed and to.dtype.bytes < WORD_BYTES and to.space in ("shared", "global")
