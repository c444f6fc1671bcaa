"""Small schedules with the moves that no workload's own schedule takes: aligned rows, rescaled parts, producers in place, axes
that trade their loops.
"""

from __future__ import annotations

from collections.abc import Iterator

from fused_programs import batchnorm_relu, layernorm, two_branches
from fused_programs import softmax as fused_softmax
from reduction_program import reduction

from explorer import exp, f32, inf, local, sizes
from explorer.frontend.definition import program
from explorer.schedule import Schedule
from explorer.strategies.auto import auto
from explorer.strategies.default import default
from explorer.strategies.reductions import Shape, reduce
from explorer.strategies.stitch import stitch

M, N = sizes("M N")
ALIGNED = (
    ((39, 263), (1,), "f16", "sum", Shape(16, 2, 8, 2, 1)), ((5, 7, 101), (2,), "f32", "max", Shape(32, 1, 4, 1, 1)),
    ((3, 5, 67, 7), (2, 3), "f32", "sum", Shape(32, 1, 4, 2, 2)), ((1003,), (0,), "f16", "sum", Shape(32, 1, 8, 2, 3)),
    ((7, 1001), (1,), "f64", "min", Shape(64, 1, 2, 2, 1)),
)
"""Rows whose length the vector width does not divide, and how they are spread."""
PHASES = (
    (fused_softmax, {"M": 5, "N": 96}, "total->y"), (fused_softmax, {"M": 8, "N": 20_000}, "peak->y"),
    (batchnorm_relu, {"B": 3, "C": 5, "P": 24}, "mean->y"), (batchnorm_relu, {"B": 3, "C": 5, "P": 24}, "total->mean"),
    (layernorm, {"M": 300, "N": 768}, "mean->y"),
)
"""Chains whose kernels on both sides of an edge are phases of one launch, behind a barrier of its grid."""
THREADS, BLOCKS = ("thread.x", "thread.y"), ("block.x", "block.y")
SWAPPED = (
    ((53, 301), (1,), "f32", "sum", Shape(32, 4, 1, 2, 1), THREADS),
    ((301, 70), (0,), "f16", "max", Shape(16, 8, 2, 4, 1), THREADS),
    *(((3001, 70), (0,), "f32", "sum", Shape(32, 8, 2, 4, 6, join=join), BLOCKS) for join in ("launch", "handoff", "cluster")),
    ((5, 4096), (1,), "f32", "sum", Shape(64, 1, 4, 4, 4, join="handoff"), BLOCKS),
)
"""Reductions whose axes then trade their loops."""


@program
def log_sum(x: f32[M, N], y: f32[M]):
    for i in range(M):
        peak = local(f32)
        total = local(f32)
        peak = -inf
        for k in range(N):
            peak = max(peak, x[i, k])
        total = 0.0
        for k in range(N):
            total += exp(x[i, k] - peak)
        y[i] = total


def schedules() -> Iterator[tuple[str, Schedule]]:
    """Name and schedule."""
    for *case, shape in ALIGNED:
        yield f"rows from an aligned address {case[:2]}", reduce(reduction(*case), shape=shape)
    parts = log_sum.schedule(M=9, N=70).split("k", 16).split("k_2", 16).rfactor("peak", "k").rescale("total", "k_2")
    joined = parts.sequence("S2", after="k_2").sequence("k.c", after="k_2").fuse("k", "k_2")
    yield "sums of exponentials in rescaled parts", default(joined)
    yield "producers in place", auto(two_branches.schedule(M=37, N=96))
    for chain, extents, edge in PHASES:
        yield f"{chain.name} in phases of one grid, {edge} {extents}", stitch(chain.schedule(**extents), {edge: "grid"})
    for *case, shape, axes in SWAPPED:
        spread = default(reduce(reduction(*case), shape=shape))
        yield f"{axes[0]} for {axes[1]} {case[:2]} {shape.join}", spread.swap_axes(spread.plan.kernels[0].id, *axes)
    yield "few long rows of softmax", auto(fused_softmax.schedule(M=2, N=200_000))
