"""Run a loop backwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..ir.expr import var
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import Loop, Sync, walk
from ._nest import remap
from .base import Transform, get_loop


@dataclass(frozen=True)
class Reverse(Transform):
    """Run the iterations of a loop in the opposite order: ``v' = first + last - v``.

    Every dependence that the loop carries is reversed, so it must not carry any but those of a reduction.

    Before::

        for i in 0…64
            S(i)

    After ``reverse('i')``::

        for i in 0…64
            S(63 - i)
    """

    name = "reverse"
    group = "Loops"
    aliases = ("backwards", "reversal")
    elsewhere = {"loopy": "map_domain", "isl": "band_scale", "Clay": "reverse"}

    loop: str = field(metadata={"kind": "loop", "help": "the loop to run backwards"})

    def check(self, plan: Plan) -> Verdict:
        loop = get_loop(plan, self.loop)
        if isinstance(loop, Verdict):
            return loop
        if loop.role != "seq":
            return no(f"{loop.id} is already {loop.role}", hint="reverse before it is bound, unrolled or vectorised")
        if any(isinstance(n, Sync) for n in walk(loop.body)):
            return no(f"{loop.id} waits for asynchronous copies", why="the groups it waits for are counted in its order",
                      hint="reverse before pipelining")
        return YES

    def rewrite(self, plan: Plan) -> Plan:
        loop = plan.loops[self.loop]
        mirrored = -var(loop.id) + sum(loop.range)
        return remap(plan, loop.id, mirrored, mirrored, loop.start, loop.extent)

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Verdict):
            return loop
        return cls(loop.id).check(plan) if loop.extent > 1 else no(f"{loop.id} runs only once")

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Reverse]:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Loop) and loop.role == "seq" and loop.extent > 1:
            yield cls(loop.id)
