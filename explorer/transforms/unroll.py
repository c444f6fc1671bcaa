"""Replicate the body of a loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import Loop
from ._nest import with_role
from .base import Transform, by_factor, get_loop, unproposed

LONGEST = 64
"""Iterations up to which unrolling is proposed; longer loops can be unrolled by asking for it: strategies write out up to 127."""


@dataclass(frozen=True)
class Unroll(Transform):
    """Write out all iterations of a loop in the emitted text, in the same order.

    Indices become constants, so register arrays indexed by the loop can live in registers.  Unrolling by a
    factor is a split whose inner loop is unrolled.  The order of instances does not change, so it is always legal.
    Where iterations that compute registers have conditions of their own, as at the end of an axis of odd length, the emitted
    text loads first and computes then, so that the loads can be in flight together
    (:mod:`~explorer.kernel.passes.batch_loads`); how many the compiler lets be depends on the registers it means to keep within
    (``launch_bounds``).

    Before::

        for k in 0…2
            S(k)

    After ``unroll('k')``::

        for k in 0…2  unroll          # emitted as S(0); S(1)
            S(k)
    """

    name = "unroll"
    group = "Loops"
    aliases = ("unroll_loop",)
    elsewhere = {"Halide": "unroll", "TVM": "unroll", "Exo": "unroll_loop", "loopy": "tag_inames unr"}

    loop: str = field(metadata={"kind": "loop", "help": "the loop to unroll completely"})

    def check(self, plan: Plan) -> Verdict:
        loop = get_loop(plan, self.loop)
        if isinstance(loop, Verdict):
            return loop
        if loop.role == "unroll":
            return no(f"{loop.id} is already unrolled")
        if loop.role != "seq":
            why = {"vector": "its iterations are the lanes of one access", "launch": "the host runs it"}.get(
                loop.role, "its iterations run in different places")
            return no(f"{loop.id} is {loop.role}", why=why, hint=f"bind('{loop.id}', 'seq') makes it an ordinary loop again")
        return YES

    def rewrite(self, plan: Plan) -> Plan:
        return with_role(plan, self.loop, "unroll")

    @classmethod
    def meant(cls, args: tuple[Any, ...]) -> str:
        return by_factor(cls.name, args)

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Verdict):
            return loop
        if loop.role == "seq" and loop.extent > LONGEST:
            return unproposed(f"{loop.id} runs {loop.extent} times, and its body would be written as often",
                              hint=f"split('{loop.id}', 8) and unroll('{loop.id}.i'); or unroll('{loop.id}') all the same")
        return cls(loop.id).check(plan)

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Unroll]:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Loop) and loop.role == "seq" and loop.extent <= LONGEST:
            yield cls(loop.id)
