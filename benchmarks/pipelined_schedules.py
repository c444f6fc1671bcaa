"""Pipelined schedules on tensor cores, by the steps that make them: what a session with asynchronous work asks."""

from __future__ import annotations

from collections.abc import Callable

import product_programs
from product_cases import Conv
from tensor_schedules import TILINGS, tiled

from explorer.schedule import Schedule
from explorer.strategies.attention import attention
from explorer.strategies.auto import auto
from explorer.strategies.contraction.shapes import Tiling
from explorer.transforms.base import Transform

TURNS = Tiling("warpgroup", 128, 128, 64, 2, 1, 4, through=True, producer=True, persistent=132)
LARGE = {"M": 2048, "N": 2048, "K": 2048}
PIPELINES: dict[str, Callable[[], Schedule]] = {
    "bulk, in flight": lambda: tiled("product_nn", Tiling("warpgroup", 128, 128, 64, 2, 1, 4, through=True), **LARGE),
    "bulk, a producer": lambda: tiled("product_nn", TURNS, **LARGE),
    "bulk, ragged": lambda: tiled("product_nt", TILINGS[0], M=200, N=136, K=328),
    "cp.async": lambda: tiled("product_nn", Tiling("warp", 64, 64, 32, 2, 2, 3, 16, through=True), **LARGE),
    "convolution": lambda: auto(product_programs.conv_nhwc.schedule(**Conv("", 8, 64, 56, 56, 64, 3, 3, 1, 1, 1, True).sizes)),
    "attention": lambda: attention(product_programs.attention.schedule(B=2, H=8, L=1024, D=64)),
}
"""Pipelined schedules, whose steps are timed one by one from the first one on that makes work asynchronous."""


def is_asynchronous(step: Transform) -> bool:
    """Whether a step makes copies or products asynchronous, or moves what is."""
    return step.name in ("pipeline", "overlap", "specialise") or getattr(step, "engine", "") in ("async", "bulk")
