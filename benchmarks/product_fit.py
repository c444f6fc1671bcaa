"""How well the products' model orders the tilings that were timed, and how well a smooth maximum of its terms would.

    python benchmarks/product_fit.py [--norms max,3,6] [--tilings FILE.csv.gz]

A step of a product takes the longest of four times: its products, its waits and barriers, its loads, their latency.  With a norm
``p`` it takes the ``p``-th root of the sum of their ``p``-th powers instead, so that times that are nearly as long count, too.
No GPU is needed: the times are those of results/product_tilings_h200.csv.gz (exhaustive.py).  Tilings that are offered no more
are left out.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ablation import products
from exhaustive import candidates, ways_of
from product_cases import EPILOGUES
from ranking import Timed, share_of_best, told_apart, wrong_order

from explorer.gpu.spec import gpu
from explorer.strategies.contraction.model import ProductTime, product_time

TILINGS = Path(__file__).parent / "results" / "product_tilings_h200.csv.gz"
ON = "H200"
FIRST = (1, 10)
"""Shares of the best are told for so many of the model's first choices."""


class Trial(NamedTuple):
    """A tiling that was timed, and the model's terms."""

    shape: str
    engine: str
    label: str
    copy_us: float
    terms: ProductTime
    measured_us: float


def trials(path: Path) -> Iterator[Trial]:
    """All of a file whose tilings are still offered."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    known = {case.name: case for case in (*products().values(), *EPILOGUES)}
    for shape in dict.fromkeys(row["shape"] for row in rows):
        found = {c.label: c for c in candidates(known[shape], ON)}
        for row in (r for r in rows if r["shape"] == shape and r["tiling"] in found):
            one = found[row["tiling"]]
            way = ways_of(known[shape], ON)[one.way]
            if (terms := product_time(way.form, one.tiling, gpu(ON))) is not None:
                yield Trial(shape, one.tiling.engine, one.label, way.copy_us, terms, float(row["us"]))


def predicted_us(trial: Trial, norm: float) -> float:
    """The model's time of a tiling with this norm of a step's times; ``inf`` is their maximum."""
    us = trial.terms
    times = us.tensor_us, us.step_us, us.load_us, us.latency_us
    longest = max(times)
    steps = longest if math.isinf(norm) else longest * sum((x / longest) ** norm for x in times) ** (1 / norm)
    return trial.copy_us + us.launch_us + max(us.fill_us + steps + us.store_us, us.memory_us) + us.join_us


def told(name: str, found: Sequence[Trial], norm: float) -> str:
    """A line of the table."""
    rows = [Timed(t.label, predicted_us(t, norm), t.measured_us) for t in found]
    order = [r.label for r in sorted(rows, key=lambda r: r.predicted_us)]
    times = {r.label: r.measured_us for r in rows}
    error = statistics.pstdev(math.log(r.predicted_us / r.measured_us) for r in rows)
    shares = "  ".join(f"{share_of_best(order, times, n):.3f}" for n in FIRST)
    return (f"{name:40s} {len(rows):4d} timed  {len(wrong_order(rows)):6,d} of {len(told_apart(rows)):7,d} pairs wrong  "
            f"best of the first {' and '.join(map(str, FIRST))}: {shares}  spread {100 * error:.0f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--norms", default="max,3,6")
    parser.add_argument("--tilings", type=Path, default=TILINGS)
    chosen = parser.parse_args()
    every = list(trials(chosen.tilings))
    for norm in (math.inf if word == "max" else float(word) for word in chosen.norms.split(",")):
        print("the longest time of a step" if math.isinf(norm) else f"norm {norm:g} of a step's times")
        for shape in dict.fromkeys(t.shape for t in every):
            for engine in (*dict.fromkeys(t.engine for t in every if t.shape == shape), ""):
                found = [t for t in every if t.shape == shape and engine in ("", t.engine)]
                print("  " + told(f"{shape}, {engine or 'all'}", found, norm))


if __name__ == "__main__":
    main()
