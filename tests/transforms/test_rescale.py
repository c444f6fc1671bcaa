"""Rescale: sums of exponentials in parts with shifts of their own, for every input, and what it is not for."""

from __future__ import annotations

import numpy as np
import pytest

import explorer as ex
from explorer.errors import TransformError
from explorer.ir.text import loops_text
from explorer.kernel.emit import emit
from explorer.run.cpu.device import CpuDevice
from tests.transforms.programs import softmax
from tests.transforms.storage import refusal, right

M, N = ex.sizes("M N")
SPLIT = (("inline", "e"), ("split", "k", 4), ("split", "k_3", 4))
INF = np.inf


@ex.program
def log_sum(x: ex.f32[M, N], w: ex.f32[N], y: ex.f32[M]):
    for i in range(M):
        peak = ex.local(ex.f32)
        total = ex.local(ex.f32)
        peak = -ex.inf
        for k in range(N):
            peak = max(peak, x[i, k])
        total = 0.0
        for k in range(N):
            total += w[k] * ex.exp(x[i, k] - peak)
        y[i] = total


@ex.program
def other_maximum(x: ex.f32[M, N], w: ex.f32[N], y: ex.f32[M]):
    for i in range(M):
        peak = ex.local(ex.f32)
        total = ex.local(ex.f32)
        peak = -ex.inf
        for k in range(N):
            peak = max(peak, w[k])
        total = 0.0
        for k in range(N):
            total += ex.exp(x[i, k] - peak)
        y[i] = total


@ex.program
def changed_peak(x: ex.f32[M, N], y: ex.f32[M]):
    peak = ex.local(ex.f32, M)
    for i in range(M):
        total = ex.local(ex.f32)
        peak[i] = -ex.inf
        for k in range(N):
            peak[i] = max(peak[i], x[i, k])
        total = 0.0
        for k in range(N):
            total += ex.exp(x[i, k] - peak[i])
        y[i] = total


def parts(schedule: ex.Schedule, size: int = 4) -> ex.Schedule:
    return schedule.split("k", size).split("k_2", size).rfactor("peak", "k")


def one_pass(schedule: ex.Schedule) -> ex.Schedule:
    """Maxima and sums of the parts in one loop over them."""
    s = parts(schedule).rescale("total", "k_2")
    return s.sequence("S2", after="k_2").sequence("k.c", after="k_2").fuse("k", "k_2")


def test_parts_of_the_outer_loop(golden) -> None:
    golden(loops_text(right(softmax(), *SPLIT, ("rfactor", "S1", "k"), ("rescale", "S4", "k_3"))))


def test_parts_of_the_inner_loop_and_of_both() -> None:
    right(softmax(), *SPLIT, ("rfactor", "S1", "k.i"), ("rescale", "S4", "k_3.i"))
    right(softmax(), *SPLIT, ("rfactor", "S1", ("k", "k.i")), ("rescale", "S4", ("k_3", "k_3.i")))


def test_one_pass_over_the_data(golden) -> None:
    made = one_pass(log_sum.schedule(M=3, N=10))
    assert made.judgement.emittable
    golden(str(made))


@pytest.mark.parametrize("row", [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [-INF] * 4 + [1, 2, 3, 4, 5, 6], [5] + [-INF] * 9, [-INF] * 10, [3, INF] + [0] * 8,
    [0, 1, np.nan, 3, 4, 5, 6, 7, 8, 9], [100] * 5 + [-100] * 5, [-3e38] * 5 + [3e38] * 5, [88] * 10,
])  # fmt: skip
def test_it_agrees_for_infinities_and_nans(row: list[float]) -> None:
    x = np.array([row], np.float32)
    w = np.linspace(0.5, 1.5, 10, dtype=np.float32)
    source = log_sum.schedule(M=1, N=10)
    device = CpuDevice(checked=True, seeds=1)
    plain, rescaled = device.build_many([emit(s.plan) for s in (source, one_pass(source))])
    (before,), (after,) = (device.run_seeds(b, {"x": x, "w": w}) for b in (plain, rescaled))
    np.testing.assert_allclose(after["y"], before["y"], rtol=1e-6)


def test_the_parts_need_maxima_of_their_own() -> None:
    said = refusal(softmax(), *SPLIT, ("rescale", "S4", "k_3"))
    assert "taken over all of its row at once" in said
    assert "rfactor('peak'" in said


def test_other_parts_are_refused() -> None:
    said = refusal(softmax(), *SPLIT, ("rfactor", "S1", "k.i"), ("rescale", "S4", "k_3"))
    assert "the parts of S1 are not those of S4" in said
    assert "split the loops of both alike" in said


def test_the_maximum_must_be_of_the_same_values() -> None:
    schedule = parts(other_maximum.schedule(M=3, N=10))
    with pytest.raises(TransformError, match="S1 is not the maximum of what S3 raises e to") as caught:
        schedule.rescale("total", "k_2")
    assert "w[" in str(caught.value)


def test_only_exponentials_of_differences() -> None:
    with pytest.raises(TransformError, match="S1 is no sum of exponentials"):
        parts(log_sum.schedule(M=3, N=10)).rescale("S1", "k.i")
    row_sum = ex.workloads.get("sum_rows").definition
    with pytest.raises(TransformError, match="no sum of exponentials"):
        row_sum.schedule(**ex.workloads.get("sum_rows").tiny).rescale("S1", "k")


def test_an_array_of_maxima_is_as_good_as_a_local() -> None:
    made = one_pass(changed_peak.schedule(M=3, N=10))
    assert made.judgement.emittable
    assert made.run(device="cpu", seeds=1, time=False, ragged=False).correct


def test_candidates_apply() -> None:
    schedule = parts(log_sum.schedule(M=3, N=10))
    kind = type(schedule.rescale("total", "k_2").steps[-1])
    assert [str(c) for c in kind.candidates(schedule.plan, "S3")] == ["rescale('S3', 'k_2')"]
    assert not kind.offers(schedule.plan, "S1")
    assert kind.offers(schedule.plan, "S3")
