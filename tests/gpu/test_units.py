"""Times as people write them."""

from __future__ import annotations

import random

import pytest

from explorer.gpu.units import time_text, times_text


@pytest.mark.parametrize(("us", "text"), [
    (16770.0, "16.8 ms"), (0.00899, "8.99 ns"), (999.6, "1 ms"), (999.4, "999 µs"), (2.5, "2.5 µs"), (0, "0 µs"),
    (3.2e9, "3200 s"), (1e-5, "0.01 ns"), (float("inf"), "inf s"),
])  # fmt: skip
def test_a_time_has_the_unit_that_fits(us: float, text: str) -> None:
    assert time_text(us) == text


def test_times_that_stand_together_have_one_unit() -> None:
    assert times_text((16770.0, 990.0, 17200.0)) == ("16.8 ms", "0.99", "17.2")


def test_no_time_has_an_exponent() -> None:
    draw = random.Random(1)
    for _ in range(2000):
        assert "e" not in time_text(10 ** draw.uniform(-9, 12), draw.choice((3, 4)))
