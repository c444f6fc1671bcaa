"""Ways to add: compensated and pairwise sums in registers, their text, their errors against exact sums, and refusals."""

from __future__ import annotations

from math import fsum

import numpy as np
import pytest

from explorer.ir.rounding import sum_bound
from explorer.ir.text import loops_text
from explorer.kernel.emit import emit
from explorer.poly.judge import judge
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from explorer.run.nvrtc.compiler import compile_module
from explorer.schedule import Schedule
from explorer.transforms.accumulate import Accumulate
from tests.properties.equal import difference
from tests.properties.programs import define
from tests.transforms.multiblock import COLUMNS, PEAKS, TOTAL, spread, start

U, METHODS = 2.0**-24, ("kahan", "pairwise")


def total(s: Schedule, x: np.ndarray) -> float:
    device = CpuDevice(checked=False)
    return float(device.run(device.build(emit(s.plan)), {"x": x})["y"][0])


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, 1000, 100_000])
def test_errors_stay_within_their_bounds(count: int) -> None:
    x = np.random.default_rng(count).random(count).astype(np.float32)
    x[0] = 1e4
    exact, size = fsum(x.astype(np.float64)), float(np.abs(x).astype(np.float64).sum())
    errors = {m: abs(total(start(TOTAL, N=count).accumulate("y", method=m), x) - exact) / size for m in METHODS}
    for method in METHODS:
        assert errors[method] <= sum_bound(count, 1, U, method), method
    if count == 100_000:
        plain = abs(total(start(TOTAL, N=count), x) - exact) / size
        assert plain > 10 * errors["pairwise"] > 0
        assert errors["kahan"] <= 2.1 * U < plain


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["total", "columns", "rows, two to a block", "columns, one row of threads"])
def test_within_threads_of_a_reduction_over_blocks(name: str, method: str) -> None:
    s = spread(name).collect("y", "last_block").accumulate("y_p", method=method)
    assert not s.obligations
    arrays = seeded_arrays(s.source, 1)
    device = CpuDevice(seeds=10)
    results = device.run_seeds(device.build(emit(s.plan)), arrays)
    assert len({r["y"].tobytes() for r in results}) == 1
    assert not difference(s.source, arrays, results[0])


@pytest.mark.parametrize("method", METHODS)
def test_several_sums_in_one_thread(method: str) -> None:
    s = start(COLUMNS, M=12, N=33).split("j_2", 4).reorder(("j_2", "k", "j_2.i")).bind("j_2", "thread.x")
    s = s.accumulate("y", method=method)
    text = emit(s.plan).text
    assert "_acc[4];" in text
    arrays = seeded_arrays(s.source, 1)
    assert not difference(s.source, arrays, CpuDevice(seeds=2).run(CpuDevice(seeds=2).build(emit(s.plan)), arrays))
    assert compile_module(emit(s.plan), "sm_80").kernels


def test_text(golden) -> None:
    for method in METHODS:
        s = start(TOTAL, N=100).accumulate("y", method=method)
        text = emit(s.plan).text
        golden(loops_text(s.plan) + "\n\n" + text[text.index("// Sums of many terms"):], method)


@pytest.mark.parametrize("method", METHODS)
def test_machine_code_keeps_them_in_registers(method: str) -> None:
    s = start(TOTAL, N=5000).split("k", 100).bind("k.i", "thread.x").collect("y", "shuffle").accumulate("y_p", method=method)
    (found,) = [k for name, k in compile_module(emit(s.plan), "sm_90a").kernels.items() if name == "total_2"]
    assert found.stack_bytes == 0
    assert found.registers > 10


def test_what_is_no_sum_of_floats() -> None:
    verdict = Accumulate("y", method="kahan").check(start(PEAKS, M=4, N=8).plan)
    assert not verdict
    assert "nothing is rounded" in str(verdict)
    whole = define(TOTAL.replace("f32", "i32").replace("0.0", "0"), "whole.py").schedule(N=8)
    assert not Accumulate("y", method="pairwise").check(whole.plan)
    assert "no way 'magic'" in str(Accumulate("y", method="magic").check(whole.plan))


def test_once_more_the_same_way() -> None:
    s = start(TOTAL, N=64).accumulate("y", method="kahan")
    assert "already adds" in str(Accumulate("y_acc", method="kahan").check(s.plan))
    assert "in pairs" in loops_text(s.accumulate("y_acc", method="pairwise").plan)


def test_elsewhere_than_in_registers_it_is_no_kernel() -> None:
    s = start(TOTAL, N=64).accumulate("y", method="kahan").contract("y_acc", "shared")
    assert judge(s.plan).legal
    assert "into shared memory" in judge(s.plan).obligations[0].what
    s = start(TOTAL, N=64).accumulate("y", method="kahan").contract("y_acc", "global")
    assert "into global memory" in judge(s.plan).obligations[0].what
