"""The move ``skew``: a loop is shifted by a multiple of another one's iteration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..ir.expr import var
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import Loop, leaves
from ..poly.carried import may_carry
from ._digits import roomy
from ._nest import empty_beyond, enclosing, occupied, remap
from .base import Transform, get_loop, is_whole, unproposed


@dataclass(frozen=True)
class Skew(Transform):
    """Count one loop from a start that moves with another: ``v' = v + factor * w``.

    With `by` (``w``) around `loop` the order does not change; a dependence of distance ``(a, b)`` in ``(w, v)``
    gets distance ``(a, b + factor * a)``, so that an interchange or a tile becomes legal (the wavefront of a
    stencil).  The box grows to the exact range of ``v'``; iterations outside the domain are guarded.

    Before::

        for t in 0…8
            for i in 0…100
                S(t, i)

    After ``skew('i', by='t', factor=1)``::

        for t in 0…8
            for i in 0…107
                S(t, i - t)      # where 0 <= i - t < 100
    """

    name = "skew"
    group = "Loops"
    aliases = ("slant", "map_domain")
    elsewhere = {"loopy": "map_domain", "Clay": "skew"}

    loop: str = field(metadata={"kind": "loop", "help": "the loop whose variable moves"})
    by: str = field(metadata={"kind": "loop", "help": "the loop whose variable is added to it"})
    factor: int = field(default=1, metadata={"kind": "int", "help": "how often it is added"})

    def _box(self, loop: Loop, by: Loop) -> tuple[int, int]:
        """Start and extent of the skewed loop."""
        ends = [self.factor * v for v in by.range]
        return loop.start + min(ends), loop.extent + max(ends) - min(ends)

    def check(self, plan: Plan) -> Verdict:
        loop, by = get_loop(plan, self.loop), get_loop(plan, self.by)
        if isinstance(loop, Verdict) or isinstance(by, Verdict):
            return loop if isinstance(loop, Verdict) else by if isinstance(by, Verdict) else YES
        if loop is by:
            return no(f"{loop.id} cannot be skewed by itself")
        if not is_whole(self.factor) or self.factor == 0:
            return no(f"a skew by {self.factor!r} times {by.id} changes nothing", hint="a factor of 1 or -1")
        if loop.role != "seq":
            return no(f"{loop.id} is already {loop.role}", hint="skew before it is bound, unrolled or vectorised")
        if by.role == "vector":
            return no(f"{by.id} is a vector loop", why="all lanes of a vector access run at the same time",
                      hint=f"bind('{by.id}', 'seq') makes it an ordinary loop again")
        around = by in enclosing(plan, loop.id)
        outside = [leaf.id for leaf, inner in leaves(loop.body) if not around and by not in inner]
        if outside:
            return no(f"{outside[0]} runs in {loop.id} but not in {by.id}", why=f"there is no value of {by.id} to add",
                      hint=f"distribute until {loop.id} and {by.id} are nested")
        ready = self._roomy(plan)
        return ready if isinstance(ready, Verdict) else YES

    def _roomy(self, plan: Plan) -> Plan | Verdict:
        by = plan.loops[self.by]
        reach = abs(self.factor) * (by.range[1] - by.range[0])
        return roomy(plan, plan.loops[self.loop], lambda again, x: empty_beyond(again, x, x.range[0] - reach, x.range[1] + reach))

    def rewrite(self, plan: Plan) -> Plan:
        ready = self._roomy(plan)
        plan = plan if isinstance(ready, Verdict) else ready
        loop = plan.loops[self.loop]
        v, w = var(self.loop), var(self.by)
        start, extent = occupied(plan, loop, {self.loop: 1, self.by: self.factor}, *self._box(loop, plan.loops[self.by]))
        return remap(plan, self.loop, v - w * self.factor, v + w * self.factor, start, extent)

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Verdict):
            return loop
        if not (around := enclosing(plan, loop.id)):
            return no(f"no loop is around {loop.id} to skew it by",
                      "skew moves the start of a loop with the iterations of one around it",
                      f"select a loop inside of {loop.id}" if any(isinstance(n, Loop) for n in loop.body) else "")
        if any(_useful(plan, loop, x) for x in around):
            return YES
        return unproposed(f"no loop around {loop.id} carries a dependence between what runs in it",
                          "a skew lets loops change places that dependences hold, and none does")

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Skew]:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Loop):
            for by in [n for n in reversed(enclosing(plan, loop.id)) if _useful(plan, loop, n)][:3]:
                yield cls(loop.id, by.id, 1)
                yield cls(loop.id, by.id, 2)


def _useful(plan: Plan, loop: Loop, by: Loop) -> bool:
    """Whether a dependence of statements in a loop may go from one iteration of a loop around it to another."""
    return by.role == "seq" and may_carry(plan, by.id, loop.id)
