"""Quasi-affine integer expressions: a sum of integer multiples of atoms plus a constant.

An atom is a variable, a floored quotient ``e // c`` or a remainder ``e % c`` with an integer ``c > 0``; both follow
Python's (floored) convention.  Expressions are canonical: equal sums compare equal.  Quotients and remainders are
simplified with the *ranges* of the variables (inclusive intervals), so that an index which went through a split and
a coalescing comes out as the index a person would have written.  Text goes from here to isl and to CUDA; nothing
ever comes back from isl (it loses floors).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import gcd
from typing import Any

Ranges = Mapping[str, tuple[int, int]]
"""Inclusive interval of each variable; a variable that is missing is unbounded."""

_NO_RANGES: Ranges = {}
_INFINITY = 1 << 200
_ANYWHERE = -_INFINITY, _INFINITY


@dataclass(frozen=True, slots=True)
class Quotient:
    """``expr // by``, rounded towards minus infinity."""

    expr: Expr
    by: int


@dataclass(frozen=True, slots=True)
class Remainder:
    """``expr % by``, in ``[0, by)``."""

    expr: Expr
    by: int


Atom = str | Quotient | Remainder


@lru_cache(maxsize=65536)
def _key(atom: Quotient | Remainder) -> tuple[int, str]:
    return 1, repr(atom)


def _term_key(term: tuple[Atom, int]) -> tuple[int, str]:
    atom = term[0]
    return (0, atom) if isinstance(atom, str) else _key(atom)


class Places(dict[str, "Expr"]):
    """Values of variables, and beside them the known values of whole sums of terms.

    A loop that was split out of a coalesced one is a long expression of the statement's dimensions; put back into the loops
    it is the loop's variable again, which no simplification term by term would find.
    """

    def __init__(self, values: Mapping[str, Expr], whole: Mapping[Expr, Expr]) -> None:
        super().__init__(values)
        self.whole = {e.terms: value - e.const for e, value in whole.items()}


@dataclass(frozen=True, slots=True)
class Expr:
    """An integer expression ``const + sum(coefficient * atom)``, canonical and hashable.

    Build with :func:`var`, :func:`const`, the operators ``+ - *`` (by an integer), and :func:`quotient`,
    :func:`remainder` (or ``//`` and ``%``, which simplify without ranges).
    """

    terms: tuple[tuple[Atom, int], ...] = ()
    const: int = 0
    _hash: int = field(default=0, init=False, repr=False, compare=False)

    def __hash__(self) -> int:
        if not self._hash:
            object.__setattr__(self, "_hash", hash((self.terms, self.const)) or 1)
        return self._hash

    def __reduce__(self) -> tuple[type[Expr], tuple[Any, ...]]:
        return Expr, (self.terms, self.const)

    def __add__(self, other: Expr | int) -> Expr:
        if isinstance(other, int) or not other.terms:
            return Expr(self.terms, self.const + (other if isinstance(other, int) else other.const))
        if not self.terms:
            return Expr(other.terms, self.const + other.const)
        return _collect((*self.terms, *other.terms), self.const + other.const)

    __radd__ = __add__

    def __neg__(self) -> Expr:
        return self * -1

    def __sub__(self, other: Expr | int) -> Expr:
        return self + (-other)

    def __rsub__(self, other: int) -> Expr:
        return -self + other

    def __mul__(self, factor: int) -> Expr:
        if factor == 0:
            return ZERO
        return Expr(tuple((a, c * factor) for a, c in self.terms), self.const * factor)

    __rmul__ = __mul__

    def __floordiv__(self, by: int) -> Expr:
        return quotient(self, by)

    def __mod__(self, by: int) -> Expr:
        return remainder(self, by)

    def __str__(self) -> str:
        return show(self)

    def __repr__(self) -> str:
        return show(self)

    @property
    def is_constant(self) -> bool:
        """Whether no variable occurs in it."""
        return not self.terms

    def coefficient(self, name: str) -> int:
        """Coefficient of the plain variable `name` (0 when it stands only inside a quotient or remainder)."""
        return next((c for a, c in self.terms if a == name), 0)

    def variables(self) -> frozenset[str]:
        """Names of all variables, those inside quotients and remainders included."""
        return _variables(self)

    def interval(self, ranges: Ranges) -> tuple[int, int]:
        """Inclusive bounds of the value when each variable lies in its range (exact for a plain affine sum)."""
        low = high = self.const
        for atom, c in self.terms:
            a, b = ranges.get(atom, _ANYWHERE) if isinstance(atom, str) else _atom_interval(atom, ranges)
            if c > 0:
                low, high = low + c * a, high + c * b
            else:
                low, high = low + c * b, high + c * a
        return low, high

    def substitute(self, values: Mapping[str, Expr], ranges: Ranges = _NO_RANGES) -> Expr:
        """Replace variables by expressions and simplify with the ranges of the new variables."""
        if not self.terms or values.keys().isdisjoint(self.variables()):
            return self
        if isinstance(values, Places):
            known = values.whole.get(self.terms)
            return _replaced(self, values, ranges) if known is None else known + self.const
        if len(self.terms) == 1 and isinstance(name := self.terms[0][0], str):  # a loop's variable: most there is
            plain = values[name]
            if all(isinstance(atom, str) for atom, _ in plain.terms):
                return plain * self.terms[0][1] + self.const if self.const or self.terms[0][1] != 1 else plain
        names = _ordered(self)
        new = tuple(map(values.get, names))
        inside: list[str] = []
        for name, value in zip(names, new, strict=True):
            inside += (name,) if value is None else _ordered(value)
        return _substituted(self, new, tuple(inside), tuple(map(ranges.get, inside)))

    def simplify(self, ranges: Ranges) -> Expr:
        """The same value, written with fewer quotients and remainders where `ranges` allow it."""
        return self.substitute({name: var(name) for name in self.variables()}, ranges)

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """The value for given variables: integers, or NumPy arrays that broadcast."""
        total: Any = self.const
        for atom, c in self.terms:
            if isinstance(atom, str):
                part = values[atom]
            elif isinstance(atom, Quotient):
                part = atom.expr.evaluate(values) // atom.by
            else:
                part = atom.expr.evaluate(values) % atom.by
            total = total + c * part
        return total


ZERO = Expr()


def const(value: int) -> Expr:
    """The constant `value`."""
    return Expr((), int(value))


def var(name: str) -> Expr:
    """The variable `name`."""
    return Expr(((name, 1),), 0)


@lru_cache(maxsize=65536)
def _substituted(expr: Expr, new: tuple[Expr | None, ...], known: tuple[str, ...], ranges: tuple[tuple[int, int] | None, ...]
                 ) -> Expr:
    """:meth:`Expr.substitute`, remembered: a step, its text and the proof of that ask for few substitutions again and again."""
    values = {name: value for name, value in zip(_ordered(expr), new, strict=True) if value is not None}
    return _replaced(expr, values, {name: found for name, found in zip(known, ranges, strict=True) if found is not None})


def _replaced(expr: Expr, values: Mapping[str, Expr], ranges: Ranges) -> Expr:
    terms: list[tuple[Atom, int]] = []
    constant = expr.const
    for atom, c in expr.terms:
        if isinstance(atom, str):
            part = values[atom] if atom in values else var(atom)
        elif isinstance(atom, Quotient):
            part = quotient(atom.expr.substitute(values, ranges), atom.by, ranges)
        else:
            part = remainder(atom.expr.substitute(values, ranges), atom.by, ranges)
        terms += [(a, k * c) for a, k in part.terms]
        constant += part.const * c
    return rejoin(_collect(tuple(terms), constant), ranges)


def _collect(terms: tuple[tuple[Atom, int], ...], constant: int) -> Expr:
    total: dict[Atom, int] = {}
    for atom, c in terms:
        total[atom] = total.get(atom, 0) + c
    kept = [term for term in total.items() if term[1]]
    if len(kept) > 1:
        kept.sort(key=_term_key)
    return Expr(tuple(kept), constant)


@lru_cache(maxsize=65536)
def _variables(expr: Expr) -> frozenset[str]:
    names: set[str] = set()
    for atom, _ in expr.terms:
        names |= {atom} if isinstance(atom, str) else _variables(atom.expr)
    return frozenset(names)


@lru_cache(maxsize=65536)
def _ordered(expr: Expr) -> tuple[str, ...]:
    return tuple(sorted(_variables(expr)))


def _atom_variables(atom: Atom) -> frozenset[str]:
    return frozenset((atom,)) if isinstance(atom, str) else _variables(atom.expr)


def _atom_interval(atom: Quotient | Remainder, ranges: Ranges) -> tuple[int, int]:
    low, high = atom.expr.interval(ranges)
    if isinstance(atom, Quotient):
        return low // atom.by, high // atom.by
    return (low % atom.by, high % atom.by) if low // atom.by == high // atom.by else (0, atom.by - 1)


def _parts(expr: Expr, divides: int) -> tuple[Expr, Expr]:
    """Split into (sum of the terms whose coefficient `divides` divides, the rest with the constant)."""
    high = tuple((a, c) for a, c in expr.terms if c % divides == 0)
    low = tuple((a, c) for a, c in expr.terms if c % divides)
    return Expr(high), Expr(low, expr.const)


def _exact(expr: Expr, by: int) -> Expr:
    return Expr(tuple((a, c // by) for a, c in expr.terms), expr.const // by)


def _reduced(rest: Expr, by: int, ranges: Ranges) -> tuple[Expr, int, Expr]:
    """Write `rest` as ``g * high + low`` with g | by and ``0 <= low < g``; returns (high, g, low), g as large as possible."""
    candidates = sorted({gcd(by, c) for _, c in rest.terms} | {gcd(by, *(c for _, c in rest.terms))}, reverse=True)
    for g in candidates:
        if g <= 1:
            continue
        high, low = _parts(rest, g)
        carry = low.const // g
        low = low - carry * g
        bottom, top = low.interval(ranges)
        if bottom >= 0 and top < g:
            return _exact(high, g) + carry, g, low
    return rest, 1, ZERO


def quotient(expr: Expr, by: int, ranges: Ranges = _NO_RANGES) -> Expr:
    """``expr // by`` (floored), simplified: ``(64*a + b) // 4`` with ``0 <= b < 4`` is ``16*a``."""
    if by <= 0:
        raise ValueError(f"division by {by}: the divisor of an index must be a positive integer")
    if by == 1:
        return expr
    whole, rest = _parts(expr, by)
    carry = rest.const // by
    whole, rest = _exact(whole, by) + carry, rest - carry * by
    low, high = rest.interval(ranges)
    if low // by == high // by:
        return whole + low // by
    high_part, g, _ = _reduced(rest, by, ranges)
    if g > 1:
        return whole + quotient(high_part, by // g, ranges)
    if len(rest.terms) == 1 and rest.terms[0][1] == 1 and isinstance(rest.terms[0][0], Quotient):
        inner = rest.terms[0][0]
        return whole + quotient(inner.expr + inner.by * rest.const, inner.by * by, ranges)
    return whole + Expr(((Quotient(rest, by), 1),))


def remainder(expr: Expr, by: int, ranges: Ranges = _NO_RANGES) -> Expr:
    """``expr % by`` in ``[0, by)``, simplified: ``(64*a + b) % 64`` with ``0 <= b < 64`` is ``b``."""
    if by <= 0:
        raise ValueError(f"remainder by {by}: the divisor of an index must be a positive integer")
    if by == 1:
        return ZERO
    expr = rejoin(expr, ranges, by)
    rest = Expr(tuple((a, c % by) for a, c in expr.terms if c % by), expr.const % by)
    plain = Expr(tuple((a, c) for a, c in expr.terms if c % by), expr.const)
    for form in (plain, rest):
        low, high = form.interval(ranges)
        if low // by == high // by:
            return form - (low // by) * by
    if len(rest.terms) == 1 and rest.terms[0][1] == 1 and isinstance(rest.terms[0][0], Remainder):
        inner = rest.terms[0][0]
        if inner.by % by == 0:
            return remainder(inner.expr + rest.const, by, ranges)
    high_part, g, low_part = _reduced(rest, by, ranges)
    if g > 1:
        return remainder(high_part, by // g, ranges) * g + low_part
    return Expr(((Remainder(rest, by), 1),))


def rejoin(expr: Expr, ranges: Ranges = _NO_RANGES, modulo: int = 0) -> Expr:
    """Undo a split: ``c * (x // c) + x % c`` becomes ``x``; with `modulo`, coefficients count up to its multiples.

    The two may be written over different sums, as a remainder's coefficients are reduced: ``(32*s + q) // 12`` belongs to
    ``(8*s + q) % 12``; and where more than two were coalesced, ``x // 77`` to ``(x // 11) % 7``, of which it is the quotient.
    Up to multiples of 2, ``(x // 5) % 12`` is ``x // 5``.
    """
    have = dict(expr.terms)
    if not any(isinstance(atom, Remainder) for atom in have):
        return expr
    for atom, d in expr.terms:
        for by, rest, whole in splits(atom, have, ranges) if isinstance(atom, Quotient) else ():
            if len(rest.terms) != 1 or rest.const or not (c := have.get(rest.terms[0][0], 0)) or c % rest.terms[0][1]:
                continue
            c //= rest.terms[0][1]
            if d == c * by or (modulo and (d - c * by) % modulo == 0):
                kept = tuple(t for t in expr.terms if t[0] not in (atom, rest.terms[0][0]))
                return rejoin(Expr(kept, expr.const) + whole * c, ranges, modulo)
    for opened in _opened(expr, modulo) if modulo else ():
        if (joined := rejoin(opened, ranges, modulo)) != opened:
            return joined
    return expr


def _opened(expr: Expr, modulo: int) -> Iterator[Expr]:
    """With what a remainder is of in its place, where that is a quotient's and makes no difference up to multiples."""
    for atom, c in expr.terms:
        if isinstance(atom, Remainder) and c * atom.by % modulo == 0 and any(isinstance(x, Quotient) for x, _ in atom.expr.terms):
            yield expr - Expr(((atom, c),)) + atom.expr * c


def splits(atom: Quotient, have: Mapping[Atom, int], ranges: Ranges) -> Iterator[tuple[int, Expr, Expr]]:
    """(by, rest, whole) with ``by * atom + rest == whole``, for the remainders that there are: their sums may be reduced ones."""
    yield atom.by, Expr(((Remainder(atom.expr, atom.by), 1),)), atom.expr
    inner = atom.expr.variables()
    rests = [rest for rest in have if isinstance(rest, Remainder)]
    own = any(x != atom and _atom_variables(x) <= inner for x in have)  # what a remainder of the same sum could be
    for by in sorted({rest.by for rest in rests if atom.by % rest.by == 0}) if own else ():
        whole = quotient(atom.expr, atom.by // by, ranges)
        yield by, remainder(whole, by, ranges), whole
    for rest in rests:
        if not inner <= rest.expr.variables():  # its quotient is another
            continue
        over = quotient(rest.expr, rest.by, ranges) - Expr(((atom, 1),))
        if atom not in dict(over.terms):
            yield rest.by, Expr(((rest, 1),)), rest.expr - over * rest.by


def show(expr: Expr, names: Mapping[str, str] | None = None) -> str:
    """Readable text in Python's notation; positive terms first, as a person would write it."""
    parts: list[str] = []
    for atom, c in sorted(expr.terms, key=lambda t: (t[1] < 0, -abs(t[1]), _term_key(t))):
        body = _show_atom(atom, names)
        size = abs(c)
        text = body if size == 1 else f"{size}*{body}"
        parts.append((" - " if c < 0 else " + ") + text if parts else ("-" if c < 0 else "") + text)
    if expr.const or not parts:
        sign = " - " if expr.const < 0 else " + "
        parts.append(sign + str(abs(expr.const)) if parts else str(expr.const))
    return "".join(parts)


def _show_atom(atom: Atom, names: Mapping[str, str] | None) -> str:
    if isinstance(atom, str):
        return names.get(atom, atom) if names else atom
    inner = show(atom.expr, names)
    plain = len(atom.expr.terms) == 1 and atom.expr.const == 0 and atom.expr.terms[0][1] == 1
    inner = inner if plain else f"({inner})"
    return f"({inner} // {atom.by})" if isinstance(atom, Quotient) else f"({inner} % {atom.by})"
