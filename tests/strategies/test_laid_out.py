"""Results that lie otherwise than tiles: a temporary in the tiles' order, and a launch that copies it."""

from __future__ import annotations

import pytest

from benchmarks import product_programs
from explorer.gpu.spec import gpu
from explorer.ir.plan import Plan
from explorer.schedule import Schedule
from explorer.strategies.contraction import ranked, ways
from explorer.strategies.contraction.arrange import LAID, Way
from explorer.strategies.contraction.laid_out import results_copied
from explorer.strategies.contraction.moves import build
from explorer.strategies.scatter_to_gather import gathered_sums
from explorer.transforms.rearrange import Rearrange

H200 = gpu("H200")
CASES = {
    "pixels between pixels": gathered_sums(product_programs.conv_transposed.schedule(
        B=32, C=64, H=5, W=5, K=64, R=4, S=4, P=10, Q=10, T=2, A=1)),
    "pixels between pixels, an odd number of them": gathered_sums(product_programs.conv_transposed.schedule(
        B=16, C=64, H=4, W=6, K=40, R=3, S=3, P=7, Q=11, T=2, A=1)),
    "a filter's pixels last": product_programs.conv_weights.schedule(B=32, C=64, K=72, H=3, W=3, R=3, S=3, A=1),
}


def laid_ways(s: Schedule) -> list[Way]:
    return [w for w in ways(s, s.plan.kernels[0].id, H200) if w.label.endswith(LAID)]


def written(plan: Plan) -> dict[str, tuple[int, ...]]:
    return {a.name: a.shape for a in plan.program.arrays if a.name == "y_t"}


@pytest.mark.parametrize("name", CASES)
def test_columns_of_tiles_are_last_and_a_launch_brings_them_where_they_belong(name: str) -> None:
    found = laid_ways(CASES[name])
    assert found
    for way in found:
        plan = way.schedule.plan
        (shape,) = written(plan).values()
        assert shape[-1] == way.form.column_extents[-1] == max(way.form.column_extents)
        assert any(isinstance(step, Rearrange) and step.array == "y_t" for step in way.schedule.steps)
        assert {plan.statement_of[x.statement].target.array for x, _, k in plan.leaves if k is plan.kernels[-1]} >= {"y"}
        assert way.copy_us > 2.0


@pytest.mark.parametrize("name", CASES)
def test_the_fastest_tilings_are_right(name: str) -> None:
    way = min(laid_ways(CASES[name]), key=lambda w: ranked(w.form, H200)[0][1].total_us)
    kinds = {t.engine: t for t, _ in reversed(ranked(way.form, H200))}
    assert "warpgroup" in kinds
    for tiling in kinds.values():
        made = build(way.schedule, way.form, tiling)
        assert made.judgement.emittable
        assert made.run(device="cpu", time=False).correct


def test_the_copy_reads_and_writes_along_memory() -> None:
    way = laid_ways(CASES["pixels between pixels"])[0]
    text = build(way.schedule, way.form, ranked(way.form, H200)[0][0]).cuda
    copy = text[text.rindex('extern "C"'):] if "y_t_s" in text[text.rindex('extern "C"'):] else text
    stores = [line for line in copy.splitlines() if "*(vec<__half, 2>*)&y[" in line]
    assert stores
    assert all("2 * tx]" in line for line in stores)


def test_results_that_lie_as_tiles_do_are_left_alone() -> None:
    for s in (product_programs.product_nn.schedule(M=64, N=64, K=64), gathered_sums(
            product_programs.conv_transposed_nhwc.schedule(B=8, C=32, H=5, W=5, K=64, R=4, S=4, P=10, Q=10, T=2, A=1))):
        (first, *_) = ways(s, s.plan.kernels[0].id, H200)
        assert results_copied(first.schedule, first.form) is None
