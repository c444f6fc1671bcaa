"""How well the products' model orders what was timed, and how well it would with other norms.

    python benchmarks/product_fit.py [--norms model,inf,3]

A step of a product takes three times that overlap: computing, its loads, their latency.  With a norm ``p`` it takes the
``p``-th root of the sum of their ``p``-th powers, so that times that are nearly as long as the longest count, too; ``model``
stands for the norms that the model has.  No GPU is needed.  There are three tables:

- *tilings*: all of five products, or a sample of them (exhaustive.py); those that are offered no more are left out;
- *ablation*: the prices of one tile's pipelines, with and without their second level (ablation.py);
- *auto*: what the model says of the tilings that `auto` takes now, beside the times of those that it took (gpu.py).
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ablation import ENGINES, cells, products
from exhaustive import candidates, ways_of
from product_cases import BMMS, EPILOGUES, Product
from ranking import Timed, share_of_best, told_apart, wrong_order

from explorer.gpu.spec import gpu
from explorer.strategies.contraction import ranked
from explorer.strategies.contraction.model import product_time
from explorer.strategies.contraction.shapes import Tiling
from explorer.strategies.pipelines.rates import RATES
from explorer.strategies.price import price

RESULTS = Path(__file__).parent / "results"
ON, AUTO_ON = "H200", "H100"
"""For which GPU prices are, and for which one those of `auto` are, whose tilings are chosen for the first."""
FIRST = (1, 10)
"""Shares of the best are told for so many of the model's first choices."""


class Trial(NamedTuple):
    """Something that was timed, and what the model says."""

    shape: str
    engine: str
    label: str
    predicted_us: float
    measured_us: float


def tilings() -> Iterator[Trial]:
    """All that are still offered of those that were timed."""
    with gzip.open(RESULTS / "product_tilings_h200.csv.gz", "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    known = {case.name: case for case in (*products().values(), *EPILOGUES)}
    for shape in dict.fromkeys(row["shape"] for row in rows):
        found = {c.label: c for c in candidates(known[shape], ON)}
        for row in (r for r in rows if r["shape"] == shape and r["tiling"] in found):
            one = found[row["tiling"]]
            way = ways_of(known[shape], ON)[one.way]
            if (us := product_time(way.form, one.tiling, gpu(ON))) is not None:
                yield Trial(shape, one.tiling.engine, one.label, way.copy_us + us.total_us, float(row["us"]))


def ablation() -> Iterator[Trial]:
    """The cells that were timed."""
    with (RESULTS / "ablation_h200.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for shape in dict.fromkeys(row["shape"] for row in rows):
        own = {row["variant"]: row for row in rows if row["shape"] == shape}
        tiles = {engine: _tile(engine, row["tile"]) for engine, path in ENGINES.items()
                 for label, row in own.items() if label.startswith(path)}
        jobs = {job.label: job for job in cells(products()[shape], ON, tiles)}
        for label, row in own.items():
            us = price(jobs[label].make().plan, gpu(ON)).total_us
            yield Trial(shape, label.split(",", maxsplit=1)[0], label, us, float(row["us"]))


def _tile(engine: str, text: str) -> Tiling:
    """``128x64x32 4x2 16``: rows, columns and depth of a block; its warps or warpgroups; the depth of a step of fragments."""
    block, parts, step = text.split()
    rows, columns, depth = map(int, block.split("x"))
    down, across = map(int, parts.split("x"))
    return Tiling(engine, rows, columns, depth, down, across, 1, int(step), through=True)


def automatic() -> Iterator[Trial]:
    """The products whose `auto` was timed."""
    rows = json.loads((RESULTS / "products_h100.json").read_text(encoding="utf-8"))["rows"]
    known: dict[str, Product] = products() | {case.name: case for case in BMMS}
    for row in {r["name"]: r for r in rows if r["name"] in known}.values():
        found = [(way.copy_us + us.total_us, way, tiling) for way in ways_of(known[row["name"]], ON).values()
                 for tiling, us in ranked(way.form, gpu(ON))[:1]]
        if found:
            _, way, tiling = min(found, key=lambda x: x[0])
            us = product_time(way.form, tiling, gpu(AUTO_ON))
            assert us is not None
            yield Trial(row["name"], tiling.engine, str(tiling), way.copy_us + us.total_us, row["ours"])


def told(name: str, found: Sequence[Trial]) -> str:
    """A line of the tables of pairs."""
    rows = [Timed(t.label, t.predicted_us, t.measured_us) for t in found]
    order = [r.label for r in sorted(rows, key=lambda r: r.predicted_us)]
    times = {r.label: r.measured_us for r in rows}
    shares = "  ".join(f"{share_of_best(order, times, n):.3f}" for n in FIRST)
    return (f"{name:40s} {len(rows):4d} timed  {len(wrong_order(rows)):6,d} of {len(told_apart(rows)):7,d} pairs wrong  "
            f"best of the first {' and '.join(map(str, FIRST))}: {shares}  {spread(found)}")


def spread(found: Sequence[Trial]) -> str:
    """How far off the model is on average, and by how much that differs."""
    logs = [math.log(t.predicted_us / t.measured_us) for t in found]
    return f"{100 * statistics.mean(logs):+.0f} %, spread {100 * statistics.pstdev(logs):.0f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--norms", default="model,inf")
    for word in parser.parse_args().norms.split(","):
        norms = RATES if word == "model" else {engine: replace(rates, norm=float(word)) for engine, rates in RATES.items()}
        with patch.dict(RATES, norms):
            price.cache_clear()
            ranked.cache_clear()
            print("the model" if word == "model" else f"with norm {word}")
            for title, every in (("tilings", [*tilings()]), ("ablation", [*ablation()])):
                print(f" {title}")
                for shape in dict.fromkeys(t.shape for t in every):
                    for engine in (*dict.fromkeys(t.engine for t in every if t.shape == shape), ""):
                        own = [t for t in every if t.shape == shape and engine in ("", t.engine)]
                        print("  " + told(f"{shape}, {engine or 'all'}", own))
            print(" auto")
            every = [*automatic()]
            for t in sorted(every, key=lambda t: t.predicted_us / t.measured_us):
                print(f"  {t.shape:30s} {t.measured_us:9.2f} measured, {t.predicted_us / t.measured_us:5.2f} times as long "
                      f"predicted  {t.label}")
            print(f"  all: {spread(every)}", flush=True)


if __name__ == "__main__":
    main()
