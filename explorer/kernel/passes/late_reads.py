"""Accumulators that are stored one by one in halves are read behind their wait, whatever the compiler moves.

Before::

    wgmma_wait<0>(total);
    for i in 0…112: c_t[…] = __float2half(total[i]);

After::

    wgmma_wait<0>(total);
    nothing_before();
    for i in 0…112: c_t[…] = __float2half(total[i]);

NVRTC 13.5 packs two halves that are stored to neighbouring places by statements of their own, and did so in front of the last
wait: the last products were missing in both.  It packs nothing in front of a branch, even of one that is never taken.  Vectors
are packed behind the wait, and are left alone: in the loop of a persistent kernel the branch spilled 148 bytes.
"""

from __future__ import annotations

from dataclasses import replace

from ..lower import Context
from ..nodes import Do, Node, Ref, WaitProducts
from ..traverse import map_bodies, walk

WORD_BYTES = 4
"""Of what a thread stores alone: of narrower values the compiler puts several into one."""


def late_reads(body: tuple[Node, ...], context: Context) -> tuple[Node, ...]:
    """The body with `late` waits for products, where values narrower than a word are stored one by one."""
    def late(node: Node) -> Node:
        if isinstance(node, WaitProducts) and not node.pending:
            return replace(node, late=True)
        return map_bodies(node, lambda inner: tuple(map(late, inner)))

    return tuple(map(late, body)) if any(map(_narrow, walk(body))) else body


def _narrow(node: Node) -> bool:
    """Whether a node computes a value and stores it as a part of a word, where others see it."""
    if not isinstance(node, Do) or not isinstance(node.target, Ref):
        return False
    to = node.target.store
    computed = not all(isinstance(x, Ref) and x.store.space in ("shared", "global") for x in node.operands)
    return computed and to.dtype.bytes < WORD_BYTES and to.space in ("shared", "global")
