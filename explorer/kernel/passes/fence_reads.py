"""A fence keeps the compiler from reading accumulators before the wait for their products, where they are stored as halves.

Before::

    wgmma_wait<0>(total);
    for i in 0…112: c_t[…] = __float2half(total[i]);

After::

    wgmma_wait<0>(total);
    fence_reads();
    for i in 0…112: c_t[…] = __float2half(total[i]);

``ptxas`` of NVRTC 13.5 packs two computed halves into a register (``F2FP``), for a vector or for two stores to neighbouring
addresses, and scheduled that in front of the wait: the last products were missing in both.  It moves nothing in front
of a branch, so the fence is a branch that is never taken.  ``wgmma.fence``, ``bar.warp.sync`` and ``fence.proxy.async`` in its
place did not keep it back.
"""

from __future__ import annotations

from dataclasses import replace

from ..lower import Context
from ..nodes import Do, For, Node, Ref, WaitProducts
from ..traverse import map_bodies, walk

WORD_BYTES = 4
"""Of a register: narrower values are what the compiler packs."""
MEMORY = ("shared", "global")


def fence_reads(body: tuple[Node, ...], context: Context) -> tuple[Node, ...]:
    """The body with fenced waits for products, if a thread stores computed values narrower than a register.

    A loop's end is a branch, too: a wait in a loop needs a fence only where such a store is in the loop.
    """
    if not any(map(_is_narrow_store, walk(body))):
        return body
    return tuple(_fenced(node, context) for node in body)


def _fenced(node: Node, context: Context) -> Node:
    if isinstance(node, WaitProducts):
        return replace(node, fenced=not node.pending)
    if isinstance(node, For):
        return replace(node, body=fence_reads(node.body, context))
    return map_bodies(node, lambda inner: tuple(_fenced(x, context) for x in inner))


def _is_narrow_store(node: Node) -> bool:
    """Whether a node stores a computed value narrower than a register: to shared or global memory, or as a lane of a vector."""
    if not isinstance(node, Do):
        return False
    to, of = node.target, node.operands
    computed = not all(isinstance(x, Ref) and x.store.space in MEMORY for x in of)
    if isinstance(to, Ref):
        return computed and to.store.dtype.bytes < WORD_BYTES and to.store.space in MEMORY
    return computed and to.local.lanes > 1 and to.local.dtype.bytes < WORD_BYTES
