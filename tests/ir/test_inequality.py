"""Inequalities without their lone quotient hold for the same integers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from explorer.ir.expr import Expr, Quotient, const, var
from explorer.ir.inequality import free_of_quotient, linear_in


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


@given(st.sampled_from((-1, 1)), st.integers(1, 9), st.integers(-3, 3).filter(bool), st.integers(-5, 5), st.integers(-4, 4),
       st.integers(-30, 30))
def test_a_hidden_variable_shows_and_the_solutions_stay(sign: int, by: int, slope: int, start: int, other: int,
                                                        shift: int) -> None:
    x, y, z = var("x"), var("y"), var("z")
    expr = (x * slope + y + start) // by * sign + y * other + z // 5 + shift
    linear = linear_in(expr, "x")
    hidden = [a for a, _ in linear.terms if isinstance(a, Quotient) and "x" in a.expr.variables()]
    assert by == 1 or (linear.coefficient("x") and not hidden)
    for value in range(-40, 41):
        for beside in (-7, -1, 0, 3, 10):
            at = {"x": const(value), "y": const(beside), "z": const(3 * beside - 2)}
            assert (expr.substitute(at, {}).const >= 0) == (linear.substitute(at, {}).const >= 0), at


def test_what_stays_hidden() -> None:
    x = var("x")
    for expr in (x // 3 * 2 + 1, x // 3 + x, x // 3 + x // 4, x % 5 + 2, var("y") // 3):
        assert linear_in(expr, "x") is expr
