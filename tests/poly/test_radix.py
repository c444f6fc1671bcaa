"""What digits say is true, against every point of small boxes; and the registers of a fragment are told apart by them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.ir.expr import Expr, quotient, remainder, var
from explorer.poly.deduce import combined, marked
from explorer.poly.feasible import feasible
from explorer.poly.linear import Condition, equal, less
from explorer.poly.linear import Tuple as Variables
from explorer.poly.radix import by_digits

RANGES = {**marked({"x": (0, 13), "y": (0, 7)}, "a"), **marked({"x": (0, 9), "y": (-3, 4)}, "b")}
_AXES = np.array(list(product(*(range(lo, hi + 1) for lo, hi in RANGES.values())))).T
POINTS: dict[str, Any] = dict(zip(RANGES, _AXES, strict=True))


@st.composite
def sums(draw: st.DrawFn) -> Expr:
    """Sums of digits of `x` and `y`, and of digits of digits."""
    total = Expr((), draw(st.integers(-2, 2)))
    for _ in range(draw(st.integers(1, 3))):
        name, by, of = draw(st.sampled_from("xy")), draw(st.sampled_from((1, 2, 3, 4, 6, 8))), draw(st.sampled_from((2, 3, 4)))
        e = draw(st.sampled_from((1, 3))) * var(name) + draw(st.sampled_from((0, 0, 1)))
        kind = draw(st.integers(0, 3))
        e = (e, quotient(e, by), remainder(e, by), quotient(remainder(e, by * of), by))[kind]
        total = total + e * draw(st.sampled_from((-1, 1, 1, 2, 4, 8)))
    return total


conditions = st.one_of(st.builds(lambda e: equal(e, "a", e, "b"), sums()),
                       st.builds(lambda e, f: equal(e, "a", f, "b"), sums(), sums()),
                       st.builds(lambda e, f: less(e, "a", f, "b"), sums(), sums()))


def true(c: Condition) -> Any:
    value = combined(c).evaluate(POINTS)
    return value == 0 if c.equality else value >= 0


@settings(max_examples=400, deadline=None)
@given(st.lists(conditions, min_size=1, max_size=3), st.lists(conditions, min_size=1, max_size=2))
def test_everything_that_digits_say_is_true(case: list[Condition], asked: list[Condition]) -> None:
    facts = by_digits((*case, *asked), RANGES)
    known = facts and facts.given(case)
    held = np.logical_and.reduce([np.broadcast_to(true(c), _AXES.shape[1:]) for c in case])
    assert known is not None or facts is None or not held.any()
    if known is None:
        return
    for c in asked:
        truth = np.broadcast_to(true(c), held.shape)
        assert not known.holds(c) or truth[held].all()
        assert not known.refutes([c]) or not truth[held].any()


def test_a_register_of_a_fragment_and_its_lane_are_one_element() -> None:
    """Whoever has the same lane and register of an accumulator of ``m64n8`` has the same row and column; isl says so, too."""
    i, j, scope = var("i"), var("j"), {"i": (0, 63), "j": (0, 63)}
    register = quotient(j, 8, scope) * 4 + quotient(remainder(i, 16), 8) * 2 + remainder(j, 2)
    thread = quotient(i, 16) * 32 + remainder(i, 8) * 4 + quotient(remainder(j, 8), 2)
    same = equal(register, "a", register, "b"), equal(thread, "a", thread, "b")
    ranges = {**marked(scope, "a"), **marked(scope, "b")}
    facts = by_digits(same, ranges)
    assert facts is not None
    known = facts.given(same)
    assert known is not None
    for v in (i, j):
        assert known.holds(equal(v, "a", v, "b"))
        assert known.refutes([less(v, "a", v, "b")])
    loops = [Variables("", side, ("i", "j")) for side in "ab"]
    inside = [c for side in "ab" for v in (i, j) for c in (less(-v, side, Expr(), side, 0), less(v, side, Expr((), 63), side, 0))]
    assert not feasible(loops, (*inside, *same, less(i, "a", i, "b")))


def test_without_digits_there_is_nothing_to_cut() -> None:
    assert by_digits((equal(var("x"), "a", var("y"), "b"),), RANGES) is None
