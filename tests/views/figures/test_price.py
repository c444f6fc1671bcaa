"""The terms of a price: those that count add up to it, and each says its formula."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.errors import FigureError
from explorer.strategies.price import price
from explorer.views.figures.asked import Asked, Look
from explorer.views.figures.price import WORDS, price_terms, terms_of
from tests.views.figures.support import written
from tests.views.figures.test_ablation import in_tiles

H200 = ex.gpu("H200")


@pytest.mark.parametrize("name", ["softmax", "matmul", "jacobi2d", "a product in tiles"])
def test_what_counts_is_the_price(name: str) -> None:
    s = in_tiles(3) if name == "a product in tiles" else ex.strategies.auto(written(name))
    for k in price(s.plan, H200).kernels:
        terms = terms_of(k)
        assert sum(t.counted_us for t in terms) == pytest.approx(k.total_us)
        assert {t.name for t in terms} <= WORDS.keys()
        assert all(t.counts or not t.counted_us for t in terms)


def test_steps_of_a_product() -> None:
    data = price_terms(in_tiles(3), Asked({"gpu": "H200"}), Look())
    times = {t.name: t for t in data.terms}
    assert [n for n, t in times.items() if t.counts and t.counted_us] == ["launch", "fill", "steps: step", "store"]
    assert times["steps: step"].counted_us > times["steps: step"].us > times["steps: load"].us > 0
    assert times["memory"].us > 0
    assert not times["memory"].counts


def test_a_kernel_without_steps_has_one_roof() -> None:
    s = ex.strategies.auto(written("softmax", M=4096, N=4096))
    shown = s.plot.price(gpu="H200")
    counts = {row[1]: row[3] for row in shown.table}
    assert [name for name, us in counts.items() if us] == ["launch", "memory"]
    assert "= launch 1.00 + memory" in shown.note
    assert "of steps" not in shown.note


def test_a_kernel_is_chosen_and_no_other_name() -> None:
    s = in_tiles(3)
    assert s.plot.price(s.plan.kernels[0].id).title.startswith(f"Price of {s.plan.kernels[0].id} on the ")
    with pytest.raises(FigureError):
        s.plot.price(gpu="H900")
