"""Iterations of loops that end early: on average by brute force, and what counts and prices make of them."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.product_programs import attention as plain
from benchmarks.product_programs import causal_attention
from explorer.gpu.spec import default_gpu
from explorer.strategies import trips
from explorer.strategies.attention import attention
from explorer.strategies.attention.moves import Tiling
from explorer.strategies.counts import counted
from explorer.strategies.pipelines.facts import steppings
from explorer.strategies.price import price
from explorer.strategies.trips import mean_iterations, share_run
from tests.transforms.test_trim import banded, last_by_hand, lower, tiled


@pytest.mark.parametrize(("of", "rows", "keys"), [(lower, 8, 4), (lower, 4, 16), (lower, 5, 3), (banded, 8, 4), (banded, 3, 8)])
def test_the_mean_is_that_of_all_blocks(of: Any, rows: int, keys: int) -> None:
    s = tiled(of, rows, keys, n=21)
    before = s.plan.loops["k"]
    assert mean_iterations(s.plan, before) == before.extent, "not trimmed"
    plan = s.trim("k").plan
    ends = [last + 1 for last in last_by_hand(s, "k").values()]
    assert len(ends) == plan.loops["i"].extent
    assert mean_iterations(plan, plan.loops["k"]) == pytest.approx(sum(ends) / len(ends))
    assert share_run(plan, (plan.loops["i"], plan.loops["k"])) == pytest.approx(sum(ends) / len(ends) / before.extent)


def test_of_many_blocks_some_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = tiled(lower, 1, 4, n=500).trim("k").plan
    exact = sum(i // 4 + 1 for i in range(500)) / 500
    for values in (5, 64, 500):
        monkeypatch.setattr(trips, "VALUES", values)
        assert mean_iterations(plan, plan.loops["k"]) == pytest.approx(exact, rel=0.02)


def test_a_triangle_costs_half_of_a_square() -> None:
    sizes, tiling, gpu = {"B": 8, "H": 16, "L": 2048, "D": 64}, Tiling(128, 8, 128, 2, 2), default_gpu()
    square, triangle = (attention(p.schedule(**sizes), tiling=tiling).plan for p in (plain, causal_attention))
    counts = [sum(x.operations for x in counted(p, p.kernels[0], gpu).leaves) for p in (square, triangle)]
    assert counts[1] / counts[0] == pytest.approx(8.5 / 16, rel=0.02), "tiles on and below the diagonal"
    (whole,), (half,) = (steppings(p, p.kernels[0]) for p in (square, triangle))
    assert (whole.count, whole.starts, half.count, half.starts) == (16, 1, 8, 1)
    assert 0.5 < price(triangle, gpu).total_us / price(square, gpu).total_us < 0.6
