"""How large a program's values become on integers of a size, and which of its statements then round.

Every value is a pair: a bound of its magnitude, and its *fineness*, one over a power of two that it is a multiple of.  A type
with p digits holds it if their product is at most ``2^p``; a sum of n terms is exact in any order if n times the product is.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from ...ir.dtype import DType
from ...ir.operations import OPERATIONS
from ...ir.program import Array, Program, Statement
from ...ir.scalar import BITWISE, Call, Cast, IndexValue, Literal, Read, Scalar, operand_type, type_of
from ...ir.tree import leaves
from ...ir.tree import ranges as loop_ranges
from ...kernel.reference.error_bound import updates_per_cell

_HIGHEST = {"f16": 60000.0, "f8e4m3": 440.0, "f8e5m2": 50000.0}
_PASSES = 3


@dataclass(frozen=True)
class Magnitude:
    """Integers up to `top`, 0 but in one place of `every`."""

    top: int
    every: int


@dataclass(frozen=True)
class _Value:
    size: float
    fineness: float = 1.0
    exact: bool = True


_UNKNOWN = _Value(inf, inf, False)


def faults(program: Program, magnitude: Magnitude) -> frozenset[tuple[str, str]]:
    """Statements that round on such inputs, and those whose values outgrow their array.

    Parameters
    ----------
    program : Program
    magnitude : Magnitude
        Of every float input.

    Returns
    -------
    frozenset of (str, str)
        The statement, and ``"rounds"`` or ``"overflows"``.
    """
    run = _Run(program, magnitude)
    for _ in range(_PASSES):  # what goes around a recurrence grows
        run.once()
    return frozenset(run.found)


def inexact(program: Program, magnitude: Magnitude) -> frozenset[str]:
    """Statements whose values are not exact on such inputs: they round, or read what did."""
    run = _Run(program, magnitude)
    for _ in range(_PASSES):
        run.once()
    return frozenset(run.inexact)


class _Run:
    def __init__(self, program: Program, magnitude: Magnitude) -> None:
        self.program, self.magnitude = program, magnitude
        self.found: set[tuple[str, str]] = set()
        self.inexact: set[str] = set()
        self.scopes = {leaf.statement: (dict(leaf.at), loop_ranges(above)) for leaf, above in leaves(program.body)}
        self.held = {a.name: self.given(a) for a in program.parameters if a.role != "out"}

    def given(self, array: Array) -> _Value:
        if array.dtype.kind == "bool":
            return _Value(1.0)
        if array.dtype.kind == "int":
            return _Value(9.0)
        return _Value(float(min(self.magnitude.top, 2 ** int(-np.log2(array.dtype.digits)) - 1)))

    def once(self) -> None:
        sums: dict[str, _Value] = {a.name: self.given(a) for a in self.program.parameters if a.role == "inout"}
        for s in self.program.statements:
            target = self.program.array_of[s.target.array]
            new, old = self.value(s, s.value), self.held.get(target.name)
            held = sums[target.name] = self.updated(s, target, new, sums.get(target.name))
            if not held.exact:
                self.inexact.add(s.name)
            if target.dtype.kind == "float":
                if new.exact and not held.exact:
                    self.found.add((s.name, "rounds"))
                if held.size > _HIGHEST.get(target.dtype.name, 1e30):
                    self.found.add((s.name, "overflows"))
            elif s.update is None:
                held = _Value(held.size, 1.0, held.exact)
            self.held[target.name] = _joined(held, old)

    def updated(self, s: Statement, target: Array, new: _Value, old: _Value | None) -> _Value:
        if s.update == "prod":
            return _Value(2.0**20, 1.0, new.exact)
        if s.update in BITWISE:
            return _Value(2.0**31, 1.0, new.exact)
        if s.update != "sum":
            return _joined(new, old) if s.update and old else new
        count = updates_per_cell(s, self.program)
        if self.magnitude.every > 1:  # as many as there may well be
            share = count / self.magnitude.every
            count = min(count, int(share + 6 * share**0.5) + 8)
        before = old or _Value(0.0)
        total = _Value(before.size + count * new.size, max(before.fineness, new.fineness), before.exact and new.exact)
        return self.kept(total, max(target.dtype, target.dtype.wide, key=lambda t: t.digits))

    @staticmethod
    def kept(value: _Value, dtype: DType) -> _Value:
        """The value in a type, exact if it fits."""
        fits = dtype.kind != "float" or value.size * value.fineness <= 1.0 / dtype.digits
        return _Value(value.size, value.fineness, value.exact and fits)

    def value(self, s: Statement, value: Scalar) -> _Value:
        types = [self.program.array_of[r.array].dtype for r in s.reads]
        if isinstance(value, Literal):
            return _literal(float(value.value))
        if isinstance(value, IndexValue):
            at, scope = self.scopes[s.name]
            return _Value(float(max(map(abs, value.expr.substitute(at, scope).interval(scope)))))
        if isinstance(value, Read):
            return self.held.get(s.reads[value.slot].array, _UNKNOWN)
        if isinstance(value, Cast):
            inner = self.value(s, value.arg)
            return self.kept(inner, value.dtype) if value.dtype.kind == "float" else _Value(inner.size, 1.0, inner.exact)
        found = _called(value, [self.value(s, a) for a in value.args])
        return self.kept(found, operand_type(value, types)) if type_of(value, types).kind == "float" else found


def _literal(number: float) -> _Value:
    if not np.isfinite(number):
        return _Value(0.0)  # an identity, or a mask
    fineness = 2.0 ** max(0, -int(np.frexp(number)[1]) + 53) if number else 1.0
    while fineness > 1 and (number * fineness / 2).is_integer():
        fineness /= 2
    return _Value(abs(number), fineness)


def _joined(*values: _Value | None) -> _Value:
    some = [v for v in values if v is not None]
    return _Value(max(v.size for v in some), max(v.fineness for v in some), all(v.exact for v in some))


def _called(call: Call, parts: list[_Value]) -> _Value:
    """An operation's value, before it is held in a type."""
    if call.op == "div" and isinstance(call.args[1], Literal) and np.frexp(float(call.args[1].value))[0] == 0.5:
        by = float(call.args[1].value)
        return _Value(parts[0].size / by, parts[0].fineness * max(by, 1.0), parts[0].exact)
    size, fineness = OPERATIONS[call.op].size(*((p.size, p.fineness) for p in parts))
    return _Value(size, fineness, fineness < inf and all(p.exact for p in parts))
