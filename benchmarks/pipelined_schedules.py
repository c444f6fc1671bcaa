"""Schedules on tensor cores, by the steps that make them: what a session with them asks."""

from __future__ import annotations

from collections.abc import Callable

import product_programs
from product_cases import Conv
from tensor_schedules import TILINGS, tiled

from explorer.schedule import Schedule
from explorer.strategies.auto import auto
from explorer.strategies.contraction.shapes import Tiling

TURNS = Tiling("warpgroup", 128, 128, 64, 2, 1, 4, through=True, producer=True, persistent=132)
LARGE = {"M": 2048, "N": 2048, "K": 2048}
HEADS = {"B": 2, "H": 8, "L": 1024, "D": 64}
LAYER = Conv("", 8, 64, 56, 56, 64, 3, 3, 1, 1, 1)
PIPELINES: dict[str, Callable[[], Schedule]] = {
    "bulk, in flight": lambda: tiled("product_nn", Tiling("warpgroup", 128, 128, 64, 2, 1, 4, through=True), **LARGE),
    "bulk, a producer": lambda: tiled("product_nn", TURNS, **LARGE),
    "bulk, ragged": lambda: tiled("product_nt", TILINGS[0], M=200, N=136, K=328),
    "cp.async": lambda: tiled("product_nn", Tiling("warp", 64, 64, 32, 2, 2, 3, 16, through=True), **LARGE),
    "product, auto": lambda: auto(product_programs.product_nn.schedule(**LARGE)),
    "convolution": lambda: auto(product_programs.conv_nhwc.schedule(**LAYER._replace(last=True).sizes)),
    "convolution, channels first": lambda: auto(product_programs.conv.schedule(**LAYER.sizes)),
    "attention": lambda: auto(product_programs.attention.schedule(**HEADS)),
    "attention, causal": lambda: auto(product_programs.causal_attention.schedule(**HEADS)),
}
"""Schedules whose steps are timed one by one: ``wgmma`` with and without a producer, ``mma.sync`` in stages, implicit GEMM."""
