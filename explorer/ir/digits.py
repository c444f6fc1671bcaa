"""Mixed-radix digits of an index: the terms of a sum as functions of its value, and expressions derived from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .expr import Atom, Expr, Quotient, Ranges, const, quotient, remainder, var


def digits(e: Expr, total: Expr, known: Ranges) -> dict[Atom, Expr] | None:
    """The values in a sum as digits of its total; None where they overlap.

    Of ``8*((k // 32) % 3) + k % 8`` with the total ``t`` these are ``t // 8`` and ``t % 8``.

    Parameters
    ----------
    e : Expr
    total : Expr
        What stands for the value of `e`.
    known : Ranges
        Of the variables in `e`.
    """
    out: dict[Atom, Expr] = {}
    terms = sorted(e.terms, key=lambda t: t[1])
    for n, (atom, c) in enumerate(terms):
        low, high = Expr(((atom, 1),)).interval(known)
        above = terms[n + 1][1] if n + 1 < len(terms) else 0
        if c < 1 or low < 0 or (above and (above % c or c * (high + 1) > above)):
            return None
        digit = (total - e.const) // c
        out[atom] = digit % (above // c) if above else digit
    return out


def told(e: Expr, names: Mapping[Atom, Expr]) -> Expr | None:
    """An expression with other names for what it is made of; None where some of it has none."""
    total = const(e.const)
    for atom, c in e.terms:
        if (one := names.get(atom)) is None:
            inner = None if isinstance(atom, str) else told(atom.expr, names)
            if inner is None or isinstance(atom, str):
                return None
            one = (quotient if isinstance(atom, Quotient) else remainder)(inner, atom.by)
        total = total + one * c
    return total


def follows(e: Expr, index: Sequence[Expr], known: Ranges) -> bool:
    """Whether the value of an expression follows from those of an index, by digits alone: never wrongly true."""
    names: dict[Atom, Expr] = {}
    for axis, value in enumerate(index):
        names |= digits(value, var(f"#{axis}"), known) or {}
    return e in index or told(e, names) is not None
