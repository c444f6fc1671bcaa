"""Split one loop into two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..ir.expr import quotient, remainder, var
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import Loop, ranges, retime
from ._digits import roomy
from ._nest import empty_beyond
from .base import NEW_NAME, Transform, get_loop, is_whole, nearest, unproposed


@dataclass(frozen=True)
class Split(Transform):
    """One loop into an outer loop and an inner loop of `factor` iterations (strip-mining).

    ``v = factor * v + v.i``; the outer loop keeps its name.  The order of instances does not change, so a split
    is always legal; where `factor` does not divide the extent, the last outer iteration is guarded.  The
    inner loop of a split can be split again; a guard keeps it within its part.  Of a loop that came from `cut`, `split` adds an
    outer loop of one iteration (``k.part``), which marks the end of that part.  A loop is split before it is bound.

    Parts are counted from the loop's first iteration; `aligned`, from 0: a loop that starts at 3 then has ``v.i`` = 1 first
    with a factor of 2.  So loops that were shifted against each other are divided at the same places, and can be fused.

    Before::

        for k in 0…1000
            S(k)

    After ``split('k', 256)``::

        for k in 0…4
            for k.i in 0…256
                S(256*k + k.i)      # where 256*k + k.i < 1000
    """

    name = "split"
    group = "Loops"
    aliases = ("divide", "strip_mine", "stripmine", "divide_loop", "split_iname")
    elsewhere = {"Halide": "split", "TVM": "split", "Exo": "divide_loop", "loopy": "split_iname", "isl": "band_tile",
                 "Clay": "stripmine"}
    beware = "split makes one loop two; Clay's split is distribute here."

    loop: str = field(metadata={"kind": "loop", "help": "the loop to split"})
    factor: int = field(metadata={"kind": "int", "min": 1, "help": "iterations of the inner loop"})
    inner: str = field(default="", metadata={"kind": "name", "help": "name of the inner loop (default: loop.i)"})
    aligned: bool = field(default=False, metadata={
        "kind": "bool", "help": "parts begin at multiples of the factor, not at the loop's first iteration"})

    def check(self, plan: Plan) -> Verdict:
        loop = get_loop(plan, self.loop)
        if isinstance(loop, Verdict):
            return loop
        if not is_whole(self.factor) or self.factor < 1:
            return no(f"a loop is split by an integer of at least 1, not {self.factor!r}",
                      hint=f"{replace(self, factor=max(2, nearest(self.factor, 1) or 16))}, or another integer")
        if loop.role != "seq":
            return no(f"{self.loop} is already {loop.role}", hint="split before it is bound, unrolled or vectorised")
        if self.inner and not NEW_NAME.fullmatch(self.inner):  # it will stand in comments of the text
            return no(f"{self.inner!r} is no name for a loop", hint="letters, digits, _ and .")
        if self.inner and self.inner in plan.ids:
            return no(f"the name {self.inner!r} is taken")
        ready = divisible(plan, loop, self.factor, self.aligned)
        return ready if isinstance(ready, Verdict) else YES

    def rewrite(self, plan: Plan) -> Plan:
        ready = divisible(plan, plan.loops[self.loop], self.factor, self.aligned)
        plan = plan if isinstance(ready, Verdict) else ready
        hit = plan.find(self.loop)
        assert hit is not None
        loop, above = hit
        assert isinstance(loop, Loop)
        inner = self.inner or plan.fresh(f"{loop.id}.i")
        origin = 0 if self.aligned else loop.start
        start, behind = (loop.start - origin) // self.factor, -(-(loop.start - origin + loop.extent) // self.factor)
        v = var(loop.id)
        forward = {loop.id: v * self.factor + var(inner) + origin}
        offset = v - origin
        backward = {loop.id: quotient(offset, self.factor), inner: remainder(offset, self.factor)}
        scope = {**ranges(above), loop.id: (start, max(behind - start, 1) + start - 1), inner: (0, self.factor - 1)}
        body = retime(loop.body, forward, backward, scope)
        new = replace(loop, extent=behind - start, start=start, body=(Loop(inner, self.factor, body),))
        return plan.replace_node(loop.id, new)

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Verdict) or loop.extent > 2:
            return loop if isinstance(loop, Verdict) else YES
        return unproposed(f"{loop.id} runs {loop.extent} time{'s' * (loop.extent != 1)}", "there is nothing to divide")

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Split]:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Loop):
            for factor in (2, 4, 8, 16, 32, 64, 128, 256):
                if factor < loop.extent:
                    yield cls(node_id, factor)


def divisible(plan: Plan, loop: Loop, factor: int, aligned: bool = False) -> Plan | Verdict:
    """The plan in which a loop can be divided, or why it cannot."""
    ahead = loop.start % factor if aligned else 0
    first = loop.start - ahead
    last = first - (-(loop.extent + ahead) // factor) * factor - 1
    return roomy(plan, loop, lambda again, x: empty_beyond(again, x, first, last))
