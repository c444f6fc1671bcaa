"""Contraction: products are recognised in every order, tiled, built, proved and right, at whole and ragged sizes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import explorer as ex
from benchmarks.product_programs import residual_rmsnorm
from explorer.errors import TransformError
from explorer.gpu.spec import gpu
from explorer.ir.tree import Sync, walk
from explorer.kernel.emit import emit
from explorer.poly.traffic import traffic
from explorer.run.nvrtc.compiler import compile_module
from explorer.schedule import Schedule
from explorer.strategies.auto import auto
from explorer.strategies.contraction import contraction, ranked
from explorer.strategies.contraction.form import product_form
from explorer.strategies.contraction.model import product_time
from explorer.strategies.contraction.moves import build
from explorer.strategies.contraction.shapes import Tiling
from explorer.strategies.price import price
from tests.strategies.products import biased, built, product

ORDERS = [(a, b) for a in "nt" for b in "nt"]
GROUPS = Tiling("warpgroup", 64, 64, 64, 1, 1, 2)
WARPS = Tiling("warp", 32, 32, 32, 2, 2, 2)
THREADS = Tiling("plain", 16, 16, 8, 8, 8, 2)


@pytest.mark.parametrize(("left", "right"), ORDERS)
@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 128), (72, 40, 104)])
def test_a_warpgroup_multiplies_what_bulk_copies_bring(left: str, right: str, m: int, n: int, k: int) -> None:
    made = built(product(ex.f16, ex.f32, left, right), GROUPS, M=m, N=n, K=k)
    assert made.judgement.emittable
    assert "wgmma_m64n64_f16_f16_f32_async<4>" in made.cuda
    assert "bulk_copy_2d" in made.cuda
    assert made.run(device="cpu", time=False).correct
    (kernel,) = compile_module(emit(made.plan), "sm_90").kernels.values()
    assert not kernel.spill_store_bytes


@pytest.mark.parametrize(("left", "right"), ORDERS)
def test_a_step_of_two_rows_of_the_swizzle_is_multiplied_panel_by_panel(left: str, right: str) -> None:
    made = built(product(ex.f16, ex.f32, left, right), replace(GROUPS, depth=128, stages=3), M=72, N=40, K=328)
    assert made.judgement.emittable
    assert made.cuda.count("wgmma_m64n64_f16_f16_f32_async<4>(") == 1  # in a loop over panels that is written out
    assert "wgmma_wait<2>(" in made.cuda  # two texts of the step before stay in flight
    assert made.run(device="cpu", time=False).correct
    (kernel,) = compile_module(emit(made.plan), "sm_90").kernels.values()
    assert not kernel.spill_store_bytes


def test_a_producer_beside_steps_of_two_panels_waits_for_the_products_of_both() -> None:
    """A release follows the products of the step before, of both panels: with one more in flight it would not."""
    t = replace(GROUPS, depth=128, stages=4, producer=True)
    made = built(product(ex.f16, ex.f32, "n", "n"), t, M=72, N=136, K=712)
    assert made.judgement.emittable
    assert "wgmma_wait<2>(" in made.cuda
    assert made.run(device="cpu", time=False).correct

    def weaker(kind: str) -> Schedule:
        (wait,) = [n for n in walk(made.plan.kernels[0].body) if isinstance(n, Sync) and n.kind == kind and n.pending]
        return Schedule(made.source, made.plan.replace_node(wait.id, replace(wait, pending=wait.pending + 1)))

    for kind, what in (("wait_products", "no release behind"), ("acquire", "no release behind")):
        judged = weaker(kind).judgement
        assert not judged.legal
        assert what in str(judged)


def test_results_of_cut_tiles_reach_shared_memory_without_a_condition() -> None:
    """A cell beyond the last row or column is read by nobody; what is stored to global memory keeps its conditions."""
    made = built(product(ex.f16, ex.f32, "n", "n"), replace(GROUPS, through=True), M=100, N=72, K=128)
    lines = made.cuda.split("wgmma_wait<0>")[-1].splitlines()
    barrier = next(n for n, line in enumerate(lines) if "__syncthreads" in line)
    assert not [line for line in lines[:barrier] if "if (" in line or "min(" in line]
    assert [line for line in lines[barrier:] if "if (" in line and "< 100" in line]
    assert not [line for line in lines[barrier:] if "min(" in line]
    assert made.run(device="cpu", time=False).correct


def test_products_that_another_kernel_reads_leave_through_shared_memory_too() -> None:
    """Rows in global memory of 2 bytes an element, which a second kernel normalises: at ragged sizes, on the CPU device."""
    written = residual_rmsnorm.schedule(M=100, N=72, K=128).distribute("i", "j").launch("residual_rmsnorm", after="i")
    form = product_form(written, written.plan.kernels[0].id)
    assert form is not None
    assert form.aligned == 16
    made = build(written, form, replace(GROUPS, through=True))
    text = made.cuda.split('extern "C"')[1]
    assert "row_t[swizzled<128, __half>(" in text
    assert "*(vec<__half, 8>*)&row[" in text, "lanes side by side store 16 bytes each"
    assert made.run(device="cpu", time=False).correct


def test_several_warpgroups_keep_their_index_in_uniform_registers() -> None:
    wide = built(product(ex.f16, ex.f32, "n", "n"), replace(GROUPS, rows=128, down=2), M=128, N=64, K=128)
    assert "= same_in_warp(threadIdx.y);" in wide.cuda
    assert "same_in_warp" not in built(product(ex.f16, ex.f32, "n", "n"), WARPS, M=40, N=24, K=64).cuda


@pytest.mark.parametrize("dtype", [ex.f8e4m3, ex.f8e5m2])
def test_floats_of_8_bits_are_multiplied_by_warps_and_warpgroups(dtype: object) -> None:
    groups = built(product(dtype, ex.f32, "n", "t"), replace(GROUPS, depth=128), M=72, N=40, K=208)
    assert f"wgmma_m64n64_{dtype.__name__}_{dtype.__name__}_f32_async<4>" in groups.cuda  # type: ignore[attr-defined]
    warps = built(product(dtype, ex.f32, "n", "n"), WARPS, M=40, N=24, K=56)
    assert f"mma_m16n8k32_{dtype.__name__}_{dtype.__name__}_f32(" in warps.cuda  # type: ignore[attr-defined]
    for made in (groups, warps):
        assert made.run(device="cpu", time=False).correct
        (kernel,) = compile_module(emit(made.plan), "sm_90").kernels.values()
        assert not kernel.spill_store_bytes
    apart = product(dtype, ex.f32, "n", "n").schedule(M=40, N=24, K=56)
    plain, coarse = (s.run(device="cpu", time=False, ragged=False).checks[0].tolerance for s in (apart, warps))
    assert coarse.absolute > 100 * plain.absolute  # of 14 bits instead of 24
    large = product(dtype, ex.f32, "n", "t").schedule(M=1024, N=1024, K=1024)
    assert "wgmma" in auto(large, gpu="H100").cuda
    before = auto(large, gpu="A100").cuda  # no instruction multiplies eight bits there: halves are exact
    assert "mma_m16n8k16_f16_f16_f32" in before
    assert "mma_m16n8k32_f8" not in before


def test_products_on_tf32_are_multiplied_by_warps_and_warpgroups() -> None:
    for right, tiling, name in (("t", replace(GROUPS, depth=32), "wgmma_m64n64_tf32_tf32_f32_async<4>"),
                                ("n", replace(WARPS, depth=16, step=8), "mma_m16n8k8_tf32_tf32_f32(")):
        written = product(ex.f32, ex.f32, "n", right).schedule(M=72, N=40, K=56).approximate("S1", factors="tf32")
        form = product_form(written, written.plan.kernels[0].id)
        assert form is not None
        made = build(written, form, tiling)
        assert name in made.cuda
        assert made.run(device="cpu", time=False).correct
        (kernel,) = compile_module(emit(made.plan), "sm_90").kernels.values()
        assert not kernel.spill_store_bytes
    large = product(ex.f32, ex.f32, "n", "t").schedule(M=1024, N=1024, K=1024)
    assert "mma_" not in auto(large, gpu="H200").cuda
    assert "wgmma" in auto(large.approximate("S1", factors="tf32"), gpu="H200").cuda


@pytest.mark.parametrize(("left", "right"), ORDERS)
@pytest.mark.parametrize(("m", "n", "k"), [(32, 64, 64), (40, 24, 56), (37, 29, 31)])
def test_warps_multiply_fragments_of_staged_factors(left: str, right: str, m: int, n: int, k: int) -> None:
    made = built(product(ex.f16, ex.f32, left, right), WARPS, M=m, N=n, K=k)
    assert made.judgement.emittable
    assert "mma_m16n8k16_f16_f16_f32(" in made.cuda
    assert made.run(device="cpu", time=False).correct


@pytest.mark.parametrize(("left", "right"), ORDERS)
@pytest.mark.parametrize(("m", "n", "k"), [(32, 32, 32), (37, 29, 31)])
def test_threads_multiply_tiles_in_registers(left: str, right: str, m: int, n: int, k: int) -> None:
    made = built(product(ex.f32, ex.f32, left, right), THREADS, M=m, N=n, K=k)
    assert made.judgement.emittable
    assert made.run(device="cpu", time=False).correct


@pytest.mark.parametrize(("left", "right"), ORDERS)
def test_threads_read_their_columns_without_conflicts(left: str, right: str) -> None:
    """Their groups of a vector lie apart, or rows of the copy are a vector longer than the depth."""
    tiling = Tiling("plain", 64, 64, 16, 8, 8, 3)
    made = built(product(ex.f32, ex.f32, left, right), tiling, M=1024, N=1024, K=1024)
    for array in ("x_s", "y_s"):
        leaf = next(leaf for leaf, _, _ in made.plan.leaves if leaf.view(0) and leaf.view(1) and leaf.id == "S1")
        slot = next(slot for slot, view in leaf.views if view.buffer == array)
        (read,) = (a for a in traffic(made.plan, leaf=leaf.id) if a.slot == slot and a.space == "shared")
        assert read.conflicts == 1
    (kernel,) = compile_module(emit(made.plan), "sm_90").kernels.values()
    assert not kernel.spill_store_bytes
    assert kernel.registers <= 65536 // (made.plan.kernels[0].resident * tiling.threads)
    assert "__launch_bounds__(64, 2)" in made.cuda
    assert "*(vec<float, 4>*)&z[" not in made.cuda  # deep: sums may stand in any registers


@pytest.mark.parametrize(("left", "right"), ORDERS)
def test_threads_store_vectors_where_there_is_little_to_sum(left: str, right: str) -> None:
    made = built(product(ex.f32, ex.f32, left, right), Tiling("plain", 64, 64, 16, 8, 8, 3), M=1024, N=1024, K=128)
    assert ("*(vec<float, 4>*)&z[" in made.cuda) == (right == "n")


@pytest.mark.parametrize(("left", "right"), ORDERS)
@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 256), (37, 29, 259)])
def test_threads_walk_their_tile_in_serpentine_order(left: str, right: str, m: int, n: int, k: int) -> None:
    """Every second row from its last column on; copies of factors that lie along the depth are stored transposed."""
    made = built(product(ex.f32, ex.f32, left, right), replace(THREADS, transposed=True), M=m, N=n, K=k)
    assert made.judgement.emittable
    leaves = {leaf.id for leaf, _, _ in made.plan.leaves}
    assert {"S1", "S1.2"} <= leaves
    along = (left == "n") + (right == "t")
    shapes = [b.shape[-2:] for b in made.plan.buffers if b.space == "shared"]
    assert [s[0] for s in shapes] == [THREADS.depth, THREADS.depth], shapes
    assert made.cuda.count("async_copy<4>(") >= 2 * along
    assert made.run(device="cpu", time=False).correct


def test_what_follows_the_sums_stays_in_the_same_lanes() -> None:
    made = built(biased, GROUPS, M=64, N=128, K=64)
    assert made.judgement.emittable
    assert len(made.plan.launched) == 1
    assert made.run(device="cpu", time=False).correct


def test_fragments_are_loaded_as_matrices() -> None:
    text = built(product(ex.f16, ex.f32, "n", "n"), WARPS, M=64, N=64, K=64).cuda
    assert "load_matrix<4, false>(x_r" in text
    assert "load_matrix<2, true>(y_r" in text  # the right factor's depth runs across its rows


def test_auto_takes_the_instructions_that_a_gpu_has() -> None:
    written = product(ex.f16, ex.f32, "n", "n").schedule(M=1024, N=1024, K=1024)
    names = {g: auto(written, g).cuda for g in ("H200", "A100", "T4")}
    assert "wgmma_" in names["H200"]
    assert "mma_m16n8k16" in names["A100"]
    assert "wgmma_" not in names["A100"]
    assert "mma_m16n8k8_f16_f16_f32" in names["T4"]


def test_the_model_ranks_more_stages_before_fewer_of_the_same_time() -> None:
    written = product(ex.f16, ex.f32, "n", "n").schedule(M=4096, N=4096, K=4096)
    form = product_form(written, written.plan.kernels[0].id)
    assert form is not None
    (first, time), *_ = ranked(form, gpu("H200"))
    assert (first.engine, first.rows, first.columns) == ("warpgroup", 128, 256)
    assert first.stages > 2
    assert time.total_us > 2 * 4096**3 / gpu("H200").f16_tensor_flops_per_s * 1e6


def test_what_is_no_product_stays() -> None:
    softmax = ex.workloads.get("softmax").definition.schedule(M=64, N=64)
    assert contraction(softmax) is softmax
    thin = product(ex.f16, ex.f32, "n", "n").schedule(M=1, N=64, K=64)
    assert contraction(thin) is thin


def test_clusters_share_boxes_whose_rows_begin_inside_of_lines() -> None:
    def clusters(m: int, n: int, k: int) -> list[Tiling]:
        s = product(ex.f16, ex.f32, "n", "t").schedule(M=m, N=n, K=k)
        form = product_form(s, s.plan.kernels[0].id)
        assert form is not None
        return [t for t, _ in ranked(form, gpu("H200")) if t.mates != (1, 1)]

    found = clusters(1000, 1504, 776)  # rows of 1,552 bytes, 12 lines of the cache and an eighth
    assert found[0] == Tiling("warpgroup", 128, 112, 64, 2, 1, 6, through=True, producer=True, mates=(4, 2))
    assert all(-(-1000 // t.rows) % t.mates[0] == 0 and -(-1504 // t.columns) % t.mates[1] == 0 for t in found)
    assert not clusters(1024, 1536, 768)
    assert {t.stages for t in clusters(1000, 1504, 136)} == {2, 3}  # no more slots than steps


def test_a_cluster_costs_a_meeting_and_leaves_multiprocessors_out() -> None:
    s = product(ex.f16, ex.f32, "n", "t").schedule(M=1000, N=1504, K=776)
    form = product_form(s, s.plan.kernels[0].id)
    assert form is not None
    alone = Tiling("warpgroup", 128, 96, 64, 2, 1, 7, through=True, producer=True)  # 128 tiles
    times = {mates: product_time(form, replace(alone, mates=mates), gpu("H200")) for mates in ((1, 1), (1, 2), (2, 2))}
    one, pair, four = (times[m] for m in ((1, 1), (1, 2), (2, 2)))
    assert one is not None
    assert pair is not None
    assert four is not None
    assert (one.rounds, pair.rounds, four.rounds) == (1, 1, 2)
    assert pair.fill_us > one.fill_us
    assert pair.load_us < one.load_us
    made = build(s, form, replace(alone, mates=(1, 2)), gpu("H200"))
    assert price(made.plan, gpu("H200")).total_us == pytest.approx(pair.total_us, rel=0.05)


@pytest.mark.parametrize(("tiling", "words"), [
    (Tiling("warp", 32, 32, 32, 2, 2, 2, 24), "no instruction of a warp multiplies these types with a depth of 24"),
    (Tiling("warp", 32, 32, 32, 0, 2, 2), "down of a tiling is an integer of at least 1, not 0"),
    (Tiling("tensor", 32, 32, 32, 2, 2, 2), "no engine of a tiling is called 'tensor'"),
    (Tiling("warp", 32, 32, 32, 2, 2, None), "stages of a tiling is an integer"),  # type: ignore[arg-type]
    (Tiling("plain", 32, 32, 8, 8, 8, 2, -3), "step of a tiling is an integer of at least 0"),
    (Tiling("warpgroup", 64, 64, 64, 1, 1, 2, producer=True, mates=(0, 1)), "mates of a tiling is two integers"),
    ("warp", "a tiling is a Tiling, not 'warp'"),
])
def test_what_is_no_tiling_is_refused(tiling: Tiling, words: str) -> None:
    with pytest.raises(TransformError, match=words):
        contraction(product(ex.f16, ex.f32, "n", "n").schedule(M=64, N=64, K=64), tiling=tiling)


def test_warpgroups_along_both_sides_store_by_threads() -> None:
    tiling = Tiling("warpgroup", 128, 128, 64, 2, 2, 2, through=True, bulk_stores=True)
    made = contraction(product(ex.f16, ex.f32, "n", "n").schedule(M=256, N=256, K=128), tiling=tiling)
    assert made.judgement.legal
    assert "store_bulk" not in {step.name for step in made.steps}


@pytest.mark.parametrize(("tiling", "sizes", "blocks"), [
    (Tiling("warp", 64, 64, 64, 2, 4, 1, 16), (1000, 1504, 776), 3),  # loads with conditions
    (Tiling("warp", 64, 64, 64, 2, 4, 1, 16), (512, 3072, 768), 0),
    (Tiling("warp", 128, 128, 32, 2, 4, 1), (4096, 4096, 4096), 2),  # sums, fragments and loads: more than 128 registers
    (Tiling("warp", 64, 64, 64, 2, 4, 2, 16), (1000, 1504, 776), 0),  # asynchronous copies
    (Tiling("warp", 16, 16, 64, 1, 2, 1, 16), (1024, 64, 2048), 0),
])
def test_tiles_that_load_through_registers_say_how_many_blocks(
        tiling: Tiling, sizes: tuple[int, int, int], blocks: int) -> None:
    m, n, k = sizes
    made = build(*_formed(product(ex.f16, ex.f32, "n", "n").schedule(M=m, N=n, K=k)), tiling, gpu("H200"))
    assert made.plan.kernels[0].resident == blocks
    if blocks:
        (kernel,) = compile_module(emit(made.plan), "sm_90").kernels.values()
        assert kernel.spill_store_bytes <= 4  # beside 128 registers
        assert kernel.registers <= 65536 // (blocks * tiling.threads)


def _formed(schedule: Schedule) -> tuple[Schedule, Any]:
    """A product and its form."""
    return schedule, product_form(schedule, schedule.plan.kernels[0].id)


def test_rows_that_begin_inside_of_sectors_take_longer() -> None:
    """Five sectors for four of the left factor, whose rows have 128 bytes in a step: in the model and in the price."""
    tiling, loads = Tiling("warp", 64, 64, 64, 2, 4, 3, 16), dict[int, float]()
    for n in (1504, 1536):
        schedule, form = _formed(product(ex.f16, ex.f32, "n", "n").schedule(M=1024, N=n, K=776 if n == 1504 else 768))
        us, plan = product_time(form, tiling, gpu("H200")), build(schedule, form, tiling, gpu("H200")).plan
        assert us is not None
        steps = -(-form.extents[2] // 64)
        loads[n] = us.load_us / steps
        (stepped,) = (k.steps for k in price(plan, gpu("H200")).kernels)
        assert stepped is not None
        assert stepped.steps[0][1].load / steps == pytest.approx(loads[n])
    assert loads[1504] == pytest.approx((1.25 + 1) / 2 * loads[1536])


def test_halves_behind_a_condition_move_in_words() -> None:
    """Not half by half: the compiler would choose each, in two instructions."""
    tiling, written = Tiling("warp", 64, 64, 64, 2, 4, 1, 16), product(ex.f16, ex.f32, "n", "n")
    ragged, whole = (build(*_formed(written.schedule(M=n, N=n, K=n)), tiling) for n in (72, 64))
    assert "*(const packed<__half, 8>*)&x[" in ragged.cuda
    assert "packed" not in whole.cuda
    assert ragged.run(device="cpu", time=False).correct


@pytest.mark.parametrize("target", ["T4", "A100", "RTX 4090", "H200", "B200"])
@pytest.mark.parametrize(("dtype", "total"), [(ex.f16, ex.f32), (ex.bf16, ex.f32), (ex.i8, ex.i32), (ex.u8, ex.i32),
                                              (ex.f64, ex.f64)], ids=lambda x: getattr(x, "name", x))
def test_auto_takes_instructions_that_the_gpu_has(dtype: Any, total: Any, target: str) -> None:
    s = auto(product(dtype, total, "n", "t", total).schedule(M=256, N=128, K=96), gpu=target)
    assert s.kernel(target).module.text  # refuses what the architecture lacks
