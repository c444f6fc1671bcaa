"""How good the reductions' model chooses among measured spreads, and constants that choose better.

    python benchmarks/reduction_fit.py [--seconds N] [--sweep benchmarks/results/reductions_sweep_h200.csv.gz]

The regret of a problem is how much longer the spread takes that the model calls the cheapest, of those measured, than the
fastest of them.  With `--seconds`, simulated annealing looks for constants with less regret (large reductions count more, since
their times are steady) and better predictions near the fastest; they are printed, to be put into strategies/reductions/model.py.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import groupby, pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.reduction_program import reduction
from explorer.gpu.spec import default_gpu
from explorer.strategies.reductions import problem_of, reduction_form
from explorer.strategies.reductions.model import H200, Constants, cost
from explorer.strategies.reductions.shapes import Problem, Shape

SWEEP = Path(__file__).parent / "results" / "reductions_sweep_h200.csv.gz"
SIZES = (0, 1e5, 1e6, 4e6, 2e7, 1e8, math.inf)
"""Bytes of a problem, for the table."""
Measured = list[tuple[Shape, float]]


def measured(path: Path) -> Iterator[tuple[Problem, Measured]]:
    """Every problem of a sweep with its spreads and their microseconds; the same ones are next to each other."""
    with gzip.open(path, "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    key = lambda row: (row["shape"], row["axes"], row["dtype"], row["op"])  # noqa: E731
    for (shape, axes, dtype, op), group in groupby(sorted(rows, key=key), key):
        problem = canonical(tuple(map(int, shape.split("x"))), tuple(map(int, axes.split())), dtype, op)
        yield problem, [(Shape(*(int(r[n]) for n in ("x", "y", "vector", "unroll", "parts")), r["flat"] == "1", r["join"],
                               r["nested"] == "1"), float(r["us"])) for r in group]


def canonical(shape: tuple[int, ...], axes: tuple[int, ...], dtype: str, op: str) -> Problem:
    """The canonical reduction of a case."""
    written = reduction(shape, axes, dtype, op)
    form = reduction_form(written, written.plan.kernels[0].id)
    assert form is not None
    return problem_of(written, form)


def nbytes(p: Problem) -> int:
    """Bytes that are read."""
    return p.length * p.results * p.itemsize


def regrets(data: list[tuple[Problem, Measured]], c: Constants) -> list[tuple[float, float]]:
    """For each problem its regret, and the root mean square error of predictions near the fastest, both as logarithms."""
    out, gpu = [], default_gpu()
    for problem, found in data:
        said = [cost(problem, s, gpu, c).total for s, _ in found]
        best = min(us for _, us in found)
        near = [math.log(t / us) ** 2 for t, (_, us) in zip(said, found, strict=True) if us < 1.4 * best or t < 1.1 * min(said)]
        out.append((math.log(found[said.index(min(said))][1] / best), sum(near) / len(near)))
    return out


def loss(data: list[tuple[Problem, Measured]], c: Constants) -> float:
    """What annealing makes small."""
    found = regrets(data, c)
    weights = [5.0 if nbytes(p) >= SIZES[4] else 1.5 if nbytes(p) >= SIZES[3] else 1.0 for p, _ in data]
    regret = sum(w * (r + 2 * r * r) for w, (r, _) in zip(weights, found, strict=True)) / sum(weights)
    return regret + 0.35 * math.sqrt(sum(e for _, e in found) / len(found))


def annealed(data: list[tuple[Problem, Measured]], seconds: float, seed: int = 0) -> Constants:
    """Constants with less loss, each within a factor of eight of where it began."""
    rng, start, end = random.Random(seed), asdict(H200), time.monotonic() + seconds
    now = best = H200
    at = least = loss(data, now)
    while (left := (end - time.monotonic()) / seconds) > 0:
        changes = {}
        for name in rng.sample(sorted(start), rng.choice((1, 1, 2, 3))):
            value = getattr(now, name) * math.exp(rng.gauss(0, rng.choice((0.02, 0.1, 0.4))))
            changes[name] = min(max(value, start[name] / 8), start[name] * 8)
        new = replace(now, **changes)
        value = loss(data, new)
        if value < at or rng.random() < math.exp((at - value) / (5e-4 * left + 1e-9)):
            now, at = new, value
            if at < least:
                best, least = now, at
    return best


def table(data: list[tuple[Problem, Measured]], c: Constants) -> None:
    """Regret by size."""
    found = regrets(data, c)
    print(f"{sum(len(m) for _, m in data):,} schedules of {len(data):,} reductions; loss {loss(data, c):.4f}, "
          f"predictions within {math.sqrt(sum(e for _, e in found) / len(found)):.0%}")
    for low, high in pairwise(SIZES):
        mine = [r for (p, _), (r, _) in zip(data, found, strict=True) if low <= nbytes(p) < high]
        if mine:
            mean, most = math.exp(sum(mine) / len(mine)) - 1, math.exp(max(mine)) - 1
            print(f"{low:>11,.0f} bytes and more: {len(mine):4d} problems, {mean:6.1%} behind the fastest, at most {most:.0%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sweep", type=Path, default=SWEEP)
    parser.add_argument("--seconds", type=float, default=0)
    a = parser.parse_args()
    data = list(measured(a.sweep))
    table(data, H200)
    if a.seconds:
        found = annealed(data, a.seconds)
        table(data, found)
        for name, value in asdict(found).items():
            print(f"    {name}: float = {value:.3g}")


if __name__ == "__main__":
    main()
