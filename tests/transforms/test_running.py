"""Running: maxima and the sums against them part by part, for every input, and what it is not for."""

from __future__ import annotations

import numpy as np
import pytest

import explorer as ex
from benchmarks.product_programs import attention, causal_attention
from explorer.errors import TransformError
from explorer.kernel.emit import emit
from explorer.run.cpu.device import CpuDevice
from tests.properties.programs import define

M, N = ex.sizes("M N")
INF = np.inf


@ex.program
def weighted(x: ex.f32[M, N], w: ex.f32[N], y: ex.f32[M]):
    for i in range(M):
        peak = ex.local(ex.f32)
        total = ex.local(ex.f32)
        mean = ex.local(ex.f32)
        peak = -ex.inf
        for k in range(N):
            peak = max(peak, x[i, k])
        total = 0.0
        for k in range(N):
            total += ex.exp(x[i, k] - peak)
        mean = 0.0
        for k in range(N):
            mean += w[k] * ex.exp(x[i, k] - peak)
        y[i] = mean / total


def one_pass(schedule: ex.Schedule, size: int = 4) -> ex.Schedule:
    """One loop over the parts, one cell of each array."""
    s = schedule.split("k", size).split("k_2", size).split("k_3", size).running("peak", "k")
    s = s.sequence("k_2", after="S4").sequence("k", after="S4").fuse("k", "k_2").fuse("k", "k_3")
    for name in ("peak_run", "total_run", "mean_run"):
        s = s.contract(name, "register", fold=True)
    return s.contract("peak_before", "register").contract("peak_scale", "register")


def test_one_pass_over_the_data(golden) -> None:
    made = one_pass(weighted.schedule(M=3, N=10))
    assert made.judgement.emittable
    assert made.run(device="cpu", time=False).correct
    golden(str(made))


@pytest.mark.parametrize("row", [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [-INF] * 4 + [1, 2, 3, 4, 5, 6], [5] + [-INF] * 9, [-INF] * 10, [3, INF] + [0] * 8,
    [0, 1, np.nan, 3, 4, 5, 6, 7, 8, 9], [100] * 5 + [-100] * 5, [-3e38] * 5 + [3e38] * 5, [88] * 10, [-INF] * 9 + [1],
])  # fmt: skip
def test_it_agrees_for_infinities_and_nans(row: list[float]) -> None:
    x, w = np.array([row], np.float32), np.linspace(0.5, 1.5, 10, dtype=np.float32)
    source = weighted.schedule(M=1, N=10)
    device = CpuDevice(checked=True, seeds=1)
    plain, made = device.build_many([emit(s.plan) for s in (source, one_pass(source))])
    (before,), (after,) = (device.run_seeds(b, {"x": x, "w": w}) for b in (plain, made))
    np.testing.assert_allclose(after["y"], before["y"], rtol=1e-6)


@pytest.mark.parametrize(("program", "length"), [(attention, 10), (causal_attention, 10), (causal_attention, 8)])
@pytest.mark.parametrize("partial", [False, True])
def test_weights_may_be_kept_and_multiplied(program, length: int, partial: bool) -> None:  # type: ignore[no-untyped-def]
    s = program.schedule(B=1, H=1, L=length, D=3)
    for key in ("j", "j_2", "j_3", "j_4"):
        s = s.split(key, 4)
    s = s.inline("s")
    s = s.rfactor("peak", "j_2").running("peak", "j_2.c") if partial else s.running("peak", "j_2")
    assert s.judgement.emittable
    assert s.run(device="cpu", time=False).correct
    causal = program is causal_attention
    assert (f"out_run[{'(i // 4) + 1' if causal else 3}, b, h, i, d_2] / total_run[" in str(s))


def test_parts_end_together_in_a_block() -> None:
    """With the last row that stands in the same iteration outside."""
    s = causal_attention.schedule(B=1, H=1, L=16, D=3).inline("s")
    for key in ("j", "j_2", "j_3", "j_4"):
        s = s.split(key, 4)
    s = s.rfactor("peak", "j_2").split("i", 8).bind("i", "block.x")
    for loop in [x.id for x in s.plan.loops.values() if x.id == "i.i"]:
        for node in [n.id for n in s.plan.loops[loop].body][:-1]:
            s = s.distribute([x.id for x in s.plan.find(node)[1]][-1], after=node)  # type: ignore[index]
    rows, parts = [x.id for x in s.plan.resolve("S4_combine")[1][-2:]]  # type: ignore[index]
    s = s.reorder((parts, rows)).running("peak", parts)
    assert f"where 4*{parts} <= 8*i + 7" in str(s)
    assert s.run(device="cpu", time=False).correct


REFUSED = {
    "otherwise than in exp": ("y[i] = total * peak", "total += ex.exp(x[i, k] - peak)", ""),
    "is no multiple of e": ("y[i] = total", "e[k] = ex.exp(x[i, k] - peak)\n            total += e[k] * e[k]", ""),
    "neither summed nor elements": ("y[i] = total", "z[i, k] = ex.exp(x[i, k] - peak)\n            total += z[i, k]", ""),
    "not the maximum of what": ("y[i] = total", "total += ex.exp(x[i, k] * 2.0 - peak)", ""),
    "before S.* is through with it": ("y[i] = total", "total += ex.exp(x[i, k] - peak)\n            z[i, k] = total", ""),
    "starts with 1.0": ("y[i] = total", "total += ex.exp(x[i, k] - peak)", "1.0"),
    "nothing is summed against peak": ("y[i] = total", "total += x[i, k]", ""),
}


@pytest.mark.parametrize("said", REFUSED)
def test_what_does_not_scale_is_refused(said: str) -> None:
    end, body, begin = REFUSED[said]
    text = f"""@ex.program
def f(x: ex.f32[M, N], y: ex.f32[M]{', z: ex.f32[M, N]' if 'z[' in body else ''}):
    for i in range(M):
        peak = ex.local(ex.f32)
        total = ex.local(ex.f32)
        {'e = ex.local(ex.f32, N)' if 'e[' in body else ''}
        peak = -ex.inf
        for k in range(N):
            peak = max(peak, x[i, k])
        total = {begin or '0.0'}
        for k in range(N):
            {body}
        {end}
"""
    s = define(text, "refused.py").schedule(M=3, N=8).split("k", 4).split("k_2", 4)
    with pytest.raises(TransformError, match=said):
        s.running("peak", "k")


def test_other_refusals() -> None:
    s = weighted.schedule(M=3, N=8)
    parts = s.split("k", 4).split("k_2", 4).split("k_3", 4)
    with pytest.raises(TransformError, match="no loop of S5 runs through parts of 4"):
        s.split("k", 4).split("k_2", 4).split("k_3", 2).running("peak", "k")
    with pytest.raises(TransformError, match="not parts of one loop"):
        parts.running("peak", "i")
    with pytest.raises(TransformError, match="not a loop around"):
        parts.running("peak", "k_2")
    with pytest.raises(TransformError, match="has storage already"):
        parts.contract("total", "register").running("peak", "k")
    with pytest.raises(TransformError, match="is no maximum"):
        parts.running("total", "k_2")


def test_every_element_that_is_started_is_carried() -> None:
    text = """@ex.program
def f(x: ex.f32[M, N], y: ex.f32[M]):
    for i in range(M):
        peak = ex.local(ex.f32)
        total = ex.local(ex.f32)
        peak = -ex.inf
        for k in range(N):
            if i > 0:
                peak = max(peak, x[i, k])
        total = 0.0
        for k in range(N):
            if i > 0:
                total += ex.exp(x[i, k] - peak)
        y[i] = total
"""
    s = define(text, "started.py").schedule(M=3, N=8).split("k", 4).split("k_2", 4)
    with pytest.raises(TransformError, match="not every element that S0 starts has values"):
        s.running("peak", "k")


@pytest.mark.parametrize("statement", ["S1_start", "S1_before", "S1_scale", "S3_start"])
def test_what_it_makes_can_be_outlined(statement: str) -> None:
    """Such a statement runs in the parts of a loop of the program, not in loops of its own dimensions (chain 2031:30)."""
    s = weighted.schedule(M=3, N=10).split("k", 4).split("k_2", 4).split("k_3", 4).running("peak", "k").outline(statement)
    assert s.judgement.legal
    assert s.run(device="cpu", time=False).correct
