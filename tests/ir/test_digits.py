"""Digits of a mixed-radix sum, and what follows from an index: against every point of a box."""

from __future__ import annotations

from itertools import product

import pytest

from explorer.ir.digits import digits, follows, told
from explorer.ir.expr import Expr, quotient, remainder, var

K, P = var("k"), var("p")
BOX = {"k": (0, 95), "p": (0, 36)}
SUM = quotient(K, 32, BOX) * 8 + K % 8


def points() -> list[dict[str, int]]:
    return [dict(zip(BOX, at, strict=True)) for at in product(*(range(low, high + 1) for low, high in BOX.values()))]


@pytest.mark.parametrize("e", [SUM, SUM + 3, quotient(K, 32, BOX) * 8, (K % 8) * 37 + P, K % 8])
def test_digits_are_the_values_they_stand_for(e: Expr) -> None:
    found = digits(e, var("t"), BOX)
    assert found is not None
    assert len(found) == len(e.terms)
    for at in points():
        for atom, digit in found.items():
            assert digit.evaluate({"t": e.evaluate(at)}) == Expr(((atom, 1),)).evaluate(at)


@pytest.mark.parametrize("e", [quotient(K, 32, BOX) * 7 + K % 8, (K % 8) * -8 + P, K + P])
def test_values_that_overlap_are_no_digits(e: Expr) -> None:
    assert digits(e, var("t"), BOX) is None


def test_an_expression_is_told_by_other_names() -> None:
    inner = (K % 8) * 37 + P
    names = {**digits(SUM, var("t"), BOX), "p": var("q")}  # type: ignore[dict-item]
    for e in (inner // 296, inner % 8, quotient(K, 32, BOX), inner * 5 - 2):
        other = told(e, names)
        assert other is not None
        assert all(other.evaluate({"t": SUM.evaluate(at), "q": at["p"]}) == e.evaluate(at) for at in points())
    assert told(K // 16, names) is None


@pytest.mark.parametrize(("e", "known"), [
    (quotient(K, 32, BOX), True), (K % 8, True), (((K % 8) * 37 + P) // 100, True), (K // 16, False), (K, False), (K % 16, False),
])
def test_what_follows_is_constant_where_the_index_is(e: Expr, known: bool) -> None:
    index = (SUM, P)
    assert follows(e, index, BOX) == known
    values: dict[tuple[int, ...], set[int]] = {}
    for at in points():
        values.setdefault(tuple(i.evaluate(at) for i in index), set()).add(e.evaluate(at))
    assert known == all(len(v) == 1 for v in values.values())


def test_a_remainder_finds_its_quotient_however_it_is_written() -> None:
    """``E // 12`` and ``E % 12`` with their coefficients reduced, and ``4*(E // 12) + E % 12`` modulo 8."""
    ranges = {"s": (0, 2), "y": (0, 3), "q": (0, 7)}
    e = var("s") * 32 + var("y") * 8 + var("q")
    values = {"a": quotient(e, 12, ranges), "b": remainder(e, 12, ranges)}
    assert (var("a") * 12 + var("b")).substitute(values, ranges) == e
    digit = ((var("a") * 12 + var("b")) % 8).substitute(values, ranges)
    assert digit == var("q")
    for s, y, q in product(range(3), range(4), range(8)):
        at = {"s": s, "y": y, "q": q}
        a, b = (values[n].evaluate(at) for n in "ab")
        assert digit.evaluate(at) == (12 * a + b) % 8
