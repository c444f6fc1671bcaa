"""Mutants of the IR: one small, plausible error of a pass in one place of a kernel, for every place there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from explorer.ir.dtype import DTYPES
from explorer.ir.expr import Expr, Remainder
from explorer.ir.scalar import Literal
from explorer.kernel.launches import LaunchIR, PlanIR
from explorer.kernel.nodes import (
    Barrier,
    Collect,
    Combine,
    Copy,
    Declare,
    Do,
    For,
    Get,
    Held,
    If,
    Load,
    Node,
    Put,
    Ref,
    Wait,
)
from explorer.kernel.traverse import parts

Body = tuple[Node, ...]
Rule = Callable[[Body], Iterator[Body]]
"""From the nodes of a body to every version of it with the error; what is inside of its nodes is another body."""


@dataclass(frozen=True)
class IRMutant:
    """One error: the name of its rule, the plan's nodes that it stands at, and the IR with it."""

    kind: str
    at: tuple[str, ...]
    ir: PlanIR


def ir_mutants(ir: PlanIR, rules: Mapping[str, Rule] | None = None) -> list[IRMutant]:
    """Every mutant of the IR by these rules, by default :data:`RULES`."""
    found: list[IRMutant] = []
    for number, launch in enumerate(ir.launches):
        for which, body in enumerate(launch.bodies):
            for kind, rule in (RULES if rules is None else rules).items():
                for at, new in _everywhere(body, rule):
                    bodies = (*launch.bodies[:which], new, *launch.bodies[which + 1 :])
                    changed: LaunchIR = replace(launch, bodies=bodies)
                    launches = (*ir.launches[:number], changed, *ir.launches[number + 1 :])
                    found.append(IRMutant(kind, at, replace(ir, launches=launches)))
    return found


def _everywhere(body: Body, rule: Rule) -> Iterator[tuple[tuple[str, ...], Body]]:
    """The rule at this body and at those of its nodes."""
    for new in rule(body):
        differing = [n for n in body if not any(n is m for m in new)]
        yield tuple(dict.fromkeys(i for n in differing for i in n.ids)), new
    for position, node in enumerate(body):
        for name in ("body", "otherwise") if isinstance(node, If) else ("body",) if isinstance(node, For) else ():
            for at, inner in _everywhere(getattr(node, name), rule):
                yield at, with_nodes(body, position, replace(node, **{name: inner}))


def with_nodes(body: Body, position: int, *nodes: Any) -> Body:
    """The body with others in place of one of its nodes."""
    return (*body[:position], *nodes, *body[position + 1 :])


def _each(body: Body) -> Iterator[tuple[int, Any]]:
    return enumerate(body)


# ---- the rules ----


def no_barrier(body: Body) -> Iterator[Body]:
    for n, node in _each(body):
        if isinstance(node, Barrier):
            yield with_nodes(body, n)
        elif isinstance(node, (Collect, Combine)) and node.first_waits:
            yield with_nodes(body, n, replace(node, first_waits=False))


def _no_guard(body: Body) -> Iterator[Body]:
    """A condition of an ``if``, of a loop's bounds, of a load or of a copy's lanes."""
    for n, node in _each(body):
        if isinstance(node, If) and not node.otherwise:
            for kept in _fewer(node.conditions):
                yield with_nodes(body, n, *([replace(node, conditions=kept)] if kept else node.body))
        for name in ("limits", "inside", "guards"):
            if (held := getattr(node, name, ())) and not isinstance(node, If):
                for kept in _fewer(held):
                    yield with_nodes(body, n, replace(node, **{name: kept}))
        if isinstance(node, (Load, Put)) and isinstance(node.value, Get):
            for got in _unasked(node.value):
                yield with_nodes(body, n, replace(node, value=got))


def _unasked(got: Get) -> Iterator[Get]:
    if got.when:
        yield replace(got, when=got.when[1:])
    if got.within:
        yield replace(got, within=False)
    if got.count is not None:
        yield replace(got, count=None)


def _fewer(conditions: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    for n in range(len(conditions)):
        yield conditions[:n] + conditions[n + 1 :]


def _load_first(body: Body) -> Iterator[Body]:
    """A node that reads what the one before it writes goes before that."""
    for n, (node, after) in enumerate(pairwise(body)):
        if _written(node) & _read(after):
            yield (*body[:n], after, node, *body[n + 2 :])


def _stores(value: object, chosen: Callable[[Any], bool]) -> set[str]:
    return {p.store.name for p in parts(value) if isinstance(p, Ref) and chosen(p)}


def _written(node: Node) -> set[str]:
    if isinstance(node, Do):
        return _stores(node.target, lambda _: True)
    if isinstance(node, Put):
        return _stores(node.to, lambda _: True)
    return {name for inner in getattr(node, "body", ()) for name in _written(inner)}


def _read(node: Node) -> set[str]:
    if isinstance(node, (Do, Collect)):
        return _stores(node.operands, lambda _: True)
    if isinstance(node, (Load, Put)):
        return _stores(node.value, lambda _: True)
    return {name for inner in getattr(node, "body", ()) for name in _read(inner)}


def _weak_wait(body: Body) -> Iterator[Body]:
    for n, node in _each(body):
        if isinstance(node, Wait):
            yield with_nodes(body, n, replace(node, pending=node.pending + 1))
            yield with_nodes(body, n)


def _other_slot(body: Body) -> Iterator[Body]:
    """The next slot of a ring of buffers, in a copy's target or in what is read."""
    for n, node in _each(body):
        if isinstance(node, Copy) and (new := _next_slot(node.to)):
            yield with_nodes(body, n, replace(node, to=new))
        if isinstance(node, Do):
            for k, operand in enumerate(node.operands):
                if isinstance(operand, Ref) and (new := _next_slot(operand)):
                    yield with_nodes(body, n, replace(node, operands=(*node.operands[:k], new, *node.operands[k + 1 :])))


def _next_slot(ref: Ref) -> Ref | None:
    """Its index with one more under the remainder that chooses the slot, where that is an index of its own."""
    for k, e in enumerate(ref.index):
        chosen = ref.store.space == "shared" and isinstance(e, Expr) and len(e.terms) == 1
        if chosen and isinstance(e, Expr) and isinstance(r := e.terms[0][0], Remainder):
            other = Expr(((Remainder(r.expr + 1, r.by), e.terms[0][1]),), e.const)
            return replace(ref, index=(*ref.index[:k], other, *ref.index[k + 1 :]))
    return None


def _short_prologue(body: Body) -> Iterator[Body]:
    """What fills a buffer before the loop that uses it is left out, or its loop ends one early."""
    for n, node in _each(body):
        if isinstance(node, For) and any(".pro" in i for i in node.ids) and node.extent > 1:
            yield with_nodes(body, n, replace(node, extent=node.extent - 1))
        elif isinstance(node, Copy) and ".pro" in node.site.leaf.id:
            yield with_nodes(body, n)


def _plain_copy(body: Body) -> Iterator[Body]:
    """The copy happens at once: barriers and waits were placed for one that does not."""
    for n, node in _each(body):
        if isinstance(node, Copy) and node.lanes == 1:
            yield with_nodes(body, n, Do(node.site, node.to, (node.source,), node.inside, ids=node.ids))
        elif isinstance(node, Copy):
            get = Get(node.source, when=(node.inside,) if node.inside else (), count=node.ends[0] if node.ends else None)
            yield with_nodes(body, n, Put(node.to, get, node.site, node.ids))


def _off_by_one(body: Body) -> Iterator[Body]:
    """The next element: of what is written, read, loaded, stored or copied, or of a register."""
    for n, node in _each(body):
        for name in ("target", "to", "source"):
            for other in _next(getattr(node, name, None)):
                yield with_nodes(body, n, replace(node, **{name: other}))
        for k, operand in enumerate(getattr(node, "operands", ())):
            for other in _next(operand):
                yield with_nodes(body, n, replace(node, operands=(*node.operands[:k], other, *node.operands[k + 1 :])))
        if isinstance(node, (Load, Put)) and isinstance(node.value, Get):
            for other in _next(node.value.ref):
                yield with_nodes(body, n, replace(node, value=replace(node.value, ref=other)))


def _next(place: object) -> Iterator[Ref | Held]:
    if isinstance(place, (Ref, Held)):
        for k, e in enumerate(place.index):
            if isinstance(e, Expr):
                yield replace(place, index=(*place.index[:k], e + 1, *place.index[k + 1 :]))
    if isinstance(place, Held) and place.lane is not None:
        yield replace(place, lane=place.lane + 1)


def _short_loop(body: Body) -> Iterator[Body]:
    """A loop without its last, or its first iteration."""
    for n, node in _each(body):
        if isinstance(node, For) and node.extent > 1:
            yield with_nodes(body, n, replace(node, extent=node.extent - 1))
            yield with_nodes(body, n, replace(node, start=node.start + 1, extent=node.extent - 1))


def _interchanged(body: Body) -> Iterator[Body]:
    """Two loops trade their places."""
    for n, node in _each(body):
        inner = node.body[0] if isinstance(node, For) and len(node.body) == 1 else None
        if isinstance(inner, For) and not (node.limits or inner.limits) and min(node.extent, inner.extent) > 1:
            yield with_nodes(body, n, replace(inner, body=(replace(node, body=inner.body),)))


def _other_value(body: Body) -> Iterator[Body]:
    """A statement that computes something else: nothing, or with another operation."""
    for n, node in _each(body):
        if isinstance(node, (Do, Collect)):
            statement = node.site.statement
            other = replace(statement, value=Literal(0.125, DTYPES["f32"]))
            yield with_nodes(body, n, replace(node, site=replace(node.site, statement=other)))


def _lost(body: Body) -> Iterator[Body]:
    for n, node in _each(body):
        if isinstance(node, (Do, Load, Put, Copy, Collect)):
            yield with_nodes(body, n)


def _twice(body: Body) -> Iterator[Body]:
    for n, node in _each(body):
        if isinstance(node, (Do, Collect)) and node.site.statement.update:
            yield with_nodes(body, n, node, node)


def swapped(body: Body) -> Iterator[Body]:
    """Two neighbours in the other order, declarations apart."""
    for n in range(len(body) - 1):
        if not isinstance(body[n], Declare) and not isinstance(body[n + 1], Declare):
            yield (*body[:n], body[n + 1], body[n], *body[n + 2 :])


RULES: dict[str, Rule] = {
    "a barrier is dropped": no_barrier, "a guard is dropped": _no_guard, "a load goes before a store": _load_first,
    "a wait is too weak": _weak_wait, "a slot is off by one": _other_slot, "a prologue is one short": _short_prologue}
"""By name."""
MORE: dict[str, Rule] = {
    "an asynchronous copy is printed as a plain one": _plain_copy, "an index is off by one": _off_by_one,
    "a loop is one short": _short_loop, "two loops are interchanged": _interchanged,
    "a statement computes something else": _other_value, "a step is lost": _lost, "an update runs twice": _twice}
"""Those that are for the judge of the IR alone: run, some of them do the same, or end the run."""
