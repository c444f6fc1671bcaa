"""Results of products that leave by bulk stores: what is chosen, what it costs, that it is right, and what cannot leave so."""

from __future__ import annotations

from dataclasses import replace

import pytest

import explorer as ex
from explorer.poly.bulk_store import BULK_STORE
from explorer.strategies.contraction import contraction
from explorer.strategies.contraction.shapes import Tiling
from explorer.strategies.price import price
from tests.strategies.products import product

LAST = Tiling("warpgroup", 64, 64, 64, 1, 1, 3, through=True, persistent=2, producer=True, bulk_stores=True)


def stores(s: ex.Schedule) -> set[str]:
    return {leaf.id for leaf, _, _ in s.plan.leaves if leaf.mechanism == BULK_STORE}


@pytest.mark.parametrize("t", [LAST, replace(LAST, rows=128, down=2), replace(LAST, columns=128), replace(LAST, matrix=True),
                               replace(LAST, persistent=0, producer=False)])
@pytest.mark.parametrize(("m", "n", "k"), [(136, 200, 72), (256, 192, 200)])
def test_they_are_right(t: Tiling, m: int, n: int, k: int) -> None:
    s = contraction(product(ex.f16, ex.f32, "n", "n").schedule(M=m, N=n, K=k), tiling=t)
    assert stores(s) == {"S2_store"}
    assert "bulk_store_2d(" in s.cuda
    assert s.run(device="cpu", time=False).correct


def test_rows_that_no_tensor_map_has_are_stored_by_threads() -> None:
    s = contraction(product(ex.f16, ex.f32, "n", "t").schedule(M=136, N=75, K=136), tiling=LAST)
    assert not stores(s)
    assert s.run(device="cpu", time=False).correct


@pytest.mark.parametrize("sizes", [(1245, 5168, 56), (4096, 4096, 1024), (50176, 64, 256)])
def test_one_thread_that_asks_is_not_priced_as_one_that_stores(sizes: tuple[int, int, int]) -> None:
    written = product(ex.f16, ex.f32, "n", "n").schedule(**dict(zip("MNK", sizes, strict=True)))
    t = replace(LAST, rows=128, columns=64, down=2, persistent=132)
    both = [price(contraction(written, tiling=replace(t, bulk_stores=b)).plan, ex.gpu("H200")).total_us for b in (True, False)]
    assert both[0] == pytest.approx(both[1], rel=0.05)
