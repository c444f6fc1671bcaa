"""Points of conditions are counted as one by one, also where there are very many."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

import explorer as ex
from explorer.errors import Undecided
from explorer.ir.expr import Expr, const, quotient, remainder, var
from explorer.ir.program import Constraint
from explorer.poly.count import instances
from explorer.poly.isl import budget, read_set, size_of
from explorer.poly.points import count_points

M = ex.sizes("M")


def drawn(pick: Random, names: list[str]) -> Constraint:
    e = const(pick.randrange(-3, 9))
    for name in pick.sample(names, pick.randrange(1, len(names) + 1)):
        part: Expr = var(name) * pick.choice((-3, -2, -1, 1, 2, 3))
        kind, by = pick.random(), pick.randrange(2, 5)
        e += quotient(part, by) if kind < 0.15 else remainder(part, by) if kind < 0.3 else part
    return Constraint(e, pick.random() < 0.15)


@pytest.mark.parametrize("seed", range(4))
def test_as_one_by_one(seed: int) -> None:
    pick, counts = Random(seed), set[int]()
    for _ in range(120):
        names = ["i", "j", "k", "l"][: pick.randrange(1, 5)]
        ranges = {name: (low := pick.randrange(-3, 4), low + pick.randrange(0, 8)) for name in names}
        asked = [drawn(pick, names) for _ in range(pick.randrange(0, 4))]
        every = product(*(range(low, high + 1) for low, high in ranges.values()))
        right = sum(all(c.holds(dict(zip(names, point, strict=True))) for c in asked) for point in every)
        assert count_points(asked, ranges) == right
        counts.add(right)
    assert len(counts) > 20


def test_in_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    i, j, k = var("i"), var("j"), var("k")
    asked, ranges = [Constraint(i - k), Constraint(j - k)], {"i": (0, 40), "j": (0, 30), "k": (0, 40)}
    whole = count_points(asked, ranges)
    monkeypatch.setattr("explorer.poly.points.SLAB", 100)
    assert count_points(asked, ranges) == whole == sum(min(a, b) + 1 for a in range(41) for b in range(31))


@ex.program
def corner(a: ex.f16[M, M], y: ex.f16[M, M]):
    for i in range(M):
        for j in range(M):
            t = ex.local(ex.f32)
            t = 0.0
            for k in range(min(i + 1, j + 1)):
                t += a[i, k] * a[j, k]
            y[i, j] = t


def test_a_loop_that_ends_with_the_smaller_of_two() -> None:
    """isl gave up on it, and the facts of the schedule ended in a TypeError."""
    s = corner.schedule(M=4096)
    assert instances(s.plan)["S1"] == sum((2 * (4096 - n) - 1) * (n + 1) for n in range(4096))
    assert s.facts


def test_too_many_are_said_to_be() -> None:
    i = [var(f"i{n}") for n in range(4)]
    with pytest.raises(Undecided, match="could not be counted"):
        count_points([Constraint(i[0] + i[1] - i[2] - i[3])], {f"i{n}": (0, 9999) for n in range(4)})


def test_isl_that_gives_up_is_said_to() -> None:
    large = read_set("{ [i, j, k] : 0 <= i, j, k < 4096 and i + j + k <= 6000 }")
    with pytest.raises(Undecided), budget(1000):
        size_of(large)
    assert size_of(read_set("{ [i, j] : 0 <= i <= j < 40 }")) == 820
