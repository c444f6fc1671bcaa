"""Inequalities ``expr >= 0`` over integers in a simpler form that holds for the same values."""

from __future__ import annotations

from functools import lru_cache

from .expr import Expr, Quotient


@lru_cache(maxsize=65536)
def free_of_quotient(expr: Expr) -> Expr:
    """An expression that is not negative exactly where `expr` is not, without the quotient if `expr` holds nothing else.

    ``15 - x // 418 >= 0`` is ``16 * 418 - 1 - x >= 0``, since ``x // d <= b`` means ``x <= b * d + d - 1``.
    """
    atom, c = expr.terms[0] if len(expr.terms) == 1 else ("", 0)
    if not isinstance(atom, Quotient):
        return expr
    bound = -(expr.const // c) if c > 0 else expr.const // -c
    return free_of_quotient(atom.expr - bound * atom.by if c > 0 else -atom.expr + (bound * atom.by + atom.by - 1))


@lru_cache(maxsize=65536)
def linear_in(expr: Expr, name: str) -> Expr:
    """An expression that is not negative exactly where `expr` is not, without the quotient that hides a variable, if one does.

    ``a - x // d >= 0`` is ``a * d + d - 1 - x >= 0``, and ``a + x // d >= 0`` is ``a * d + x >= 0``, whatever else is in ``a``.
    """
    hidden = [(atom, c) for atom, c in expr.terms if not isinstance(atom, str) and name in atom.expr.variables()]
    if len(hidden) != 1 or expr.coefficient(name):
        return expr
    (atom, c), = hidden
    if not isinstance(atom, Quotient) or c not in (1, -1):
        return expr
    rest = Expr(tuple(t for t in expr.terms if t[0] != atom), expr.const) * atom.by
    return linear_in(rest + atom.expr if c == 1 else rest + (atom.by - 1) - atom.expr, name)
