"""Convolutions as products: recognised, tiled in boxes of pixels, proved and right, at ragged sizes and with padding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import explorer as ex
from benchmarks import product_programs
from benchmarks.product_cases import CONVS, CONVS_GROUPED, CONVS_LAST
from explorer.gpu.spec import gpu
from explorer.kernel.emit import emit
from explorer.run.nvrtc.compiler import compile_module
from explorer.strategies.auto import auto
from explorer.strategies.contraction import contraction, ranked
from explorer.strategies.contraction.form import ProductForm, product_form
from explorer.strategies.contraction.groups import in_groups
from explorer.strategies.contraction.model import product_time
from explorer.strategies.contraction.moves import build
from explorer.strategies.contraction.shapes import Tiling, box_of, boxes, number_of

B, C, L, K, R, Q, M, N, P = ex.sizes("B C L K R Q M N P")


@ex.program
def dilated(x: ex.f16[B, L, M, C], f: ex.f16[K, 3, 3, C], y: ex.f16[B, P, Q, K]):
    for b in range(B):
        for p in range(P):
            for q in range(Q):
                for k in range(K):
                    total = ex.local(ex.f32)
                    total = 0.0
                    for r in range(3):
                        for s in range(3):
                            for c in range(C):
                                total += x[b, p + 2 * r, q + 2 * s, c] * f[k, r, s, c]
                    y[b, p, q, k] = total


@ex.program
def volumes(x: ex.f16[B, N, L, M, C], f: ex.f16[K, 3, 3, 3, C], y: ex.f16[B, N, L, M, K]):
    for b in range(B):
        for n in range(N):
            for j in range(L):
                for m in range(M):
                    for k in range(K):
                        total = ex.local(ex.f32)
                        total = 0.0
                        for u in range(3):
                            for r in range(3):
                                for s in range(3):
                                    for c in range(C):
                                        if 0 <= n + u - 1 < N and 0 <= j + r - 1 < L and 0 <= m + s - 1 < M:
                                            total += x[b, n + u - 1, j + r - 1, m + s - 1, c] * f[k, u, r, s, c]
                        y[b, n, j, m, k] = total


@ex.program
def voxels(x: ex.f16[B, C, N, L, M], f: ex.f16[K, C, 3, 3, 3], y: ex.f16[B, K, N, L, M]):
    """With padding, channels first."""
    for n in range(B):
        for k in range(K):
            for z in range(N):
                for h in range(L):
                    for w in range(M):
                        total = ex.local(ex.f32)
                        total = 0.0
                        for c in range(C):
                            for q in range(3):
                                for r in range(3):
                                    for s in range(3):
                                        if 0 <= z + q - 1 < N and 0 <= h + r - 1 < L and 0 <= w + s - 1 < M:
                                            total += x[n, c, z + q - 1, h + r - 1, w + s - 1] * f[k, c, q, r, s]
                        y[n, k, z, h, w] = total


@ex.program
def one_dimension(x: ex.f32[B, C, L], f: ex.f32[K, C, R], y: ex.f32[B, K, Q]):
    for b in range(B):
        for k in range(K):
            for q in range(Q):
                total = ex.local(ex.f32)
                total = 0.0
                for c in range(C):
                    for r in range(R):
                        total += x[b, c, q + r] * f[k, c, r]
                y[b, k, q] = total


GROUPS = Tiling("warpgroup", 64, 64, 64, 1, 1, 2)
TWO_GROUPS = Tiling("warpgroup", 128, 64, 64, 2, 1, 3)
WARPS = Tiling("warp", 32, 32, 32, 2, 2, 2, 16)


def written(stride: int = 1, program: Any = product_programs.conv_nhwc, **sizes: int) -> ex.Schedule:
    """A convolution of B x H x W pixels of C channels with K filters of R x S, padded by A."""
    p, q = ((sizes[n] + 2 * sizes["A"] - sizes[f]) // stride + 1 for n, f in (("H", "R"), ("W", "S")))
    whole = {"P": p, "Q": q, "T": stride, "D": sizes["C"], "E": sizes["K"]} | sizes
    return program.schedule(**whole)


def form_of(schedule: ex.Schedule) -> ProductForm:
    form = product_form(schedule, schedule.plan.kernels[0].id)
    assert form is not None
    return form


@pytest.mark.parametrize(("tiling", "sizes"), [
    (GROUPS, {"B": 2, "H": 7, "W": 7, "C": 64, "K": 64, "R": 3, "S": 3, "A": 1}),
    (replace(GROUPS, through=True), {"B": 2, "H": 7, "W": 7, "C": 64, "K": 72, "R": 3, "S": 3, "A": 1}),
    (GROUPS, {"B": 1, "H": 9, "W": 6, "C": 72, "K": 40, "R": 2, "S": 3, "A": 0}),
    (TWO_GROUPS, {"B": 3, "H": 5, "W": 9, "C": 40, "K": 72, "R": 5, "S": 1, "A": 2}),
])
def test_a_bulk_copy_brings_a_box_of_pixels_and_the_padding(tiling: Tiling, sizes: dict[str, int]) -> None:
    schedule = written(**sizes)
    made = build(schedule, form_of(schedule), tiling)
    assert made.judgement.emittable
    assert "wgmma_m64n64_f16_f16_f32" in made.cuda
    assert "bulk_copy_4d" in made.cuda
    assert made.run(device="cpu", time=False).correct
    (kernel,) = compile_module(emit(made.plan), "sm_90").kernels.values()
    assert not kernel.spill_store_bytes


@pytest.mark.parametrize(("stride", "sizes"), [
    (1, {"B": 2, "H": 7, "W": 9, "C": 40, "K": 24, "R": 3, "S": 3, "A": 1}),
    (2, {"B": 2, "H": 9, "W": 11, "C": 16, "K": 40, "R": 3, "S": 3, "A": 1}),
])
def test_warps_take_pixels_from_staged_boxes(stride: int, sizes: dict[str, int]) -> None:
    schedule = written(stride=stride, **sizes)
    made = build(schedule, form_of(schedule), WARPS)
    assert made.judgement.emittable
    assert "mma_m16n8k16_f16_f16_f32(" in made.cuda
    assert "load_matrix<" in made.cuda
    assert made.run(device="cpu", time=False).correct


def test_every_other_pixel_is_a_step_of_the_box() -> None:
    schedule = written(stride=2, B=2, H=9, W=11, C=64, K=64, R=3, S=3, A=1)
    made = build(schedule, form_of(schedule), GROUPS)
    assert made.judgement.emittable
    (pixels,) = (m for m in emit(made.plan).tensor_maps if m.buffer == "x")
    assert (pixels.box, pixels.steps, pixels.spans) == ((1, 8, 8, 64), (1, 2, 2, 1), (1, 16, 16, 64))
    assert made.run(device="cpu", time=False).correct


@pytest.mark.parametrize(("program", "rows", "copy"), [
    (product_programs.conv_nhwc, ("n",), "bulk_copy_2d<64, 64>(&x_s[0], x_map, 0, 64 * n,"),
    (product_programs.conv, ("n", "h"), "bulk_copy_3d<64, 64, 1>(&x_s[0], x_map, 64 * (n % 2), 0, n / 2,"),
], ids=["nhwc", "nchw"])
def test_pixels_without_a_filter_are_rows_of_a_plain_matrix(program: Any, rows: tuple[str, ...], copy: str) -> None:
    schedule = written(program=program, B=2, H=8, W=10, C=64, K=72, R=1, S=1, A=0)
    form = form_of(schedule)
    assert form.rows == rows
    made = build(schedule, form, GROUPS)
    assert made.judgement.emittable
    assert copy in made.cuda
    assert made.run(device="cpu", time=False).correct


@pytest.mark.parametrize("channels", [16, 32])
def test_few_channels_are_shorter_rows(channels: int) -> None:
    schedule = written(B=2, H=8, W=8, C=channels, K=64, R=3, S=3, A=1)
    form = form_of(schedule)
    tiling = next(t for t, _ in ranked(form, gpu("H200")) if t.engine == "warpgroup")
    assert tiling.depth == channels
    made = build(schedule, form, replace(tiling, stages=3))
    assert made.judgement.emittable
    assert f"shared_tile<{2 * channels}," in made.cuda
    assert made.run(device="cpu", time=False).correct


def test_channels_in_slices_for_few_pixels() -> None:
    schedule = written(B=1, H=6, W=7, C=64, K=24, R=3, S=3, A=1)
    made = contraction(schedule, tiling=replace(WARPS, slices=2))
    assert made.judgement.emittable
    assert len(made.plan.launched) == 2
    assert made.run(device="cpu", time=False).correct


@pytest.mark.parametrize("tiling", [replace(GROUPS, columns=32, depth=32), WARPS], ids=["warpgroup", "warp"])
def test_groups_are_batches(tiling: Tiling) -> None:
    schedule = written(B=1, H=6, W=7, C=64, D=32, K=64, E=32, R=3, S=3, A=1)
    assert product_form(schedule, schedule.plan.kernels[0].id) is None
    made = contraction(schedule, tiling=tiling)
    assert made.judgement.emittable
    assert made.plan.loops["k"].role == "block.z"
    assert made.run(device="cpu", time=False).correct
    assert all(32 % t.columns == 0 for t, _ in ranked(form_of(in_groups(schedule, "conv_nhwc")), gpu("H200")))


@pytest.mark.parametrize(("program", "sizes"), [
    (dilated, {"B": 2, "L": 9, "M": 10, "C": 64, "K": 64, "P": 5, "Q": 6}),
    (volumes, {"B": 1, "N": 4, "L": 5, "M": 6, "C": 64, "K": 40}),
], ids=["dilated", "three dimensions"])
def test_filters_with_holes_and_volumes(program: Any, sizes: dict[str, int]) -> None:
    schedule = program.schedule(**sizes)
    made = build(schedule, form_of(schedule), GROUPS)
    assert made.judgement.emittable
    assert "wgmma_m64n64" in made.cuda
    assert made.run(device="cpu", time=False).correct


@pytest.mark.parametrize(("height", "width", "box"), [(5, 13, (1, 2, 16)), (8, 4, (1, 8, 4))])
def test_images_whose_pixels_lie_along_memory(height: int, width: int, box: tuple[int, ...]) -> None:
    schedule = written(program=product_programs.conv, B=2, H=height, W=width, C=40, K=24, R=3, S=3, A=1)
    form = form_of(schedule)
    assert boxes(form, WARPS)[0] == box  # of one image: channels lie between the pixels of two
    made = build(schedule, form, WARPS)
    assert made.judgement.emittable
    assert "load_matrix<4, true>(x_r" in made.cuda  # pixels are a fragment's columns in memory
    assert made.run(device="cpu", time=False).correct


@pytest.mark.parametrize(("program", "order"), [(product_programs.conv, ("d", "r", "s")),
                                                (product_programs.conv_nhwc, ("r", "s", "d"))], ids=["nchw", "nhwc"])
def test_three_channels_are_gathered_with_the_filter(program: Any, order: tuple[str, ...]) -> None:
    schedule = written(program=program, stride=2, B=2, H=12, W=10, C=3, K=24, R=5, S=7, A=3)
    form = form_of(schedule)
    assert form.gathered == order
    assert form.extents[2] == 3 * 5 * 7
    made = build(schedule, form, WARPS)
    assert made.judgement.emittable
    assert "load_matrix<4, false>(x_r" in made.cuda
    assert made.run(device="cpu", time=False).correct


@pytest.mark.parametrize("channels", [2, 12])
def test_threads_compute_convolutions_in_f32(channels: int) -> None:
    schedule = one_dimension.schedule(B=2, C=channels, L=37, K=24, R=5, Q=33)
    made = build(schedule, form_of(schedule), Tiling("plain", 16, 16, 8, 8, 8, 2))
    assert bool(form_of(schedule).gathered) == (channels == 2)
    assert made.judgement.emittable
    assert made.run(device="cpu", time=False).correct


def test_rows_are_all_pixels_and_the_depth_is_one_loop() -> None:
    schedule = written(B=32, H=56, W=56, C=64, K=64, R=3, S=3, A=1)
    form = form_of(schedule)
    assert (form.rows, form.columns, form.depth, form.outer_depth) == (("n", "h", "w"), ("k",), "d", ("r", "s"))
    made = build(schedule, form, TWO_GROUPS)
    assert "for (int r = 0; r < 9; ++r)" in made.cuda  # nine filter elements in steps of one pipeline


def test_steps_go_through_memory_in_its_order() -> None:
    sizes = {"B": 2, "H": 8, "W": 8, "C": 64, "K": 64, "R": 3, "S": 3, "A": 1}
    last, first = (form_of(written(program=p, **sizes)) for p in (product_programs.conv_nhwc, product_programs.conv))
    assert last.depths == ("r", "s", "d")
    assert first.depths == ("d", "r", "s")


def test_tiles_leave_as_little_over_as_they_can() -> None:
    assert box_of((32, 56, 56), 64) == (1, 8, 8)
    assert box_of((32, 14, 14), 128) == (32, 2, 2)
    assert number_of((32, 14, 14), box_of((32, 14, 14), 128)) * 128 == 32 * 14 * 14
    assert box_of((1, 14, 14), 64) == (1, 4, 16)
    assert box_of((4096,), 192) == (192,)


def test_the_model_counts_what_tiles_leave_over() -> None:
    target = gpu("H200")
    sizes = {"B": 1, "C": 256, "K": 256, "R": 3, "S": 3, "A": 1}
    whole, ragged = (form_of(written(H=n, W=n, **sizes)) for n in (256, 257))
    tiling = Tiling("warpgroup", 128, 256, 64, 2, 1, 3)
    less, more = product_time(whole, tiling, target), product_time(ragged, tiling, target)
    assert less is not None
    assert more is not None
    assert more.tensor_us / less.tensor_us > 1.08  # 561 tiles for 512, 0.8 % more pixels


def test_auto_takes_it() -> None:
    schedule = written(B=32, H=28, W=28, C=128, K=128, R=3, S=3, A=1)
    assert "wgmma_" in auto(schedule, "H200").cuda
    assert "mma_m16n8k16" in auto(schedule, "A100").cuda


@pytest.mark.parametrize(("name", "instruction"), [
    ("r50-3x3-14", " wgmma_"), ("r50-1x1-56", " wgmma_"), ("r50-7x7-224-nhwc", " mma_"), ("r50-3x3-28-nhwc", " wgmma_"),
    ("r50-7x7-224", " mma_")])
def test_layers_of_networks_are_tensor_instructions(name: str, instruction: str) -> None:
    (case,) = (c for c in (*CONVS, *CONVS_LAST, *CONVS_GROUPED) if c.name == name)
    schedule = auto(getattr(product_programs, case.program).schedule(**case.sizes), "H200")
    assert f"{instruction}m" in schedule.cuda
    assert all(not k.spill_store_bytes for k in compile_module(emit(schedule.plan), "sm_90").kernels.values())


def test_padded_volumes_with_channels_first_are_soon_judged() -> None:
    """isl cannot tell within minutes whether the copies of a copy are all that the equalities say."""
    s = auto(voxels.schedule(B=4, C=64, N=16, L=28, M=28, K=64), gpu=gpu("H200"))
    assert any(leaf.mechanism.startswith("m64n") for leaf, _, _ in s.plan.leaves)
    assert s.judgement.emittable


def test_what_has_one_filter_for_each_channel_is_no_product() -> None:
    sizes = {"B": 1, "C": 32, "H": 8, "W": 8, "R": 3, "S": 3, "P": 8, "Q": 8, "T": 1, "A": 1}
    schedule = product_programs.depthwise_nhwc.schedule(**sizes)
    assert contraction(schedule) is schedule
