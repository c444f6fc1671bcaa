"""Dependences and value flow of a plan: the program's own, and those that staged copies take over from their consumers.

A copy instance ``C[z]`` reads for its consumers.  Whatever had to come before such a consumer's read, or after it,
now has to come before, or after, the copy; and the copy has to come before the consumer.  A *use* of a copy is the relation
``{ consumer[i] -> C[z] }`` that the consumer's view states (`View.element`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import islpy as isl

from ..ir.expr import Expr
from ..ir.memo import per_program
from ..ir.plan import Plan
from ..ir.program import Statement
from ..ir.tree import Leaf, Loop
from .deduce import whole
from .dependence import Dependence, Flow, analyse, same_element
from .isl import Undecided, budget
from .linear import Case, box, build_set, function, holds
from .relations import BUDGET, bare, bounds, boxes_of, domain, idle, instance


@dataclass(frozen=True, eq=False)
class CopyUse:
    """Which copy instance serves which consumer instance, through one access slot of one leaf; `key` determines it."""

    leaf: str
    consumer: str
    slot: int
    copy: str
    relation: isl.Map
    element: tuple[Expr, ...] = ()
    key: tuple = ()


def run_set(statement: Statement, leaf: Leaf, above: tuple[Loop, ...]) -> isl.Set:
    """The instances that this leaf executes."""
    return run_set_of(statement, leaf.when, boxes_of(above))


def run_set_of(statement: Statement, inverse: tuple[tuple[str, Expr], ...], boxes: tuple[tuple[str, int, int], ...]) -> isl.Set:
    """The instances whose loop values lie in the boxes (id, start, extent)."""
    return _run_set(idle(statement), inverse, boxes)


@lru_cache(maxsize=8192)
def _run_set(statement: Statement, inverse: tuple[tuple[str, Expr], ...], boxes: tuple[tuple[str, int, int], ...]) -> isl.Set:
    inside = narrowing(statement, inverse, boxes)
    return build_set(instance(statement), [*(holds(c, "d") for c in statement.domain), *inside]) if inside else domain(statement)


@lru_cache(maxsize=8192)
def narrowing(statement: Statement, inverse: tuple[tuple[str, Expr], ...], boxes: tuple[tuple[str, int, int], ...]) -> Case:
    """That the loop values lie in the boxes, without what intervals of the domain prove."""
    when, known = dict(inverse), bounds(statement.domain)
    values = [(when[loop], start, extent) for loop, start, extent in boxes]
    outside = [v for v in values if not _within(v[0].interval(known), *v[1:])]
    return box(outside, "d")


def _within(interval: tuple[int, int], start: int, extent: int) -> bool:
    return start <= interval[0] and interval[1] < start + extent


@lru_cache(maxsize=8192)
def _copy_use(statement: Statement, element: tuple[Expr, ...], narrow: Case, copy: str) -> isl.Map:
    """``{ consumer -> copy }`` for an element over the consumer's dimensions, where its leaf runs."""
    return function(instance(statement), copy, element, [*(holds(c, "d") for c in statement.domain), *narrow])


@lru_cache(maxsize=8192)
def _over_dims(statement: Statement, element: tuple[Expr, ...], inverse: tuple[tuple[str, Expr], ...]) -> tuple[Expr, ...]:
    """An element over the loops, written over the statement's dimensions: the same however the loops were split."""
    when, known = dict(inverse), bounds(statement.domain)
    return tuple(whole(e.substitute(when, known), known) for e in element)


def copy_uses(plan: Plan) -> tuple[CopyUse, ...]:
    """All uses of copies in the plan."""
    copies = {c.name for c in plan.copies}
    found = []
    for leaf, above, _ in plan.leaves:
        statement = plan.statement_of[leaf.statement]
        for slot, view in leaf.views:
            copy = plan_copy(plan, view.buffer)
            if slot < len(statement.reads) and view.element and copy in copies:
                boxes = boxes_of(above)
                of = idle(statement)
                element = _over_dims(of, view.element, leaf.when)
                narrow = narrowing(of, leaf.when, boxes)
                relation = _copy_use(of, element, narrow, copy)
                key = (of, slot, copy, element, narrow)
                found.append(CopyUse(leaf.id, statement.name, slot, copy, relation, element, key))
    return tuple(found)


def plan_copy(plan: Plan, buffer: str) -> str:
    """The copy statement that fills this buffer, or empty (parts of a loop that was cut have buffers of their own)."""
    return _filled(plan).get(buffer, "")


@per_program(512)
def _filled(plan: Plan) -> dict[str, str]:
    copies = {c.name: len(c.reads) for c in plan.copies}
    return {v.buffer: leaf.statement for leaf, _, _ in plan.leaves
            if leaf.statement in copies and (v := leaf.view(copies[leaf.statement]))}


@dataclass(frozen=True, eq=False)
class PlanFacts:
    """Everything the questions ask about: ordered and reduction dependences, value flow, uses of copies."""

    ordered: tuple[Dependence, ...]
    reductions: tuple[Dependence, ...]
    flow: tuple[Flow, ...]
    copy_uses: tuple[CopyUse, ...]


def facts(plan: Plan) -> PlanFacts:
    """Dependences of the program and of the plan's copies."""
    base = analyse(plan.program)
    served = copy_uses(plan)
    if not served:
        return PlanFacts(base.ordered, base.reductions, base.flow, ())
    of = (tuple(map(bare, plan.program.statements)), plan.program.arrays, tuple(map(bare, plan.copies)))
    key = (of, base.ordered, base.reductions, base.flow, tuple(s.key for s in served))
    return _with_copies(_Keyed(key, plan, served))


@dataclass(frozen=True, eq=False)
class _Keyed:
    """A plan with the part of it that its dependences are a function of."""

    key: tuple
    plan: Plan
    served: tuple[CopyUse, ...]

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Keyed) and self.key == other.key


@lru_cache(maxsize=256)
def _with_copies(keyed: _Keyed) -> PlanFacts:
    plan, served = keyed.plan, keyed.served
    base = analyse(plan.program)
    ordered, flow = list(base.ordered), list(base.flow)
    by_name = {c.name: c for c in plan.copies}
    for s in served:
        forward = s.relation.reverse()
        ordered.append(Dependence("flow", s.copy, s.consumer, s.copy, forward, s.element))
        flow.append(Flow(s.copy, s.consumer, s.slot, s.copy, forward, s.element))
    for s in served:
        consumer = plan.statement_of[s.consumer]
        if consumer.name in by_name:
            continue
        array = consumer.reads[s.slot].array
        for chain, copy in source_copies(s, served):
            for d in base.ordered:
                if d.array == array and d.kind == "flow" and d.sink == s.consumer:
                    pairs = _through(plan, d.source, copy, d.relation.apply_range(chain))
                    ordered.append(Dependence("flow", d.source, copy, array, pairs))
                if d.array == array and d.kind == "anti" and d.source == s.consumer:
                    pairs = _through(plan, d.sink, copy, chain.reverse().apply_range(d.relation).reverse())
                    ordered.append(Dependence("anti", copy, d.sink, array, pairs.reverse()))
            flow += [Flow(f.source, copy, 0, array, f.relation.apply_range(chain)) for f in base.flow
                     if (f.sink, f.slot, f.array) == (s.consumer, s.slot, array)]
    ordered = [d for d in ordered if not d.relation.is_empty()]
    viewed = {(s.consumer, s.slot) for s in served}
    flow = [f for f in flow if f.array in by_name or (f.sink, f.slot) not in viewed or not _covered(f, served)]
    return PlanFacts(tuple(ordered), base.reductions, tuple(flow), served)


def _through(plan: Plan, writer: str, copy: str, pairs: isl.Map) -> isl.Map:
    """The pairs ``{ writer -> copy }`` on one element: a consumer's dependence may be through another of its accesses."""
    statement = plan.statement_of[writer]
    return pairs.intersect(same_element(plan.program, statement, len(statement.reads), plan.statement_of[copy], 0))


def source_copies(use: CopyUse, served: tuple[CopyUse, ...]) -> Iterator[tuple[isl.Map, str]]:
    """The copies that read the array itself, as ``{ consumer -> copy }`` (some may read from another)."""
    waiting = [(use.relation, use.copy)]
    while waiting:
        relation, copy = waiting.pop()
        for above in served:
            if above.consumer == copy:
                waiting.append((relation.apply_range(above.relation), above.copy))
                relation = relation.subtract_range(above.relation.domain())
        if not relation.is_empty():
            yield relation, copy


def _covered(flow: Flow, served: tuple[CopyUse, ...]) -> bool:
    """Whether every reading instance of this flow reads through a copy; False where that is not decided in time.

    Then the flow is asked about, too, though it is one of those before the copy and behind it.
    """
    readers = flow.relation.range()
    try:
        with budget(BUDGET):
            for s in served:
                if (s.consumer, s.slot) == (flow.sink, flow.slot):
                    readers = readers.subtract(s.relation.domain())
            return readers.is_empty()
    except Undecided:
        return False
