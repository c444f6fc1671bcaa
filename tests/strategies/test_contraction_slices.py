"""Products whose depth is in slices: right for every engine and order, at ragged sizes, and chosen where tiles are few."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import explorer as ex
from benchmarks.product_programs import conv_nhwc
from explorer.gpu.spec import gpu
from explorer.kernel.emit import emit
from explorer.run.nvrtc.compiler import compile_module
from explorer.strategies.auto import auto
from explorer.strategies.contraction import ranked
from explorer.strategies.contraction.form import product_form
from explorer.strategies.contraction.moves import build
from explorer.strategies.contraction.shapes import Tiling
from explorer.strategies.kernel_choices import spread_choices
from tests.strategies.products import biased, built, product

B, K, M, N = ex.sizes("B K M N")
GROUPS = Tiling("warpgroup", 64, 64, 64, 1, 1, 2, slices=3)
WARPS = Tiling("warp", 32, 32, 32, 2, 2, 2, slices=3)
BYTES = Tiling("warp", 32, 32, 64, 2, 2, 2, slices=2)
DOUBLES = Tiling("warp", 16, 16, 8, 2, 2, 2, slices=2)
THREADS = Tiling("plain", 16, 16, 8, 8, 8, 2, slices=4)


@ex.program
def batched(x: ex.f16[B, M, K], y: ex.f16[B, N, K], z: ex.f32[B, M, N]):
    for b in range(B):
        for i in range(M):
            for j in range(N):
                s = ex.local(ex.f32)
                s = 0.0
                for k in range(K):
                    s += x[b, i, k] * y[b, j, k]
                z[b, i, j] = s


@ex.program
def deep(x: ex.f16[M, 2, K], y: ex.f16[2, K, N], z: ex.f16[M, N]):
    """The depth is two loops."""
    for i in range(M):
        for j in range(N):
            s = ex.local(ex.f32)
            s = 0.0
            for d in range(2):
                for k in range(K):
                    s += x[i, d, k] * y[d, k, j]
            z[i, j] = s


def right(made: ex.Schedule, slices: int) -> None:
    """Two launches, the first with blocks for each slice; legal, and what the program means."""
    assert made.judgement.emittable
    first, second = made.plan.kernels
    assert made.plan.extents[first.id][2] % slices == 0
    assert made.plan.extents[second.id][0] > 1, "the sums of slices are added up by many blocks"
    assert made.run(device="cpu", time=False).correct


@pytest.mark.parametrize("order", ["nn", "nt", "tn", "tt"])
def test_slices_of_warpgroups_and_warps(order: str) -> None:
    program = product(ex.f16, ex.f32, *order)
    right(built(program, GROUPS, M=72, N=40, K=328), 3)
    right(built(program, WARPS, M=37, N=29, K=131), 3)


@pytest.mark.parametrize(("dtype", "total", "out", "tiling"), [
    (ex.bf16, ex.f32, ex.bf16, WARPS), (ex.i8, ex.i32, ex.i32, BYTES), (ex.f64, ex.f64, ex.f64, DOUBLES),
    (ex.f32, ex.f32, ex.f32, THREADS)])
def test_slices_of_other_types(dtype: Any, total: Any, out: Any, tiling: Tiling) -> None:
    right(built(product(dtype, total, "n", "n", out), tiling, M=37, N=29, K=131), tiling.slices)


def test_batches_more_depths_and_what_follows_the_sums() -> None:
    right(built(batched, WARPS, B=3, M=33, N=29, K=131), 9)
    right(built(deep, WARPS, M=33, N=29, K=131), 3)
    image = {"B": 1, "C": 70, "H": 6, "W": 5, "K": 24, "R": 3, "S": 3, "P": 6, "Q": 5, "T": 1, "A": 1, "D": 70, "E": 24}
    right(built(conv_nhwc, WARPS, **image), 3)  # its channels are in slices, its filter's elements in each
    made = built(biased, GROUPS, M=72, N=40, K=328)
    right(made, 3)
    assert "bias" not in {r.array for leaf, _, k in made.plan.leaves if k is made.plan.kernels[0]
                          for r in made.plan.statement_of[leaf.statement].reads}, "only the whole sum has a bias"


def test_a_depth_that_fills_fewer_slices_has_fewer() -> None:
    written = product(ex.f16, ex.f32, "n", "n").schedule(M=64, N=64, K=65 * 8)
    form = product_form(written, written.plan.kernels[0].id)
    assert form is not None
    assert replace(WARPS, slices=5).chunk(form) == 4 * 32  # 17 steps: 4, 4, 4, 4, 1
    made = build(written, form, replace(WARPS, slices=7))  # 17 steps: 6 slices of 3, and nothing for a seventh
    assert made.plan.extents[made.plan.kernels[0].id][2] == 6


def test_few_tiles_get_slices_and_many_get_none() -> None:
    program, h200 = product(ex.f16, ex.f32, "n", "n"), gpu("H200")
    for sizes, few in (({"M": 64, "N": 64, "K": 65536}, True), ({"M": 8192, "N": 8192, "K": 8192}, False)):
        written = program.schedule(**sizes)
        form = product_form(written, written.plan.kernels[0].id)
        assert form is not None
        tiling, time = ranked(form, h200)[0]
        assert (tiling.slices > 1) == few
        assert tiling.blocks(form) >= 100
        assert (time.join_us > 0) == few


def test_auto_slices_without_spills_and_the_choices_list_it() -> None:
    written = product(ex.f16, ex.f32, "n", "n").schedule(M=64, N=64, K=65536)
    made = auto(written)
    assert len(made.plan.launched) == 2
    assert all(not k.spill_store_bytes for k in compile_module(emit(made.plan), "sm_90").kernels.values())
    first, *others = spread_choices(written, written.plan.kernels[0].id, gpu("H200"))
    assert first.label.endswith("slices")
    assert any("slices" not in c.label for c in others)
