"""Which iterations of loops can lie at the end of a row, so that what is asked only there is written only there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd

from ..ir.expr import Expr, Quotient, Remainder
from .guards import Condition, condition_text
from .lower import Lowered, Site

NOWHERE = "false"
"""Where conditions hold in every iteration."""


def edges(low: Lowered, site: Site, conditions: Iterable[Condition]) -> str:
    """When one of the conditions can fail, asked of the loops that a thread runs: ``r_u < 1 || r_u > 11``.

    "" where that says nothing, and :data:`NOWHERE` where they always hold.
    """
    found = []
    for c in conditions:
        one = _edge(low, site, c)
        if not one:
            return ""
        if one != NOWHERE:
            found.append(one)
    return " || ".join(f"({t})" if "&&" in t and len(found) > 1 else t for t in dict.fromkeys(found)) or NOWHERE


def edge(low: Lowered, site: Site, wanted: Condition, known: Sequence[Condition]) -> str:
    """When a condition can fail where the known ones hold; the same of an answer."""
    texts = [_edge(low, site, c) for c in _implying(wanted, known)]
    return NOWHERE if NOWHERE in texts else max(texts, key=lambda t: t.count("&&") + bool(t))


def _implying(wanted: Condition, known: Sequence[Condition]) -> list[Condition]:
    """Conditions that imply the wanted one where the known ones hold: without one of its variables."""
    found = [wanted]
    for c in known:
        for name in () if c.equality else c.variables():
            at, other = wanted.expr.coefficient(name), c.expr.coefficient(name)
            if at * other > 0:
                both = gcd(at, other)
                found.append(Condition(wanted.expr * (abs(other) // both) - c.expr * (abs(at) // both)))
    return found


def _edge(low: Lowered, site: Site, c: Condition) -> str:
    """When a condition can fail."""
    if c.expr.interval(site.ranges)[0] >= 0:
        return NOWHERE
    texts = []
    for loop in site.loops:
        name = low.variable[loop.id]
        at = c.expr.coefficient(name)
        if c.equality or not at or not low.is_counter(loop) or loop.role == "vector" or _hidden(c.expr, name):
            continue
        rest = Expr(tuple(t for t in c.expr.terms if t[0] != name), c.expr.const).interval(site.ranges)[0]
        fails = Condition(Expr(((name, -at),), -rest - 1))  # at * name + rest < 0
        first, last = fails.expr.interval({name: (loop.start, loop.start + loop.extent - 1)})
        if first < 0 <= last:
            bound = (rest // -at) if at < 0 else -(rest // at) - 1
            fails = Condition(Expr(((name, 1),), -bound - 1)) if at < 0 else Condition(Expr(((name, -1),), bound))
            texts.append(condition_text(fails, site.ranges))
    return " && ".join(texts)


def _hidden(e: Expr, name: str) -> bool:
    """Whether a quotient or remainder of the variable is in it."""
    return any(isinstance(a, (Quotient, Remainder)) and name in a.expr.variables() for a, _ in e.terms)
