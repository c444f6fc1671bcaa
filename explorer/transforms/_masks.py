"""Masks of a copy: the cells of its box that lie in the array, and those that its readers want, from the readers' conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.expr import Atom, Expr, Ranges, var
from ..ir.plan import Plan
from ..ir.program import Array, Constraint, Statement
from ..ir.tree import ranges
from ._domain import dim_ranges
from ._uses import Use

Form = tuple[tuple[tuple[Atom, int], ...], bool]
"""The terms of a condition, and whether it is an equality."""


def beyond(copy: Statement, index: tuple[Expr, ...], array: Array) -> tuple[Constraint, ...]:
    """The conditions under which an element does not lie beyond the array, as far as intervals do not prove them."""
    known, out = dim_ranges(copy), list[Constraint]()
    for e, n in zip(index, array.shape, strict=True):
        low, high = e.interval(known)
        out += [Constraint(e)] if low < 0 else []
        out += [Constraint(-e + (n - 1))] if high >= n else []
    return tuple(out)


def leaves_out(masked: Plan, whole: Plan) -> bool:
    """Whether the last copy of one plan has zeros where that of another one has elements."""
    return masked.copies[-1].inside != whole.copies[-1].inside


def wanted(reads: Sequence[Use], cells: Sequence[tuple[Expr, ...]], outer: Sequence[Mapping[str, str]], box: Sequence[str],
           known: Ranges) -> tuple[Constraint, ...]:
    """Conditions on a copy's dimensions that hold for every cell that some reader reads.

    A loop, or a sum of loops, that a cell's coordinate determines is replaced by this coordinate in the conditions of its
    reader; conditions on further loops are left out.  Of conditions that differ in their constants the weakest is kept, so
    that they hold for the cells of all readers; what only some readers ask is left out.

    Parameters
    ----------
    reads : sequence of Use
    cells : sequence of tuple of Expr
        For each read, its cell over its loops.
    outer : sequence of mapping of str to str
        For each read, the copy's dimensions that stand for loops around it.
    box : sequence of str
        The copy's dimensions that number the cells.
    known : Ranges
        Of the copy's dimensions.
    """
    found = [_of(u, cell, names, box, known) for u, cell, names in zip(reads, cells, outer, strict=True)]
    out: list[Constraint] = []
    for form in found[0] if found else ():
        consts = [mine[form] for mine in found if form in mine]
        terms, equality = form
        if len(consts) < len(found) or (equality and len(set(consts)) > 1):
            continue
        e = Expr(terms, max(consts))
        if equality or e.interval(known)[0] < 0:
            out.append(Constraint(e, equality))
    return tuple(out)


def _of(u: Use, cell: tuple[Expr, ...], outer: Mapping[str, str], box: Sequence[str], known: Ranges) -> dict[Form, int]:
    """The conditions of one reader over the copy's dimensions: the least constant of each form."""
    values = {loop: var(d) for loop, d in outer.items()}
    for d, e in zip(box, cell, strict=True):
        if len(e.terms) == 1 and isinstance(loop := e.terms[0][0], str) and abs(sign := e.terms[0][1]) == 1:
            values.setdefault(loop, (var(d) - e.const) * sign)
    scope, at = ranges(u.above), u.leaf.places
    asked = [(c.expr.substitute(at, scope), c.equality) for c in (*u.statement.domain, *u.statement.inside)]
    asked += [(e, False) for x in u.above if x.id in values for e in (var(x.id) - x.start, -var(x.id) + (x.start + x.extent - 1))]
    out: dict[Form, int] = {}
    for e, equality in asked:
        for d, c in zip(box, cell, strict=True):
            e = _without(e, c, var(d))
        if e.variables() <= values.keys() | set(box):
            e = e.substitute(values | {d: var(d) for d in box}, known)
            form = (e.terms, equality)
            out[form] = min(out.get(form, e.const), e.const)
    return out


def _without(e: Expr, sum_of: Expr, name: Expr) -> Expr:
    """The expression with a name for a sum of loops, where it holds a multiple of this sum."""
    if len(sum_of.terms) < 2:
        return e
    (atom, step), *_ = sum_of.terms
    times, rest = divmod(dict(e.terms).get(atom, 0), step)
    return e if rest or not times else e + (name - sum_of) * times
