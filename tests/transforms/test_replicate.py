"""Replicate: copies of a temporary for its readers, right, and what it refuses."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.errors import TransformError

M, N = ex.sizes("M N")


@ex.program
def scaled(a: ex.f32[M], x: ex.f32[M, N], y: ex.f32[M, N]):
    m = ex.local(ex.f32, M)
    for i in range(M):
        m[i] = ex.exp(a[i])
    for i2 in range(M):
        for j in range(N):
            y[i2, j] = m[i2] * x[i2, j]


@ex.program
def summed(x: ex.f32[M, N], y: ex.f32[M, N]):
    for i in range(M):
        total = ex.local(ex.f32)
        total = 0.0
        for k in range(N):
            total += x[i, k]
        for j in range(N):
            y[i, j] = total - x[i, j]
        for j2 in range(N):
            y[i, j2] = y[i, j2] * total


def test_each_reader_has_its_copy() -> None:
    s = scaled.schedule(M=6, N=4).replicate("m", "j")
    assert "m[i, S0.z] = exp(a[i])" in str(s)
    assert "m[i2, j] * x[i2, j]" in str(s)
    assert s.run(device="cpu", time=False).correct
    s = s.coalesce(("i", "S0.z")).coalesce(("i2", "j")).bind("i", "thread.x").bind("i2", "thread.x").contract("m", "register")
    assert "__syncthreads" not in s.cuda
    assert s.run(device="cpu", time=False).correct


def test_updates_are_made_for_each_copy() -> None:
    s = summed.schedule(M=3, N=5).replicate("total", ("j", "j2"))
    assert "total[i, S1.z] += x[i, k]" in str(s)
    assert s.judgement.emittable
    assert s.run(device="cpu", time=False).correct


@pytest.mark.parametrize(("make", "said"), [
    (lambda s: s.replicate("total", "j"), "no loop around S3 numbers the copies"),
    (lambda s: s.replicate("total", ("i", "j")), "more than one loop"),
    (lambda s: s.split("j", 2).replicate("total", ("j.i", "j2")), "copies"),
    (lambda s: s.contract("total", "register").replicate("total", ("j", "j2")), "has storage already"),
    (lambda s: s.replicate("y", "j"), "parameter"),
])  # fmt: skip
def test_refusals(make, said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(TransformError, match=said):
        make(summed.schedule(M=3, N=5))
