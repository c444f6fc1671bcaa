"""Which lanes hold the rows and columns of an accumulator, as steps on loops.

Four lanes hold a row together, a pair of neighbouring columns of each eight; eight rows lie over the lanes of a warp, and in a
warpgroup each warp has sixteen (PTX ISA, "mma.m16n8k16" and "wgmma: Register Fragments").
"""

from __future__ import annotations

from .._steps import Builder

QUAD = 4
"""Lanes that hold a row of an accumulator together."""
WARP_ROWS, HALF = 16, 8
"""Rows of a warp in a warpgroup's accumulator, and those that its lanes hold at a time."""


def quads(b: Builder, loop: str) -> tuple[str, str, str]:
    """A loop over columns of accumulators as tiles of 8, the lanes of a quad, and the two neighbours of each."""
    lane, pair = b.plan.fresh(f"{loop}.q"), b.plan.fresh(f"{loop}.v")
    b.do("split", loop, 2 * QUAD, inner=lane).do("split", lane, 2, inner=pair)
    return loop, lane, pair


def rows_over_warp(b: Builder, row: str, lane: str) -> None:
    """Rows of a warp, and the lanes of a quad beside each other, bound to lanes."""
    inner = b.plan.fresh(f"{row}.l")
    b.do("split", row, HALF, inner=inner).do("coalesce", (inner, lane)).do("bind", inner, "lane")


def rows_over_group(b: Builder, row: str, lane: str) -> None:
    """Rows of a warpgroup: 16 a warp, eight and eight; the lanes of a quad beside each other."""
    half, inner = b.plan.fresh(f"{row}.h"), b.plan.fresh(f"{row}.l")
    b.do("split", row, WARP_ROWS, inner=half).do("split", half, HALF, inner=inner).do("reorder", (half, row, inner))
    b.do("coalesce", (row, inner, lane)).do("bind", row, "thread.x")
