"""Variables by their digits: what equalities of quotients and remainders say, digit by digit.

Registers of a tensor instruction, swizzles and coalesced loops are sums of digits of loop variables, ``4*(j // 8) + j % 2``.
Two such sums are equal where their digits are, which substitution alone does not see: it knows ``j // 8``, ``j % 8 // 2`` and
``j % 2`` of two sides to be equal, and not the two ``j``.  So each variable is written as the sum of the digits that the
conditions speak of, ``j = 8*j_2 + 2*j_1 + j_0``: its quotients and remainders are sums of digits, and
:mod:`~explorer.poly.deduce` has plain sums to take apart.  Nothing is lost but the upper end of a range that its digits do not
fill, so that what follows is a proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import gcd

from ..ir.expr import Expr, Quotient, var
from .deduce import Facts, combined
from .linear import Condition

MOST = 1 << 62
"""Beyond every place of a digit."""


def by_digits(conditions: Iterable[Condition], ranges: Mapping[str, tuple[int, int]]) -> Facts | None:
    """Facts without a condition in which variables are sums of digits; None where no condition speaks of digits.

    Parameters
    ----------
    conditions : iterable of Condition
        All that will be asked: their quotients and remainders say where variables are cut.
    ranges : mapping
        Inclusive intervals of the marked variables.
    """
    return _digits([(combined(c), c.equality) for c in conditions], ranges)


def what_is_left_by_digits(facts: Facts, asked: Iterable[Condition]) -> Facts | None:
    """The same, of the equalities that facts could not use up and of what is asked; without digits the facts themselves.

    What is equal as a whole, as the number of a tile among those that a block takes in turn, needs no digits then, whose bases
    (3, 9, 36 beside 2, 8, 32) would not divide each other.

    Returns
    -------
    Facts or None
        None where nothing satisfies the facts.
    """
    left = [(e, True) for e in facts.pending] + [(facts.reduced(combined(c)), c.equality) for c in asked]
    found = _digits(left, facts.ranges)
    return facts.divided(found.values, found.ranges) if found else facts


def _digits(exprs: list[tuple[Expr, bool]], ranges: Mapping[str, tuple[int, int]]) -> Facts | None:
    """Facts without a condition in which the variables of expressions, zero or not, are sums of digits; or None."""
    cuts: dict[str, set[int]] = {}
    for e, _ in exprs:
        _cut(e, 1, cuts)
    if not any(cuts.values()):
        return None
    for e, equality in exprs:
        if equality:
            _level(e, cuts)
    facts, shifted = Facts(ranges), _shifted([e for e, equality in exprs if equality])
    for name, places in cuts.items():
        low, high = ranges.get(name, (-1, -1))
        chain = _chain(places, high)
        if low < 0 or len(chain) < 2 or name in shifted:
            continue
        total = Expr()
        for n, (place, above) in enumerate(zip(chain, (*chain[1:], MOST), strict=True)):
            digit = f"{name}#{n}"
            facts.ranges[digit] = 0, min(above // place - 1, high // place)
            total = total + var(digit) * place
        facts.values[name] = total
    return facts


def _cut(e: Expr, by: int, cuts: dict[str, set[int]]) -> None:
    """Note where variables are cut by quotients and remainders in a sum, itself taken by a number."""
    for atom, c in e.terms:
        own = by // gcd(by, c)
        if isinstance(atom, str):
            cuts.setdefault(atom, set())
            if own > 1:
                cuts[atom].add(own)
            continue
        _cut(atom.expr, atom.by, cuts)
        if own > 1:
            _cut(atom.expr, atom.by * own if isinstance(atom, Quotient) else own, cuts)


def _level(e: Expr, cuts: dict[str, set[int]]) -> None:
    """Cut variables of an equality where the other terms begin: ``j = 8*x + y`` has digits of `j` from 8 on."""
    factors = {abs(c) for _, c in e.terms}
    for atom, c in e.terms:
        if isinstance(atom, str):
            cuts[atom] |= {f // abs(c) for f in factors if f > abs(c) and f % c == 0}


def _shifted(equalities: list[Expr]) -> set[str]:
    """Variables that are others plus a constant, as tiles of a pipeline that runs ahead are: sums of digits would carry."""
    pairs = [([a for a, _ in e.terms if isinstance(a, str)], e.const) for e in equalities if len(e.terms) == 2]
    found, more = set[str](), {name for names, c in pairs if c and len(names) == 2 for name in names}
    while not more <= found:
        found |= more
        more = {name for names, _ in pairs if len(names) == 2 and not found.isdisjoint(names) for name in names}
    return found


def _chain(places: set[int], high: int) -> list[int]:
    """Places of digits, each a multiple of the one before, from 1 on."""
    chain = [1]
    for place in sorted(places):
        if chain[-1] < place <= high and place % chain[-1] == 0:
            chain.append(place)
    return chain
