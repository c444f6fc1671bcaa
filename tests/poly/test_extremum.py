"""A maximum that is written with ``if`` has an order; its refusal names the reduction that has none."""

from __future__ import annotations

import pytest

import explorer as ex

M, N = ex.sizes("M N")


@ex.program
def largest(x: ex.f32[M, N], y: ex.f32[M]):
    for i in range(M):
        y[i] = -ex.inf
        for j in range(N):
            if x[i, j] > y[i]:
                y[i] = x[i, j]


@ex.program
def smallest(x: ex.f32[M, N], y: ex.f32[M]):
    for i in range(M):
        y[i] = ex.inf
        for j in range(N):
            y[i] = y[i] if y[i] <= x[i, j] else x[i, j]


@ex.program
def latest(x: ex.f32[M, N], y: ex.f32[M]):
    for i in range(M):
        y[i] = 0.0
        for j in range(N):
            y[i] = x[i, j] if x[i, 0] > y[i] else y[i]


@pytest.mark.parametrize(("program", "words"), [
    (largest, "y[i] = max(y[i], x[i, j]) in the program"), (smallest, "y[i] = min(y[i], x[i, j]) in the program"),
], ids=["max", "min"])  # fmt: skip
def test_the_refusal_names_the_reduction(program: ex.Definition, words: str) -> None:
    with pytest.raises(ex.IllegalSchedule) as caught:
        program.schedule(M=3, N=8).bind("j", "thread.x")
    assert words in caught.value.hint


def test_what_is_no_extremum_is_not_called_one() -> None:
    with pytest.raises(ex.IllegalSchedule) as caught:
        latest.schedule(M=3, N=8).bind("j", "thread.x")
    assert "max(" not in caught.value.hint
