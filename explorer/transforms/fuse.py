"""Join two adjacent sibling loops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from ..ir.expr import var
from ..ir.finding import YES, Finding, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import Loop, Sync, ranges, retime, walk
from ._nest import body_of, empty_beyond, enclosing, move_scopes, names_of, rename_collect
from .base import Transform, get_loop


@dataclass(frozen=True)
class Fuse(Transform):
    """Two loops that stand side by side into one that runs both bodies in each iteration.

    ``S2(v)`` then runs right after ``S1(v)`` instead of after all of ``S1``.  The fused loop takes the values of both,
    and keeps the name of the first; where one loop takes more of them, the body of the other is guarded.  After a
    ``shift`` of the second loop, ``S2(v - n)`` runs after ``S1(v)``: what the consumer of a stencil needs.  Nested loops
    are joined by ``coalesce`` (Halide and TVM call that fuse).

    Before::

        for i in 0…64
            S1(i)
        for j in 0…64
            S2(j)

    After ``fuse('i', 'j')``::

        for i in 0…64
            S1(i)
            S2(i)
    """

    name = "fuse"
    group = "Loops"
    aliases = ("merge", "compute_with", "jam")
    elsewhere = {"Halide": "compute_with", "TVM": "merge, reverse_compute_at", "Exo": "fuse",
                 "loopy": "rename_inames_in_batch", "Clay": "fuse"}
    beware = ("fuse joins *adjacent sibling* loops here (as in Exo, Clay and textbooks); for nested loops (Halide's "
              "and TVM's fuse) use coalesce. TVM's reverse_compute_at is a fuse for each loop that the consumer moves "
              "into.")

    first: str = field(metadata={"kind": "loop", "help": "the loop that stays"})
    second: str = field(metadata={"kind": "loop", "help": "the loop directly behind it, whose body joins"})

    def check(self, plan: Plan) -> Verdict:
        first, second = get_loop(plan, self.first), get_loop(plan, self.second)
        if isinstance(first, Verdict) or isinstance(second, Verdict):
            return first if isinstance(first, Verdict) else second if isinstance(second, Verdict) else YES
        if first is second:
            return no(f"{self.first} cannot be fused with itself", hint="name the loop behind it")
        if not (verdict := _adjacent(plan, first, second)):
            return verdict
        if first.role != second.role:
            return no(
                f"{first.id} is {first.role} and {second.id} is {second.role}",
                why="both bodies of a fused loop run in the same places",
                hint=f"bind('{second.id}', '{first.role}') first" if second.role != "vector" and first.is_place else
                f"bind('{first.id}', 'seq') and bind('{second.id}', 'seq') first",
            )
        if first.range != second.range and _grown(plan, first, second):
            return YES
        if first.extent != second.extent:
            longer, shorter = (first, second) if first.extent > second.extent else (second, first)
            return no(
                f"{first.id} runs {first.extent} times and {second.id} {second.extent} times",
                why="a fused loop runs both bodies equally often",
                hint=f"cut('{longer.id}', {shorter.extent}) first",
            )
        if first.start != second.start:
            amount = first.start - second.start
            return no(
                f"{first.id} starts at {first.start} and {second.id} at {second.start}",
                why="a fused loop runs both bodies with one value of its variable",
                hint=f"shift('{second.id}', {amount}) first",
            )
        return YES

    def rewrite(self, plan: Plan) -> Plan:
        first, second = plan.loops[self.first], plan.loops[self.second]
        low, high = _values(first, second)
        scope = {**ranges(enclosing(plan, first.id)), first.id: (low, high)}
        body = retime(second.body, {second.id: var(first.id)}, {first.id: var(second.id)}, scope)
        body = rename_collect(body, {second.id: first.id})
        mine = first.body
        if first.range != (low, high):
            mine = retime(mine, {first.id: var(first.id)}, {first.id: var(first.id)}, scope)
        extent = first.extent if first.range == second.range else high - low + 1
        joined = replace(first, start=low, extent=extent, body=mine + body)
        plan = plan.replace_node(second.id).replace_node(first.id, joined)
        return move_scopes(plan, {second.id: first.id})

    def eases(self, plan: Plan, finding: Finding) -> Iterator[str]:
        yield f"shift('{self.second}', …) first"

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Verdict):
            return loop
        if _neighbours(plan, loop):
            return YES
        inner = next((n for n in loop.body if isinstance(n, Loop)), None)
        hint = f"coalesce(('{loop.id}', '{inner.id}')) joins nested loops" if inner and len(loop.body) == 1 else ""
        return no(f"no loop stands directly beside {loop.id}", "fuse joins two loops that follow each other in one body", hint)

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Fuse]:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Loop):
            yield from (cls(a.id, b.id) for a, b in _neighbours(plan, loop))


def _values(first: Loop, second: Loop) -> tuple[int, int]:
    """The values that a fused loop takes: all from the lowest to the highest of both."""
    return min(first.start, second.start), max(first.range[1], second.range[1])


def _grown(plan: Plan, first: Loop, second: Loop) -> bool:
    """Whether each of two loops may take the values of the other too, and run nothing there."""
    plain = all(x.role == "seq" and x.extent and not any(isinstance(n, Sync) for n in walk(x.body)) for x in (first, second))
    return plain and all(empty_beyond(plan, x, *_values(first, second)) for x in (first, second))


def _neighbours(plan: Plan, loop: Loop) -> list[tuple[Loop, Loop]]:
    """The pairs of adjacent sibling loops that this loop is part of."""
    body, _ = body_of(plan, loop.id)
    return [(a, b) for a, b in pairwise(body) if loop.id in (a.id, b.id) and isinstance(a, Loop) and isinstance(b, Loop)]


def _adjacent(plan: Plan, first: Loop, second: Loop) -> Verdict:
    """Whether `second` stands directly behind `first` in one body."""
    for outer, inner in ((first, second), (second, first)):
        if outer in enclosing(plan, inner.id):
            path = (*enclosing(plan, inner.id), inner)
            names = tuple(n.id for n in path[path.index(outer) :])
            return no(
                f"{outer.id} and {inner.id} are nested; fuse joins loops that stand side by side",
                hint=f"these are nested: use coalesce({names!r}) instead",
            )
    body, holder = body_of(plan, first.id)
    _, other_holder = body_of(plan, second.id)
    if holder.id != other_holder.id:
        one, other = (next(k.id for k in plan.kernels if k is plan.kernel_of(n.id)) for n in (first, second))
        apart = f"launch('{one}', pack='{other}') first"
        return no(
            f"{first.id} and {second.id} do not stand side by side",
            why=f"{first.id} is in {holder.id}, {second.id} in {other_holder.id}",
            hint=apart if one != other else f"fuse('{_around(plan, first)}', '{_around(plan, second)}') first",
        )
    places = [n.id for n in body]
    a, b = places.index(first.id), places.index(second.id)
    if b < a:
        return no(f"{second.id} stands before {first.id}", hint=f"fuse('{second.id}', '{first.id}')")
    if b > a + 1:
        return no(
            f"{names_of(body[a + 1 : b])} stands between {first.id} and {second.id}",
            why="only loops directly behind each other are fused",
            hint=f"sequence('{second.id}', after='{first.id}') first",
        )
    return YES


def _around(plan: Plan, loop: Loop) -> str:
    """The loop directly around a loop, or nothing."""
    return next((x.id for x in enclosing(plan, loop.id)[-1:]), "")
