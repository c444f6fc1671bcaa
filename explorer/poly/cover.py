"""Question one, *cover*: every instance of every statement runs exactly once."""

from __future__ import annotations

from functools import lru_cache

from ..ir.expr import Expr, var
from ..ir.finding import Finding, Instance
from ..ir.plan import Plan
from ..ir.program import Statement
from .isl import smallest
from .linear import Tuple, box, build_map, equal, holds
from .placed import Placed
from .plan_facts import run_set_of
from .relations import domain, instance

Part = tuple[tuple[tuple[str, Expr], ...], tuple[tuple[str, Expr], ...], tuple[tuple[str, int, int], ...]]
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
        failure = _failure(statement, tuple((p.leaf.at, p.leaf.when, p.boxes) for p in leaves))
        if failure is not None:
            how, point, number = failure
            instance = Instance(name, point)
            return (Finding("cover", f"{instance} {how}", array=statement.target.array, source=instance,
                            nodes=(leaves[number].leaf.id,) if number >= 0 else (),
                            lines=(statement.line,) if statement.line else ()),)
    return ()


@lru_cache(maxsize=4096)
def _failure(statement: Statement, parts: tuple[Part, ...]) -> tuple[str, tuple[int, ...], int] | None:
    """What goes wrong, at which instance, in which leaf (-1: in none)."""
    total = None
    for number, (at, when, boxes) in enumerate(parts):
        if (bad := _inverse_failure(statement, at, when, boxes)) is not None:
            return "runs more than once, or at a place its loops do not name", bad, number
        run = run_set_of(statement, when, boxes)
        if total is not None and not total.is_disjoint(run):
            return "would run twice", smallest(total.intersect(run)), number
        total = run if total is None else total.union(run)
    missing = domain(statement) if total is None else domain(statement).subtract(total)
    return None if missing.is_empty() else ("would never run", smallest(missing), -1)


@lru_cache(maxsize=8192)
def _inverse_failure(statement: Statement, at: tuple[tuple[str, Expr], ...], inverse: tuple[tuple[str, Expr], ...],
                     boxes: tuple[tuple[str, int, int], ...]) -> tuple[int, ...] | None:
    """An instance for which the two maps between loops and dimensions do not invert each other, or None."""
    when, forward = dict(inverse), dict(at)
    source, sink = instance(statement), Tuple("V", "v", tuple(loop for loop, _, _ in boxes))
    inside = [*(holds(c, "d") for c in statement.domain), *box(((var(x), start, extent) for x, start, extent in boxes), "v")]
    one = build_map(source, sink, [*inside, *(equal(var(d), "d", forward[d], "v") for d in statement.dims)])
    two = build_map(source, sink, [*inside, *(equal(when[x], "d", var(x), "v") for x, _, _ in boxes)])
    if one.is_equal(two):
        return None
    odd = one.subtract(two).union(two.subtract(one))
    return smallest(odd.domain())
