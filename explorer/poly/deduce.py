"""Implications of a conjunction by substitution and intervals: fast and sound, but incomplete.

Most questions about two leaves of a sensible schedule have simple reasons: the same thread has the same index, so the
two instances are one; digits of a mixed radix are equal one by one.  Such reasons are found here in a fraction of a
millisecond, without isl, whose time grows quickly with the number of floors.  Every rule is an implication over the
integers within the given ranges, so an answer is a proof; without one the exact question goes to isl.

- ``v = w + c``, ``v = c``: substitution;
- ``g*high + low = 0`` with ``|low| < g``: both are 0 (digits of a mixed radix);
- ``x // c = y // c`` and ``x % c = y % c``: ``x = y``;
- as many functions of two sides' variables as tell the points of a small box apart: the variables are equal;
- ``x % c = y % c``, or ``x % c = y`` with ``0 <= y < c``: ``x - y`` is a multiple of ``c``, and intervals may leave one, or
  none (slots and phases of a pipeline);
- an equality without an integer solution by gcd or interval, an inequality that intervals refute: nothing satisfies it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from math import gcd

from ..ir.expr import ZERO, Expr, Quotient, Ranges, Remainder, quotient, remainder, var
from .linear import Case, Condition
from .one_to_one import told_apart


@lru_cache(maxsize=16384)
def over(expr: Expr, side: str) -> Expr:
    """The expression with its variables marked by their side."""
    return expr.substitute({v: var(f"{side}:{v}") for v in expr.variables()})


@lru_cache(maxsize=16384)
def combined(condition: Condition) -> Expr:
    """The left hand side of ``… >= 0`` or ``… == 0`` over marked variables."""
    total = ZERO + condition.const
    for expr, side, factor in condition.parts:
        total = total + over(expr, side) * factor
    return total


@lru_cache(maxsize=1 << 15)
def _substituted(expr: Expr, values: tuple[tuple[str, Expr], ...], ranges: tuple[tuple[str, tuple[int, int]], ...]) -> Expr:
    """The expression with these values; the same equalities are met in one conjunction after the other."""
    return expr.substitute(dict(values), dict(ranges))


def marked(ranges: Ranges, side: str) -> dict[str, tuple[int, int]]:
    """Ranges of the marked variables."""
    return {f"{side}:{v}": r for v, r in ranges.items()}


def whole(expr: Expr, ranges: Ranges = {}) -> Expr:  # noqa: B006
    """The expression with digits put back together: ``c*by*(x // by) + c*(x % by)`` is ``c*x``, however the two are written."""
    for atom, c in expr.terms:
        if isinstance(atom, str):
            continue
        one, x, by = Expr(((atom, 1),)), atom.expr, atom.by
        if isinstance(atom, Remainder):
            zero = (x - quotient(x, by, ranges) * by - one) * c
        else:
            zero = (x - one * by - remainder(x, by, ranges)) * (c // by)
        if len((joined := expr + zero).terms) < len(expr.terms):
            return whole(joined, ranges)
    return expr


class Facts:
    """Equalities that hold on a conjunction, as substitutions; immutable once made.

    Parameters
    ----------
    ranges : Ranges
        Inclusive intervals of marked variables.
    """

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = dict(ranges)
        self.values: dict[str, Expr] = {}
        self.pending: tuple[Expr, ...] = ()

    def reduced(self, expr: Expr) -> Expr:
        """The expression after substitution, simplified by the ranges."""
        if any(not isinstance(a, str) for a, _ in expr.terms):
            values = tuple((v, self.values.get(v) or var(v)) for v in expr.variables())
            names = {name for _, e in values for name in e.variables()}
            return _substituted(expr, values, tuple((name, self.ranges[name]) for name in names if name in self.ranges))
        known = [(self.values[a], c) for a, c in expr.terms if isinstance(a, str) and a in self.values]
        if not known:
            return expr
        plain = Expr(tuple(t for t in expr.terms if t[0] not in self.values), expr.const)
        return sum((value * c for value, c in known), plain)

    def zero(self, expr: Expr) -> bool:
        """Whether the expression surely is 0."""
        e = self.reduced(expr)
        g = gcd(e.const, *(c for _, c in e.terms))
        if g > 1:
            e = Expr(tuple((a, c // g) for a, c in e.terms), e.const // g)
        if e == ZERO or e in self.pending or -e in self.pending or e.interval(self.ranges) == (0, 0):
            return True
        return any(e.substitute(way, self.ranges) == ZERO for way in self.solved)

    @cached_property
    def solved(self) -> list[dict[str, Expr]]:
        """Variables as what the equalities that are left make of them: ``o`` as ``2*i + r - 1``; and ``r`` as ``o + 1 - 2*i``."""
        return [way for last in (0, -1) if (way := self._solved(last))]

    def _solved(self, which: int) -> dict[str, Expr]:
        """Of several variables that an equality could be solved for, the first or the last one is taken."""
        out: dict[str, Expr] = {}
        for e in self.pending:
            e = e.substitute(out, self.ranges)
            inside = {name for atom, _ in e.terms if not isinstance(atom, str) for name in atom.expr.variables()}
            found = [(a, c) for a, c in e.terms if isinstance(a, str) and abs(c) == 1 and a not in inside]
            if found:
                name, c = found[which]
                value = (var(name) * c - e) * c
                out = {v: x.substitute({name: value}, self.ranges) for v, x in out.items()} | {name: value}
        return out

    def holds(self, condition: Condition) -> bool:
        """Whether the condition surely holds."""
        expr = combined(condition)
        return self.zero(expr) if condition.equality else self.reduced(expr).interval(self.ranges)[0] >= 0

    def refutes(self, case: Iterable[Condition]) -> bool:
        """Whether the facts together with these conditions surely have no solution."""
        return self.given(case) is None

    def given(self, case: Iterable[Condition], ranges: Ranges = {}) -> Facts | None:  # noqa: B006
        """The facts with more conditions (and ranges of more variables); None where they contradict each other."""
        new = Facts({**self.ranges, **ranges})
        new.values = dict(self.values)
        todo = list(self.pending)
        more: list[Expr] = []
        for c in case:
            if c.equality:
                todo.append(new.reduced(combined(c)))
            else:
                more.append(combined(c))
        if not new._settle(todo):
            return None
        if any(new.reduced(e).interval(new.ranges)[1] < 0 for e in more):
            return None
        return new

    def divided(self, values: Mapping[str, Expr], ranges: Ranges) -> Facts | None:
        """The same facts with variables as sums of others, within ranges; None where they contradict each other."""
        new = Facts({**self.ranges, **ranges})
        new.values = {v: e.substitute(values, new.ranges) for v, e in self.values.items()} | dict(values)
        return new if new._settle([new.reduced(e) for e in self.pending]) else None

    # -- solving equalities ---------------------------------------------------------------------------------------

    def _settle(self, todo: list[Expr]) -> bool:
        """Use up the equalities ``e == 0``; False if one cannot hold."""
        left: list[Expr] = []
        while todo:
            e = todo.pop()
            if not self.values.keys().isdisjoint(e.variables()):
                e = self.reduced(e)
            parts = self._parts(e) if e.terms else [] if not e.const else None
            if parts is None:
                return False
            if not e.terms:
                pass
            elif parts:
                todo += parts
            elif name := self._assign(e):
                todo += [x for x in left if name in x.variables()]
                left = [x for x in left if name not in x.variables()]
            else:
                left.append(e)
            if not todo:
                todo, left = self._joined(left)
        if left and (todo := told_apart(left, self.ranges)):
            return self._settle([*todo, *left])
        self.pending = tuple(left)
        return True

    def _joined(self, left: list[Expr]) -> tuple[list[Expr], list[Expr]]:
        """``x - y`` where both ``x // c = y // c`` and ``x % c = y % c`` are left, and what is left then; or nothing, and all."""
        for e in left:
            if len(e.terms) != 2 or e.const or e.terms[0][1] != -e.terms[1][1]:
                continue
            (a, _), (b, _) = e.terms
            if isinstance(a, Quotient) and isinstance(b, Quotient) and a.by == b.by:
                rest = remainder(a.expr, a.by, self.ranges) - remainder(b.expr, b.by, self.ranges)
                if found := next((x for x in left if x in (rest, -rest)), None):
                    return [a.expr - b.expr], [x for x in left if x not in (e, found)]
        return [], left

    def _parts(self, e: Expr) -> list[Expr] | None:
        """Equalities that say the same one by one; none if it cannot be taken apart, None if it cannot hold."""
        g = gcd(*(c for _, c in e.terms))
        if e.const % g:
            return None
        low, high = e.interval(self.ranges)
        if low > 0 or high < 0:
            return None
        if g > 1:
            return [Expr(tuple((a, c // g) for a, c in e.terms), e.const // g)]
        for gap, by in self._congruent(e):
            low, high = gap.interval(self.ranges)
            if -(-low // by) >= high // by:
                return [gap - high // by * by] if -(-low // by) == high // by else None
        for g in sorted({abs(c) for _, c in e.terms}, reverse=True):
            rest = Expr(tuple((a, c) for a, c in e.terms if c % g), e.const)
            if g == 1 or len(rest.terms) == len(e.terms):
                continue
            low, high = rest.interval(self.ranges)
            shift = (low + g - 1) // g  # the only multiple of g that the rest can be
            if shift == high // g:
                above = Expr(tuple((a, c // g) for a, c in e.terms if c % g == 0), shift)
                return [above, rest - shift * g]
            if shift > high // g:
                return None
        return []

    def _congruent(self, e: Expr) -> Iterator[tuple[Expr, int]]:
        """What is a multiple of a number where ``e == 0``: ``x - y`` where `e` is ``x % by - y`` or ``x % by - y % by``."""
        for atom, c in e.terms:
            if isinstance(atom, Remainder) and abs(c) == 1:
                other = (e - Expr(((atom, c),))) * -c
                low, high = other.interval(self.ranges)
                if low >= 0 and high < atom.by:
                    inner = other.terms[0][0] if len(other.terms) == 1 and not other.const else None
                    same = isinstance(inner, Remainder) and inner.by == atom.by and other.terms[0][1] == 1
                    yield atom.expr - (inner.expr if same and isinstance(inner, Remainder) else other), atom.by

    def _assign(self, e: Expr) -> str:
        """Take ``v = w + c`` or ``v = c`` as a substitution for ``v``; empty if it is neither."""
        if not e.terms or len(e.terms) > 2 or any(not isinstance(a, str) or abs(c) != 1 for a, c in e.terms):
            return ""
        (name, c), *other = list(e.terms)
        if other and other[0][1] == c:
            return ""
        value = Expr(tuple((a, -k * c) for a, k in other), -e.const * c)
        assert isinstance(name, str)
        if other:
            low, high = self.ranges.get(name, (-_FAR, _FAR))
            kept = other[0][0]
            assert isinstance(kept, str)
            bottom, top = self.ranges.get(kept, (-_FAR, _FAR))
            self.ranges[kept] = max(bottom, low - value.const), min(top, high - value.const)
        change = {name: value}
        self.values = {v: x.substitute(change, self.ranges) for v, x in self.values.items()} | change
        return name


_FAR = 1 << 200


def deduce(case: Case, ranges: Mapping[str, tuple[int, int]]) -> Facts | None:
    """What follows from a conjunction within ranges of marked variables; None where nothing satisfies it."""
    return _deduced(case, tuple(ranges.items()))


@lru_cache(maxsize=1 << 14)
def _deduced(case: Case, ranges: tuple[tuple[str, tuple[int, int]], ...]) -> Facts | None:
    return Facts(dict(ranges)).given(case)
