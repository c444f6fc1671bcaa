"""Dependences for display: distance vectors, the carrying loop, and what in the schedule orders each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import islpy as isl

from ..ir.expr import Expr, var
from ..ir.memo import per_program
from ..ir.plan import Plan
from ..ir.program import Statement
from .dependence import Dependence, analyse
from .isl import CONTEXT, Undecided, alone, budget, smallest
from .obligations import obligations
from .placed import Placed, place_exprs, place_leaves
from .relations import value_map

LOST = "✗"
"""First sign of a way in which the plan does not keep the order (a plan that was refused)."""
ZERO = isl.Val.zero(CONTEXT)
BUDGET = 300_000
"""Operations of isl for one dependence; beyond, the row says that it is not known."""


@dataclass(frozen=True)
class Distance:
    """One dependence in words and numbers.

    Attributes
    ----------
    kind, source, sink, array : str
        As in :class:`.dependence.Dependence`.
    dims : tuple of str
        Loops around both statements, outermost first.
    span : tuple of (int or None, int or None)
        Least and largest distance in each of them, sink minus source; None where it is not known.
    carried : tuple of str
        Loops in which the two first differ, for some pair; ``""`` for pairs within one iteration of all of them.
    first : tuple of tuple of int
        The smallest pair of instances.
    kept : tuple of str
        How the plan orders the pairs; one sentence part for each way that occurs.
    """

    kind: str
    source: str
    sink: str
    array: str
    dims: tuple[str, ...]
    span: tuple[tuple[int | None, int | None], ...]
    carried: tuple[str, ...]
    first: tuple[tuple[int, ...], tuple[int, ...]]
    kept: tuple[str, ...]


@alone
@per_program(64)
def distances(plan: Plan) -> tuple[Distance, ...]:
    """Every dependence of the program that the plan runs, ordered ones first.

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    tuple of Distance
    """
    facts, placed = analyse(plan.program), place_leaves(plan)
    return tuple(_distance(plan, d, placed) for d in (*facts.ordered, *facts.reductions))


def _distance(plan: Plan, d: Dependence, placed: dict[str, list[Placed]]) -> Distance:
    dims, span, carried = _in_program(d, plan.statement_of[d.source], plan.statement_of[d.sink])
    point = _first(d)
    n = len(plan.statement_of[d.source].dims)
    kept = _reduced(plan, d) if d.kind == "reduction" else tuple(dict.fromkeys(_kept(plan, d, placed)))
    return Distance(d.kind, d.source, d.sink, d.array, dims, span, carried, (point[:n], point[n:]), kept)


@lru_cache(maxsize=1024)
def _first(d: Dependence) -> tuple[int, ...]:
    return smallest(d.relation)


@lru_cache(maxsize=1024)
def _in_program(
    d: Dependence, a: Statement, b: Statement
) -> tuple[tuple[str, ...], tuple[tuple[int | None, int | None], ...], tuple[str, ...]]:
    """Common loops, the range of distances in each, and which of them carry the dependence."""
    dims = tuple(x for x, y in zip(a.dims, b.dims, strict=False) if x == y)
    if not dims:
        return (), (), ("",)
    try:
        with budget(BUDGET):
            deltas = _deltas(d.relation, a, b, *(tuple(map(var, dims)),) * 2)
            span = tuple((_edge(deltas.dim_min_val(i)), _edge(deltas.dim_max_val(i))) for i in range(len(dims)))
            return dims, span, tuple(dims[i] if i < len(dims) else "" for i in _levels(deltas, len(dims)))
    except Undecided:
        return dims, ((None, None),) * len(dims), ()


def _deltas(relation: isl.Map, a: Statement, b: Statement, first: tuple[Expr, ...], second: tuple[Expr, ...]) -> isl.Set:
    """Differences of some values between the two instances of each pair."""
    return relation.apply_domain(value_map(a, first)).apply_range(value_map(b, second)).deltas()


def _edge(value: isl.Val) -> int | None:
    return int(value.to_python()) if value.is_int() else None


def _levels(deltas: isl.Set, depth: int) -> Iterator[int]:
    """Positions at which differences are first not zero; `depth` if some are zero throughout."""
    for level in range(depth):
        zero = _zero(deltas, [level])
        if not deltas.is_subset(zero):
            yield level
        deltas = zero
    if not deltas.is_empty():
        yield depth


def _reduced(plan: Plan, d: Dependence) -> tuple[str, ...]:
    """What happens to updates of one element that may run in either order."""
    own = [o for o in obligations(plan) if o.array == d.array and plan.resolve(o.leaf) is not None]
    own = [o for o in own if next(leaf.statement for leaf, _, _ in plan.leaves if leaf.id == o.leaf) in (d.source, d.sink)]
    ways = [f"{o.loop} ({o.role}): combined by {o.how}" if o.how else f"{o.loop} ({o.role}): open, collect it" for o in own]
    alone = "one thread makes all updates of an element" if d.source == d.sink else "one after the other, in either order"
    return (*dict.fromkeys(ways), *(() if ways else (alone,)))


def _kept(plan: Plan, d: Dependence, placed: dict[str, list[Placed]]) -> Iterator[str]:
    for a in placed.get(d.source, []):
        for b in placed.get(d.sink, []):
            if a.launch == b.launch:
                yield from _within(d, a, b)
            elif not d.relation.intersect_domain(a.run).intersect_range(b.run).is_empty():
                yield (
                    f"kernel {a.kernel.id} ends before {b.kernel.id} starts"
                    if a.launch < b.launch
                    else f"{LOST} in a later kernel"
                )


def _within(d: Dependence, a: Placed, b: Placed) -> Iterator[str]:
    """How pairs of two leaves of one kernel are ordered: by which loop or by the text, and across threads or not."""
    common = tuple(x for x, y in zip(a.above, b.above, strict=False) if x.id == y.id and not x.is_place)
    axes = tuple(i for i in range(6) if not (a.free[i] or b.free[i]))
    try:
        with budget(BUDGET):
            found = _ordered(d, a, b, tuple(x.id for x in common), axes)
    except Undecided:
        yield "not listed: too large"
        return
    threads = any(x.is_thread for x in a.above)
    for level, later, where in found:
        loop = common[level] if level < len(common) else None
        if loop and loop.role == "launch" and not later:
            yield f"an earlier launch of {loop.id}"
        elif where == "block" or later:
            at_once = (
                "at one time in another thread" if a.leaf.id == b.leaf.id and where == "thread" else "not earlier in the text"
            )
            yield f"{LOST} " + (
                "in another block of one launch" if where == "block" else f"a later {loop.id}" if loop else at_once
            )
        else:
            ways = " and ".join(sorted({way for _, way in a.leaf.collect}))
            across = f", combined by {ways} for all threads" if ways else ", in another thread behind a barrier"
            yield (f"an earlier {loop.id}" if loop else "earlier in the text") + (
                across if where == "thread" else ", in the same thread" if threads else ""
            )


def _ordered(d: Dependence, a: Placed, b: Placed, common: tuple[str, ...], axes: tuple[int, ...]) -> list[tuple[int, bool, str]]:
    """Levels at which the two instances of the pairs differ, whether the source is the later one there, and where they run.

    In the same thread, in another thread of the block, or in another block.
    """
    pairs = d.relation.intersect_domain(a.run).intersect_range(b.run)
    if pairs.is_empty():
        return []
    where_a, where_b = place_exprs(a), place_exprs(b)
    when_a, when_b = dict(a.leaf.when), dict(b.leaf.when)
    used = [i for i in axes if where_a[i] != Expr() or where_b[i] != Expr()]
    first = (*(when_a[x] for x in common), *(where_a[i] for i in used))
    second = (*(when_b[x] for x in common), *(where_b[i] for i in used))
    late = a.path >= b.path
    if not first:
        return [(0, late, "same")]
    deltas, out = _deltas(pairs, a.statement, b.statement, first, second), []
    blocks = [len(common) + n for n, i in enumerate(used) if i < 3]
    block = _zero(deltas, blocks)
    thread = _zero(block, range(len(common), len(first)))
    for where, part in (("same", thread), ("thread", block.subtract(thread)), ("block", deltas.subtract(block))):
        for level in _levels(part, len(common)):
            here = _zero(part, range(level))
            edges = (
                [_edge(v) for v in (here.dim_min_val(level), here.dim_max_val(level))]
                if level < len(common)
                else [-1 if late else 1]
            )
            out += [
                (level, later, where) for later in (False, True) if any(e is None or (e < 0 if later else e > 0) for e in edges)
            ]
    return out


def _zero(deltas: isl.Set, dims: Iterable[int]) -> isl.Set:
    """The differences that are zero in these positions."""
    for i in dims:
        deltas = deltas.fix_val(isl.dim_type.set, i, ZERO)
    return deltas
