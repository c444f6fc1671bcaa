"""Sets and relations from rows of coefficients: what isl would read from text, some twenty times as fast.

A :class:`Condition` compares expressions over the variables of one or two tuples.  Each becomes a row of a constraint
matrix; a quotient or remainder by ``c`` takes one more column ``q`` with ``c*q <= e < c*q + c``, in which isl
recognises the floor.  Variables are known by side and name, so that a condition between two leaves needs no renaming,
and hashes and compares by value: conditions are the keys under which answers are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import islpy as isl

from ..ir.expr import Expr, Quotient, var
from ..ir.program import Constraint
from .isl import CONTEXT

_D = isl.dim_type
_WORD = 1 << 62
Row = dict[int, int]
"""Column to coefficient; the constant is in column -1."""


class Tuple(NamedTuple):
    """A named tuple of integer variables: an instance of a statement, the loops of a leaf, an element."""

    name: str
    side: str
    variables: tuple[str, ...]


class Condition(NamedTuple):
    """``sum(factor * expr(side)) + const >= 0``, or ``== 0``; `parts` holds (expr, side, factor)."""

    parts: tuple[tuple[Expr, str, int], ...]
    const: int = 0
    equality: bool = False


Case = tuple[Condition, ...]
"""A conjunction."""
Cases = tuple[Case, ...]
"""A disjunction of conjunctions."""


def holds(constraint: Constraint, side: str) -> Condition:
    """A constraint of a domain, over the variables of one side."""
    return Condition(((constraint.expr, side, 1),), 0, constraint.equality)


def equal(e: Expr, p: str, f: Expr, q: str) -> Condition:
    """``e(p) == f(q)``."""
    return Condition(((e, p, 1), (f, q, -1)), 0, True)


def less(e: Expr, p: str, f: Expr, q: str, by: int = 1) -> Condition:
    """``e(p) + by <= f(q)``."""
    return Condition(((e, p, -1), (f, q, 1)), -by)


def differ(e: Expr, p: str, f: Expr, q: str) -> Cases:
    """``e(p) != f(q)``, as two cases."""
    return (less(e, p, f, q),), (less(f, q, e, p),)


def at_least(e: Expr, p: str, bound: int) -> Condition:
    """``e(p) >= bound``."""
    return Condition(((e, p, 1),), -bound)


def at_most(e: Expr, p: str, bound: int) -> Condition:
    """``e(p) <= bound``."""
    return Condition(((e, p, -1),), bound)


def box(values: Iterable[tuple[Expr, int, int]], side: str) -> Case:
    """``start <= value < start + extent`` for each (value, start, extent)."""
    return tuple(c for e, start, extent in values for c in (at_least(e, side, start), at_most(e, side, start + extent - 1)))


class _System:
    """Rows over the variables of some tuples and the quotients that occur."""

    def __init__(self, tuples: Sequence[Tuple]) -> None:
        self.column = {(t.side, v): i for i, (t, v) in enumerate((t, v) for t in tuples for v in t.variables)}
        self.dims = self.count = len(self.column)
        self.quotients: dict[tuple[tuple[tuple[int, int], ...], int], int] = {}
        self.equalities: list[Row] = []
        self.inequalities: list[Row] = []

    def add(self, condition: Condition) -> None:
        row: Row = {-1: condition.const}
        for expr, side, factor in condition.parts:
            self._accumulate(row, expr, side, factor)
        (self.equalities if condition.equality else self.inequalities).append(row)

    def _accumulate(self, row: Row, expr: Expr, side: str, factor: int) -> None:
        row[-1] += factor * expr.const
        for atom, c in expr.terms:
            if isinstance(atom, str):
                column = self.column[side, atom]
                row[column] = row.get(column, 0) + factor * c
                continue
            inner: Row = {-1: 0}
            self._accumulate(inner, atom.expr, side, 1)
            quotient = self._quotient(inner, atom.by)
            if isinstance(atom, Quotient):
                row[quotient] = row.get(quotient, 0) + factor * c
            else:
                for column, k in inner.items():
                    row[column] = row.get(column, 0) + factor * c * k
                row[quotient] = row.get(quotient, 0) - factor * c * atom.by

    def _quotient(self, inner: Row, by: int) -> int:
        key = tuple(sorted(inner.items())), by
        if key not in self.quotients:
            q = self.quotients[key] = self.count
            self.count += 1
            self.inequalities.append({**inner, q: -by})
            self.inequalities.append({**{i: -c for i, c in inner.items()}, q: by, -1: by - 1 - inner[-1]})
        return self.quotients[key]

    def matrices(self) -> tuple[isl.Mat, isl.Mat]:
        return _matrix(self.equalities, self.count), _matrix(self.inequalities, self.count)


@lru_cache(maxsize=4096)
def _value(number: int) -> isl.Val:
    return isl.Val.int_from_si(CONTEXT, number) if -_WORD < number < _WORD else isl.Val.read_from_str(CONTEXT, str(number))


_CHUNK = 4
"""Rows of the matrices that are filled in element by element: each element set copies its matrix."""


def _matrix(rows: list[Row], count: int) -> isl.Mat:
    """The rows' coefficients, the constant last."""
    parts = [_filled(rows[i : i + _CHUNK], count) for i in range(0, len(rows), _CHUNK)] or [_filled([], count)]
    while len(parts) > 1:
        parts = [parts[i].concat(parts[i + 1]) if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)]
    return parts[0]


def _filled(rows: list[Row], count: int) -> isl.Mat:
    matrix = isl.Mat.alloc(CONTEXT, 0, count + 1).add_zero_rows(len(rows))
    for number, row in enumerate(rows):
        for column, c in row.items():
            if c:
                matrix = matrix.set_element_val(number, count if column < 0 else column, _value(c))
    return matrix


@lru_cache(maxsize=1024)
def _set_space(name: str, size: int) -> isl.Space:
    space = isl.Space.set_alloc(CONTEXT, 0, size)
    return space.set_tuple_name(_D.set, name) if name else space


@lru_cache(maxsize=1024)
def _map_space(source: str, size: int, sink: str, other: int) -> isl.Space:
    space = isl.Space.alloc(CONTEXT, 0, size, other)
    space = space.set_tuple_name(_D.in_, source) if source else space
    return space.set_tuple_name(_D.out, sink) if sink else space


def basic_set(t: Tuple, conditions: Iterable[Condition]) -> isl.BasicSet:
    """``{ t : conditions }``."""
    system = _System((t,))
    for c in conditions:
        system.add(c)
    space = _set_space(t.name, len(t.variables))
    return isl.BasicSet.from_constraint_matrices(space, *system.matrices(), _D.set, _D.div, _D.param, _D.cst)


def basic_map(source: Tuple, sink: Tuple, conditions: Iterable[Condition]) -> isl.BasicMap:
    """``{ source -> sink : conditions }``."""
    system = _System((source, sink))
    for c in conditions:
        system.add(c)
    space = _map_space(source.name, len(source.variables), sink.name, len(sink.variables))
    return isl.BasicMap.from_constraint_matrices(space, *system.matrices(), _D.in_, _D.out, _D.div, _D.param, _D.cst)


def build_set(t: Tuple, conditions: Iterable[Condition]) -> isl.Set:
    """``{ t : conditions }``."""
    return isl.Set.from_basic_set(basic_set(t, conditions))


def build_map(source: Tuple, sink: Tuple, conditions: Iterable[Condition]) -> isl.Map:
    """``{ source -> sink : conditions }``."""
    return isl.Map.from_basic_map(basic_map(source, sink, conditions))


def function(source: Tuple, name: str, values: Sequence[Expr], conditions: Iterable[Condition] = ()) -> isl.Map:
    """``{ source -> name[values] : conditions }``, the values and conditions over the variables of `source`."""
    sink = Tuple(name, "=", tuple(map(str, range(len(values)))))
    same = [equal(e, source.side, var(v), "=") for e, v in zip(values, sink.variables, strict=True)]
    return build_map(source, sink, (*same, *conditions))


def joint_set(tuples: Sequence[Tuple], conditions: Iterable[Condition]) -> isl.Set:
    """The values of all variables of some tuples, one after the other, that satisfy the conditions together."""
    system = _System(tuples)
    for c in conditions:
        system.add(c)
    space = _set_space("", system.dims)
    return isl.Set.from_basic_set(
        isl.BasicSet.from_constraint_matrices(space, *system.matrices(), _D.set, _D.div, _D.param, _D.cst))


def has_point(tuples: Sequence[Tuple], conditions: Iterable[Condition]) -> bool:
    """Whether the variables of these tuples can satisfy the conditions together, by isl."""
    system = _System(tuples)
    for c in conditions:
        system.add(c)
    space = _set_space("", system.dims)
    return not isl.BasicSet.from_constraint_matrices(space, *system.matrices(), _D.set, _D.div, _D.param, _D.cst).is_empty()
