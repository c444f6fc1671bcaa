"""Conditions: reduced, dropped, refuted and printed; loop bounds from them."""

from __future__ import annotations

import itertools

from explorer.ir.expr import Expr, Quotient, const, quotient, var
from explorer.kernel.bounds import bounds, extreme_text, is_linear
from explorer.kernel.conditions import NEVER, Condition, condition, condition_text, conjunction, guard_text, without_implied

RANGES = {"b": (0, 7), "t": (0, 127), "k": (0, 9)}
b, t, k = var("b"), var("t"), var("k")


def test_what_intervals_prove_is_dropped() -> None:
    assert condition(t, False, RANGES) is None
    assert condition(-t + 127, False, RANGES) is None
    assert condition(-t - 1, False, RANGES) is NEVER
    assert condition(const(0), True, RANGES) is None
    assert condition(t + 1, True, RANGES) is NEVER


def test_lowest_terms_are_exact() -> None:
    assert condition(b * -128 + 999, False, RANGES) == Condition(-b + 7) or condition(b * -128 + 999, False, RANGES) is None
    c = condition(b * -128 + 500, False, RANGES)
    assert c == Condition(-b + 3)
    for value in range(8):
        assert c.expr.evaluate({"b": value, "t": 0}) >= 0 if 500 - 128 * value >= 0 else c.expr.evaluate({"b": value}) < 0
    assert condition(b * 2 + 1 - k * 2, True, RANGES) is NEVER
    assert condition(b * 2 + 4 - k * 2, True, RANGES) == Condition(b - k + 2, True)


def test_a_lone_quotient_becomes_a_comparison_of_what_it_divides() -> None:
    flat = b * 128 + t
    below = condition(-quotient(flat, 30) + 19, False, RANGES)
    assert below == Condition(-flat + 599)
    assert condition_text(below, RANGES) == "128 * b + t < 600"
    above = condition(quotient(flat, 30) - 4, False, RANGES)
    assert above == Condition(flat - 120)
    assert condition_text(above, RANGES) == "128 * b + t >= 120"
    nested = condition(-quotient(quotient(flat + b, 7), 5) + 3, False, RANGES)
    assert nested == condition(-flat - b + 139, False, RANGES)
    scaled = condition(quotient(flat, 30) * -6 + 45, False, RANGES)
    assert scaled == Condition(-flat + 239)
    even = condition(-quotient(b * 4 + k * 2, 6) + 2, False, RANGES)
    assert even == condition(-b * 2 - k + 8, False, RANGES)


def test_a_quotient_loses_nothing_in_becoming_a_comparison() -> None:
    for by, factor, shift, bound in itertools.product((2, 3, 7), (-5, -2, -1, 1, 3), (-4, 0, 5), (-9, -1, 0, 2, 6)):
        e = Expr(((Quotient(b * 3 - k + shift, by), factor),), bound)
        c = condition(e, False, RANGES)
        for bv, kv in itertools.product(range(8), range(10)):
            values = {"b": bv, "k": kv}
            holds = c is None or (c.expr.evaluate(values) >= 0)
            assert holds == (e.evaluate(values) >= 0)
            assert c is None or not any(isinstance(a, Quotient) for a, _ in c.expr.terms)


def test_a_quotient_among_other_terms_stays() -> None:
    mixed = quotient(b * 128 + t, 30) - k
    assert condition(mixed, False, RANGES) == Condition(mixed)
    equal = quotient(b * 128 + t, 30) - 4
    assert condition(equal, True, RANGES) == Condition(equal, True)


def test_conjunctions() -> None:
    one, two = Condition(-b + 3), Condition(-t + 9)
    assert conjunction([one, None, two, one]) == (one, two)
    assert conjunction([one, NEVER]) == (NEVER,)


def test_text_reads_as_a_comparison() -> None:
    assert condition_text(Condition(b * -128 - t + 999), RANGES) == "128 * b + t < 1000"
    assert condition_text(Condition(t - 5), RANGES) == "t >= 5"
    assert condition_text(Condition(b - k), RANGES) == "k <= b"
    assert condition_text(Condition(b - k - 1), RANGES) == "k < b"
    assert condition_text(Condition(b - k + 2), RANGES) == "k <= b + 2"
    assert condition_text(Condition(b - k - 3), RANGES) == "k + 2 < b"
    assert condition_text(Condition(t, True), RANGES) == "t == 0"
    assert condition_text(Condition(b - k + 1, True), RANGES) == "b == k - 1"


def test_text_is_true_exactly_where_the_condition_holds() -> None:
    for const_part, x, y in itertools.product((-3, -1, 0, 1, 4), (-2, -1, 0, 1), (-1, 0, 3)):
        c = Condition(b * x + k * y + const_part)
        if not c.expr.terms:
            continue
        for bv, kv in itertools.product(range(8), range(10)):
            assert eval(condition_text(c, RANGES), {"b": bv, "k": kv}) == (c.expr.evaluate({"b": bv, "k": kv}) >= 0)


def test_implied_conditions_are_not_printed() -> None:
    weak, strong = Condition(b * -8 - k + 90), Condition(b * -8 - k + 50)
    assert without_implied([weak, strong], RANGES) == (strong,)
    assert without_implied([strong, strong], RANGES) == (strong,)
    assert guard_text([weak, strong, Condition(-t + 3)], RANGES) == "8 * b + k < 51 && t < 4"
    assert guard_text([strong, Condition(-t + 3)], RANGES, enclosed=True) == "(8 * b + k < 51 && t < 4)"
    equal = Condition(b - k, True)
    assert set(without_implied([equal, Condition(b - k)], RANGES)) == {equal, Condition(b - k)}


def test_bounds_are_exact_for_any_coefficient() -> None:
    for a, shift in itertools.product((-5, -3, -1, 1, 2, 7), (-20, -3, 0, 4, 30)):
        c = Condition(k * a + b * 3 + shift)
        assert is_linear(c, "k")
        lowers, uppers = bounds([c], "k")
        for bv in range(8):
            inside = [v for v in range(-50, 50) if a * v + 3 * bv + shift >= 0]
            low = max([-50, *(e.evaluate({"b": bv}) for e in lowers)])
            end = min([50, *(e.evaluate({"b": bv}) for e in uppers)])
            assert inside == list(range(low, end))


def test_what_is_no_bound() -> None:
    assert not is_linear(Condition(k, True), "k")
    assert not is_linear(Condition(quotient(k, 2) + b), "k")
    assert not is_linear(Condition(quotient(k, 2) + k), "k")
    assert not is_linear(Condition(b), "k")


def test_extremes_leave_out_what_cannot_matter() -> None:
    assert extreme_text("max", 0, [b - 9], RANGES, False) == "0"
    assert extreme_text("max", 0, [b - 2], RANGES, False) == "max(0, b - 2)"
    assert extreme_text("max", 0, [b], RANGES, False) == "b"
    assert extreme_text("min", 10, [b + 20], RANGES, False) == "10"
    assert extreme_text("min", 10, [b + 5, k + 5], RANGES, False) == "min(10, min(b + 5, k + 5))"
    assert extreme_text("min", 10, [b + 5, b + 4, b + 6], RANGES, False) == "min(10, b + 4)"
    assert extreme_text("min", 10, [b + 1], RANGES, False) == "b + 1"
    assert extreme_text("min", 10, [b + 5], RANGES, True) == "min(10LL, (long long)(b + 5))"
