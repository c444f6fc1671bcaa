"""Commits and waits run where the plan has them, as often, around the same copies, products and uses, and count the same groups.

For copies of each thread (``cp.async``) the hardware counts.  For bulk copies the text does: which mbarrier a copy, an arrival
and a wait use, and for which phase, has to be what the plan's number of the group says (:mod:`explorer.poly.arrivals`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ...ir.expr import Expr, const, quotient, remainder, var
from ...ir.finding import Finding, Proof, Proving
from ...ir.instructions import stays_in_flight
from ...ir.tree import Loop, Sync, ranges
from ...poly.arrivals import mbarriers
from ...poly.feasible import feasible
from ...poly.filled import counted
from ...poly.groups import PRODUCTS
from ...poly.linear import Condition as Row
from ...poly.linear import at_least, equal
from ...poly.mechanism import ASYNCHRONOUS
from ...poly.region import Region
from ..conditions import Condition
from ..nodes import Arrive, Await, Barrier, Begin, Commit, Wait, WaitProducts
from .barriers import Text, meetings
from .boxes import Boxed
from .ends import ends
from .leaves import finding
from .order import is_placed
from .points import Coordinates, negated
from .proofs.lifted import judged_as_plan
from .proofs.mbarriers import Along, Numbered, rows_of
from .steps import Step, common, exclusive
from .wanted import Wanted

Entry = tuple[str, str, tuple[str, ...]]
"""Commit, wait or leaf, its id, and the loops around it."""


def check_waits(wanted: Mapping[str, Wanted], steps: Sequence[Step], coordinates: Coordinates) -> Iterator[Finding]:
    """A finding for everything that is counted otherwise than in the plan."""
    kernel = coordinates.low.kernel
    planned = tuple(planned_nodes(coordinates, kernel.body, (), ()))
    mechanism = {name: w.accesses[-1].leaf.mechanism for name, w in wanted.items()}
    bulk = any(m == "bulk" for m in mechanism.values())
    own = any(m == "async" for m in mechanism.values()) or not bulk
    copies = {name: [w.accesses[-1].cells] for name, w in wanted.items() if mechanism[name] in ASYNCHRONOUS}
    flying = {name: [a.cells for a in w.accesses] for name, w in wanted.items() if stays_in_flight(mechanism[name])}
    if any(isinstance(n, Sync) and n.kind != PRODUCTS.wait for n, _, _ in planned):
        if own:
            yield from in_order(wanted, steps, coordinates, planned, {Commit: "commit", Wait: "wait"}, copies)
            yield from _unconditional(steps, coordinates, ())
        if bulk:
            groups = counted(coordinates.low.plan, kernel)
            empty = {n.id for n, above, _ in planned if isinstance(n, Sync)
                     and not (groups.asked(n) if n.kind == "wait" else n.kind != "commit" or _ever(groups.closes(n.id), above))}
            closed = [x for x in planned if x[0].id not in empty]
            yield from in_order(wanted, steps, coordinates, closed, {Arrive: "commit", Await: "wait"}, copies)
    if flying or any(isinstance(s.node, WaitProducts) for s in steps):
        yield from in_order(wanted, steps, coordinates, planned, {WaitProducts: PRODUCTS.wait}, flying)
        yield from _unconditional(steps, coordinates, flying)
    if bulk or any(isinstance(s.node, (Begin, Arrive, Await, Boxed)) for s in steps):
        syncs = {n.id: (n, loops) for n, loops, _ in planned if isinstance(n, Sync)}
        yield from Phases(wanted, steps, coordinates, syncs).findings()


Planned = tuple[Any, tuple[Loop, ...], tuple[str, ...]]


def planned_nodes(coordinates: Coordinates, nodes: Any, above: tuple[Loop, ...], names: tuple[str, ...]) -> Iterator[Planned]:
    """The plan's leaves and synchronisations that ever run, in order, with the loops around them and those of the text."""
    low = coordinates.low
    for node in nodes:
        if not isinstance(node, Loop):
            yield node, above, names
        elif node.extent > 0:
            inner = (*names, low.variable[node.id]) if low.is_counter(node) else names
            yield from planned_nodes(coordinates, node.body, (*above, node), inner)


def _ever(closes: Sequence[Expr], above: tuple[Loop, ...]) -> bool:
    """Whether all of these are at least 0 in some iteration."""
    return all(e.interval(ranges(above))[1] >= 0 for e in closes)


def in_order(wanted: Mapping[str, Wanted], steps: Sequence[Step], coordinates: Coordinates, planned: Sequence[Planned],
             kinds: Mapping[type, str], asynchronous: Mapping[str, Sequence[tuple[str, bool]]]) -> Iterator[Finding]:
    """Synchronisations of some `kinds`, around the `asynchronous` leaves and whoever uses the cells that are named there."""
    kernel = coordinates.low.kernel.id
    buffers = {cells for named in asynchronous.values() for cells in named}
    users = {name for name, w in wanted.items() if any(a.cells in buffers for a in w.accesses)}
    syncs = [n for n, _, _ in planned if isinstance(n, Sync) and n.kind in kinds.values()]
    pending = {n.id: n.pending for n in syncs}
    expected: list[Entry] = [(n.kind if isinstance(n, Sync) else "leaf", n.id, names) for n, _, names in planned
                             if (n in syncs if isinstance(n, Sync) else n.id in users)]
    found: list[Entry] = []
    for step in steps:
        loops, name = tuple(a.node.var for a in step.loops), next(iter(step.node.ids), "")
        if kind := next((word for sort, word in kinds.items() if isinstance(step.node, sort)), ""):
            right = not isinstance(step.node, (Wait, WaitProducts)) or step.node.pending == pending.get(name)
            found.append((kind if right else f"weak {kind}", name, loops))
        elif step.leaf in users and is_placed(step.node):
            found.append(("leaf", step.leaf, loops))
    counted_here = [x for x in found if x[0] != "leaf"]
    if counted_here != (asked := [x for x in expected if x[0] != "leaf"]):
        odd = miscounted(wanted, steps, coordinates, asked, counted_here)
        yield finding("flow", kernel, "commits or waits otherwise than the schedule", None, proving=odd)
        return
    ran = {x[1] for x in found}
    mine = list(dict.fromkeys(x[1] for x in found))
    if [x[1] for x in expected if x[1] in ran and x[1] in mine] != mine:
        yield finding("flow", kernel, "has copies, products or uses on the other side of a commit or a wait", None,
                      proving=Proving(lambda: judged_as_plan(steps, coordinates)))


def miscounted(wanted: Mapping[str, Wanted], steps: Sequence[Step], coordinates: Coordinates, expected: Sequence[Entry],
               found: Sequence[Entry]) -> Proving:
    """What shows that commits or waits are missing, too many, or for something else."""
    times = Counter(name for _, name, _ in found)
    arrivals = {next(iter(s.node.ids), "") for s in steps if isinstance(s.node, Arrive)}
    bulk = any(isinstance(s.node, (Begin, Await)) for s in steps)

    def proof() -> Proof | None:
        for kind, name, _ in expected:
            if kind == "commit" and bulk and times[name] != 1 and (times[name] == 0 or name in arrivals):
                planned = planned_nodes(coordinates, coordinates.low.kernel.body, (), ())
                syncs = {n.id: (n, loops) for n, loops, _ in planned if isinstance(n, Sync)}
                phases = Phases(wanted, steps, coordinates, syncs)
                return Numbered(phases).arrivals(name, "again" if times[name] else "missing")
        return judged_as_plan(steps, coordinates)

    return Proving(proof)


def _unconditional(steps: Sequence[Step], coordinates: Coordinates, products: Collection[str]) -> Iterator[Finding]:
    """Neither what counts groups nor a product that is counted may be skipped, but by whole blocks, and then all of them.

    Blocks that a joined grid has too many skip what is counted under the same conditions, and their waits find nothing.
    """
    first: Step | None = None
    own = set(coordinates.threads)  # a trimmed loop ends alike for all threads of a block
    for s in steps:
        waits, counted = isinstance(s.node, (Wait, WaitProducts)), isinstance(s.node, Commit) or s.leaf in products
        if not (waits or counted):
            continue
        around = _skipped_where(s, s.leaf in products)
        by_blocks = all(c.variables() <= set(coordinates.shared) for c in around)
        alike = True
        if counted:
            first = first or s
            alike = around == _skipped_where(first, first.leaf in products) and not exclusive(first, s, coordinates.threads)
        limited = [c for a in s.loops for c in a.node.limits if not a.node.loop.trimmed or c.variables() & own]
        if (waits and around) or not by_blocks or not alike or limited:
            yield finding("flow", coordinates.low.kernel.id, "counts groups of asynchronous work under a condition", None)
            return


def _skipped_where(s: Step, product: bool) -> tuple[Condition, ...]:
    """The conditions around a step; which lane has an element of a product's tile is none."""
    return tuple(c for branch in s.branches[: len(s.branches) - product] for c in branch.conditions)


class Phases:
    """The questions about mbarriers.

    Parameters
    ----------
    wanted : mapping of str to Wanted
    steps : sequence of Step
    coordinates : Coordinates
    syncs : mapping of str to (Sync, tuple of Loop)
        The plan's commits and waits, with the loops around them.
    """

    def __init__(self, wanted: Mapping[str, Wanted], steps: Sequence[Step], coordinates: Coordinates,
                 syncs: Mapping[str, tuple[Sync, tuple[Loop, ...]]]) -> None:
        self.wanted, self.steps, self.coordinates, self.syncs = wanted, steps, coordinates, syncs
        low, self.kernel = coordinates.low, coordinates.low.kernel
        self.count, self.groups = mbarriers(low.plan, low.kernel), counted(low.plan, low.kernel)
        self.first, self.arrivals = tuple(Condition(var(name), True) for name in coordinates.threads), 1

    def findings(self) -> Iterator[Finding]:
        """Whatever is counted on another mbarrier, in another phase, or by other threads than the plan's groups say."""
        using = [s for s in self.steps if isinstance(s.node, (Arrive, Await, Boxed))]
        yield from self.begun(using)
        for s in using:
            name = s.leaf or next(iter(s.node.ids), "")
            group = self.group(s)
            if group is None:
                continue  # told above: it is none of the plan's
            if wrong := self.apart(s, s.node.slot, remainder(group, self.count, s.ranges)):
                yield finding("flow", name, f"uses the mbarrier of another group{first_of(wrong, s)}", s,
                              proving=Proving(lambda s=s: Numbered(self).other(s, parity=False)))
            if isinstance(s.node, Await) and (wrong := self.apart(s, s.node.parity, self.parity(group, s))):
                yield finding("flow", name, f"waits for another phase of the mbarrier{first_of(wrong, s)}", s,
                              proving=Proving(lambda s=s: Numbered(self).other(s, parity=True)))
            threads = () if isinstance(s.node, Await) else self.first
            if not isinstance(s.node, Boxed) and not self.runs(s, (*threads, *self.filled(s))):
                proving = Proving(lambda s=s, name=name: Numbered(self).arrivals(name, "missing", s))
                yield finding("flow", name, "is not run by the threads that should, in every iteration with a group", s,
                              proving=proving if isinstance(s.node, Arrive) else None)
        if not self.kernel.has_roles:  # else releases stand between, in the plan: see `poly.roles`
            yield from self.reused([s for s in using if isinstance(s.node, Await)],
                                   [s for s in using if isinstance(s.node, Arrive)])

    def group(self, step: Step) -> Expr | None:
        """The number of the group that a step is of, in the kernel's variables."""
        if isinstance(step.node, Boxed):
            return self.wanted[step.leaf].expr(self.groups.group_of(step.leaf))
        sync, loops = self.syncs.get(next(iter(step.node.ids), ""), (None, ()))
        if sync is None:
            return None
        return self.told(self.groups.awaited(sync) if sync.kind == "wait" else self.groups.group_of(sync.id), loops)

    def filled(self, step: Step) -> tuple[Condition, ...]:
        """Where an arrival closes a group in which something is copied, in the kernel's variables."""
        if not isinstance(step.node, Arrive):
            return ()
        name = next(iter(step.node.ids))
        return tuple(Condition(self.told(e, self.syncs[name][1])) for e in self.groups.closes(name))

    def told(self, e: Expr, loops: tuple[Loop, ...]) -> Expr:
        """A number in the kernel's variables."""
        return self.coordinates.low.in_c(e, loops).substitute(self.coordinates.values)

    def parity(self, group: Expr, step: Step) -> Expr:
        """The parity of the phase in which the group is counted."""
        return remainder(quotient(group, self.count, step.ranges), 2, step.ranges)

    def apart(self, step: Step, e: Expr, f: Expr) -> Region | None:
        """Where the step runs and two numbers differ; None where they never do."""
        by = e - f
        if by.simplify(step.ranges) == const(0):
            return None
        found = step.points.intersect(step.space.points(negated((Condition(by, True),))))
        return None if found.is_empty() else found

    def runs(self, step: Step, threads: tuple[Condition, ...]) -> bool:
        """Whether just these threads run a step, in every iteration up to the ends of trimmed loops."""
        every = step.space.points(((*threads, *ends(step)),))
        return step.points.is_subset(every) and every.is_subset(step.points)

    def begun(self, using: Sequence[Step]) -> Iterator[Finding]:
        """The mbarriers are made ready once, all of them, by the first thread, and all threads meet before others use them."""
        every = [s for s in self.steps if isinstance(s.node, Begin)]
        named = {s.node.counted if isinstance(s.node, Boxed) else s.node.mbarriers for s in using or every}
        made = [s for s in every if s.node.mbarriers in named or not self.kernel.has_roles]
        named |= {s.node.mbarriers for s in made}
        if len(made) != 1 or made[0].loops or not self.runs(made[0], self.first) or len(named) != 1:
            yield finding("flow", self.kernel.id, "does not make its mbarriers ready once", made[0] if made else None)
            return
        if (made[0].node.mbarriers.count, made[0].node.mbarriers.arrivals) != (self.count, self.arrivals):
            what = "has another number of mbarriers, or of arrivals on them, than its groups need"
            yield finding("flow", self.kernel.id, what, made[0])
        text = Text(self.steps, tuple(meetings(self.steps, self.wanted, self.coordinates)))
        if self.kernel.has_roles:  # threads part behind the first one: all others are consumers' alone
            first = min((s.number for s in self.steps if not isinstance(s.node, (Begin, Barrier))), default=0)
            text = Text(self.steps, tuple(m for m in text.meetings if m.number < first and not m.step.around))
        others = using if self.kernel.has_roles else [
            s for s in using if not s.points.is_subset(s.space.points((self.first,)))]
        met = not self.coordinates.threads or all(text.between(made[0].number, s.number, ()) for s in others)
        if not met or any(s.number < made[0].number for s in using):
            yield finding("race", self.kernel.id, "uses mbarriers before all threads know that they are ready", made[0])

    def reused(self, waits: Sequence[Step], arrivals: Sequence[Step]) -> Iterator[Finding]:
        """No thread still waits for a group where the next one but one phase of its mbarrier ends."""
        if not self.coordinates.threads:
            return
        text = Text(self.steps, tuple(meetings(self.steps, self.wanted, self.coordinates)))
        for w in waits:
            for a in arrivals:
                ways = [way for way in self.unordered(text, w, a) if self.meet(w, a, rows_of(way))]
                if ways:
                    what = f"ends the phase behind the one that threads may still wait for in {w.node.ids[0]}"
                    proving = Proving(lambda w=w, a=a, ways=ways: Numbered(self).reused(w.node.ids[0], a.node.ids[0], ways))
                    yield finding("race", next(iter(a.node.ids), ""), what, a, proving=proving)

    def unordered(self, text: Text, w: Step, a: Step) -> Iterator[Along]:
        """The ways from a wait to a later arrival with no meeting of all threads on them."""
        loops = tuple(x.node.var for x in w.loops[: common(w, a)])
        if w.number < a.number and not text.between(w.number, a.number, (*w.around, *a.around)):
            yield tuple((x, 0) for x in loops)
        for depth, loop in enumerate(w.loops[: len(loops)]):
            outer = tuple((x, 0) for x in loops[:depth])
            if not text.round(loop, w, a):
                yield (*outer, (loop.node.var, 1))
            if not text.anywhere(loop, w.around):
                yield (*outer, (loop.node.var, 2))

    def meet(self, w: Step, a: Step, rows: tuple[Row, ...]) -> bool:
        """Whether an arrival ends the phase after the one that is waited for."""
        first, second = self.group(w), self.group(a)
        if first is None or second is None:
            return True
        again = equal(first + self.count, "a", second, "b")
        block = tuple(equal(var(n), "a", var(n), "b") for n in self.coordinates.shared)
        held = (*w.space.rows("a"), *a.space.rows("b"), *(at_least(c.expr, "b", 0) for c in self.filled(a)))
        return feasible((w.space.side("a"), a.space.side("b")), (*held, again, *block, *rows))


def first_of(wrong: Region, step: Step) -> str:
    """The first iteration of the loops around a step in which something is wrong, in words."""
    loops = tuple(x.node.var for x in step.loops)
    where = ", ".join(f"{name} = {value}" for name, value in wrong.least(loops).items()) if loops else ""
    return f", first at {where}" if where else ""
