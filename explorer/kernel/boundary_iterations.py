"""Guards that are tested only where they can fail: in the first and last iterations of the loops around.

``a * v + rest >= 0`` fails only where v is below (above) a bound, whatever the other variables are; that bound is taken over the
intervals of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd

from ..ir.expr import Expr, Quotient, Remainder
from .conditions import Condition
from .nodes import AnyOf
from .sites import Lowered, Site

NOWHERE: AnyOf = ()
"""The condition holds in every iteration."""


def edges(low: Lowered, site: Site, conditions: Iterable[Condition]) -> AnyOf | None:
    """Where one of the conditions can fail: in iterations for which one of the answers holds; None if that says nothing."""
    found: list[tuple[Condition, ...]] = []
    for c in conditions:
        one = _edge(low, site, c)
        if one is None:
            return None
        found += one
    return tuple(dict.fromkeys(found))


def edge(low: Lowered, site: Site, wanted: Condition, known: Sequence[Condition]) -> AnyOf | None:
    """Where a condition can fail although the known ones hold; the same of an answer."""
    found = [_edge(low, site, c) for c in _implying(wanted, known)]
    if NOWHERE in found:
        return NOWHERE
    return max(found, key=lambda one: len(one[0]) if one else 0)


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


def _edge(low: Lowered, site: Site, c: Condition) -> AnyOf | None:
    """Where a condition can fail: one conjunction, nowhere, or None."""
    if c.expr.interval(site.ranges)[0] >= 0:
        return NOWHERE
    asked: list[Condition] = []
    for loop in site.loops:
        name = low.variable[loop.id]
        at = c.expr.coefficient(name)
        if c.equality or not at or not low.is_counter(loop) or loop.role == "vector" or _hidden(c.expr, name):
            continue
        rest = Expr(tuple(t for t in c.expr.terms if t[0] != name), c.expr.const).interval(site.ranges)[0]
        fails = Expr(((name, -at),), -rest - 1)  # at * name + rest < 0
        first, last = fails.interval({name: (loop.start, loop.start + loop.extent - 1)})
        if first < 0 <= last:
            bound = (rest // -at) if at < 0 else -(rest // at) - 1
            asked.append(Condition(Expr(((name, 1),), -bound - 1)) if at < 0 else Condition(Expr(((name, -1),), bound)))
    return (tuple(asked),) if asked else None


def _hidden(e: Expr, name: str) -> bool:
    """Whether a quotient or remainder of the variable is in it."""
    return any(isinstance(a, (Quotient, Remainder)) and name in a.expr.variables() for a, _ in e.terms)
