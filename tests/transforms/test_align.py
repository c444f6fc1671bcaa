"""Counting a loop from an aligned address: the box, the refusals, and wide loads of rows of any length."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

import explorer as ex
from benchmarks.reduction_program import reduction
from explorer.errors import TransformError
from explorer.kernel.emit import emit
from explorer.run.cpu.device import CpuDevice
from explorer.strategies.reductions import Shape, reduce
from tests.programs import row_sum

M, N = ex.sizes("M N")


@ex.program
def doubled(x: ex.f32[M, N], y: ex.f32[M, N]):
    for i in range(M):
        for k in range(N):
            y[i, k] = 2.0 * x[i, k]


@ex.program
def turned(x: ex.f32[M, N], y: ex.f32[N, M]):
    for i in range(M):
        for k in range(N):
            y[k, i] = x[i, k]


def test_the_loop_counts_from_an_aligned_element() -> None:
    aligned = row_sum.schedule(M=5, N=11).align("k", "x", 4)
    assert aligned.plan.loops["k"].extent == 14
    assert "x[i, k - ((3*i) % 4)]" in str(aligned)
    with pytest.raises(TransformError, match="aligned along k already"):
        aligned.align("k", "x", 4)


@pytest.mark.parametrize(("program", "loop", "array", "width", "why"), [
    (turned, "k", "y", 4, "does not walk y along k alone"), (doubled, "k", "x", 3, "cannot have 3 elements"),
    (doubled, "k", "x", 8, "cannot have 8 elements"), (doubled, "k", "z", 4, "no array 'z'"),
    (doubled, "i", "x", 4, "does not walk x along i alone"),
])
def test_refusals(program: ex.Definition, loop: str, array: str, width: int, why: str) -> None:
    with pytest.raises(TransformError, match=why):
        program.schedule(M=5, N=11).align(loop, array, width)


def test_writes_are_not_widened_beyond_their_guard() -> None:
    split = doubled.schedule(M=5, N=11).align("k", "x", 4).split("k", 4, inner="v")
    with pytest.raises(TransformError, match="for some lanes of v, not for others"):
        split.vectorize("v")


SHAPES = [
    ((39, 263), (1,), "f16", "sum", Shape(16, 2, 8, 2, 1)), ((5, 7, 101), (2,), "f32", "max", Shape(32, 1, 4, 1, 1)),
    ((3, 5, 67, 7), (2, 3), "f32", "sum", Shape(32, 1, 4, 2, 2)), ((1003,), (0,), "f16", "sum", Shape(32, 1, 8, 2, 3)),
    ((7, 1001), (1,), "f64", "min", Shape(64, 1, 2, 2, 1)), ((3, 131), (1,), "f32", "sum", Shape(1024, 1, 4, 2, 1)),
    ((4, 33), (1,), "f32", "prod", Shape(1, 4, 4, 2, 1)),
]  # fmt: skip


def test_rows_of_any_length_are_read_in_whole_vectors() -> None:
    """On the checked device: no load is misaligned or beyond the array, and every element counts once."""
    device, random = CpuDevice(checked=True, seeds=2), np.random.default_rng(0)
    made = [reduce(reduction(*case[:4]), shape=case[4]) for case in SHAPES]
    kernels = device.build_many([emit(s.plan) for s in made])
    for (shape, axes, dtype, op, _), schedule, built in zip(SHAPES, made, kernels, strict=True):
        assert not schedule.judgement.obligations
        text = emit(schedule.plan).text
        assert ("load_within<" in text.split('extern "C"')[1]) == bool(prod(shape) % {"f16": 8, "f32": 4, "f64": 2}[dtype])
        x = random.standard_normal(shape).astype({"f16": np.float16, "f32": np.float32, "f64": np.float64}[dtype])
        wanted = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}[op](x.astype(np.float64), axis=axes)
        for results in device.run_seeds(built, {"x": x}):
            tolerance = {"f16": 2e-3, "f32": 1e-6, "f64": 1e-14}[dtype] * 30
            np.testing.assert_allclose(results["y"].reshape(wanted.shape), wanted, rtol=tolerance, atol=tolerance)
