"""Slots are released and acquired where the plan says, by the threads that should, on the mbarriers that its numbers name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from ...ir.expr import Expr, quotient, remainder
from ...ir.finding import Finding, Proving
from ...ir.tree import WARP_SIZE, Loop, Sync
from ...poly.arrivals import release_mbarriers
from ...poly.groups import PRODUCTS
from ..nodes import Acquire, Arrive, Await, AwaitTurn, PassTurn, Release, WaitProducts
from .leaves import finding
from .points import Coordinates
from .proofs.releases import Released, numbered
from .steps import Step
from .waits import Phases, first_of, in_order, planned_nodes
from .wanted import Wanted


def check_slots(wanted: Mapping[str, Wanted], steps: Sequence[Step], coordinates: Coordinates) -> Iterator[Finding]:
    """A finding for every release or acquire that is otherwise than in the plan."""
    kernel = coordinates.low.kernel
    if not kernel.has_roles and not any(isinstance(s.node, (Acquire, Release)) for s in steps):
        return
    planned = tuple(planned_nodes(coordinates, kernel.body, (), ()))
    copies = {name: [w.accesses[-1].cells] for name, w in wanted.items() if w.accesses[-1].leaf.mechanism == "bulk"}
    kinds = {Release: "release", Acquire: "acquire", Arrive: "commit", Await: "wait", WaitProducts: PRODUCTS.wait,
             AwaitTurn: "turn", PassTurn: "pass"}
    yield from in_order(wanted, steps, coordinates, planned, kinds, copies)
    syncs = {n.id: (n, loops) for n, loops, _ in planned if isinstance(n, Sync)}
    yield from _Slots(wanted, steps, coordinates, syncs).findings()


class _Slots(Phases):
    """The same questions for slots: consumers' warps arrive, and the producer waits."""

    def __init__(self, wanted: Mapping[str, Wanted], steps: Sequence[Step], coordinates: Coordinates,
                 syncs: Mapping[str, tuple[Sync, tuple[Loop, ...]]]) -> None:
        super().__init__(wanted, steps, coordinates, syncs)
        self.count, self.arrivals = release_mbarriers(self.kernel), prod(coordinates.low.block) // WARP_SIZE

    def findings(self) -> Iterator[Finding]:
        using = [s for s in self.steps if isinstance(s.node, (Acquire, Release))]
        yield from self.begun(using)
        for s in using:
            name = next(iter(s.node.ids), "")
            number = self.number(s)
            if number is None:
                continue  # told by `in_order`: it is none of the plan's
            if wrong := self.apart(s, s.node.slot, remainder(number, self.count, s.ranges)):
                yield finding("flow", name, f"uses the mbarrier of another slot{first_of(wrong, s)}", s,
                              proving=Proving(lambda s=s: Released(self).other(s, parity=False)))
            parity = remainder(quotient(number, self.count, s.ranges), 2, s.ranges)
            if isinstance(s.node, Acquire) and (wrong := self.apart(s, s.node.parity, parity)):
                yield finding("flow", name, f"waits for another phase of the mbarrier{first_of(wrong, s)}", s,
                              proving=Proving(lambda s=s: Released(self).other(s, parity=True)))
            if not self.runs(s, self.first if isinstance(s.node, Acquire) else ()):
                yield finding("flow", name, "is not run by the threads that should, in every iteration", s)

    def number(self, step: Step) -> Expr | None:
        """The release that a step is, or waits for, counted from two rounds before the first one."""
        sync, loops = self.syncs.get(next(iter(step.node.ids), ""), (None, ()))
        if sync is None:
            return None
        return self.told(numbered(self, sync), loops)
