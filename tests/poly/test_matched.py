"""Conditions on pairs that agree in some expressions: those that all pairs of points confirm, and no others."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.ir.expr import Expr, quotient, remainder, var
from explorer.poly.deduce import marked, over
from explorer.poly.matched import MOST_POINTS, holds_on_pairs
from tests.poly.test_linear import exprs

BOX = {"x": (0, 3), "y": (-2, 3)}
RANGES = {**marked(BOX, "a"), **marked(BOX, "b")}
POINTS = [dict(zip(RANGES, p, strict=True)) for p in product(*(range(lo, hi + 1) for lo, hi in RANGES.values()))]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(exprs(), exprs()), max_size=3), exprs(), exprs(), st.booleans())
def test_the_answer_is_that_of_all_pairs(same: list[tuple[Expr, Expr]], e: Expr, f: Expr, equality: bool) -> None:
    equalities = [over(x, "a") - over(y, "b") for x, y in same]
    asked = over(e, "a") - over(f, "b")
    pairs = [p for p in POINTS if all(x.evaluate(p) == 0 for x in equalities)]
    truth = all(asked.evaluate(p) == 0 if equality else asked.evaluate(p) >= 0 for p in pairs)
    answer = holds_on_pairs(equalities, asked, equality, RANGES)
    assert truth or not answer
    if {name[0] for name in asked.variables()} == {"a", "b"} and all(len({n[0] for n in x.variables()}) == 2 for x in equalities):
        tied = [x for x in equalities if x.variables() & asked.variables()]
        assert answer or not truth or len(tied) < len(equalities)


def test_a_variable_of_both_sides() -> None:
    """``b:n`` stands for ``a:n``, too, where they are known to be equal."""
    n, x, y = var("b:n"), var("a:x"), var("b:y")
    ranges = {"b:n": (0, 2), "a:x": (0, 5), "b:y": (0, 5)}
    same = [quotient(n * 6 + x, 4) - quotient(n * 6 + y, 4), remainder(n * 2 + x, 4) - remainder(n * 2 + y, 4)]
    assert holds_on_pairs(same, x - y, True, ranges)
    assert holds_on_pairs(same, x - y, False, ranges)
    assert not holds_on_pairs(same[:1], x - y, True, ranges)
    assert not holds_on_pairs(same, x - y - 1, False, ranges)


def test_a_side_without_points_has_no_pairs() -> None:
    ranges = {"a:x": (0, -1), "b:x": (0, 5)}
    assert holds_on_pairs([var("a:x") - var("b:x")], var("a:x") - var("b:x") - 1, True, ranges)


def test_large_sides_are_not_looked_at() -> None:
    ranges = {"a:x": (0, MOST_POINTS), "b:x": (0, MOST_POINTS)}
    assert not holds_on_pairs([var("a:x") - var("b:x")], var("a:x") - var("b:x"), True, ranges)
