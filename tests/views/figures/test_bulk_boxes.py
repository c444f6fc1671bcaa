"""Boxes of bulk copies and stores: drawn as boxes, which no warp asks for element by element."""

from __future__ import annotations

import pytest

from explorer.errors import FigureError
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
