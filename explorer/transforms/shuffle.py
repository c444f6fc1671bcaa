"""Keep a temporary in registers of the lanes that make it; others ask them for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..ir.expr import Expr, quotient, remainder, var
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Buffer, Plan
from ..ir.tree import WARP_SIZE, Leaf, Loop, View, ranges
from ..poly.lane_reads import broken_shuffles, lanes_of
from ._home_cells import axes_of, home_cells
from ._once import once
from ._uses import Use, array_verdict, common_loops, indirect_use, put_buffer, uses, with_view
from .base import Transform
from .contract import folded

WIDTHS = (4, 8)
"""Bytes of a value that is shuffled."""


@dataclass(frozen=True)
class Shuffle(Transform):
    """Put a temporary into the registers of the lanes that make it; a lane that reads another's element asks it by a shuffle.

    What `contract` does, for lanes of one warp that need each other's values: the parts of a row's maximum or sum, which the four
    lanes of a quad have in the accumulator of a tensor instruction.  Each lane names the lane that has the element; all lanes
    of the warp do so together, each handing in its own register.  No barrier is needed, and no memory.  Lanes are those of a loop
    bound to ``lane``, or of the warps of one bound to ``thread.x``, as the accumulator of a warpgroup's instruction has them.

    Before::

        for r in 0…2
            for l in 0…32  lane
                part[8*r + l // 4, l % 4] = …
        for r_2 in 0…2
            for l_2 in 0…32  lane
                for z in 0…4
                    m[r_2] max= part[8*r_2 + l_2 // 4, z]

    After ``shuffle('part')``::

        for r in 0…2
            for l in 0…32  lane
                part[r] = …                                    # part: 2 registers of each lane
        for r_2 in 0…2
            for l_2 in 0…32  lane
                for z in 0…4
                    m[r_2] max= part[r_2]@lane(4*(l_2 // 4) + z)

    References
    ----------
    NVIDIA, CUDA C++ Programming Guide, "Warp Shuffle Functions".
    """

    name = "shuffle"
    group = "Storage"
    aliases = ("warp_shuffle", "shfl", "lane_exchange")

    array: str = field(metadata={"kind": "array", "help": "the temporary"})
    fold: bool = field(default=False, metadata={
        "kind": "bool", "help": "cells that never live at one time share storage (indices modulo a number)"})

    def check(self, plan: Plan) -> Verdict:
        made = self._made(plan)
        if isinstance(made, Verdict):
            return made
        if broken := next(broken_shuffles(made), None):
            leaf, why = broken
            return no(f"{leaf} cannot ask other lanes for {self.array}", why,
                      f"contract('{self.array}', 'shared'); or sizes that are multiples of the tiles")
        return YES

    def rewrite(self, plan: Plan) -> Plan:
        made = self._made(plan)
        assert not isinstance(made, Verdict)
        return made

    @once
    def _made(self, plan: Plan) -> Plan | Verdict:
        found = _uses(plan, self.array)
        if isinstance(found, Verdict):
            return found
        scope = common_loops([u.above for u in found])
        made = next(((u, lanes, cells) for u, cells in home_cells(found, len(scope)) if (lanes := _told(u)) is not None), None)
        if made is None:
            names = ", ".join(dict.fromkeys(u.leaf.id for u in found if u.writes))
            return no(f"no lanes make {self.array}", f"it is written by {names}, whose lanes do not follow from its element",
                      "bind loops that tell its element to lanes first")
        home, lanes, cells = made
        dtype = plan.array_of[self.array].dtype
        if dtype.bytes not in WIDTHS:
            return no(f"{self.array} is {dtype}", f"values of {' or '.join(map(str, WIDTHS))} bytes are shuffled")
        shape, held = cells[0][0], [cell for _, cell in cells]
        views: dict[tuple[str, int], View] = {}
        name = plan.fresh(self.array) if self.array in plan.buffer_of else self.array
        for u, cell in zip(found, held, strict=True):
            there, own, scope_of = _lane_of(home, lanes, u), lanes_of(u.above), ranges(u.above)
            if u.writes and (own is None or there != var(own.id)):
                return no(f"{u.leaf.id} writes elements of other lanes than {home.leaf.id}", f"lane {there} holds what it writes",
                          "bind the loops of both alike")
            if own is not None and quotient(there, WARP_SIZE, scope_of) != quotient(var(own.id), WARP_SIZE, scope_of):
                return no(f"{u.leaf.id} reads registers of other warps", f"thread {there} holds what thread {own.id} reads",
                          f"contract('{self.array}', 'shared'); or bind the loops of both alike")
            asked = remainder(there, WARP_SIZE, scope_of) if own is None or there != var(own.id) else None
            views[u.leaf.id, u.slot] = View(name, cell, lane=asked)
        if all(v.lane is None for v in views.values()):
            return no(f"every lane reads its own elements of {self.array}", hint=f"contract('{self.array}', 'register')")

        def change(leaf: Leaf) -> Leaf:
            for (leaf_id, slot), view in views.items():
                leaf = with_view(leaf, slot, view) if leaf_id == leaf.id else leaf
            return leaf

        new = put_buffer(plan, Buffer(name, dtype, shape, "register", 0, scope[-1].id if scope else "")).map_leaves(change)
        return folded(new, name) if self.fold else new

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Shuffle]:
        hit = plan.find(node_id)
        if hit is None or not isinstance(hit[0], Leaf):
            return
        read = {a.array for a in plan.statement_of[hit[0].statement].reads}
        for name in [a.name for a in plan.program.temporaries if a.name in read]:
            if (step := cls(name)).check(plan):
                yield step

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        return YES if next(cls.candidates(plan, node_id), None) else no(
            f"{node_id} reads nothing that other lanes make",
            "shuffle takes a temporary that has no storage yet, made and read in loops that are bound to lanes",
            "bind the loops that make and read a temporary to lane, or to thread.x")


def _uses(plan: Plan, array: str) -> tuple[Use, ...] | Verdict:
    """The accesses of a temporary that has no storage yet, all in one kernel."""
    if (refusal := array_verdict(plan, array, temporary=True)) is not None:
        return refusal
    found = uses(plan, array)
    if any(u.view for u in found):
        return no(f"{array} has storage already", hint=f"contract('{array}', 'global') first")
    if not any(u.writes for u in found) or len({u.kernel.id for u in found}) > 1:
        return no(f"{array} is not made and read in one kernel", "registers do not outlive a launch")
    if use := indirect_use(found):
        return no(f"{use.leaf.id} uses {array} at a data-dependent element", hint="leave it in global memory")
    return found


def _told(u: Use) -> Loop | None:
    """The loop over the lanes that write an array, if the element tells the lane."""
    lanes = lanes_of(u.above)
    return lanes if lanes and dict(u.leaf.when)[lanes.id].variables() <= axes_of(u).keys() else None


def _lane_of(home: Use, lanes: Loop, u: Use) -> Expr:
    """The lane that holds the element of an access, over its loops."""
    index = u.index()
    element = {dim: index[axis] - offset for dim, (axis, offset) in axes_of(home).items()}
    return dict(home.leaf.when)[lanes.id].substitute(element, ranges(u.above))

