"""Count a loop from an aligned address."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..ir.expr import Expr, var
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.regroup import without_remainders
from ..ir.tree import Loop, leaves, ranges
from ..poly.lanes import linear_index
from ._nest import empty_beyond, enclosing, remap
from .base import Transform, get_loop
from .vectorize import WIDEST_BYTES


@dataclass(frozen=True)
class Align(Transform):
    """Count a loop from the last aligned element before a row begins: ``v' = v + offset % width``.

    Rows of a length that the vector width does not divide begin at other places of a vector from row to row.  With the
    linear index of the array's access written as ``offset + v``, ``offset`` over the loops around, the new variable is a
    multiple of `width` where the address is: the loop can be split by the width and vectorised, whatever the row's length.
    The first and the last vector of a row are partial.  The order does not change; the box grows by ``width - 1``.

    Before::

        for i in 0…64
            for k in 0…1001
                S(i, k)                          # reads x[i, k]: element 1001*i + k

    After ``align('k', 'x', width=4)``::

        for i in 0…64
            for k in 0…1004
                S(i, k - i % 4)                  # where 0 <= k - i % 4 < 1001
    """

    name = "align"
    group = "Loops"
    aliases = ("peel", "shift_to_alignment", "alignment_peeling")

    loop: str = field(metadata={"kind": "loop", "help": "the loop along which the array is contiguous"})
    array: str = field(metadata={"kind": "array", "help": "the array whose addresses are to be aligned"})
    width: int = field(default=0, metadata={"kind": "int", "help": "elements of a vector (default: 16 bytes)"})

    def check(self, plan: Plan) -> Verdict:
        found = self._offset(plan)
        if isinstance(found, Verdict):
            return found
        loop, off = found
        if off.is_constant and off.const == 0:
            return no(f"{self.array} is aligned along {loop.id} already",
                      hint=f"split('{loop.id}', {self._width(plan)}) and vectorize('{loop.id}.i') instead")
        return empty_beyond(plan, loop, loop.range[0], loop.range[1] + self._width(plan) - 1)

    def rewrite(self, plan: Plan) -> Plan:
        found = self._offset(plan)
        assert not isinstance(found, Verdict)
        loop, off = found
        v = var(loop.id)
        return remap(plan, loop.id, v - off, v + off, loop.start, loop.extent + self._width(plan) - 1)

    def _width(self, plan: Plan) -> int:
        return self.width or WIDEST_BYTES // plan.array_of[self.array].dtype.bytes

    def _offset(self, plan: Plan) -> tuple[Loop, Expr] | Verdict:
        """The loop, and how far the row begins behind an aligned element."""
        loop = get_loop(plan, self.loop)
        if isinstance(loop, Verdict):
            return loop
        if self.array not in plan.array_of:
            return no(f"there is no array {self.array!r}", hint=f"one of {', '.join(plan.array_of)}")
        width, around = self._width(plan), {x.id for x in enclosing(plan, loop.id)}
        if width not in (2, 4, 8, 16) or width * plan.array_of[self.array].dtype.bytes > WIDEST_BYTES:
            return no(f"a vector of {self.array} cannot have {width} elements", f"one access has at most {WIDEST_BYTES} bytes",
                      "2, 4, 8 or 16 elements, or none for the most there are")
        if loop.role != "seq":
            return no(f"{loop.id} is already {loop.role}", hint="align before it is bound, unrolled or vectorised")
        offsets: dict[Expr, None] = {}
        for leaf, inner in leaves(loop.body, (loop,)):
            scope = ranges((*enclosing(plan, loop.id), *inner))
            for slot, access in enumerate(plan.statement_of[leaf.statement].accesses):
                if access.array != self.array or leaf.view(slot) or not (linear := linear_index(plan, leaf, slot, loop, scope)):
                    continue
                base = linear[0] - var(loop.id)
                if loop.id in base.variables() or not base.variables() <= around:
                    return no(f"{leaf.id} does not walk {self.array} along {loop.id} alone", f"its element is {linear[0]}",
                              f"the innermost loop over {self.array}")
                offsets[without_remainders(base) % width] = None
        if not offsets:
            return no(f"nothing below {loop.id} uses {self.array}")
        if len(offsets) > 1:
            return no(f"the accesses of {self.array} below {loop.id} begin at different places of a vector",
                      " and ".join(map(str, offsets)), "stage the array first")
        return loop, next(iter(offsets))

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Verdict):
            return loop
        found = next(cls.candidates(plan, node_id), None)
        why = "rows that are no multiple of a vector begin at other places modulo its width; here there are none, or not along it"
        return YES if found else no(f"no array's rows begin at odd places along {loop.id}", why)

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Align]:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Loop) and loop.role == "seq":
            names = dict.fromkeys(a.array for leaf, _ in leaves(loop.body) for a in plan.statement_of[leaf.statement].reads)
            for name in names:
                step = cls(loop.id, name)
                if plan.array_of[name].role != "temporary" and step.check(plan):
                    yield step
