"""Dependences as people talk of them: distances, the loop that carries each, and what in the schedule puts them in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import islpy as isl

from ..ir.expr import Expr
from ..ir.plan import Plan
from ..ir.program import Statement
from .dependence import Dependence, analyse
from .isl import Undecided, alone, budget, conjunction, read_map, read_set, smallest, text
from .obligations import obligations
from .placed import Placed, place_exprs, place_leaves
from .relations import dim_names, space

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
@lru_cache(maxsize=64)
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
def _in_program(d: Dependence, a: Statement, b: Statement) -> tuple[tuple[str, ...], tuple[tuple[int | None, int | None], ...], tuple[str, ...]]:
    """Common loops, the range of distances in each, and which of them carry the dependence."""
    dims = tuple(x for x, y in zip(a.dims, b.dims, strict=False) if x == y)
    if not dims:
        return (), (), ("",)
    try:
        with budget(BUDGET):
            deltas = _deltas(d.relation, a, b, tuple(Expr(((x, 1),)) for x in dims), tuple(Expr(((x, 1),)) for x in dims))
            span = tuple((_edge(deltas.dim_min_val(i)), _edge(deltas.dim_max_val(i))) for i in range(len(dims)))
            return dims, span, tuple(dims[i] if i < len(dims) else "" for i in _levels(deltas, len(dims)))
    except Undecided:
        return dims, ((None, None),) * len(dims), ()


def _deltas(relation: isl.Map, a: Statement, b: Statement, first: tuple[Expr, ...], second: tuple[Expr, ...]) -> isl.Set:
    """Differences of some values between the two instances of each pair."""
    names = dim_names(a), dim_names(b)
    one = read_map(f"{{ {space(a)} -> V[{', '.join(text(e, names[0]) for e in first)}] }}")
    two = read_map(f"{{ {space(b)} -> V[{', '.join(text(e, names[1]) for e in second)}] }}")
    return relation.apply_domain(one).apply_range(two).deltas()


def _edge(value: isl.Val) -> int | None:
    return int(value.to_python()) if value.is_int() else None


def _levels(deltas: isl.Set, depth: int) -> Iterator[int]:
    """Positions at which differences are first not zero; `depth` if some are zero throughout."""
    names = [f"v{i}" for i in range(deltas.dim(isl.dim_type.set))]
    for level in range(depth + 1):
        held = [f"{n} = 0" for n in names[:level]] + ([f"{names[level]} != 0"] if level < depth else [])
        if not deltas.intersect(read_set(f"{{ V[{', '.join(names)}]{conjunction(held)} }}")).is_empty():
            yield level


def _reduced(plan: Plan, d: Dependence) -> tuple[str, ...]:
    """What happens to updates of one element that may run in either order."""
    own = [o for o in obligations(plan) if o.array == d.array and plan.resolve(o.leaf) is not None]
    own = [o for o in own if next(leaf.statement for leaf, _, _ in plan.leaves if leaf.id == o.leaf) == d.source]
    ways = [f"{o.loop} ({o.role}): combined by {o.how}" if o.how else f"{o.loop} ({o.role}): open, collect it" for o in own]
    return (*dict.fromkeys(ways), *(() if ways else ("one thread makes all updates of an element",)))


def _kept(plan: Plan, d: Dependence, placed: dict[str, list[Placed]]) -> Iterator[str]:
    for a in placed.get(d.source, []):
        for b in placed.get(d.sink, []):
            if a.launch < b.launch:
                if not d.relation.intersect_domain(a.run).intersect_range(b.run).is_empty():
                    yield f"kernel {a.kernel.id} ends before {b.kernel.id} starts"
            elif a.launch == b.launch:
                yield from _within(plan, d, a, b)


def _within(plan: Plan, d: Dependence, a: Placed, b: Placed) -> Iterator[str]:
    """How pairs of two leaves of one kernel are ordered: by which loop or by the text, and across threads or not."""
    common = [x for x, y in zip(a.above, b.above, strict=False) if x.id == y.id and not x.is_place]
    axes = [i for i in range(3, 6) if not (a.free[i] or b.free[i])]
    try:
        with budget(BUDGET):
            found = _ordered(d, a, b, tuple(x.id for x in common), tuple(axes))
    except Undecided:
        yield "in order (proved; the way is not listed: too large)"
        return
    for level, apart in found:
        loop = common[level] if level < len(common) else None
        how = f"an earlier launch of {loop.id}" if loop and loop.role == "launch" else f"an earlier {loop.id}" if loop else "earlier in the text"
        if apart and not (loop and loop.role == "launch"):
            ways = sorted({way for _, way in a.leaf.collect})
            how += f", combined by {' and '.join(ways)} for all threads" if ways else ", in another thread behind a barrier"
        elif not (loop and loop.role == "launch") and any(x.is_thread for x in a.above):
            how += ", in the same thread"
        yield how


def _ordered(d: Dependence, a: Placed, b: Placed, common: tuple[str, ...], axes: tuple[int, ...]) -> tuple[tuple[int, bool], ...]:
    """Levels at which the pairs are ordered, each with whether the two run in different threads."""
    pairs = d.relation.intersect_domain(a.run).intersect_range(b.run)
    if pairs.is_empty():
        return ()
    where_a, where_b = place_exprs(a), place_exprs(b)
    when_a, when_b = dict(a.leaf.when), dict(b.leaf.when)
    used = [i for i in axes if where_a[i] != Expr() or where_b[i] != Expr()]
    first = (*(when_a[x] for x in common), *(where_a[i] for i in used))
    second = (*(when_b[x] for x in common), *(where_b[i] for i in used))
    if not first:
        return ((0, False),)
    deltas = _deltas(pairs, a.statement, b.statement, first, second)
    names = [f"v{i}" for i in range(len(first))]
    differ = " or ".join(f"{n} != 0" for n in names[len(common):]) or "0 = 1"
    apart = read_set(f"{{ V[{', '.join(names)}] : {differ} }}")
    return tuple((level, bool(there)) for there, part in ((False, deltas.subtract(apart)), (True, deltas.intersect(apart)))
                 for level in _levels(part, len(common)))
