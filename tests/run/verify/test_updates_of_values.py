"""Bounds of cells that hold a rounded value before a term is added: the value's own rounding counts."""

from __future__ import annotations

import numpy as np
import pytest

import explorer as ex
from explorer.frontend.definition import Definition

M, N = ex.sizes("M N")


@ex.program
def added(x: ex.bf16[M, N], z: ex.bf16[M, N], y: ex.bf16[M, N]):
    for i in range(M):
        for j in range(N):
            y[i, j] = (x[i, j] + x[i, (j + 1) % N]) / 4
            y[i, j] += z[i, j]


@ex.program
def cancelled(x: ex.bf16[M, N], y: ex.bf16[M, N]):
    for i in range(M):
        for j in range(N):
            y[i, j] = (x[i, j] + x[i, (j + 1) % N]) / 4
            y[i, j] += (x[i, j] + x[i, (j + 1) % N]) / -4


@ex.program
def in_turn(x: ex.f16[M, N], z: ex.f16[M], y: ex.f16[M]):
    for i in range(M):
        y[i] = z[i] / 3.0
    for i in range(M):
        for j in range(N):
            y[i] += x[i, j]
    for i in range(M):
        y[i] = max(y[i], z[i] * 0.1)
    for i in range(M):
        y[i] += z[i]


@pytest.mark.parametrize("program", [added, cancelled, in_turn], ids=["one term", "nothing left", "sums and others in turn"])
def test_a_right_kernel_is_right(program: Definition) -> None:
    result = program.schedule(M=11, N=17).run(device="cpu")
    assert result.correct, result


def test_a_small_term_does_not_undo_the_rounding_of_what_was_there() -> None:
    """0.47754 lies between two numbers of bf16 and is stored as the smaller one; 2**-12 more is nearer to the other."""
    x, z = np.full((4, 6), 0.953125, np.float32), np.full((4, 6), 2.0**-12, np.float32)
    x[:, 1::2] = 0.95703125
    result = added.schedule(M=4, N=6).run({"x": x, "z": z}, device="cpu")
    assert (result.outputs["y"] == 0x3EF4).all(), "the bits of 0.4765625"
    assert result.correct, result
