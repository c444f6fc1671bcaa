"""`auto` never makes it worse than the default, by counted facts; the programs where it did."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import explorer as ex
from explorer.ir.plan import initial
from explorer.strategies import auto, default, guard
from explorer.strategies.counts import work
from explorer.strategies.guard import WORSE
from explorer.strategies.price import Price, price
from explorer.strategies.producers import GROWTH, produced_in_place
from tests.properties.several import several_case

from .between_kernels import CASES, cast_sum, cast_sum_apart, recurrent, swiglu_end, two_products

H200 = ex.gpu("H200")
IN_CI = 12
"""Random programs of the slice that runs with the tests; ``benchmarks/never_worse.py`` takes 200."""
BUSY = {"depthwise_pointwise": 1 << 16, "depthwise_pointwise_planes": 1 << 16, "two_products": 1 << 12, "three_products": 1 << 12,
        "atax": 1 << 14, "bicg": 1 << 14, "recurrent": 1 << 14, "recurrent_in_parts": 1 << 14, "swiglu": 1 << 13,
        "swiglu_end": 1 << 14, "cast_sum": 1 << 13, "whole_sum": 1 << 13, "cast_sum_apart": 1 << 13, "transformer": 1 << 14}
"""Busy threads that each program's longest kernel has at least; a thread of a product in tiles has 4 to 64 results."""


def held(schedule: ex.Schedule, made: ex.Schedule) -> Price:
    """The price of a plan that is no worse than the default, and computes no more than it may."""
    own, plain = price(made.plan, H200), price(default(schedule).plan, H200)
    assert made.judgement.emittable
    assert own.total_us <= WORSE * plain.total_us, f"{own}\nthe default: {plain}"
    assert work(made.plan) <= GROWTH * work(initial(schedule.source))
    return own


@pytest.mark.parametrize("name", CASES)
def test_named_programs_keep_the_gpu_busy(name: str) -> None:
    program, sizes = CASES[name]
    schedule = program.schedule(**sizes)
    found = held(schedule, auto(schedule))
    assert found.busy >= BUSY[name], str(found)
    assert found.operations <= 1.2 * work(initial(schedule.source)), "nothing is computed again and again"


@pytest.mark.parametrize("number", range(IN_CI))
def test_random_programs_of_several_nests_are_never_worse(number: int) -> None:
    schedule = several_case(0, number)
    held(schedule, auto(schedule))


@pytest.mark.parametrize("name", ex.workloads.names())
def test_workloads_are_never_worse(name: str) -> None:
    workload = ex.workloads.get(name)
    for sizes in (workload.tiny, workload.typical):
        schedule = workload.definition.schedule(**sizes)
        held(schedule, auto(schedule))


def test_products_are_kernels_of_their_own_in_tiles() -> None:
    made = auto(two_products.schedule(M=512, N=384, K=256, P=320))
    first, second = price(made.plan, H200).kernels
    assert first.counts.blocks >= 96, "a sum that another product reads is added up in registers, in tiles"
    assert second.counts.blocks >= 80, "one that goes straight into an output, too"
    assert {k.counts.shared_bytes > 0 for k in (first, second)} == {True}


def test_what_one_statement_reads_many_times_is_not_computed_there() -> None:
    schedule = swiglu_end.schedule(M=64, D=512, U=128)
    assert produced_in_place(schedule) is schedule, "one statement reads each activation 512 times"
    assert work(auto(schedule).plan) <= work(schedule.plan)


def test_a_cast_costs_nothing_where_it_is_read_and_the_sum_is_spread() -> None:
    for program in (cast_sum, cast_sum_apart):
        made = auto(program.schedule(M=64, N=4096))
        (kernel,) = price(made.plan, H200).kernels
        assert kernel.counts.threads >= 64
        assert kernel.counts.moved_bytes < 1.1 * 2 * 64 * 4096


def test_the_host_runs_the_steps_of_a_recurrence() -> None:
    for strategy in (auto, default):
        found = price(strategy(recurrent.schedule(T=16, B=64, D=128, H=256)).plan, H200)
        assert [(k.counts.launches, k.counts.busy >= 64 * 256 // 4) for k in found.kernels] == [(1, True), (16, True)]


def test_the_default_takes_nests_apart_that_hold_several_reductions() -> None:
    for name in ("atax", "bicg"):
        program, sizes = CASES[name]
        made = default(program.schedule(**sizes))
        assert min(k.counts.busy for k in price(made.plan, H200).kernels) >= min(sizes.values())


@pytest.mark.parametrize(("name", "strategy"), [
    ("two_products", auto), ("atax", default), ("bicg", default), ("recurrent", default), ("recurrent_in_parts", default),
    ("recurrent_in_parts", auto), ("swiglu", auto)])  # fmt: skip
def test_they_are_right(name: str, strategy: Callable[[ex.Schedule], ex.Schedule]) -> None:
    program, _ = CASES[name]
    sizes = dict(zip(sorted(program.sizes), (5, 6, 7, 9, 4, 8, 3), strict=False))
    assert strategy(program.schedule(**sizes)).run(device="cpu", seeds=1, time=False, ragged=False).correct


def test_variants_go_the_way_that_auto_goes() -> None:
    from explorer.strategies.choices import variants

    schedule = two_products.schedule(M=64, N=48, K=32, P=40)
    assert next(iter(variants(schedule))).schedule.plan == auto(schedule).plan


def test_what_gathers_nothing_is_taken_apart_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, taken = guard._Apart.made, []
    monkeypatch.setattr(guard._Apart, "made", lambda self, s, gathered: (taken.append(gathered), made(self, s, gathered))[1])
    program, sizes = CASES["swiglu_end"]
    auto(program.schedule(**sizes))
    assert taken == [True]
