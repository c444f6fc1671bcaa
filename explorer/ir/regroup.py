"""Equivalent forms of index expressions: whole sums taken out, remainders written as quotients."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .expr import Atom, Expr, Quotient, Ranges, Remainder, const, splits


def extract_sums(expr: Expr, sums: Sequence[tuple[Expr, Expr]]) -> tuple[Expr, Expr]:
    """Take whole sums out of an expression, the longest first.

    Parameters
    ----------
    expr : Expr
    sums : sequence of (Expr, Expr)
        Sums of terms, each with its value in other variables.

    Returns
    -------
    (Expr, Expr)
        What is left of `expr`, and the total of the values of what was taken, each as often as it was in there.
    """
    taken = const(0)
    for whole, value in sorted(sums, key=lambda x: -len(x[0].terms)):
        have = dict(expr.terms)
        first, c = whole.terms[0]
        times, odd = divmod(have.get(first, 0), c)
        if times and not odd and all(have.get(atom) == times * n for atom, n in whole.terms):
            expr, taken = expr - whole * times, taken + value * times
    return expr, taken


def without_remainders(expr: Expr) -> Expr:
    """The same value with ``x - by * (x // by)`` for every ``x % by``: shows what divides ``n * i - (n * i) % 4``."""
    for atom, c in expr.terms:
        if isinstance(atom, Remainder):
            rest = Expr(tuple(t for t in expr.terms if t[0] != atom), expr.const)
            return without_remainders(rest + (atom.expr - (atom.expr // atom.by) * atom.by) * c)
    return expr


def one_division(expr: Expr, ranges: Ranges, used: Collection[Atom] = ()) -> Expr:
    """Remainders by the quotients that are there, where they take a division of their own.

    ``n * ((8*a + b) // 3) + (2*a + b) % 3`` is ``8*a + b + (n - 3) * ((8*a + b) // 3)``, for n of at least 3.  What is divided
    by a power of two takes none, ``x // 3`` and ``x % 3`` take one together, and what else is `used` is there anyway.
    """
    have = dict(expr.terms)
    for atom, n in expr.terms:
        if isinstance(atom, Quotient) and atom.by & (atom.by - 1):
            for by, rest, whole in splits(atom, have, ranges):
                ((part, unit),) = rest.terms if len(rest.terms) == 1 and not rest.const else (("", 1),)
                times, odd = divmod(have.get(part, 0), unit)
                apart = isinstance(part, Remainder) and part.expr != atom.expr and part not in used
                if apart and times > 0 and not odd and n >= times * by:
                    kept = Expr(tuple(t for t in expr.terms if t[0] not in (atom, part)), expr.const)
                    return one_division(kept + whole * times + Expr(((atom, n - times * by),)), ranges, used)
    return expr
