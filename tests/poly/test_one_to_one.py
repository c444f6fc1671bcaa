"""Variables that enough functions tell apart: found where no two points of the box share all values, and only there."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.ir.expr import Expr, quotient, remainder, var
from explorer.poly.deduce import deduce, marked, over
from explorer.poly.linear import equal
from explorer.poly.one_to_one import MOST_POINTS, told_apart
from explorer.poly.radix import what_is_left_by_digits
from tests.poly.test_linear import exprs

BOX = {"x": (0, 3), "y": (-2, 3)}
N, B = var("n"), var("b")


def both(functions: list[Expr]) -> list[Expr]:
    return [over(f, "a") - over(f, "b") for f in functions]


@settings(max_examples=300, deadline=None)
@given(st.lists(exprs(), min_size=1, max_size=4))
def test_a_variable_is_equal_if_and_only_if_every_pair_of_points_says_so(functions: list[Expr]) -> None:
    points = [{"x": x, "y": y} for x, y in product(range(4), range(-2, 4))]
    alike = [(p, q) for p, q in product(points, points) if all(f.evaluate(p) == f.evaluate(q) for f in functions)]
    found = told_apart(both(functions), {**marked(BOX, "a"), **marked(BOX, "b")})
    names = {name for e in both(functions) for name in e.variables()}
    if names == {"a:x", "a:y", "b:x", "b:y"} and all(set(map(str, e.variables())) for e in both(functions)):
        asked = {v for v in ("x", "y") if all(p[v] == q[v] for p, q in alike)}
        used = [f for f in functions if both([f])[0].variables()]
        assert {e for e in found} == {over(var(v), "a") - over(var(v), "b") for v in asked} or not used


def test_tiles_in_turn_have_one_number() -> None:
    number = N * 132 + B
    digits = [quotient(number, 36), remainder(quotient(number, 9), 4), quotient(remainder(N * 6 + B, 9), 3), remainder(B, 3)]
    ranges = {"n": (0, 2), "b": (0, 131)}
    marks = {**marked(ranges, "a"), **marked(ranges, "b")}
    assert {*map(str, told_apart(both(digits), marks))} == {"a:b - b:b", "a:n - b:n"}
    facts = deduce(tuple(equal(e, "a", e, "b") for e in digits), marks)
    assert facts is not None
    assert facts.zero(over(B, "a") - over(B, "b"))
    assert facts.zero(over(N, "a") - over(N, "b"))


def test_a_variable_that_is_known_to_be_equal_is_one() -> None:
    """``b:n`` stands on both sides once the two are known to be equal."""
    ranges = {"n": (0, 2), "b": (0, 112)}
    number = N * 113 + B
    same = [equal(N, "a", N, "b"), *(equal(e, "a", e, "b") for e in (quotient(number, 30), remainder(quotient(number, 5), 6),
                                                                  remainder(N * 3 + B, 5)))]
    facts = deduce(tuple(same), {**marked(ranges, "a"), **marked(ranges, "b")})
    assert facts is not None
    assert facts.zero(over(B, "a") - over(B, "b"))


def test_digits_of_what_is_left() -> None:
    """A tile's number is equal as a whole, in thirds; a fragment's row and its lane are, by digits of two."""
    row, lane, register = var("row"), var("lane"), var("register")
    held = quotient(lane, 32) * 16 + remainder(register, 2) * 8 + quotient(remainder(lane, 32), 4)
    ranges = {"a:n": (0, 2), "b:n": (0, 2), "a:row": (0, 63), "b:lane": (0, 127), "b:register": (0, 3)}
    same = (equal(quotient(N * 64 + row, 3), "a", quotient(N * 64 + held, 3), "b"),
            equal(remainder(N + row, 3), "a", remainder(N + held, 3), "b"))
    facts = deduce(same, ranges)
    assert facts is not None
    asked = [equal(quotient(row, 16), "a", quotient(lane, 32), "b"),
             equal(remainder(row, 8), "a", quotient(remainder(lane, 32), 4), "b")]
    left = what_is_left_by_digits(facts, asked)
    assert left is not None
    assert all(map(left.holds, asked))
    assert not left.holds(equal(remainder(row, 4), "a", remainder(lane, 4), "b"))


def test_a_digit_that_is_missing_leaves_the_others_open() -> None:
    number = N * 132 + B
    digits = [quotient(number, 36), quotient(remainder(N * 6 + B, 9), 3), remainder(B, 3)]
    ranges = {"n": (0, 2), "b": (0, 131)}
    assert not told_apart(both(digits), {**marked(ranges, "a"), **marked(ranges, "b")})


def test_a_box_without_points_tells_nothing() -> None:
    ranges = {"n": (0, -1), "b": (0, 3)}
    assert not told_apart(both([quotient(N, 2) + B, remainder(N, 2)]), {**marked(ranges, "a"), **marked(ranges, "b")})


def test_large_boxes_are_not_looked_at() -> None:
    ranges = {"n": (0, MOST_POINTS), "b": (0, 1)}
    assert not told_apart(both([quotient(N, 2) + B * (1 << 20), remainder(N, 2)]), {**marked(ranges, "a"), **marked(ranges, "b")})


def test_equalities_are_solved_for_a_variable() -> None:
    """The element of a transposed convolution, ``o = 2*i + r - 1``: where its block is, from either side."""
    o, i, r = var("o"), var("i"), var("r")
    ranges = {"o": (0, 63), "i": (0, 31), "r": (0, 3)}
    facts = deduce((equal(o + 1, "a", i * 2 + r, "b"),), {**marked(ranges, "a"), **marked(ranges, "b")})
    assert facts is not None
    assert facts.zero(over(quotient(o + 1, 2), "a") - over(i + quotient(r, 2), "b"))
    assert facts.zero(over(remainder(o + 1, 2), "a") - over(remainder(r, 2), "b"))
    assert facts.zero(over(quotient(o + 1, 24), "a") - over(quotient(i + quotient(r, 2), 12), "b"))
    assert not facts.zero(over(quotient(o, 2), "a") - over(i + quotient(r, 2), "b"))
