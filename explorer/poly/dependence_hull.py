"""The affine hull of a dependence: equalities between the dimensions of source and sink on all its pairs, and least distances.

Asked of isl once for each dependence of a program; for each schedule they answer most questions by substitution.
"""

from __future__ import annotations

from functools import lru_cache

import islpy as isl

from ..errors import Undecided
from ..ir.expr import Expr, var
from ..ir.program import Statement
from .deduce import Facts, deduce, marked
from .dependence import Dependence, Flow
from .isl import budget
from .linear import Case, Condition, build_map, equal
from .relations import bounds, domain, instance

SOON = 50_000
"""Operations of isl for a question that saves others if it is answered."""


@lru_cache(maxsize=4096)
def equalities(of: Flow | Dependence, source: Statement, sink: Statement) -> Case:
    """Equalities between the dimensions of source (side ``a``) and sink (side ``b``) that hold on every pair."""
    stated = tuple(equal(var(d), "a", e, "b") for d, e in zip(source.dims, of.index, strict=False))
    return (*stated, *_rows(of.relation.affine_hull(), source, sink))


@lru_cache(maxsize=4096)
def elements(of: Flow | Dependence, source: Statement, sink: Statement) -> Case:
    """Equalities of a flow's indices that hold quotients or remainders: partial results of loops that were coalesced."""
    if not isinstance(of, Flow):
        return ()
    index = zip(source.target.index, sink.accesses[of.slot].index, strict=True)
    return tuple(equal(e, "a", f, "b") for e, f in index if isinstance(e, Expr) and isinstance(f, Expr)
                 and any(not isinstance(atom, str) for atom, _ in (*e.terms, *f.terms)))


@lru_cache(maxsize=4096)
def are_all(of: Flow | Dependence, source: Statement, sink: Statement) -> bool:
    """Whether the :func:`equalities` and :func:`elements` together with the domains of the two statements are the relation.

    False, too, where isl cannot tell soon: where a copy reads a copy of padded windows its operations take thousands of digits.
    The relation is a part of theirs in any case.
    """
    same = (*equalities(of, source, sink), *elements(of, source, sink))
    whole = build_map(instance(source, "a"), instance(sink, "b"), same)
    try:
        with budget(SOON):
            return whole.intersect_domain(domain(source)).intersect_range(domain(sink)).is_equal(of.relation)
    except Undecided:
        return False


@lru_cache(maxsize=4096)
def dimension_facts(of: Flow | Dependence, source: Statement, sink: Statement) -> Facts | None:
    """What follows from :func:`equalities` within the bounds of the dimensions; None where there are no pairs."""
    return deduce(equalities(of, source, sink), marked(bounds(source.domain), "a") | marked(bounds(sink.domain), "b"))


@lru_cache(maxsize=8192)
def least(of: Flow | Dependence, first: int, second: int) -> int | None:
    """The least value, over all pairs, of the sink's dimension `second` minus the source's dimension `first`; None: no bound."""
    pairs = of.relation.wrap()
    inner = of.relation.dim(isl.dim_type.in_)
    distance = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(pairs.get_space()))
    distance = distance.set_coefficient_val(isl.dim_type.in_, first, -1).set_coefficient_val(isl.dim_type.in_, inner + second, 1)
    value = pairs.min_val(distance)
    return int(value.to_python()) if value.is_int() else None


def _rows(basic: isl.BasicMap, source: Statement, sink: Statement) -> list[Condition]:
    """The equalities of a basic map that involve no quotient."""
    d, out = isl.dim_type, []
    for row in basic.get_constraints():
        if not row.is_equality() or any(int(row.get_coefficient_val(d.div, i).to_python()) for i in range(row.dim(d.div))):
            continue
        sides = ((d.in_, source.dims, "a"), (d.out, sink.dims, "b"))
        parts = tuple((_sum(row, kind, dims), side, 1) for kind, dims, side in sides)
        out.append(Condition(parts, int(row.get_constant_val().to_python()), True))
    return out


def _sum(row: isl.Constraint, kind: isl.dim_type, dims: tuple[str, ...]) -> Expr:
    total = Expr()
    for i, name in enumerate(dims):
        total = total + var(name) * int(row.get_coefficient_val(kind, i).to_python())
    return total
