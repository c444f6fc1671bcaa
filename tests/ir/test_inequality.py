"""Inequalities without their lone quotient hold for the same integers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from explorer.ir.expr import Expr, Quotient, const, var
from explorer.ir.inequality import free_of_quotient


@given(st.integers(-6, 6).filter(bool), st.integers(-40, 40), st.integers(1, 9), st.integers(-3, 3).filter(bool),
       st.integers(-5, 5))
def test_a_lone_quotient_goes_and_the_solutions_stay(times: int, shift: int, by: int, slope: int, start: int) -> None:
    x = var("x")
    expr = (x * slope + start) // by * times + shift
    simpler = free_of_quotient(expr)
    assert not any(isinstance(atom, Quotient) for atom, _ in simpler.terms)
    for value in range(-60, 61):
        at = {"x": const(value)}
        assert (expr.substitute(at, {}).const >= 0) == (simpler.substitute(at, {}).const >= 0), value


def test_other_expressions_stay() -> None:
    expr = var("x") // 3 + var("y") - 4
    assert free_of_quotient(expr) is expr
    assert free_of_quotient(Expr((), 3)) == Expr((), 3)
