"""Factors that trade places: the same value, other operands of the instruction."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer import workloads
from explorer.errors import TransformError
from tests.strategies.products import product


def matmul() -> ex.Schedule:
    return workloads.get("matmul").definition.schedule(M=4, N=5, K=6)


def test_the_second_factor_comes_first() -> None:
    s = matmul()
    before = [r.array for r in s.plan.statement_of["S1"].reads]
    made = s.commute("S1")
    assert [r.array for r in made.plan.statement_of["S1"].reads] == before[::-1]
    assert made.judgement.emittable
    assert made.run(device="cpu", time=False).correct
    assert made.commute("S1").plan == s.plan


def test_staged_copies_go_with_their_factor() -> None:
    s = matmul()
    first, _ = (r.array for r in s.plan.statement_of["S1"].reads)
    made = s.stage(first, "k").commute("S1")
    (leaf,) = (leaf for leaf, _, _ in made.plan.leaves if leaf.id == "S1")
    assert leaf.view(0) is None
    assert leaf.view(1) is not None
    assert made.run(device="cpu", time=False).correct


def test_what_is_refused() -> None:
    s = matmul()
    with pytest.raises(TransformError, match="no sum of products"):
        s.commute("S0")
    with pytest.raises(TransformError, match="there is no statement"):
        s.commute("nothing")
    from explorer.strategies.contraction import contraction
    from explorer.strategies.contraction.shapes import Tiling

    square = product(ex.f16, ex.f32, "n", "n").schedule(M=32, N=32, K=32)
    tiled = contraction(square, tiling=Tiling("warp", 32, 32, 32, 1, 1, 2, 16))
    with pytest.raises(TransformError, match="already"):
        tiled.commute("S1")
