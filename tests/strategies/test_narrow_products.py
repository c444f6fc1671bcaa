"""Products of a few rows or columns: tiles of which most lies beyond the array, where that takes less than plain sums."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.gpu.spec import gpu
from explorer.strategies import auto
from explorer.strategies.contraction import contraction
from explorer.strategies.price import price
from explorer.strategies.reductions import reduce
from tests.strategies.products import product


@pytest.mark.parametrize("where", ["H200", "A100-40GB"])
@pytest.mark.parametrize(("m", "n"), [(2, 72), (4, 136), (7, 40), (70, 3), (5, 5)])
def test_few_rows_or_columns(m: int, n: int, where: str) -> None:
    s = contraction(product(ex.f16, ex.f32, "n", "n").schedule(M=m, N=n, K=104), gpu=gpu(where))
    assert "mma" in s.cuda
    assert s.run(device="cpu", time=False).correct


def test_plain_arithmetic() -> None:
    s = contraction(product(ex.f32, ex.f32, "n", "t").schedule(M=3, N=136, K=72))
    assert [leaf for leaf, _, _ in s.plan.leaves if leaf.statement.startswith("x_s")]
    assert s.run(device="cpu", time=False).correct


@pytest.mark.parametrize("m", [2, 4, 7])
@pytest.mark.parametrize("right", ["n", "t"])
def test_auto_takes_what_costs_least(m: int, right: str) -> None:
    written, target = product(ex.f16, ex.f32, "n", right).schedule(M=m, N=4096, K=4096), gpu("H200")
    costs = [price(made.plan, target).total_us for made in (auto(written), contraction(written), reduce(written))]
    assert costs[0] == min(costs)
    assert costs[0] < 12
