"""How well a model ranks: pairs in the wrong order, what its first ones reach, rank correlation; which ones of many are tried."""

from __future__ import annotations

import random
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, islice
from typing import NamedTuple, TypeVar

T = TypeVar("T")

MARGIN = 0.10
"""Times that differ by less are not told apart: no order of them is wrong."""


class Timed(NamedTuple):
    """What was predicted and measured."""

    label: str
    predicted_us: float
    measured_us: float


def told_apart(rows: Sequence[Timed], margin: float = MARGIN) -> list[tuple[Timed, Timed]]:
    """The pairs that differ by more than the margin, the faster one first."""
    pairs = (sorted(pair, key=lambda r: r.measured_us) for pair in combinations(rows, 2))
    return [(fast, slow) for fast, slow in pairs if slow.measured_us > (1 + margin) * fast.measured_us]


def wrong_order(rows: Sequence[Timed], margin: float = MARGIN) -> list[tuple[Timed, Timed]]:
    """Of these the pairs that the model does not put in this order: the slower one is predicted as fast, or faster."""
    return [(fast, slow) for fast, slow in told_apart(rows, margin) if fast.predicted_us >= slow.predicted_us]


def share_of_best(order: Sequence[str], times: Mapping[str, float], first: int) -> float:
    """The best time of all over the best one of the model's `first`; 0 where none of these has a time."""
    found = [times[label] for label in order[:first] if label in times]
    return min(times.values()) / min(found) if found else 0.0


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> float:
    """Of what was predicted with what was measured: 1 for the same order, equal ones share a rank (C. Spearman, 1904)."""
    sides = [_ranks(side) for side in zip(*pairs, strict=True)]
    return statistics.correlation(*sides) if len(pairs) > 2 and all(len(set(side)) > 1 for side in sides) else float("nan")


def _ranks(values: Sequence[float]) -> list[float]:
    """The place of each in their order."""
    placed = sorted(values)
    first = {v: n for n, v in reversed(list(enumerate(placed)))}
    count = Counter(placed)
    return [first[v] + (count[v] - 1) / 2 for v in values]


def sample(order: Sequence[T], count: int, seed: int, first: int = 40) -> list[T]:
    """Which ones are tried, in this order: all where there are no more than `count`.

    Otherwise the model's `first`, then by turns the next by the model and one drawn from all others: near its choice nothing is
    left out, and far from it a model that is wrong is found out.
    """
    if not count or len(order) <= count:
        return [*order]
    near = max(first, (count + first) // 2)
    others = [*order[near:]]
    random.Random(seed).shuffle(others)
    out, next_ones, drawn = [*order[:first]], iter(order[first:near]), iter(others)
    while len(out) < count:
        out += [one for source in (next_ones, drawn) for one in islice(source, 1)]
    return out[:count]


def reasons(problems: Iterable[str]) -> dict[str, int]:
    """How often each kind of problem, numbers and names aside, with the most frequent first."""
    return dict(Counter(re.sub(r"'[^']*'|\d+(\.\d+)?", "#", p)[:100] for p in problems).most_common())
