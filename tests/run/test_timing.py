"""What samples say, and what they do not."""

from __future__ import annotations

import pickle
from itertools import product
from statistics import median

import numpy as np
import pytest

from explorer.run.timing import Samples, Timing, compare, median_interval


def test_the_summary_of_known_samples() -> None:
    timing = Timing.of(Samples([5.0, 1.0, 3.0, 2.0, 4.0, 6.0, 7.0], l2="cold", overhead_us=2.5, method="events"))
    assert (timing.median_us, timing.min_us) == (4.0, 1.0)
    assert (timing.low_us, timing.high_us) == (1.0, 7.0)
    assert timing.confidence == 1 - 2 / 2**7
    assert timing.spread == pytest.approx((6 - 2) / 4)
    assert timing.net_us == 1.5
    assert (timing.l2, timing.method) == ("cold", "events")
    assert timing.samples == (5.0, 1.0, 3.0, 2.0, 4.0, 6.0, 7.0)


@pytest.mark.parametrize(("n", "ranks"), [(6, (1, 6)), (9, (2, 8)), (20, (6, 15)), (30, (10, 21)), (51, (19, 33))])
def test_the_interval_has_the_published_ranks(n: int, ranks: tuple[int, int]) -> None:
    """Ranks of the 95 % interval of a median, as in the binomial tables of Conover and of Le Boudec."""
    low, high, coverage = median_interval([float(k) for k in range(1, n + 1)], 0.95)
    assert (low, high) == ranks
    assert coverage >= 0.95


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8])
def test_the_coverage_is_exact(n: int) -> None:
    """Each sample falls on either side of the true median with one half: count the cases."""
    low, high, coverage = median_interval([float(k) for k in range(n)], 0.95)
    first, last = int(low) + 1, int(high) + 1  # ranks
    inside = sum(first <= sum(case) < last for case in product((0, 1), repeat=n))
    assert coverage == pytest.approx(inside / 2**n)


def test_few_samples_give_the_whole_range_and_say_so() -> None:
    timing = Timing.of([3.0, 1.0, 2.0])
    assert (timing.low_us, timing.high_us) == (1.0, 3.0)
    assert timing.confidence == 0.75
    assert Timing.of([4.0]).confidence == 0.0
    assert Timing.of([4.0]).spread == 0.0


def test_the_interval_covers_a_skewed_median_as_often_as_it_says() -> None:
    random = np.random.default_rng(3)
    hits = 0
    for _ in range(2000):
        low, high, coverage = median_interval(np.exp(random.standard_normal(21)), 0.95)
        hits += low <= 1.0 <= high
    assert coverage >= 0.95
    assert hits / 2000 == pytest.approx(coverage, abs=0.015)


def test_no_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Timing.of([])


def test_a_real_gain_is_told_from_noise() -> None:
    before, after = (Timing.of([base + k * 0.1 for k in range(11)]) for base in (20.0, 10.0))
    gain = compare(before, after)
    assert gain.ratio == pytest.approx(20.5 / 10.5)
    assert gain.low < gain.ratio < gain.high
    assert not gain.noise
    assert gain.verdict == "faster"
    assert compare(after, before).verdict == "slower"
    assert compare(after, before).ratio == pytest.approx(1 / gain.ratio)


def test_a_gain_inside_the_intervals_is_noise() -> None:
    before, after = (Timing.of([base + k for k in range(11)]) for base in (10.0, 11.0))
    assert compare(before, after).noise
    assert "smaller than noise" in str(compare(before, after))


def test_too_few_samples_are_never_a_gain() -> None:
    assert compare(Timing.of([100.0] * 3), Timing.of([1.0] * 3)).noise
    assert not compare(Timing.of([100.0] * 7), Timing.of([1.0] * 7)).noise


def test_samples_are_a_tuple_that_keeps_its_facts() -> None:
    samples = Samples([1.0, 2.0], l2="cold", overhead_us=1.5, method="events")
    assert samples == (1.0, 2.0)
    assert median(samples) == 1.5
    again = pickle.loads(pickle.dumps(samples))
    assert (again, again.l2, again.overhead_us, again.method) == (samples, "cold", 1.5, "events")


def test_the_text_names_the_cache_and_the_empty_launch() -> None:
    text = str(Timing.of(Samples([10.0] * 9, l2="cold", overhead_us=2.7)))
    assert "cold L2" in text
    assert "2.7 µs" in text
    assert "n=9" in text


def test_times_are_told_in_one_unit_and_without_exponents() -> None:
    text = str(Timing.of([16770.0 + n for n in range(10)]))
    assert text.startswith("16.77 ms (16.77 to 16.78, n=10")
    assert "e+" not in text


def test_smaller_than_noise_is_said_only_where_it_is() -> None:
    long = Timing.of([1000.0, 1001.0, 1002.0])
    assert compare(long, Timing.of([10.0 + n / 100 for n in range(30)])).verdict == "faster", "3 against 30, all apart"
    few = compare(long, Timing.of([10.0, 10.1]))
    assert few.verdict == "too few samples to say"
    assert few.noise, "and no gain is told of"
    assert compare(long, Timing.of([1000.5, 1001.5])).verdict == "smaller than noise"
    assert compare(Timing.of([5.0, 5.1, 5.2, 5.3]), Timing.of([6.0, 6.1, 6.2, 6.3])).verdict == "slower"
