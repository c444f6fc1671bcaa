"""Steps of kernels: what is read off plans, and that prices tell the stages of a product apart, in the order of their times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from math import inf
from typing import Any

import pytest

import explorer as ex
from benchmarks.product_programs import bias_gelu, bias_relu
from benchmarks.product_programs import product_nn as matmul
from explorer.schedule import Schedule
from explorer.strategies.contraction.form import product_form
from explorer.strategies.contraction.model import product_time
from explorer.strategies.contraction.moves import build
from explorer.strategies.contraction.shapes import Tiling
from explorer.strategies.pipelines.facts import steppings
from explorer.strategies.pipelines.rates import RATES
from explorer.strategies.pipelines.terms import Cycles, Step, stepped, together
from explorer.strategies.price import KernelPrice, price

H200 = ex.gpu("H200")
SIZES = {"M": 4096, "N": 4096, "K": 4096}
PLAIN, WARP = Tiling("plain", 128, 128, 16, 16, 16, 1), Tiling("warp", 128, 128, 32, 2, 4, 1, 16)
GROUP = Tiling("warpgroup", 128, 256, 64, 2, 1, 1)


def made(t: Tiling, without: tuple[str, ...] = ()) -> Schedule:
    start = matmul.schedule(**SIZES)
    form = product_form(start, start.plan.kernels[0].id)
    assert form is not None
    return start.replay(tuple(step for step in build(start, form, t).steps if step.name not in without))


def by_thread(rows: str, columns: str) -> Schedule:
    s = matmul.schedule(**SIZES).tile(["i", "j"], [16, 16]).bind("i", "block.y").bind("j", "block.x")
    return s.bind("i.i", rows).bind("j.i", columns).contract("total")


def shared_tiles() -> Schedule:
    return by_thread("thread.y", "thread.x").split("k", 16).stage("a", "k").stage("b", "k")


RUNGS: dict[str, tuple[Callable[[], Schedule], str]] = {
    "a thread an element": (lambda: by_thread("thread.x", "thread.y"), "sectors"),
    "coalesced": (lambda: by_thread("thread.y", "thread.x"), "sectors"),
    "tiles in shared memory": (shared_tiles, "banks"),
    "tiles in registers": (lambda: made(PLAIN), "issue"),
    "mma.sync": (lambda: made(WARP, ("load_matrix", "swizzle")), "banks"),
    "ldmatrix and swizzle": (lambda: made(WARP), "latency"),
    "three stages": (lambda: made(replace(WARP, stages=3)), "tensor"),
    "wgmma and bulk copies": (lambda: made(GROUP), "latency"),
    "three stages of these": (lambda: made(replace(GROUP, stages=3), ("overlap",)), "step"),
    "products in flight": (lambda: made(replace(GROUP, stages=3)), "step"),
    "results through shared memory": (lambda: made(replace(GROUP, stages=3, through=True)), "step"),
}


def priced(s: Schedule) -> KernelPrice:
    (kernel,) = price(s.plan, H200).kernels
    return kernel


def test_each_rung_of_the_ladder_is_cheaper_than_the_one_before() -> None:
    found = {name: priced(rung()) for name, (rung, _) in RUNGS.items()}
    times = [k.total_us for k in found.values()]
    early, late = times[:7], times[7:]  # warps; and warpgroups, which begin with one stage again
    assert all(then < 0.95 * first for own in (early, late) for first, then in pairwise(own)), times
    assert late[1] < 0.6 * early[-1]
    assert {name: k.bound for name, k in found.items()} == {name: bound for name, (_, bound) in RUNGS.items()}


def test_the_price_of_the_last_rungs_is_near_what_was_measured() -> None:
    """Times of an H200: docs/strategies.md; of ``mma.sync`` those of the same tile in the ablation."""
    for name, measured in (("ldmatrix and swizzle", 539), ("three stages", 419), ("three stages of these", 224),
                           ("products in flight", 201), ("results through shared memory", 187)):
        assert measured / 1.16 < priced(RUNGS[name][0]()).total_us < measured * 1.16, name


@pytest.mark.parametrize("t", [
    WARP, replace(WARP, stages=3), replace(WARP, rows=64, columns=64, stages=4), replace(GROUP, stages=3),
    replace(GROUP, columns=128, stages=5), replace(GROUP, stages=3, through=True),
    replace(GROUP, columns=64, depth=128, stages=4),
    replace(GROUP, stages=3, persistent=132), replace(GROUP, stages=4, persistent=132, producer=True), replace(PLAIN, stages=3),
    replace(PLAIN, columns=64, depth=32, across=8, stages=3, step=4), replace(PLAIN, columns=256, across=32, stages=3)], ids=str)
def test_a_tiling_and_its_plan_have_one_time(t: Tiling) -> None:
    form = product_form(matmul.schedule(**SIZES), matmul.schedule(**SIZES).plan.kernels[0].id)
    assert form is not None
    told = product_time(form, t, H200)
    assert told is not None
    assert told.total_us == pytest.approx(priced(made(t)).total_us, rel=0.01)


def test_what_a_step_is_is_read_off_the_plan() -> None:
    plan = made(replace(WARP, stages=3)).plan
    (found,) = steppings(plan, plan.kernels[0])
    assert (found.loop, found.count, found.stages, found.engine) == ("k", 128, 3, "warp")
    assert {use.leaf.id: use.times for use in found.copies} == {"a_s": 128 * 32, "b_s": 32 * 128}
    assert [use.times for use, _ in found.instructions] == [128 * 128 * 32]


def test_a_bulk_copy_is_made_once_for_all_warpgroups() -> None:
    plan = made(replace(GROUP, stages=3)).plan
    (found,) = steppings(plan, plan.kernels[0])
    assert {use.leaf.id: use.times for use in found.copies} == {"a_s": 128 * 64, "b_s": 64 * 256}


def test_a_copy_that_is_made_once_is_no_step() -> None:
    s = by_thread("thread.y", "thread.x").stage("b", "j.i")
    assert not steppings(s.plan, s.plan.kernels[0])
    assert priced(s).steps is None


def test_what_a_kernel_without_steps_takes_is_its_longest_roof() -> None:
    kernel = priced(by_thread("thread.y", "thread.x"))
    assert kernel.parts == (("sectors", kernel.sectors_us),)
    assert kernel.total_us == kernel.launch_us + max(kernel.roofs)


def test_the_terms_add_up_to_the_price() -> None:
    for rung, _ in RUNGS.values():
        whole = price(rung().plan, H200)
        assert sum(us for _, us in whole.terms) == pytest.approx(whole.total_us)


def test_stages_hide_latency_until_something_else_is_longer() -> None:
    def time(stages: int) -> tuple[float, str]:
        found = stepped((Step("warpgroup", 64, stages, 100.0, 0.0, 0.0, 100.0),), 0.0, 132, 256, 1, 132, 1000.0)
        ((_, us),) = found.steps
        return us.longest, us.bound

    times, rates = [time(n) for n in (2, 3, 4, 5, 6, 7)], RATES["warpgroup"]
    assert [bound for _, bound in times] == ["latency"] * 2 + ["step"] * 4
    hidden = times[0][0] - 64 * rates.released / 1000
    assert hidden == pytest.approx((3 - rates.late) / (2 - rates.late) * times[1][0])


def test_copies_wait_for_the_products_in_flight_of_two_stages() -> None:
    """Slots are released a product later; with more stages that is hidden."""
    def landing(stages: int, waited: bool) -> float:
        return Step("warpgroup", 64, stages, 100.0, 0.0, 0.0, 100.0, waited).landing

    assert landing(2, False) == landing(2, True) + RATES["warpgroup"].released
    assert landing(3, False) == landing(3, True)
    assert Step("warp", 64, 2, 100.0, 0.0, 0.0, 100.0).landing == Step("warp", 64, 2, 100.0, 0.0, 0.0, 100.0, True).landing


def test_what_overlaps_takes_hardly_longer_than_the_longest() -> None:
    """Two times that are equally long cost 15 % more; one that is half as long as the other less than a hundredth."""
    assert together(100.0, 0.0, 0.0, 5.0) == together(100.0, 90.0, 80.0, inf) == 100.0
    assert together(100.0, 100.0, 0.0, 5.0) == pytest.approx(100 * 2**0.2)
    assert 100.0 < together(100.0, 50.0, 0.0, 5.0) < 101.0
    assert together(0.0, 0.0, 0.0, 5.0) == 0.0


def test_a_step_computes_as_long_as_the_longest_of_what_its_instructions_need() -> None:
    one = Cycles(tensor=3.0, issue=4.0, banks=5.0, load=1.0, step=6.0, latency=2.0)
    assert (one.computing, one.longest, one.bound) == (6.0, 6.0, "step")
    assert one.together(5.0) == together(6.0, 1.0, 2.0, 5.0)
    assert one.stretch(5.0) == pytest.approx(one.together(5.0) / 6.0)


def test_other_blocks_go_on_while_one_waits() -> None:
    step = Step("warp", 64, 1, 100.0, 0.0, 0.0, 0.0)
    one, two = (stepped((step,), 0.0, 264, 256, r, 132, 1000.0) for r in (1, 2))
    assert (one.rounds, two.rounds) == (2, 1)
    assert two.total_us < 0.6 * one.total_us


def test_a_producer_starts_the_pipeline_once() -> None:
    turns = replace(GROUP, stages=3, through=True, persistent=132)
    fills = [dict(priced(made(t)).parts)["fill"] for t in (turns, replace(turns, producer=True))]
    assert fills[0] == pytest.approx(4 * fills[1])  # 512 tiles, of which a block takes four


def test_fragments_that_are_loaded_ahead_cost_as_much() -> None:
    """The compiler orders loads and products alike in both texts."""
    s = made(replace(WARP, stages=3))
    ahead = s.pipeline("k.i", 2, asynchronous=False)
    assert priced(ahead).steps.resident == priced(s).steps.resident == 2  # type: ignore[union-attr]
    assert priced(ahead).total_us == pytest.approx(priced(s).total_us, rel=0.01)


def test_blocks_of_a_grid_that_is_resident_as_a_whole_load_faster_together() -> None:
    step = Step("warpgroup", 64, 4, 0.0, 0.0, 0.0, 1000.0, even=True)
    grids = ((132, 1), (396, 3), (792, 3))  # blocks, and resident ones
    one, three, rounds = (stepped((step,), 0.0, n, 128, r, 132, 1000.0).steps[0][1].load for n, r in grids)
    assert three == pytest.approx(3 * one / (1 + 2 * RATES["warpgroup"].beside))
    assert rounds == pytest.approx(6 * one), "of the second round some start early"


SMALL, SQUARE, WIDE = (Tiling("warpgroup", m, n, 64, m // 64, 1, stages, through=True) for m, n, stages in
                       ((64, 64, 4), (128, 128, 5), (64, 192, 6)))
MEASURED = {"bias_gelu": {SMALL: 8.74, SQUARE: 9.66, WIDE: 10.46}, "bias_relu": {SMALL: 7.01, WIDE: 7.23}}
"""512 x 3072 x 768 with bias and GELU (by `erff`), and with ReLU: microseconds on an H100."""


@pytest.mark.parametrize("program", [bias_gelu, bias_relu])
def test_what_follows_the_sums_counts_in_the_model_and_in_the_price(program: Any) -> None:
    """The order of measured times: few warps compute functions slowly, many small blocks fast."""
    start = program.schedule(M=512, N=3072, K=768)
    form = product_form(start, start.plan.kernels[0].id)
    assert form is not None
    measured = MEASURED[program.name]
    times = {t: product_time(form, t, H200).total_us for t in measured}  # type: ignore[union-attr]
    assert sorted(times, key=times.__getitem__) == sorted(measured, key=measured.__getitem__)
    for t, us in times.items():
        assert us == pytest.approx(measured[t], rel=0.06)
        assert us == pytest.approx(price(build(start, form, t).plan, H200).total_us, rel=0.01)


def test_a_shared_scalar_beside_tiles_has_a_price() -> None:
    size, depth = ex.sizes("M K")

    @ex.program
    def scaled(x: ex.f32[size, depth], w: ex.f32[depth], z: ex.f32[size]):
        t = ex.local(ex.f32)
        t = 0.0
        for a in range(depth):
            t += w[a]
        for i in range(size):
            s = ex.local(ex.f32)
            s = 0.0
            for k in range(depth):
                s += x[i, k] * t
            z[i] = s

    s = scaled.schedule(M=16, K=8).split("k", 4).bind("i", "thread.x").contract("t", "shared").stage("x", "k")
    for made in (s, s.contract("s"), s.contract("s").unroll("k.i")):
        assert 0 < price(made.plan, H200).total_us < 1e3


def test_copies_by_one_lane_of_a_warp_cost_a_request_for_each_element() -> None:
    """`stage` gives a copy to the threads that there are; `tensorize` makes 128 of each, of which the first one copies."""
    s = matmul.schedule(**SIZES).tile(["i", "j"], [128, 128]).split("i.i", 64)
    s = s.bind("i", "block.y").bind("j", "block.x").bind("i.i", "thread.y")
    s = s.distribute("j.i", after="k").distribute("j.i", after="S0")
    s = s.distribute("i.i.i", after="j.i.3").distribute("i.i.i", after="j.i")
    s = s.split("k", 64).reorder(("k", "i.i.i.3", "j.i.3", "k.i")).contract("total")
    few = s.stage("a", "k").stage("b", "k").swizzle("a_s", 128).swizzle("b_s", 128).tensorize("S1")
    all_lanes = few.bind("a_s.r", "thread.x", count=128).bind("b_s.r", "thread.x", count=128)
    assert price(few.plan, H200).total_us > 16 * price(all_lanes.plan, H200).total_us
    assert priced(few).bound == "load"
