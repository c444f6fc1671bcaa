"""Inequalities ``expr >= 0`` over integers in a simpler form that holds for the same values, and several in one.

A disjunction is one inequality too: for ``-c <= e``, the quotient ``e // c`` is -1 where e is negative and at least 0
elsewhere.  So ``a >= 0 or b >= 0`` is ``a // c + b // d + 1 >= 0``: a domain stays a conjunction, in isl and everywhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from .expr import Expr, Quotient, Ranges, quotient


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


def any_of(parts: Sequence[Expr], ranges: Ranges) -> Expr:
    """An expression that is not negative exactly where one of `parts` is not, for variables within `ranges`."""
    total = Expr((), len(parts) - 1)
    for part in parts:
        most = max(map(abs, part.interval(ranges)))
        total = total + quotient(part, 2 << most.bit_length(), ranges)  # -1 or 0, and no coefficient comes out of it
    return total


@lru_cache(maxsize=65536)
def alternatives(expr: Expr, ranges: tuple[tuple[str, tuple[int, int]], ...]) -> tuple[Expr, ...]:
    """Expressions of which one is not negative exactly where `expr` is not; none where it is not the sum that
    :func:`any_of` makes.

    A sum is at least 0 exactly where one of its terms is above its least value, if these add up to -1.
    """
    scope = dict(ranges)
    terms = [Expr((term,)) for term in expr.terms]
    spans = [term.interval(scope) for term in terms]
    switches = [isinstance(atom, Quotient) and c == 1 for atom, c in expr.terms] + [high - low <= 1 for low, high in spans]
    if len(terms) < 2 or not all(switches) or sum(low for low, _ in spans) + expr.const != -1:
        return ()
    return tuple(free_of_quotient(term - low - 1) for term, (low, _) in zip(terms, spans, strict=True))


def cases(expr: Expr, ranges: Ranges) -> tuple[Expr, ...]:
    """:func:`alternatives` over a mapping of ranges."""
    return alternatives(expr, tuple((name, ranges[name]) for name in sorted(expr.variables()) if name in ranges))
