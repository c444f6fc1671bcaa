"""A parameter without axes is a number: given as one, of any type, it reaches the kernel and its reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import explorer as ex

N = ex.sizes("N")


@ex.program
def in_f32(alpha: ex.f32, x: ex.f32[N], y: ex.f32[N]):
    for i in range(N):
        y[i] = alpha * x[i]


@ex.program
def in_bf16(alpha: ex.bf16, x: ex.f32[N], y: ex.f32[N]):
    for i in range(N):
        y[i] = alpha * x[i]


@ex.program
def in_i32(alpha: ex.i32, x: ex.f32[N], y: ex.f32[N]):
    for i in range(N):
        y[i] = alpha * x[i]


@ex.program
def in_bool(alpha: ex.bool_, x: ex.f32[N], y: ex.f32[N]):
    for i in range(N):
        y[i] = x[i] if alpha else 0.0


@pytest.mark.parametrize(("program", "alpha"), [
    (in_f32, 2.0), (in_f32, np.float32(2)), (in_f32, np.array(2.0)), (in_f32, 2), (in_bf16, 2.0), (in_bf16, np.float64(2)),
    (in_i32, 2), (in_i32, np.int64(2)), (in_bool, True), (in_bool, np.array(False))])  # fmt: skip
def test_a_number_is_given_as_one(program: Any, alpha: Any) -> None:
    x = np.arange(5, dtype=np.float32)
    run = program.schedule(N=5).run({"alpha": alpha, "x": x}, device="cpu", time=False)
    assert run.correct
    assert np.array_equal(run.outputs["y"], x * np.float32(alpha))
