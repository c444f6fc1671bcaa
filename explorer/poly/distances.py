"""Dependences for display: distance vectors, the carrying loop, and what in the schedule orders each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import islpy as isl

from ..ir.expr import Expr, var
from ..ir.memo import per_program
from ..ir.plan import Plan
from ..ir.program import Statement
from .decide import OPEN, Maybe, Question, decide
from .deduce import over
from .dependence import Dependence, analyse
from .dependence_hull import dimension_facts
from .isl import CONTEXT, Undecided, alone, budget, smallest
from .obligations import obligations
from .order import Pairs
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
    a, b = plan.statement_of[d.source], plan.statement_of[d.sink]
    dims = tuple(x for x, y in zip(a.dims, b.dims, strict=False) if x == y)
    point, n = decide(_Smallest(d)), len(a.dims)
    span, carried = decide(_InProgram(d, a, b, dims))
    kept = _reduced(plan, d) if d.kind == "reduction" else tuple(dict.fromkeys(_kept(plan, d, placed)))
    return Distance(d.kind, d.source, d.sink, d.array, dims, span, carried, (point[:n], point[n:]), kept)


@dataclass(frozen=True)
class _Smallest(Question[tuple[int, ...]]):
    """The smallest pair of a dependence."""

    dependence: Dependence

    def by_isl(self) -> tuple[int, ...]:
        return smallest(self.dependence.relation)


Spans = tuple[tuple[tuple[int | None, int | None], ...], tuple[str, ...]]


@dataclass(frozen=True)
class _InProgram(Question[Spans]):
    """The range of a dependence's distances in each of the common loops `dims`, and which of them carry it."""

    dependence: Dependence
    source: Statement
    sink: Statement
    dims: tuple[str, ...]

    def by_intervals(self) -> Maybe[Spans]:
        known = dimension_facts(self.dependence, self.source, self.sink)
        deltas = [known.reduced(over(var(x), "b") - over(var(x), "a")) for x in self.dims] if known else []
        if known is None or not all(e.is_constant for e in deltas):
            return OPEN
        carried = next((x for x, e in zip(self.dims, deltas, strict=True) if e.const), "")
        return tuple((e.const, e.const) for e in deltas), (carried,)

    def by_isl(self) -> Spans:
        """Not known, beyond the budget: that is remembered."""
        dims, values = self.dims, tuple(map(var, self.dims))
        try:
            with budget(BUDGET):
                deltas = _deltas(self.dependence.relation, self.source, self.sink, values, values)
                span = tuple((_edge(deltas.dim_min_val(i)), _edge(deltas.dim_max_val(i))) for i in range(len(dims)))
                return span, tuple(dims[i] if i < len(dims) else "" for i in _levels(deltas, len(dims)))
        except Undecided:
            return ((None, None),) * len(dims), ()


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
            elif not decide(Pairs.of(d, a, b)).is_empty():
                yield (
                    f"kernel {a.kernel.id} ends before {b.kernel.id} starts"
                    if a.launch < b.launch
                    else f"{LOST} in a later kernel"
                )


def _within(d: Dependence, a: Placed, b: Placed) -> Iterator[str]:
    """How pairs of two leaves of one kernel are ordered: by which loop or by the text, and across threads or not."""
    common = tuple(x for x, y in zip(a.above, b.above, strict=False) if x.id == y.id and not x.is_place)
    where_a, where_b = place_exprs(a), place_exprs(b)
    axes = tuple(i for i in range(6) if not (a.free[i] or b.free[i]) and (where_a[i] != Expr() or where_b[i] != Expr()))
    first, second = ((*(dict(p.leaf.when)[x.id] for x in common), *(where[i] for i in axes))
                     for p, where in ((a, where_a), (b, where_b)))
    try:
        found = decide(_Ordered(Pairs.of(d, a, b), first, second, len(common), sum(i < 3 for i in axes), a.path >= b.path))
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


@dataclass(frozen=True)
class _Ordered(Question[tuple[tuple[int, bool, str], ...]]):
    """Levels at which the two instances of the pairs differ, whether the source is the later one there, and where they run.

    That is in the same thread, in another thread of the block, or in another block.  `first` and `second` are the values of
    so many common loops, so many coordinates of the block, and then of the thread; `late`: the source is not first in the text.
    """

    pairs: Pairs
    first: tuple[Expr, ...]
    second: tuple[Expr, ...]
    common: int
    blocks: int
    late: bool

    def by_isl(self) -> tuple[tuple[int, bool, str], ...]:
        with budget(BUDGET):
            return tuple(self._found())

    def _found(self) -> Iterator[tuple[int, bool, str]]:
        pairs, common = decide(self.pairs), self.common
        if pairs.is_empty():
            return
        if not self.first:
            yield 0, self.late, "same"
            return
        deltas = _deltas(pairs, self.pairs.source, self.pairs.sink, self.first, self.second)
        block = _zero(deltas, range(common, common + self.blocks))
        thread = _zero(block, range(common, len(self.first)))
        for where, part in (("same", thread), ("thread", block.subtract(thread)), ("block", deltas.subtract(block))):
            for level in _levels(part, common):
                here = _zero(part, range(level))
                edges = [-1 if self.late else 1]
                if level < common:
                    edges = [_edge(v) for v in (here.dim_min_val(level), here.dim_max_val(level))]
                for later in (False, True):
                    if any(e is None or (e < 0 if later else e > 0) for e in edges):
                        yield level, later, where


def _zero(deltas: isl.Set, dims: Iterable[int]) -> isl.Set:
    """The differences that are zero in these positions."""
    for i in dims:
        deltas = deltas.fix_val(isl.dim_type.set, i, ZERO)
    return deltas
