"""Guards: the conditions under which a leaf runs, from the statement's named constraints.

A leaf runs where its statement's domain holds.  Each constraint is written over loop variables by substituting
``leaf.at``, reduced by the gcd of its coefficients, and dropped when the intervals of the variables prove it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd

from ..ir.expr import Expr, Ranges, const, var
from ..ir.inequality import cases, free_of_quotient, linear_in
from .index import to_c


@dataclass(frozen=True, slots=True)
class Condition:
    """``expr >= 0``, or ``expr == 0``, over C variables."""

    expr: Expr
    equality: bool = False

    def variables(self) -> frozenset[str]:
        """Names of the C variables in it."""
        return self.expr.variables()


NEVER = Condition(Expr((), -1))
"""The condition that does not hold anywhere."""


@lru_cache(maxsize=65536)
def _reduced(expr: Expr, equality: bool) -> Condition:
    """The condition divided by the gcd of its coefficients (exact for integers), and free of a lone quotient."""
    if not equality:
        expr = free_of_quotient(expr)
    g = gcd(*(c for _, c in expr.terms))
    if g <= 1:
        return Condition(expr, equality)
    if equality and expr.const % g:
        return NEVER
    return Condition(Expr(tuple((a, c // g) for a, c in expr.terms), expr.const // g), equality)


def condition(expr: Expr, equality: bool, ranges: Ranges) -> Condition | None:
    """The condition in lowest terms; None where `ranges` prove it, :data:`NEVER` where they refute it."""
    low, high = expr.interval(ranges)
    if (low == high == 0) if equality else low >= 0:
        return None
    if high < 0 or (equality and low > 0):
        return NEVER
    return _reduced(expr if equality else _whole_steps(expr, ranges), equality)


def _whole_steps(expr: Expr, ranges: Ranges) -> Expr:
    """The condition without terms that never decide it: ``263 - 8*i - v >= 0`` with v in 0…7 is ``32 - i >= 0``.

    With a step g, ``g*A + r >= 0`` is ``A >= ceil(-r / g)``; where that bound is one number for every r, r goes.
    """
    for g in sorted({abs(c) for _, c in expr.terms if abs(c) > 1}):
        rest = Expr(tuple(t for t in expr.terms if t[1] % g), expr.const)
        if not rest.terms:
            continue
        low, high = rest.interval(ranges)
        if low // g == high // g:
            return Expr(tuple((a, c // g) for a, c in expr.terms if c % g == 0), low // g)
    return expr


def conjunction(conditions: Iterable[Condition | None]) -> tuple[Condition, ...]:
    """The conditions in order, each once; just :data:`NEVER` if one is refuted."""
    kept = tuple(dict.fromkeys(c for c in conditions if c is not None))
    return (NEVER,) if NEVER in kept else kept


def anyone(conditions: Sequence[Condition], names: Iterable[str], ranges: Ranges) -> tuple[Condition, ...]:
    """What conditions ask of the other variables, so that they hold for some values of these.

    The variables are eliminated one by one: an equality with coefficient 1 is solved, the rest are bounds (Fourier and Motzkin).
    It is exact where one of each two coefficients is 1; else, and where a condition stays more than linear, less is asked.
    """
    left = list(conditions)
    for name in sorted(names):
        left = [x for c in left for x in _linear(c, name)]
        low, high = ranges[name]
        bounds = [Condition(var(name) - low), Condition(const(high) - var(name))]
        if (solved := next((s for c in left if (s := _solved(c, name)) is not None), None)) is not None:
            left = [Condition(c.expr.substitute({name: solved}, ranges), c.equality) for c in (*left, *bounds)]
            continue
        about = [c for c in left if name in c.variables()]
        linear = [(c.expr.coefficient(name), c) for c in about if name not in _without(c.expr, name).variables()]
        rows = [e for _, c in linear for e in ((c.expr, c.expr * -1) if c.equality else (c.expr,))] + [c.expr for c in bounds]
        below, above = ([e for e in rows if e.coefficient(name) * sign > 0] for sign in (1, -1))
        left = [c for c in left if c not in about]
        left += [Condition(_without(e, name) * -f.coefficient(name) + _without(f, name) * e.coefficient(name))
                 for e in below for f in above]
    return conjunction(condition(c.expr, c.equality, ranges) for c in left)


def _linear(c: Condition, name: str) -> tuple[Condition, ...]:
    """The condition without the quotient that hides a variable, if one does: ``e // 2 == 3`` is ``6 <= e`` and ``e <= 7``."""
    sides = (c.expr, c.expr * -1) if c.equality else (c.expr,)
    shown = tuple(linear_in(e, name) for e in sides)
    return (c,) if shown == sides else tuple(map(Condition, shown))


def _without(expr: Expr, name: str) -> Expr:
    return expr - var(name) * expr.coefficient(name)


def _solved(c: Condition, name: str) -> Expr | None:
    """What an equality says a variable is; None where it is none, or has another factor than 1."""
    factor, rest = c.expr.coefficient(name), _without(c.expr, name)
    return rest * -factor if c.equality and abs(factor) == 1 and name not in rest.variables() else None


def without_implied(conditions: Sequence[Condition], ranges: Ranges) -> tuple[Condition, ...]:
    """Drop the conditions that another one implies (their difference has a sign on the box)."""
    conditions = tuple(dict.fromkeys(conditions))
    kept: list[Condition] = []
    for position, c in enumerate(conditions):
        implied = any(
            other is not c and _implies(other, c, ranges) and (j < position or not _implies(c, other, ranges))
            for j, other in enumerate(conditions)
        )
        if not implied:
            kept.append(c)
    return tuple(kept)


def _implies(stronger: Condition, weaker: Condition, ranges: Ranges) -> bool:
    if stronger.equality or weaker.equality or not stronger.variables() & weaker.variables():
        return False
    return (weaker.expr - stronger.expr).interval(ranges)[0] >= 0


def condition_text(c: Condition, ranges: Ranges) -> str:
    """A comparison as a person would write it: ``128 * bi + ty < 1000``; or several of which one must hold."""
    if not c.equality and (either := cases(c.expr, ranges)):
        return f"({' || '.join(condition_text(_reduced(e, False), ranges) for e in either)})"
    positive = Expr(tuple(t for t in c.expr.terms if t[1] > 0))
    negative = Expr(tuple((a, -k) for a, k in c.expr.terms if k < 0))
    constant = c.expr.const
    if c.equality:
        left, right = (positive, negative - constant) if positive.terms else (negative, positive + constant)
        return _compare(left, "==", right, ranges)
    if not negative.terms:
        return _compare(positive, ">=", Expr((), -constant), ranges)
    if not positive.terms:
        return _compare(negative, "<", Expr((), constant + 1), ranges)
    if constant < 0:
        return _compare(negative - (constant + 1), "<", positive, ranges)
    return _compare(negative, "<=", positive + constant, ranges)


def _compare(left: Expr, operator: str, right: Expr, ranges: Ranges) -> str:
    return f"{to_c(left, ranges)[0]} {operator} {to_c(right, ranges)[0]}"


def guard_text(conditions: Sequence[Condition], ranges: Ranges, enclosed: bool = False) -> str:
    """All conditions, joined by ``&&``; in parentheses if `enclosed` and there are several."""
    texts = [condition_text(c, ranges) for c in without_implied(conditions, ranges)]
    return f"({' && '.join(texts)})" if enclosed and len(texts) > 1 else " && ".join(texts)

