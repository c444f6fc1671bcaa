"""Boxes that a cluster shares, where the host runs a loop around them: each launch has clusters and mbarriers of its own."""

from __future__ import annotations

import pytest

from tests.properties.programs import define

TEXT = """@ex.program
def f(a: ex.f32[M, K], b: ex.f32[K, N], c: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            acc = ex.local(ex.f32)
            acc = 0
            for k in range(K):
                acc += a[i, k] * b[k, j]
            c[i, j] = acc
"""


@pytest.mark.parametrize(("role", "drained"), [("seq", 4), ("launch", 2)])
def test_a_producer_waits_for_the_releases_of_its_launch(role: str, drained: int) -> None:
    """It counted those of all launches, and ended before others had arrived at its mbarriers (chain 2061:362)."""
    s = define(TEXT, "clusters.py").schedule(M=8, K=32, N=64).tile(("i", "j"), (4, 32))
    s = s.bind("i.i", "thread.y").bind("j.i", "thread.x").split("k", 16).stage("b", "k", engine="bulk").bind("i", "block.y")
    s = s.specialise("k", 2).reorder(("j", "i.i", "j.i", "i")).multicast("b_s", "block.y")
    s = s if role == "seq" else s.bind("j", role)
    assert f"mbarrier_drain<{drained}>" in s.cuda
    assert s.run(device="cpu").correct
