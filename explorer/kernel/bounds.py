"""Loop bounds from guards: a condition that is linear in the loop's variable becomes ``max(lowers) … min(uppers)``."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.expr import Expr, Quotient, Ranges, Remainder, const, quotient
from .conditions import Condition
from .index import to_c


def is_linear(c: Condition, name: str) -> bool:
    """Whether the condition bounds `name`: an inequality with a plain term in it, and no quotient or remainder of it."""
    if c.equality or not c.expr.coefficient(name):
        return False
    return not any(isinstance(a, (Quotient, Remainder)) and name in a.expr.variables() for a, _ in c.expr.terms)


def _floor(expr: Expr, by: int) -> Expr:
    """``expr // by``, left as it is: the text of a bound should show the constraint it came from."""
    if by == 1 or not expr.terms:
        return quotient(expr, by)
    return Expr(((Quotient(expr, by), 1),))


def bounds(conditions: Sequence[Condition], name: str) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """First values and one-past-last values of `name` that the conditions ask for.

    ``a*v + r >= 0`` with a > 0 is ``v >= ceil(-r / a)``, with a < 0 it is ``v < floor(r / -a) + 1``.
    """
    lowers: list[Expr] = []
    uppers: list[Expr] = []
    for c in conditions:
        a = c.expr.coefficient(name)
        rest = Expr(tuple(t for t in c.expr.terms if t[0] != name), c.expr.const)
        if a > 0:
            lowers.append(_floor(-rest + (a - 1), a))
        else:
            uppers.append(_floor(rest, -a) + 1)
    return tuple(dict.fromkeys(lowers)), tuple(dict.fromkeys(uppers))


def _tightest(function: str, exprs: Sequence[Expr], ranges: Ranges) -> list[Expr]:
    """The bounds without those that another one always beats."""
    sign = 1 if function == "min" else -1
    out: list[Expr] = []
    for e in exprs:
        if any(((e - other) * sign).interval(ranges)[0] >= 0 for other in out):
            continue
        out = [other for other in out if ((other - e) * sign).interval(ranges)[0] < 0]
        out.append(e)
    return out


def extreme_text(function: str, first: int, others: Sequence[Expr], ranges: Ranges, wide: bool) -> str:
    """``max(0, w - 99)``: the box's own bound and those the conditions add, nested two by two.

    A bound that always beats the box's (by `ranges`) replaces it.
    """
    keep: list[Expr] = [const(first)]
    for e in _tightest(function, others, ranges):
        low, high = e.interval(ranges)
        if function == "max":
            if high <= first:
                continue
            if low >= first and keep and keep[0] == const(first):
                keep = keep[1:]
        else:
            if low >= first:
                continue
            if high <= first and keep and keep[0] == const(first):
                keep = keep[1:]
        keep.append(e)
    texts = [to_c(e, ranges)[0] for e in keep]
    if wide and len(texts) > 1:
        texts = [f"(long long)({t})" if not t.lstrip("-").isdigit() else f"{t}LL" for t in texts]
    text = texts[-1]
    for t in reversed(texts[:-1]):
        text = f"{function}({t}, {text})"
    return text
