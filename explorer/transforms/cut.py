"""Cut the range of a loop in two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..ir.expr import var
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import Loop, Sync, leaves, ranges, retime, walk
from ._nest import copied, enclosing
from .base import Transform, get_loop, is_whole


@dataclass(frozen=True)
class Cut(Transform):
    """One loop into two that run after each other: its first `at` iterations, and the rest (index-set splitting).

    The second loop and everything in it are copies with names of their own, so that each part can be shaped by
    itself; its variable counts from 0: ``v = v.2 + at``.  A negative `at` counts from the end: ``cut('k', 1)``
    peels the first iteration, ``cut('k', -1)`` the last.  A part may be empty: then its loop runs no iteration, and the
    steps that name it still apply.  The order does not change, so a cut is always legal.

    Before::

        for k in 0…100
            S(k)

    After ``cut('k', 96)``::

        for k in 0…96
            S(k)
        for k.2 in 0…4
            S(k.2 + 96)
    """

    name = "cut"
    group = "Loops"
    aliases = ("peel", "index_set_split", "iss", "cut_loop", "loop_partition", "isolate")
    elsewhere = {"Halide": "specialize", "TVM": "loop_partition", "Exo": "cut_loop", "loopy": "chunk_iname",
                 "isl": "isolate", "Clay": "iss, peel"}

    loop: str = field(metadata={"kind": "loop", "help": "the loop to cut"})
    at: int = field(metadata={"kind": "int", "help": "iterations of the first part (negative: of the second)"})

    def check(self, plan: Plan) -> Verdict:
        loop = get_loop(plan, self.loop)
        if isinstance(loop, Verdict):
            return loop
        if loop.role != "seq":
            return no(f"{loop.id} is already {loop.role}", hint="cut before it is bound, unrolled or vectorised")
        if not is_whole(self.at) or abs(self.at) > loop.extent:
            return no(f"{loop.id} runs {loop.extent} times and cannot be cut at {self.at!r}",
                      "a part has as many iterations as the loop at most", f"a number from {-loop.extent} to {loop.extent}")
        if any(isinstance(n, Sync) for n in walk(loop.body)):
            return no(f"{loop.id} waits for asynchronous copies",
                      why="the groups it waits for are counted across its iterations", hint="cut before pipelining")
        return YES

    def rewrite(self, plan: Plan) -> Plan:
        loop, above = plan.loops[self.loop], enclosing(plan, self.loop)
        at = self.at if self.at >= 0 else loop.extent + self.at
        twin, buffers = copied(plan, loop, above)
        assert isinstance(twin, Loop)
        v, offset = var(twin.id), loop.start + at
        scope = {**ranges(above), twin.id: (0, max(loop.extent - at, 1) - 1)}
        body = retime(twin.body, {twin.id: v + offset}, {twin.id: v - offset}, scope)
        second = replace(twin, start=0, extent=loop.extent - at, body=body)
        scope = {**ranges(above), loop.id: (loop.start, loop.start + max(at, 1) - 1)}
        first = replace(loop, extent=at, body=retime(loop.body, {loop.id: var(loop.id)}, {loop.id: var(loop.id)}, scope))
        return replace(plan.replace_node(loop.id, first, second), buffers=plan.buffers + buffers)

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Verdict):
            return loop
        return YES if loop.extent > 1 else no(f"{loop.id} runs only once")

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Cut]:
        loop = get_loop(plan, node_id)
        if not isinstance(loop, Loop) or loop.extent < 2:
            return
        at = _full(plan, loop)
        yield from (cls(loop.id, n) for n in dict.fromkeys((1, -1, at)) if 0 < abs(n) < loop.extent)


def _full(plan: Plan, loop: Loop) -> int:
    """Iterations after which some guard is needed: before them all upper bounds hold, by intervals."""
    count = loop.extent
    around = ranges(enclosing(plan, loop.id))
    for leaf, inner in leaves(loop.body):
        scope = {**around, **ranges(inner), loop.id: loop.range}
        for constraint in plan.statement_of[leaf.statement].domain:
            expr = constraint.expr.substitute(dict(leaf.at), scope)
            slope = expr.coefficient(loop.id)
            rest = expr - var(loop.id) * slope
            if slope < 0 and loop.id not in rest.variables():
                count = min(count, rest.interval(scope)[0] // -slope + 1 - loop.start)
    return max(count, 0)
