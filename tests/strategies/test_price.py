"""Counts and prices of plans: what is counted, and that one plan has one price wherever it is shown."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.strategies import auto, default
from explorer.strategies.counts import counted, work
from explorer.strategies.price import floor_us, price
from explorer.strategies.stitch import stitching

H200 = ex.gpu("H200")
M, N = ex.sizes("M N")


@ex.program
def scaled_sum(x: ex.f32[M, N], y: ex.f32[M]):
    t = ex.local(ex.f32, M, N)
    for i in range(M):
        for j in range(N):
            t[i, j] = x[i, j] * 2.0
    for i in range(M):
        y[i] = 0.0
        for j in range(N):
            y[i] += t[i, j]


def test_a_temporary_in_memory_is_written_and_read() -> None:
    schedule = scaled_sum.schedule(M=64, N=96)
    apart, inlined = default(schedule), default(schedule.inline("t"))
    first, then = (counted(apart.plan, k, H200) for k in apart.plan.kernels)
    assert (first.read_bytes, first.written_bytes) == (64 * 96 * 4, 64 * 96 * 4)
    assert then.read_bytes == 64 * 96 * 4
    assert price(apart.plan, H200).moved_bytes - price(inlined.plan, H200).moved_bytes >= 2 * 64 * 96 * 4


def test_a_temporary_in_memory_inside_of_one_kernel_is_written_and_read_too() -> None:
    schedule = scaled_sum.schedule(M=64, N=96).fuse("i", "i_2").bind("i", "block.x")
    moved = price(schedule.plan, H200).moved_bytes
    kept = price(schedule.contract("t", "shared").plan, H200).moved_bytes
    assert moved - kept == 2 * 64 * 96 * 4


def test_operations_are_counted_for_every_execution() -> None:
    @ex.program
    def again(x: ex.f32[N], y: ex.f32[M, N]):
        t = ex.local(ex.f32, N)
        for j in range(N):
            t[j] = x[j] * x[j]
        for i in range(M):
            for j in range(N):
                y[i, j] = t[j] + 1.0

    schedule = again.schedule(M=32, N=10)
    assert work(schedule.plan) == 10 + 320
    assert work(schedule.inline("t").plan) == 640


def test_busy_threads_are_those_with_something_to_do() -> None:
    schedule = ex.workloads.get("adam").definition.schedule(N=100)
    (kernel,) = price(schedule.split("i", 64).bind("i", "block.x").bind("i.i", "thread.x").plan, H200).kernels
    assert (kernel.counts.blocks, kernel.counts.threads, kernel.counts.busy) == (2, 64, 100)


def test_one_thread_pays_for_its_path() -> None:
    schedule = scaled_sum.schedule(M=512, N=512)
    alone, spread = price(schedule.plan, H200), price(auto(schedule).plan, H200)
    assert [k.bound for k in alone.kernels] == ["path"]
    assert alone.total_us > 1000 * spread.total_us
    assert spread.total_us >= 0.99 * floor_us(schedule.source, H200)


@pytest.mark.parametrize(("name", "sizes", "measured"), [
    ("softmax", {"M": 16384, "N": 1024}, 16.6), ("layernorm", {"M": 16384, "N": 768}, 12.7), ("adam", {"N": 67108864}, 430)])
def test_it_is_near_what_was_measured(name: str, sizes: dict[str, int], measured: float) -> None:
    schedule = ex.workloads.get(name).definition.schedule(**sizes)
    assert measured / 1.3 < price(auto(schedule).plan, H200).total_us < measured * 1.3


def test_a_stitching_shows_the_price_of_its_plan() -> None:
    found = stitching(ex.workloads.get("softmax").definition.schedule(M=512, N=1024))
    assert found.total_us == pytest.approx(price(found.schedule.plan, H200).total_us)
