"""Question one, *cover*: every instance of every statement runs exactly once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import islpy as isl

from ..ir.expr import Expr, Ranges, const, var
from ..ir.finding import Finding, Instance
from ..ir.plan import Plan
from ..ir.program import Constraint, Statement
from . import enumerated
from .decide import OPEN, Maybe, Question, decide
from .deduce import whole
from .isl import Undecided, budget, smallest
from .linear import Tuple, box, build_map, equal, holds
from .placed import Placed
from .plan_facts import run_set_of
from .relations import bounds, domain, idle

SOON = 200_000
"""Operations of isl, a fifth of a second or so, before millions of points are looked at one by one."""
Maps = tuple[tuple[tuple[str, Expr], ...], tuple[tuple[str, Expr], ...], tuple[tuple[str, int, int], ...]]
"""A leaf's maps `at` and `when`, and its loops' boxes."""


def check_cover(plan: Plan, placed: dict[str, list[Placed]]) -> tuple[Finding, ...]:
    """Leaf maps invert each other, a statement's leaves are disjoint, together they are its domain.

    Returns
    -------
    tuple of Finding
        The first failing instance, or nothing.
    """
    for name, statement in plan.statement_of.items():
        leaves = placed.get(name, [])
        failure = _failure(idle(statement), tuple((p.leaf.at, p.leaf.when, p.boxes) for p in leaves))
        if failure is not None:
            how, point, number = failure
            instance = Instance(name, point)
            return (Finding("cover", f"{instance} {how}", array=statement.target.array, source=instance,
                            nodes=(leaves[number].leaf.id,) if number >= 0 else (),
                            lines=(statement.line,) if statement.line else ()),)
    return ()


@lru_cache(maxsize=4096)
def _failure(statement: Statement, parts: tuple[Maps, ...]) -> tuple[str, tuple[int, ...], int] | None:
    """What goes wrong, at which instance, in which leaf (-1: in none)."""
    total = None
    for number, (at, when, boxes) in enumerate(parts):
        if (bad := _inverse_failure(statement, at, when, boxes)) is not None:
            return "runs more than once, or at a place its loops do not name", bad, number
        run = run_set_of(statement, when, boxes)
        if total is not None and not total.is_disjoint(run):
            return "would run twice", smallest(total.intersect(run)), number
        total = run if total is None else total.union(run)
    if total is domain(statement):  # one leaf, whose boxes leave nothing out
        return None
    missing = domain(statement) if total is None else domain(statement).subtract(total)
    return None if missing.is_empty() else ("would never run", smallest(missing), -1)


def _inverse_failure(statement: Statement, at: tuple[tuple[str, Expr], ...], inverse: tuple[tuple[str, Expr], ...],
                     boxes: tuple[tuple[str, int, int], ...]) -> tuple[int, ...] | None:
    """An instance for which the two maps between loops and dimensions do not invert each other, or None."""
    if all(_inverts(*part) for part in _parts(statement, at, inverse, boxes)):
        return None
    one, two = _both(statement.dims, statement.domain, at, inverse, boxes)
    if one.is_equal(two):
        return None
    odd = one.subtract(two).union(two.subtract(one))
    return smallest(odd.domain())


Part = tuple[tuple[str, ...], tuple[Constraint, ...], tuple[tuple[str, Expr], ...], tuple[tuple[str, Expr], ...],
             tuple[tuple[str, int, int], ...]]
"""Dimensions that share no loop with others: with the constraints on them alone, their part of the maps, their loops."""


@lru_cache(maxsize=8192)
def _parts(statement: Statement, at: tuple[tuple[str, Expr], ...], inverse: tuple[tuple[str, Expr], ...],
           boxes: tuple[tuple[str, int, int], ...]) -> tuple[Part, ...]:
    """The maps, taken apart: each part is over dimensions and loops of its own."""
    forward, when = dict(at), dict(inverse)
    groups: list[tuple[set[str], set[str]]] = [({d}, set(forward[d].variables())) for d in statement.dims]
    groups += [(set(when[x].variables()), {x}) for x, _, _ in boxes]
    joined: list[tuple[set[str], set[str]]] = []
    for dims, loops in groups:
        tied = [g for g in joined if g[0] & dims or g[1] & loops]
        joined = [g for g in joined if g not in tied]
        joined.append((dims.union(*(g[0] for g in tied)), loops.union(*(g[1] for g in tied))))
    return tuple((tuple(d for d in statement.dims if d in dims), tuple(c for c in statement.domain if c.expr.variables() <= dims),
                  tuple(p for p in at if p[0] in dims), tuple(p for p in inverse if p[0] in loops),
                  tuple(x for x in boxes if x[0] in loops)) for dims, loops in joined)


def _both(dims: tuple[str, ...], constraints: tuple[Constraint, ...], at: tuple[tuple[str, Expr], ...],
          inverse: tuple[tuple[str, Expr], ...], boxes: tuple[tuple[str, int, int], ...]) -> tuple[isl.Map, isl.Map]:
    """Dimensions to loops, by the one map and by the other."""
    when, forward = dict(inverse), dict(at)
    source, sink = Tuple("", "d", dims), Tuple("", "v", tuple(loop for loop, _, _ in boxes))
    inside = [*(holds(c, "d") for c in constraints), *box(((var(x), start, extent) for x, start, extent in boxes), "v")]
    one = build_map(source, sink, [*inside, *(equal(var(d), "d", forward[d], "v") for d in dims)])
    two = build_map(source, sink, [*inside, *(equal(when[x], "d", var(x), "v") for x, _, _ in boxes)])
    return one, two


@lru_cache(maxsize=8192)
def _inverts(dims: tuple[str, ...], constraints: tuple[Constraint, ...], at: tuple[tuple[str, Expr], ...],
             inverse: tuple[tuple[str, Expr], ...], boxes: tuple[tuple[str, int, int], ...]) -> bool:
    """Whether the two maps invert each other on these dimensions and loops.

    Statements that were spread together have the same maps under other names, so the answer is looked up under common ones.
    """
    d, v = {x: f"d{n}" for n, x in enumerate(dims)}, {x: f"v{n}" for n, (x, _, _) in enumerate(boxes)}
    over_d, over_v = ({x: var(name) for x, name in names.items()} for names in (d, v))
    if any(e.variables() - v.keys() for _, e in at) or any(e.variables() - d.keys() for _, e in inverse):
        return decide(_Inverse(dims, constraints, at, inverse, boxes))
    return decide(_Inverse(
        tuple(d.values()), tuple(replace(c, expr=c.expr.substitute(over_d), text="") for c in constraints),
        tuple((d[x], e.substitute(over_v)) for x, e in at), tuple((v[x], e.substitute(over_d)) for x, e in inverse),
        tuple((v[x], start, extent) for x, start, extent in boxes)))


def _is(e: Expr, wanted: Expr, ranges: Ranges) -> bool:
    """Whether an expression is another, its digits put together, and simplified by the ranges where it takes that."""
    return (found := whole(e, ranges)) == wanted or whole(found.simplify(ranges), ranges) == wanted


@dataclass(frozen=True)
class _Inverse(Question[bool]):
    """Whether two maps between dimensions and loops invert each other wherever one leads to the other's side."""

    dims: tuple[str, ...]
    constraints: tuple[Constraint, ...]
    at: tuple[tuple[str, Expr], ...]
    when: tuple[tuple[str, Expr], ...]
    boxes: tuple[tuple[str, int, int], ...]

    def by_intervals(self) -> Maybe[bool]:
        loops = {x: (start, start + extent - 1) for x, start, extent in self.boxes}
        when, forward = dict(self.when), dict(self.at)
        if any(extent <= 0 for _, _, extent in self.boxes) or any(e.variables() - loops.keys() for e in forward.values()):
            return OPEN
        value = {x: const(start) if extent == 1 else var(x) for x, start, extent in self.boxes}  # one iteration: a number
        there = {d: e.substitute(value, loops) for d, e in forward.items()}
        inside = bounds(self.constraints)
        return (all(_is(when[x].substitute(there, loops), value[x], loops) for x, _, _ in self.boxes)
                and all(_is(forward[d].substitute(when, inside), var(d), inside) for d in self.dims)) or OPEN

    def by_points(self) -> Maybe[bool]:
        found = enumerated.inverts(self.dims, self.constraints, dict(self.at), dict(self.when), self.boxes)
        return OPEN if found is None else found

    def by_isl(self) -> bool:
        one, two = _both(self.dims, self.constraints, self.at, self.when, self.boxes)
        try:
            with budget(SOON):
                return one.is_equal(two)
        except Undecided:
            whole = (self.dims, self.constraints, dict(self.at), dict(self.when), self.boxes)
            found = enumerated.inverts(*whole, most=enumerated.MOST_SLOW)
            return one.is_equal(two) if found is None else found
