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
