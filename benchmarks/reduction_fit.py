"""How good the reductions' model chooses among measured spreads, and constants that choose better.

    python benchmarks/reduction_fit.py [--seconds N [--seed K] [--committee FILE.json]] [--sweep FILE.csv.gz]

The regret of a problem is how much longer the spread takes that the model calls the cheapest, of those measured, than the
fastest of them.  With `--seconds`, simulated annealing looks for constants with less regret (large reductions count more, since
their times are steady), better predictions near the fastest, and none far too low; they are printed, to be put into
strategies/reductions/model.py.  A second sees some 200 constants.  `--committee` keeps others that fit nearly as well: what they
choose differently is worth measuring (``reduction_sweep.py --committee``), since what was never timed taught the fit nothing.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import random
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.reduction_program import reduction
from explorer.gpu.spec import default_gpu
from explorer.strategies.reductions import problem_of, reduction_form
from explorer.strategies.reductions.model import H200, Constants, timed
from explorer.strategies.reductions.shapes import Problem, Shape
from explorer.strategies.reductions.work import Work, together, work

SWEEP = Path(__file__).parent / "results" / "reductions_sweep_h200.csv.gz"
SIZES = (0, 1e5, 1e6, 4e6, 2e7, 1e8, math.inf)
"""Bytes of a problem, for the table."""
FAR = 8
"""How far annealing takes a constant from where it began, as a factor."""
BOUNDS = {"latency": (0.2, 0.6), "alone": (0.8e5, 1.7e5), "first": (0.8, 3), "soft": (1.5, 12), "sharpness": (1.2, 5),
          "launch": (0.1, 0.8), "read": (0.9, 1.05), "code_width": (0.05, 1), "crowd_power": (0.3, 3), "cache": (3.5e6, 9e6),
          "scattered": (0.1, 0.4)}
"""What is known of constants that have a meaning of their own, in their units (microseconds, bytes per microsecond)."""
STRIDE, NEARLY, MEMBERS = 200, 1.02, 12
"""Steps from one candidate for the committee to the next; how much more loss its members have, at most; how many there are."""
Measured = list[tuple[Shape, float]]


def measured(path: Path) -> Iterator[tuple[Problem, Measured]]:
    """Every problem of a sweep with its spreads and their microseconds; the same ones are next to each other."""
    with gzip.open(path, "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    key = lambda row: (row["shape"], row["axes"], row["dtype"], row["op"])  # noqa: E731
    for (shape, axes, dtype, op), group in groupby(sorted(rows, key=key), key):
        problem = canonical(tuple(map(int, shape.split("x"))), tuple(map(int, axes.split())), dtype, op)
        yield problem, [(spread(row), float(row["us"])) for row in group]


def spread(row: dict[str, str]) -> Shape:
    """The shape of a row of a sweep."""
    x, y, vector, unroll, parts = (int(row[n]) for n in ("x", "y", "vector", "unroll", "parts"))
    return Shape(x, y, vector, unroll, parts, row["flat"] == "1", row["join"], row["nested"] == "1", int(row["period"]),
                 row["kept"] == "1", int(row["each"]), row["staged"] == "1")


def canonical(shape: tuple[int, ...], axes: tuple[int, ...], dtype: str, op: str) -> Problem:
    """The canonical reduction of a case."""
    written = reduction(shape, axes, dtype, op)
    form = reduction_form(written, written.plan.kernels[0].id)
    assert form is not None
    return problem_of(written, form)


def nbytes(p: Problem) -> int:
    """Bytes that are read."""
    return p.length * p.results * p.itemsize


@dataclass(frozen=True)
class Sweep:
    """What was measured, as arrays.

    Attributes
    ----------
    problems : tuple of Problem
    starts : ndarray
        Where each problem's spreads begin.
    of : ndarray
        The problem of each spread, by number.
    work : Work
        What the spreads do.
    us, best : ndarray
        Microseconds of each spread; those of the fastest of its problem.
    """

    problems: tuple[Problem, ...]
    starts: np.ndarray
    of: np.ndarray
    work: Work
    us: np.ndarray
    best: np.ndarray

    @classmethod
    def of_measured(cls, data: Iterable[tuple[Problem, Measured]]) -> Sweep:
        """The arrays of what :func:`measured` gives."""
        data, gpu = list(data), default_gpu()
        counts = np.array([len(found) for _, found in data])
        starts = np.cumsum(counts) - counts
        of = np.repeat(np.arange(len(data)), counts)
        us = np.array([t for _, found in data for _, t in found])
        done = together(work(p, s, gpu) for p, found in data for s, _ in found)
        return cls(tuple(p for p, _ in data), starts, of, done, us, np.minimum.reduceat(us, starts)[of])

    @cached_property
    def weights(self) -> np.ndarray:
        """How much each problem counts: the times of large ones are steady."""
        sizes = np.array([nbytes(p) for p in self.problems])
        weights = np.where(sizes >= SIZES[4], 5.0, np.where(sizes >= SIZES[3], 1.5, 1.0))
        return weights / weights.mean()

    def said(self, c: Constants) -> np.ndarray:
        """Microseconds of each spread by the model."""
        return np.asarray(timed(self.work, c).total)

    def regrets(self, c: Constants) -> np.ndarray:
        """Of each problem the logarithm of its regret."""
        return self._regrets(self.said(c))

    def _regrets(self, said: np.ndarray) -> np.ndarray:
        chosen = said == np.minimum.reduceat(said, self.starts)[self.of]
        return np.log(np.minimum.reduceat(np.where(chosen, self.us / self.best, np.inf), self.starts))

    def errors(self, c: Constants) -> np.ndarray:
        """Logarithms of predicted over measured, of spreads within 40 % of the fastest."""
        return np.log(self.said(c) / self.us)[self.us < 1.4 * self.best]

    def loss(self, c: Constants) -> float:
        """What annealing makes small: regret, errors near the fastest, and whatever is predicted to be faster than it is."""
        said = self.said(c)
        if not np.isfinite(said).all():
            return math.inf
        regret, error = self._regrets(said), np.log(said / self.us)
        least = np.minimum.reduceat(said, self.starts)[self.of]
        near = (self.us < 1.4 * self.best) | (said < 1.1 * least)
        hoped = np.minimum(error, 0)
        terms = np.mean(self.weights * (regret + 2 * regret**2)), 0.35 * rms(error[near]), 0.15 * rms(hoped)
        return float(sum(terms))


def rms(values: np.ndarray) -> float:
    """The root of the mean square."""
    return math.sqrt(float(np.mean(values**2)))


def annealed(sweep: Sweep, seconds: float, seed: int = 0) -> tuple[Constants, list[Constants]]:
    """Constants with less loss, each within a factor of `FAR` of where it began; and a committee of others that fit nearly as
    well, every `STRIDE` steps one.
    """
    rng, start, end = random.Random(seed), asdict(H200), time.monotonic() + seconds
    now = best = H200
    at = least = sweep.loss(now)
    passed: list[tuple[float, Constants]] = []
    steps = 0
    while (left := (end - time.monotonic()) / seconds) > 0:
        changes = {}
        for name in rng.sample(sorted(start), rng.choice((1, 1, 2, 3))):
            low, high = BOUNDS.get(name, (start[name] / FAR, start[name] * FAR))
            value = getattr(now, name) * math.exp(rng.gauss(0, rng.choice((0.02, 0.1, 0.4))))
            changes[name] = min(max(value, low), high)
        new = replace(now, **changes)
        value = sweep.loss(new)
        steps += 1
        if steps % STRIDE == 0:
            passed.append((at, now))
        if value < at or rng.random() < math.exp((at - value) / (5e-4 * left + 1e-9)):
            now, at = new, value
            if at < least:
                best, least = now, at
    return best, [c for value, c in passed if value < NEARLY * least]


def table(sweep: Sweep, c: Constants) -> None:
    """Regret by size."""
    regrets, sizes = sweep.regrets(c), np.array([nbytes(p) for p in sweep.problems])
    print(f"{len(sweep.us):,} schedules of {len(sizes):,} reductions; loss {sweep.loss(c):.4f}, "
          f"predictions within {rms(sweep.errors(c)):.0%}")
    for low, high in pairwise(SIZES):
        mine = regrets[(low <= sizes) & (sizes < high)]
        if len(mine):
            print(f"{low:>11,.0f} bytes and more: {len(mine):4d} problems, {math.expm1(mine.mean()):6.1%} behind the fastest, "
                  f"at most {math.expm1(mine.max()):.0%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sweep", type=Path, default=SWEEP)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--committee", type=Path)
    a = parser.parse_args()
    sweep = Sweep.of_measured(measured(a.sweep))
    table(sweep, H200)
    if a.seconds:
        found, others = annealed(sweep, a.seconds, a.seed)
        table(sweep, found)
        if a.committee:
            members = random.Random(a.seed).sample(others, min(MEMBERS, len(others)))
            a.committee.write_text(json.dumps([asdict(c) for c in members], indent=1))
            print(f"{len(members)} of {len(others)} others that fit nearly as well: {a.committee}")
        for name, value in asdict(found).items():
            print(f"    {name}: float = {value:.3g}")


if __name__ == "__main__":
    main()
