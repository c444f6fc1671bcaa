"""Every instance of every leaf runs once, on the cells that the schedule says; what runs beside them changes nothing.

For each leaf, the instances that the IR runs are compared with those of the plan, as sets of physical coordinates and loop
variables.  An instance that the plan lacks is harmless in two ways only: it writes a cell, of registers or of shared memory, that
no instance of the plan reads, or it updates one by the identity of its reduction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...ir.expr import Expr, const, var
from ...ir.finding import Finding, Proving
from ...ir.plan import Plan
from ...ir.tree import THREAD_ROLES
from ...poly.bulk_store import BULK_STORE
from ...poly.mechanism import ASYNCHRONOUS
from ...poly.region import Region
from ...poly.sites import Site as Access
from ..conditions import Condition
from ..nodes import Apply, Collect, Combine, Contribute, Copy, Do, Held, Put, Ref
from .boxes import Boxed, BoxStored
from .held import LANE, Cell, Made, NotUnderstood, Registers, in_lane
from .points import Conj, Space, both, merged, negated, onto, overlap, without
from .steps import Step, lane_variable, with_lane
from .values import Instances, constant, is_identity, same_cell, storage, wrong_read
from .wanted import Wanted

Fault = tuple[str, Step | None]
_COPIES = {"plain": "plainly", "async": "asynchronously", "bulk": "in bulk", BULK_STORE: "in bulk"}


def _mechanism(node: Any) -> str:
    """How a node copies."""
    kinds = ((BoxStored, BULK_STORE), (Boxed, "bulk"), (Copy, "async"))
    return next((name for kind, name in kinds if isinstance(node, kind)), "plain")


def _swizzle(ref: Any) -> int:
    """How the array is swizzled in which an element lies."""
    return ref.store.buffer.swizzle if ref.store.buffer else 0


@dataclass
class Leaves:
    """The questions about leaves.

    Parameters
    ----------
    plan : Plan
    wanted : mapping of str to Wanted
    steps : sequence of Step
    """

    plan: Plan
    wanted: Mapping[str, Wanted]
    steps: Sequence[Step]
    runs: dict[str, list[Instances]] = field(init=False)
    stored: dict[Step, Region] = field(init=False, default_factory=dict[Step, Region])
    registers: Registers = field(init=False)

    def __post_init__(self) -> None:
        self.registers = Registers(self.steps)
        self.runs = {name: [] for name in self.wanted}
        for step in self.steps:
            if step.leaf in self.wanted and (run := self._run(step)) is not None:
                self.runs[step.leaf].append(run)

    def _run(self, step: Step) -> Instances | None:
        """The instances that a step runs; None for a load or a store of what another step computes."""
        w, node = self.wanted[step.leaf], step.node
        match node:
            case Do():
                inside: Conj | None = node.inside
                return Instances(step, w, self._reads(node.operands, node.target), const(0), self.registers, self.wanted, inside)
            case Collect() | Contribute():
                held = Step(node, step.number, step.around, tuple((*c, *node.guards) for c in step.cases), step.coordinates)
                return Instances(held, w, node.operands, const(0), self.registers, self.wanted)
            case Copy():
                return self._lanes(step, w, node, node.lanes)
            case Put() if not isinstance(node.value, Held):
                return self._lanes(step, w, node.value, node.to.lanes)
            case _:
                return None

    @staticmethod
    def _reads(operands: tuple[Any, ...], target: Any) -> tuple[Any, ...]:
        return (*operands, target)

    def _lanes(self, step: Step, w: Wanted, value: Any, lanes: int) -> Instances | None:
        """The instances of a step that takes all lanes at once."""
        found = lane_variable(step)
        if lanes == 1 or found is None:
            return Instances(step, w, (value,), const(0), self.registers, self.wanted, None)
        name, first = found
        return Instances(with_lane(step, name, first, lanes), w, (value,), var(name) - first, self.registers, self.wanted, None)

    # -- the questions ------------------------------------------------------------------------------------------

    def findings(self) -> Iterator[Finding]:
        """Whatever is not as the plan says."""
        for name, w in self.wanted.items():
            try:
                for what, step in self.leaf(w, self.runs[name]):
                    yield finding("cover", name, what, step, w)
            except NotUnderstood as error:
                yield finding("flow", name, str(error), None, w)
        for step in self.steps:
            if isinstance(step.node, Put) and isinstance(step.node.value, Held) and step.leaf in self.wanted:
                try:
                    for what in self.stores(step):
                        yield finding("flow", step.leaf, what, step, self.wanted[step.leaf])
                except NotUnderstood as error:
                    yield finding("flow", step.leaf, str(error), step, self.wanted[step.leaf])
        yield from self.unstored()

    def leaf(self, w: Wanted, runs: Sequence[Instances]) -> Iterator[Fault]:
        """A leaf's instances: each once, with its operands and its target."""
        left, seen = w.points, None
        for run in runs:
            if run.space != w.space or [x.node.var for x in run.step.loops] != w.names:
                yield "runs in other loops than the schedule's, or in another order", run.step
                return
            mine = run.step.node.site.statement
            if (mine.value, mine.update, mine.fill) != (run.statement.value, run.statement.update, run.statement.fill):
                yield "computes something else", run.step
            if seen is not None and not seen.is_disjoint(run.real):
                yield "runs an instance twice", run.step
            seen = run.real if seen is None else seen.union(run.real)
            left = left.subtract(run.real)
            yield from self.operands(w, run)
            yield from self.target(w, run)
            if what := self.harmful(w, run, self._beyond(w, run)):
                yield what, run.step
        if not left.is_empty():
            yield "does not run in every instance", runs[0].step if runs else None
        yield from self.applied(w)

    def applied(self, w: Wanted) -> Iterator[Fault]:
        """What threads have combined for several lanes at once updates every lane's target, and was combined for all of them."""
        name = w.accesses[-1].leaf.id
        own = [s for s in self.steps if s.leaf == name]
        given, taken = ([s for s in own if isinstance(s.node, kind)] for kind in (Contribute, Apply))
        for step in (*given, *taken):
            held = step.node.to if isinstance(step.node, Contribute) else step.node.value
            low, high = held.index[0].interval(step.ranges)
            count = next((s.node.count for s in self.steps if isinstance(s.node, Combine) and s.node.local == held.local), 0)
            if (low, high) != (0, count - 1) or held.index[0].variables() != {step.loops[-1].node.var}:
                yield "combines other lanes than it has", step
        for step in taken:
            there = [s for s in self.steps if isinstance(s.node, Combine) and s.node.local == step.node.value.local]
            if not any(max((g.number for g in given), default=0) < s.number < step.number for s in there):
                yield "updates by values before they are combined", step
            yield from self.applied_cell(w, step)
        if bool(given) != bool(taken):
            yield "combines values that update nothing, or the other way round", (given or taken)[0]

    def applied_cell(self, w: Wanted, step: Step) -> Iterator[Fault]:
        """The target of such an update."""
        slot, ref = len(w.accesses) - 1, step.node.target
        real = step.points.intersect(w.points)
        if storage(ref.store) != w.accesses[slot].cells or (
                not ref.store.handed and not same_cell(step.space, real, ref, w.cell(slot), ref.store)):
            yield f"updates another element of {w.accesses[slot].storage} than the schedule says", step

    def operands(self, w: Wanted, run: Instances) -> Iterator[Fault]:
        """Where the program reads data, the operand is it; where it has the fill, so has the text."""
        inside = run.space.points((w.inside(),))
        data, filled = overlap(run.real, inside), without(run.real, inside)
        asked = run.space.points((run.inside,)) if run.inside is not None else run.points
        if not data.is_subset(asked):
            yield "has the fill where the program has the value", run.step
        statement = run.statement
        slots = range(len(statement.reads) + (statement.update is not None and len(run.operands) > len(statement.reads)))
        for slot in slots:
            if what := wrong_read(run, slot, data):
                yield what, run.step
        beyond = overlap(filled, asked)
        if beyond.is_empty():
            return
        other = [here for here, value in constant(run, beyond, self.plan) if value is None or value != statement.fill]
        if any(not here.is_disjoint(read(w, run)) for here in other for read in (self.read_by_others, self.relied_on)):
            yield "has data where the program has the fill", run.step

    def target(self, w: Wanted, run: Instances) -> Iterator[Fault]:
        """The cell that is written."""
        node, slot = run.step.node, len(run.statement.reads)
        ref = node.to if isinstance(node, (Put, Copy)) else None if isinstance(node, Contribute) else node.target
        if isinstance(node, Do) and node.atomic != bool(w.accesses[slot].atomic) and not w.accesses[slot].leaf.collect:
            yield "is an atomic update where the schedule has none", run.step
        mechanism = w.accesses[slot].leaf.mechanism
        judged, said = mechanism if mechanism in (*ASYNCHRONOUS, BULK_STORE) else "plain", _mechanism(node)
        if judged != said:
            yield f"was judged to copy {_COPIES[judged]}, and its text copies {_COPIES[said]}", run.step
        if isinstance(node, Boxed) and node.swizzle != _swizzle(node.to):
            yield f"has another swizzle than {w.accesses[slot].storage}", run.step
        if isinstance(node, BoxStored) and node.swizzle != _swizzle(node.operands[0]):
            yield f"has another swizzle than {w.accesses[0].storage}", run.step
        if isinstance(ref, Ref) and ref.store.slots:
            if ref.index != self._slot(run, slot):
                yield f"writes another slot of {ref.store.name} than its own", run.step
        elif isinstance(ref, Ref):
            ref = in_lane(ref, run.lane) if ref.lanes > 1 else ref
            access = w.accesses[slot]
            if storage(ref.store) != access.cells or not same_cell(run.space, run.real, ref, w.cell(slot), ref.store):
                yield f"writes another element of {access.storage} than the schedule says", run.step

    @staticmethod
    def _slot(run: Instances, slot: int) -> tuple[Any, ...]:
        """Where a part lies in the shared memory of a cluster's block."""
        coordinates = run.wanted.coordinates
        index = coordinates.low.index(run.step.node.site, slot)
        return tuple(e.substitute(coordinates.values) if isinstance(e, Expr) else e for e in index)

    # -- instances beside the plan's ----------------------------------------------------------------------------

    def _beyond(self, w: Wanted, run: Instances) -> list[Region]:
        """Where a run has instances that the plan lacks, a part for each condition that fails: parts of few inequalities."""
        failing = (overlap(run.points, run.space.points(negated((c,)))) for c in w.case)
        return [part for part in failing if not part.is_empty()]

    def harmful(self, w: Wanted, run: Instances, beyond: Sequence[Region]) -> str:
        """Why instances that the plan lacks may change something; empty where they cannot."""
        if not beyond:
            return ""
        node = run.step.node
        if isinstance(node, (Collect, Contribute)):
            return "combines values that are none of the program's"
        target = getattr(node, "target", None) or node.to
        if isinstance(target, Ref) and (target.store.space not in ("register", "shared") or target.store.handed):
            return "writes memory where the program has no instance"
        beyond = [part for part in beyond if not self._changes_nothing(run, part)]  # most often zeros are added
        if not beyond:
            return ""
        read = self.read_by_others(w, run)
        live = [mine for part in beyond if not (mine := overlap(part, read)).is_empty()]
        if all(self._changes_nothing(run, part) for part in live):
            return ""
        return "runs where the program has no instance, and changes what is read"

    def _changes_nothing(self, run: Instances, region: Region) -> bool:
        """Whether all over a region a run updates by what changes nothing."""
        return all(is_identity(run, value, self.plan) for _, value in constant(run, region, self.plan))

    def read_by_others(self, w: Wanted, run: Instances) -> Region:
        """Where the cell that a run writes is one that an instance of the plan reads, in the same thread if it is a register."""
        found = [run.space.points(())]
        for other in self.wanted.values():
            for use in other.accesses:
                if use.reads and use.cells == w.accesses[len(run.statement.reads)].cells:
                    found.append(self._met(w, run, other, use, other.case))
        return merged(tuple(found))

    def relied_on(self, w: Wanted, run: Instances) -> Region:
        """Where the cell that a run writes is read by instances beside the plan's that change nothing because it has the fill."""
        found = run.space.points(())
        for name, other in self.wanted.items():
            uses = [u for u in other.accesses if u.reads and u.cells == w.accesses[len(run.statement.reads)].cells]
            for theirs in self.runs[name] if uses else ():
                needed = self.read_by_others(other, theirs)
                for case in (conj for c in other.case for conj in both(theirs.step.cases, negated((c,)))):
                    if not theirs.space.points((case,)).is_disjoint(needed):
                        for use in uses:
                            found = found.union(self._met(w, run, other, use, case))
        return found

    def _met(self, w: Wanted, run: Instances, other: Wanted, use: Access, case: Conj) -> Region:
        """Where the cell that a run writes is what an access reads in one case of its leaf's instances."""
        slot = len(run.statement.reads)
        access, cell = w.accesses[slot], w.cell(slot)
        shared = self._lifetime(access.storage, w, other)
        if self._is_shared(access.storage):
            threads = (w.coordinates.at(role).variables() for role in THREAD_ROLES)
            shared -= w.coordinates.low.thread_variables.union(*threads)
        if (view := use.leaf.view(use.slot)) is not None and view.lane is not None:  # another lane asks for it
            shared -= w.coordinates.at("thread.x").variables()
        apart = {name: var(f"{name}'") for name in other.ranges if name not in shared}
        ranges = dict(run.space.ranges) | {f"{name}'": r for name, r in other.ranges.items() if name not in shared}
        conj = tuple(Condition(c.expr.substitute(apart), c.equality) for c in case)
        same = tuple(Condition(e - f.substitute(apart), True)
                     for e, f in zip(cell, other.cell(use.slot), strict=True) if e is not None and f is not None)
        return onto(Space.of(ranges).points(((*conj, *same),)), run.space.names)

    def _lifetime(self, buffer: str, w: Wanted, other: Wanted) -> set[str]:
        """Variables that are equal for all who use one element of a register array: coordinates, and the loops it lives in."""
        low = w.coordinates.low
        names = set(w.coordinates.ranges)
        hit = self.plan.find(self.plan.buffer_of[buffer].scope) if buffer in self.plan.buffer_of else None
        scope = {x.id for x in (*hit[1], hit[0])} if hit else set[str]()
        return names | {low.variable[x.id] for x in w.counters if x.id in scope and x in other.counters}

    def _is_unread(self, w: Wanted, run: Instances, extra: Region) -> bool:
        """Whether what lanes store without an instance of the program is in shared memory that no instance of the plan reads."""
        if extra.is_empty():
            return True
        return self._is_shared(w.accesses[-1].storage) and extra.intersect(self.read_by_others(w, run)).is_empty()

    def _is_shared(self, storage: str) -> bool:
        """Whether a buffer is shared memory."""
        return storage in self.plan.buffer_of and self.plan.buffer_of[storage].space == "shared"

    # -- vectors that are stored --------------------------------------------------------------------------------

    def stores(self, step: Step) -> Iterator[str]:
        """A vector of what lanes have computed: each where its statement writes."""
        node = step.node
        low = step.coordinates.low
        wide = with_lane(step, LANE, 0, node.to.lanes)
        region, placed = wide.points, in_lane(node.to, var(LANE))
        for cases, value in self.registers.content(step, node.value, var(LANE)):
            here = region.intersect(wide.space.points(cases))
            if here.is_empty():
                continue
            region = region.subtract(here)
            if isinstance(value, Cell):
                if value.ref.store != node.to.store or not same_cell(
                        wide.space, here, value.ref, tuple(e for e in placed.index if isinstance(e, Expr)), node.to.store):
                    yield "stores what a vector was loaded with elsewhere"
                continue
            if not isinstance(value, Made) or value.step.leaf not in self.wanted:
                yield "stores a number that no statement computes"
                continue
            w = self.wanted[value.step.leaf]
            slot = len(w.accesses) - 1
            cell = tuple(None if e is None else e.substitute(value.at) for e in w.cell(slot))
            if storage(node.to.store) != w.accesses[slot].cells or not same_cell(wide.space, here, placed, cell, node.to.store):
                yield f"stores {value.step.leaf}'s result in another element than the schedule says"
            self._mark(value, here)
        if not region.is_empty():
            yield f"stores lanes of {low.store(node.site.leaf, len(node.site.statement.reads)).name} that nothing has computed"

    def _mark(self, value: Made, here: Region) -> None:
        """The instances whose result has been stored."""
        space = value.step.space
        done = here.image(value.at, space.names)
        before = self.stored.get(value.step)
        self.stored[value.step] = done if before is None else before.union(done)

    def _replaced(self, run: Instances) -> Region:
        """Where another statement of the same lanes puts its own result in the place of this one."""
        step, found = run.step, run.space.points(())
        for other in (x for runs in self.runs.values() for x in runs):
            node = other.step.node
            if isinstance(node, Do) and node.target == step.node.target and other.step.number > step.number and (
                    other.step.loops == step.loops):
                found = found.union(other.points)
        return found

    def unstored(self) -> Iterator[Finding]:
        """Results that stay in a vector, and stores of what the program does not compute."""
        for name, runs in self.runs.items():
            for run in runs:
                node = run.step.node
                if isinstance(node, Do) and isinstance(node.target, Held):
                    done = self.stored.get(run.step, run.space.points(()))
                    if not run.real.subtract(done).is_subset(self._replaced(run)):
                        yield finding("flow", name, "computes a result that is not stored", run.step, self.wanted[name])
                    elif not self._is_unread(self.wanted[name], run, done.subtract(self.wanted[name].points)):
                        yield finding("flow", name, "stores what the program does not compute", run.step, self.wanted[name])


def finding(question: str, leaf: str, what: str, step: Step | None, w: Wanted | None = None,
            proving: Proving | None = None) -> Finding:
    """A finding about the text of a leaf."""
    where = tuple(dict.fromkeys((leaf, *(step.node.ids if step else ()))))
    line = w.accesses[-1].statement.line if w else 0
    return Finding(question, f"the text of {leaf} {what}", "the kernel is not the schedule that was proved", nodes=where,
                   lines=(line,) if line else (), hints=("report it with the schedule's script: the fault is explorer's",),
                   proving=proving)
