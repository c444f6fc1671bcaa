"""What is deduced is true: against enumeration of small boxes, and the deductions that schedules rely on."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.ir.expr import Expr, quotient, remainder, var
from explorer.poly.deduce import combined, deduce, marked, over, whole
from explorer.poly.linear import Condition, equal, less
from tests.poly.test_linear import NAMES, exprs

BOX = {"x": (0, 3), "y": (-2, 3)}
RANGES = {**marked(BOX, "a"), **marked(BOX, "b")}
POINTS = [dict(zip(RANGES, p, strict=True)) for p in product(*(range(lo, hi + 1) for lo, hi in RANGES.values()))]
conditions = st.one_of(
    st.builds(lambda e, f: equal(e, "a", f, "b"), exprs(), exprs()),
    st.builds(lambda n, c: equal(var(n), "a", var(n) + c, "b"), st.sampled_from(NAMES), st.integers(-1, 1)),
    st.builds(lambda e: equal(e, "a", e, "b"), exprs()),
    st.builds(lambda e, f: less(e, "a", f, "b"), exprs(1), exprs(1)))


def true(condition: Condition, point: dict[str, int]) -> bool:
    value = combined(condition).evaluate(point)
    return value == 0 if condition.equality else value >= 0


@settings(max_examples=300, deadline=None)
@given(st.lists(conditions, min_size=1, max_size=4), exprs(), exprs())
def test_everything_deduced_is_true(case: list[Condition], e: Expr, f: Expr) -> None:
    solutions = [p for p in POINTS if all(true(c, p) for c in case)]
    facts = deduce(tuple(case), RANGES)
    if facts is None:
        assert not solutions
        return
    for name, value in facts.values.items():
        assert all(p[name] == value.evaluate(p) for p in solutions)
    difference = over(e, "a") - over(f, "b")
    if facts.zero(difference):
        assert all(difference.evaluate(p) == 0 for p in solutions)
    more = less(e, "a", f, "b")
    if facts.holds(more):
        assert all(true(more, p) for p in solutions)
    if facts.refutes([more]):
        assert not any(true(more, p) for p in solutions)


def test_digits_are_equal_one_by_one() -> None:
    """The cell of a staged tile names its thread: 8*i + t // 2 and 64*(t % 2) + 4*s + v."""
    t, s, i, v = (var(n) for n in "tsiv")
    ranges = {"t": (0, 15), "s": (0, 15), "i": (0, 3), "v": (0, 3)}
    rows = i * 8 + quotient(t, 2)
    columns = remainder(t, 2) * 64 + s * 4 + v
    same = (equal(rows, "a", rows, "b"), equal(columns, "a", columns, "b"))
    facts = deduce(same, {**marked(ranges, "a"), **marked(ranges, "b")})
    assert facts is not None
    assert all(facts.zero(over(x, "a") - over(x, "b")) for x in (t, s, i, v))
    assert facts.refutes([less(t * 16 + s, "a", t * 16 + s, "b")])
    assert not facts.refutes([less(t, "a", t, "b", 0)])


def test_contradictions() -> None:
    x, y = var("x"), var("y")
    assert deduce((equal(x * 2, "a", y * 2 + 1, "b"),), {}) is None
    assert deduce((equal(x, "a", x + 4, "b"),), RANGES) is None
    assert deduce((equal(x, "a", x, "b"), less(x, "a", x, "b")), RANGES) is None
    assert deduce((equal(x * 8 + y, "a", x * 8 + y + 4, "b"),), {**marked({"x": (0, 9), "y": (0, 1)}, "a"),
                                                                **marked({"x": (0, 9), "y": (0, 1)}, "b")}) is None
    assert deduce((equal(x, "a", y, "b"),), RANGES) is not None


@settings(max_examples=300, deadline=None)
@given(exprs())
def test_digits_put_together_have_the_same_value(e: Expr) -> None:
    for scope in ({}, BOX):
        joined = whole(e, scope)
        assert len(joined.terms) <= len(e.terms)
        assert all(joined.evaluate(p) == e.evaluate(p) for p in ({"x": x, "y": y} for x in range(4) for y in range(-2, 4)))


def test_digits_of_digits() -> None:
    j = var("j")
    outer = quotient(j + 63, 64) * 64
    inner = remainder(j + 63, 64)
    assert whole(outer + quotient(inner, 4) * 4 + remainder(inner, 4) - 64) == j - 1


def test_variables_of_one_value_are_equal() -> None:
    facts = deduce((), {"a:x": (3, 3), "b:y": (3, 3), "b:z": (3, 4)})
    assert facts is not None
    assert facts.holds(equal(var("x"), "a", var("y"), "b"))
    assert not facts.holds(equal(var("x"), "a", var("z"), "b"))
