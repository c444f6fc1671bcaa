"""Boxes of bulk copies and stores: drawn as boxes, which no warp asks for element by element."""

from __future__ import annotations

import pytest

from benchmarks.product_programs import product_nn
from explorer.errors import FigureError
from explorer.strategies.contraction import contraction
from explorer.strategies.contraction.shapes import Tiling
from tests.kernel.bulk_schedules import tiled_product
from tests.kernel.stored_schedules import SCHEDULES


def test_a_bulk_copy_is_a_box() -> None:
    plot = tiled_product().plot
    shown = str(plot.memory("x"))
    assert shown.startswith("Elements of x that one box touches")
    assert "One thread asks for a box, which the engine for bulk copies moves" in shown
    assert "128 different elements of x (256 B) of 20 × 72, each touched once" in shown  # 8 x 16 of f16
    with pytest.raises(FigureError, match="view='warp' is not a choice here"):
        plot.memory("x", view="warp")


def test_a_bulk_store_is_one() -> None:
    s = next(iter(SCHEDULES.values()))()
    store = next(leaf.id for leaf, _, _ in s.plan.leaves if leaf.mechanism == "bulk_store")
    assert "that one box touches" in str(s.plot.memory(store))


def test_tiles_that_tensor_cores_read_are_no_requests_of_warps() -> None:
    """The figure told 537 million requests of all lanes, each served in one pass."""
    t = Tiling("warpgroup", 128, 64, 64, 2, 1, 2)
    picture = contraction(product_nn.schedule(M=256, N=128, K=128), tiling=t).plot.memory(access="S1:0")
    assert "Tensor cores read the tile of an instruction from shared memory" in picture.note
    assert "requests" not in picture.note
