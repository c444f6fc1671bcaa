"""`benchmarks/ablation.py`: pairs priced in the wrong order, what the model's first reach, which tilings are tried."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.ranking import Timed, rank_correlation, reasons, sample, share_of_best, told_apart, wrong_order

ROOT = Path(__file__).resolve().parent.parent


def labels(pairs: list[tuple[Timed, Timed]]) -> list[str]:
    return [fast.label + slow.label for fast, slow in pairs]


def test_pairs_that_differ_by_more_than_the_margin_are_told_apart() -> None:
    rows = [Timed("a", 1.0, 10.0), Timed("b", 1.0, 11.0), Timed("c", 1.0, 11.5), Timed("d", 1.0, 9.0)]
    assert sorted(labels(told_apart(rows))) == ["ac", "da", "db", "dc"]
    assert labels(told_apart(rows, 0.25)) == ["dc"]


def test_a_pair_is_wrong_where_the_slower_one_is_priced_as_fast_or_faster() -> None:
    rows = [Timed("slow", 1.0, 30.0), Timed("middle", 2.0, 20.0), Timed("fast", 1.0, 10.0), Timed("near", 9.0, 10.5)]
    assert sorted(labels(wrong_order(rows))) == ["fastslow", "middleslow", "nearmiddle", "nearslow"]
    assert wrong_order([Timed(x.label, x.measured_us, x.measured_us) for x in rows]) == []


def test_the_share_of_the_best_counts_the_first_that_have_a_time() -> None:
    times = {"a": 20.0, "b": 12.5, "c": 10.0}
    assert [share_of_best(["x", "a", "b", "c"], times, n) for n in (1, 2, 3, 4)] == [0.0, 0.5, 0.8, 1.0]


def test_rank_correlation_knows_ties_and_turns() -> None:
    assert rank_correlation([(1, 10), (2, 20), (3, 400)]) == pytest.approx(1)
    assert rank_correlation([(1, 30), (2, 20), (3, 10)]) == pytest.approx(-1)
    assert rank_correlation([(1, 1), (1, 2), (2, 3), (3, 4)]) == pytest.approx(0.948683, abs=1e-6)
    assert math.isnan(rank_correlation([(1, 1), (1, 2), (1, 3)]))


@pytest.mark.parametrize("count", [45, 100, 499])
def test_a_sample_has_the_first_and_more_of_the_next_than_of_the_last(count: int) -> None:
    order = list(range(500))
    picked = sample(order, count, 0)
    assert len(picked) == len(set(picked)) == count
    assert picked[:40] == order[:40]
    assert set(picked) >= set(order[: (count + 40) // 2])
    assert any(n >= (count + 40) // 2 for n in picked)
    assert sample(order, count, 0) == picked != sample(order, count, 1)


@pytest.mark.parametrize("count", [0, 500, 900])
def test_all_are_tried_where_there_are_no_more(count: int) -> None:
    assert sample(list(range(500)), count, 0) == list(range(500))


def test_problems_that_differ_in_numbers_and_names_are_one_reason() -> None:
    assert reasons(["WRONG: error 0.5", "E: 'a' is late", "WRONG: error 2e-3", "WRONG: error 7"]) == {
        "WRONG: error #": 2, "E: # is late": 1, "WRONG: error #e-#": 1}


def in_benchmarks(code: str) -> list[str]:
    """What code prints that imports the scripts by their plain names, as they do."""
    done = subprocess.run([sys.executable, "-c", "import sys; sys.path[:0] = ['benchmarks', '.']\n" + code], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_universe_has_every_tiling_and_slice_and_begins_with_the_model_s() -> None:
    assert in_benchmarks(
        "from exhaustive import candidates, ways_of\n"
        "from product_cases import Product\n"
        "from explorer.gpu.spec import gpu\n"
        "from explorer.strategies.contraction import ranked\n"
        "from explorer.strategies.contraction.shapes import sliced, tilings\n"
        "case, on = Product('p', 64, 64, 4099), gpu('H200')\n"
        "every, ways = candidates(case, 'H200'), ways_of(case, 'H200')\n"
        "all_of = {(label, s) for label, w in ways.items() for t in tilings(w.form, on) for s in (t, *sliced(t, w.form, on))}\n"
        "print(len(ways) > 1, {(c.way, c.tiling) for c in every} == all_of, len({c.label for c in every}) == len(every))\n"
        "for label, w in ways.items():\n"
        "    mine, model = [c.tiling for c in every if c.way == label], [t for t, _ in ranked(w.form, on)]\n"
        "    print(mine[:len(model)] == model, len(mine) > len(model))\n") == ["True True True", "True True", "True True"]


def test_a_variant_of_the_ablation_is_built_and_what_is_no_pipeline_says_why() -> None:
    told = in_benchmarks(
        "import ablation, trials\n"
        "from product_cases import Product\n"
        "jobs = {job.label: job for job in ablation.cells(Product('p', 128, 128, 512), 'H200')}\n"
        "print(len(jobs))\n"
        "made = trials.build(jobs['mma.sync, 3 stages, fragments ahead'])\n"
        "print(len(made.cubin) > 500, 0 < made.row['price_us'] < 100)\n"
        "print(trials.build(jobs['wgmma, 1 stage, products in flight']).row['problem'])\n")
    assert told[:2] == ["20", "True True"]
    assert told[2].startswith("not built: ValueError: overlap('k')")


def test_the_ablation_s_pairs_are_priced_in_the_order_in_which_they_were_timed() -> None:
    """All that differ by more than 10 %, of both paths, in the tiles and with the times of an H200."""
    found = in_benchmarks(
        "import product_fit as fit\n"
        "from ranking import Timed, told_apart, wrong_order\n"
        "cells = [*fit.ablation()]\n"
        "for shape in dict.fromkeys(c.shape for c in cells):\n"
        "    own = [Timed(c.label, c.predicted_us, c.measured_us) for c in cells if c.shape == shape]\n"
        "    print(len(own), len(told_apart(own)) > 100, wrong_order(own))\n")
    assert found == ["19 True []"] * 6
