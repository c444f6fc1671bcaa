"""Conditions on trip count and number of mbarriers, against all sizes up to some, one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from explorer.ir.expr import Expr, const, quotient, remainder, var
from explorer.poly.phase_parity import MBARRIERS, parities
from explorer.poly.symbolic_trips import TRIPS

K, k = var(TRIPS), var("k")


def by_ring(e: Expr) -> Expr:
    return quotient(e, MBARRIERS)


CASES: dict[str, tuple[Sequence[Expr], Callable[[int, int, int], list[int]], str]] = {
    "a run after another one counts from 0": (
        [by_ring(k) - by_ring(k + K)], lambda k, n, s: [k // s - (k + n) // s], "2 * K <= S or K % (2 * S) == 0"),
    "three runs after one count from 0": (
        [by_ring(k) - by_ring(k + K * m) for m in (1, 2, 3)], lambda k, n, s: [k // s - (k + n * m) // s for m in (1, 2, 3)],
        "4 * K <= S or K % (2 * S) == 0"),
    "the parity of the iteration": (
        [remainder(k, 2) - by_ring(k)], lambda k, n, s: [k % 2 - k // s], "S == 1 or (K == 1 and S >= 2)"),
    "always the first phase": ([-by_ring(k)], lambda k, n, s: [-(k // s)], "K == S or K <= S - 1"),
    "one ahead": ([by_ring(k + 1) - by_ring(k)], lambda k, n, s: [(k + 1) // s - k // s], "K <= S - 1"),
    "a ring ahead": ([by_ring(k) + 1 - by_ring(k)], lambda k, n, s: [1], "never"),
    "two rings ahead": ([by_ring(k) + 2 - by_ring(k)], lambda k, n, s: [2], ""),
    "the last iteration": ([by_ring(K) - by_ring(k)], lambda k, n, s: [n // s - k // s], "K <= S - 1"),
}


@pytest.mark.parametrize("name", CASES)
def test_conditions_are_those_of_every_size(name: str) -> None:
    differences, values, said = CASES[name]
    told = parities(differences, "k")
    assert told is not None
    assert not said or told == said
    for n in range(1, 25):
        for s in range(1, 8):
            right = all(v % 2 == 0 for i in range(n) for v in values(i, n, s))
            assert (told != "never" and eval(told, {"K": n, "S": s, "always": True})) == right, (n, s, told)


def test_what_has_no_digits_has_no_condition() -> None:
    assert parities([quotient(k, 3) - by_ring(k)], "k") is None, "another number's quotient"
    assert parities([by_ring(const(5) - k)], "k") is None
    assert parities([var("i") - by_ring(k)], "k") is None
