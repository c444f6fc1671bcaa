"""Move a loop, or a part of its body, by a number of iterations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..ir.expr import var
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import Loop, leaves, ranges, retime
from ._digits import roomy
from ._nest import empty_beyond, enclosing, occupied, remap
from .base import Transform, get_loop, is_whole, nearest, unproposed
from .distribute import child


@dataclass(frozen=True)
class Shift(Transform):
    """Run everything in a loop, or one part `of` its body, `by` iterations later: ``v' = v + by``.

    Shifting a whole loop renumbers it (to make two loops start equally before a fuse).  Shifting a part delays it
    against the rest of the body; the loop grows by `by` iterations, and both parts are guarded.  A buffer that both
    parts use then lives outside of the loop.

    Before::

        for i in 0…64
            S1(i)
            S2(i)

    After ``shift('i', 1, of='S2')``::

        for i in 0…65
            S1(i)          # where i < 64
            S2(i - 1)      # where i >= 1
    """

    name = "shift"
    group = "Loops"
    aliases = ("shift_loop", "delay", "band_shift")
    elsewhere = {"Exo": "shift_loop", "loopy": "map_domain", "isl": "band_shift", "Clay": "shift"}

    loop: str = field(metadata={"kind": "loop", "help": "the loop to shift"})
    by: int = field(metadata={"kind": "int", "help": "iterations later (negative: earlier)"})
    of: str = field(default="", metadata={"kind": "node", "help": "the part of its body to delay (default: all of it)"})

    def check(self, plan: Plan) -> Verdict:
        loop = get_loop(plan, self.loop)
        if isinstance(loop, Verdict):
            return loop
        if not is_whole(self.by) or self.by == 0:
            return no(f"a shift by {self.by!r} iterations changes nothing", hint=str(replace(self, by=nearest(self.by) or 1)))
        if loop.role != "seq":
            return no(f"{loop.id} is already {loop.role}", hint="shift before it is bound, unrolled or vectorised")
        if not self.of:
            return YES
        place = child(plan, loop.body, self.of)
        if place is None:
            return no(f"{self.of!r} is not in the body of {loop.id}", hint=f"one of {', '.join(n.id for n in loop.body)}")
        if len(loop.body) == 1:
            return no(f"{self.of} is the whole body of {loop.id}", hint=f"shift('{loop.id}', {self.by}) moves all of it")
        ready = self._roomy(plan)
        return ready if isinstance(ready, Verdict) else YES

    def _roomy(self, plan: Plan) -> Plan | Verdict:
        """The plan in which both parts may run as long as the loop then does."""
        def fits(again: Plan, loop: Loop) -> Verdict:
            place = child(again, loop.body, self.of)
            assert place is not None
            (low, high), step = loop.range, abs(self.by)
            parts = ((loop.body[place],), self.by > 0), (loop.body[:place] + loop.body[place + 1 :], self.by < 0)
            found = (empty_beyond(again, loop, low - step * late, high + step * (not late), nodes) for nodes, late in parts)
            return next((verdict for verdict in found if not verdict), YES)

        return roomy(plan, plan.loops[self.loop], fits)

    def rewrite(self, plan: Plan) -> Plan:
        ready = self._roomy(plan) if self.of else plan
        plan = plan if isinstance(ready, Verdict) else ready
        loop = plan.loops[self.loop]
        v = var(loop.id)
        old, new = v - self.by, v + self.by
        if not self.of:
            start, extent = occupied(plan, loop, {loop.id: 1}, loop.start, loop.extent)
            return remap(plan, loop.id, old, new, start + self.by, extent)
        place = child(plan, loop.body, self.of)
        assert place is not None
        grown = replace(loop, start=loop.start + min(self.by, 0), extent=loop.extent + abs(self.by))
        scope = {**ranges(enclosing(plan, loop.id)), loop.id: grown.range}
        part = retime((loop.body[place],), {loop.id: old}, {loop.id: new}, scope)
        rest = loop.body[:place] + loop.body[place + 1 :]
        body = loop.body[:place] + part + loop.body[place + 1 :]
        both = {v.buffer for leaf, _ in leaves(part) for _, v in leaf.views} & {
            v.buffer for leaf, _ in leaves(rest) for _, v in leaf.views}
        above = enclosing(plan, loop.id)
        outside = above[-1].id if above else ""
        return replace(plan.replace_node(loop.id, replace(grown, body=body)), buffers=tuple(
            replace(b, scope=outside) if b.scope == loop.id and b.name in both else b for b in plan.buffers))

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Verdict):
            return loop
        if len(loop.body) == 1 and not loop.start:
            return unproposed(f"{loop.id} has one part only and starts at 0", "a shift of all of it only numbers it anew",
                              "shift delays one part of a loop against another; fuse two loops first")
        return YES

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Shift]:
        loop = get_loop(plan, node_id)
        if not isinstance(loop, Loop):
            return
        if loop.start:
            yield cls(loop.id, -loop.start)
        for node in loop.body[1:][:3]:
            yield cls(loop.id, 1, node.id)
            yield cls(loop.id, 2, node.id)
