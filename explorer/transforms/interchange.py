"""Swap two loops of a perfect nest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import Loop
from ._nest import nest
from .base import Transform, get_loop
from .reorder import Reorder, perfect_below


@dataclass(frozen=True)
class Interchange(Transform):
    """Swap two loops of a perfect nest; loops between them stay where they are.

    Instance ``(i, j)`` then runs at time ``(j, i)``.  A dependence with distance ``(+, -)`` forbids it; a skew
    makes such distances nonnegative first.

    Before::

        for i in 0…64
            for j in 0…32
                S(i, j)

    After ``interchange('i', 'j')``::

        for j in 0…32
            for i in 0…64
                S(i, j)
    """

    name = "interchange"
    group = "Loops"
    aliases = ("swap", "swap_loops")
    elsewhere = {"Halide": "reorder", "TVM": "reorder", "Exo": "reorder_loops", "loopy": "prioritize_loops",
                 "Clay": "interchange"}

    first: str = field(metadata={"kind": "loop", "help": "one loop"})
    second: str = field(metadata={"kind": "loop", "help": "the loop to swap it with, in the same perfect nest"})

    def _step(self, plan: Plan) -> Reorder | Verdict:
        chain = nest(plan, (self.first, self.second))
        return chain if isinstance(chain, Verdict) else Reorder((chain[-1].id, chain[0].id))

    def check(self, plan: Plan) -> Verdict:
        if self.first == self.second:
            return no(f"{self.first} cannot be swapped with itself", hint="name two different loops")
        step = self._step(plan)
        return step if isinstance(step, Verdict) else step.check(plan)

    def rewrite(self, plan: Plan) -> Plan:
        step = self._step(plan)
        assert isinstance(step, Reorder)
        return step.rewrite(plan)

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Verdict):
            return loop
        return YES if len(perfect_below(loop)) > 1 else Reorder.offers(plan, node_id)

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Interchange]:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Loop):
            for other in perfect_below(loop)[1:6]:
                yield cls(loop.id, other.id)
