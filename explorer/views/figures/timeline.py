"""A loop's iterations interpreted one after the other: bars of copies and computations, moments, and lives of tiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...ir.expr import Expr
from ...ir.plan import Plan
from ...ir.tree import Leaf, Loop, Node, Sync, leaves, ranges
from ...poly.mechanism import ASYNCHRONOUS
from ...transforms.pipeline import scope_dim

COPY, COMPUTE, MOMENT = 1.5, 2.0, 0.25
"""Lengths of the bars and of a wait: time is order here, not measured."""
UNSEEN = 0.02
"""Scale of the iterations that are not drawn."""


@dataclass(frozen=True)
class Bar:
    """A copy or a computation.

    `iteration` is the iteration of the loop whose tile is copied, or that computes; `runs` the one in whose body it stands.
    `landed` is when an asynchronous copy has arrived (None: no wait covers it); for others it is `end`.
    """

    kind: str
    node: str
    text: str
    iteration: int
    runs: int
    phase: str
    start: float
    end: float
    landed: float | None = None
    statements: tuple[str, ...] = ()
    wrong: bool = False
    hidden: bool = False


@dataclass(frozen=True)
class Mark:
    """A commit, a wait or a barrier: a moment."""

    kind: str
    node: str | None
    text: str
    at: float
    runs: int


@dataclass(frozen=True)
class Life:
    """A tile in a slot of a buffer, from its copy's issue to its last read; `read` is False if nothing shown reads it."""

    buffer: str
    slot: int
    iteration: int
    start: float
    end: float
    read: bool


@dataclass(frozen=True)
class Stop:
    """One iteration of a loop to follow: of the prologue, or of the loop itself; hidden ones are followed but not drawn."""

    loop: Loop
    value: int
    phase: str
    hidden: bool = False


class Timeline:
    """What happens in some iterations, in order of the text.

    Parameters
    ----------
    plan : Plan
    names : tuple of str
        The copies to follow.
    barriers : frozenset of (str, int)
        Where barriers stand: parent, and child before which.
    """

    def __init__(self, plan: Plan, names: tuple[str, ...], barriers: frozenset[tuple[str, int]]) -> None:
        self.plan, self.names, self.barriers = plan, names, barriers
        self.bars: list[Bar] = []
        self.marks: list[Mark] = []
        self.gaps: list[tuple[float, float]] = []
        self.now = 0.0
        self._groups: list[list[int]] = []
        self._open: list[int] = []

    def follow(self, stops: list[Stop]) -> None:
        """Run the iterations; hidden ones pass quickly and leave a gap."""
        before = None
        for stop in stops:
            opens, pace = self.now, UNSEEN if stop.hidden else 1.0
            for index, node in enumerate(stop.loop.body):
                if (stop.loop.id, index) in self.barriers:
                    barrier = Mark("barrier", None, "barrier: all threads of the block meet", self.now, stop.value)
                    self._moment(barrier, stop, pace)
                if isinstance(node, Sync):
                    self._sync(node, stop, pace)
                else:
                    self._work(node, stop, pace)
            self.now += MOMENT * pace
            if stop.hidden:
                start = self.gaps.pop()[0] if before is not None and before.hidden else opens
                self.gaps.append((start, self.now))
            before = stop

    def _moment(self, mark: Mark, stop: Stop, pace: float) -> None:
        self.marks += [] if stop.hidden else [mark]
        self.now += MOMENT * pace

    def _sync(self, node: Sync, stop: Stop, pace: float) -> None:
        """A commit closes the group; a wait lets all groups land but the youngest ones."""
        if node.kind == "commit":
            self._groups.append(self._open)
            self._open = []
        elif node.kind == "wait":
            for i in (i for g in self._groups[: max(len(self._groups) - node.pending, 0)] for i in g):
                if self.bars[i].landed is None:
                    self.bars[i] = replace(self.bars[i], landed=self.now)
        self._moment(Mark(node.kind, node.id, _says(node), self.now, stop.value), stop, pace)

    def _work(self, node: Node, stop: Stop, pace: float) -> None:
        for bar in _bars(self.plan, node, stop, self.now, pace, self.names):
            if bar.kind == "copy" and bar.landed is None:
                self._open.append(len(self.bars))
            self.bars.append(bar)
            self.now = bar.end


def _says(sync: Sync) -> str:
    if sync.kind == "commit":
        return "commit: the copies issued since the last one are a group"
    if sync.kind == "release":
        return "release: consumers have read the slot"
    if sync.kind == "acquire":
        return f"the producer waits until at most the last {sync.pending} slots are not released"
    if sync.kind in ("turn", "pass"):
        return {"turn": "wait until the warpgroup before has passed", "pass": "the next warpgroup may go on"}[sync.kind]
    if sync.kind == "wait_products":
        return f"wait until at most {sync.pending} products are in flight" if sync.pending else "wait for all products"
    return (
        f"wait until at most {sync.pending} group{'s' * (sync.pending != 1)} of copies are in flight"
        if sync.pending
        else "wait for all copies"
    )


def _bars(plan: Plan, node: Node, stop: Stop, now: float, pace: float, names: tuple[str, ...]) -> Iterator[Bar]:
    """What a child of the loop's body does in one iteration; a copy past the last iteration does nothing."""
    inside = list(leaves((node,)))
    if not any(leaf.statement in names for leaf, _ in inside):
        last = next((leaf for leaf, _ in inside if plan.statement_of[leaf.statement].update), inside[-1][0]) if inside else None
        if last is not None:
            statements, end = tuple(dict.fromkeys(leaf.statement for leaf, _ in inside)), now + COMPUTE * pace
            yield Bar(
                "compute",
                last.id,
                f"use {stop.loop.id}={stop.value}",
                stop.value,
                stop.value,
                stop.phase,
                now,
                end,
                end,
                statements,
                hidden=stop.hidden,
            )
        return
    for leaf, above in inside:
        value = dict(leaf.at)[scope_dim(plan, leaf)].evaluate({stop.loop.id: stop.value})
        if _exists(plan, leaf, above, stop):
            end = now + COPY * pace
            yield Bar("copy", leaf.id, f"copy {leaf.statement}", int(value), stop.value, stop.phase, now, end,
                      None if leaf.mechanism in ASYNCHRONOUS else end, (leaf.statement,), hidden=stop.hidden)
            now = end


def _exists(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], stop: Stop) -> bool:
    """Whether some instance of the copy lies in its domain at this iteration."""
    at, outer = dict(leaf.at), plan.find(stop.loop.id)
    scope = {**ranges(outer[1] if outer else ()), **ranges(above), stop.loop.id: (stop.value, stop.value)}
    return all(c.expr.substitute(at, scope).interval(scope)[1] >= 0 for c in plan.statement_of[leaf.statement].domain)


def slotted(plan: Plan, name: str) -> bool:
    """Whether the buffer's first dimension counts slots."""
    return len(plan.buffer_of[name].shape) > plan.array_of[name].given


def _slot(plan: Plan, name: str, index: tuple[Expr, ...], loop: str, value: int) -> int:
    free = index[0].variables() if index else frozenset()
    return int(index[0].evaluate({loop: value})) if slotted(plan, name) and free <= {loop} else 0


def lives_of(plan: Plan, loop: Loop, bars: list[Bar], names: tuple[str, ...], gaps: list[tuple[float, float]]) -> Iterator[Life]:
    """When each tile is in its slot."""
    by_id = {leaf.id: (leaf, above) for leaf, above, _ in plan.leaves}
    reads = {n: _read_at(plan, loop, n) for n in names}
    for bar in bars:
        if bar.kind != "copy":
            continue
        name, (leaf, above) = bar.statements[0], by_id[bar.node]
        view = leaf.view(len(plan.statement_of[name].reads))
        own = next((x.id for x in above if x.id in dict(leaf.at)[scope_dim(plan, leaf)].variables()), loop.id)
        slot = _slot(plan, name, view.index if view else (), own, bar.runs)
        last = [b.end for b in bars if b.kind == "compute" and b.runs - reads[name] == bar.iteration]
        unseen = [start for start, _ in gaps if start >= bar.start][:1]
        end = max([bar.end, *(last or unseen)])
        if not (bar.hidden and any(start <= end <= stop for start, stop in gaps)):
            yield Life(name, slot, bar.iteration, bar.start, end, bool(last))


def judged(plan: Plan, loop: Loop, bars: list[Bar], lives: tuple[Life, ...], accused: set[tuple[str, int]]) -> list[Bar]:
    """The bars, marked where a finding names them, or they overwrite a tile before its last read or read it before it lands."""
    over = {(b.buffer, b.iteration) for a in lives for b in lives
            if (a.buffer, a.slot) == (b.buffer, b.slot) and a.iteration != b.iteration and a.start <= b.start < a.end
            and (not accused or (a.buffer, a.iteration) in accused)}
    landed = {(b.statements[0], b.iteration): b.landed for b in bars if b.kind == "copy"}
    late = {n: _read_at(plan, loop, n) for n, _ in landed}

    def wrong(b: Bar) -> bool:
        if any((s, b.iteration) in accused for s in b.statements) or (
            b.kind == "copy" and (b.statements[0], b.iteration) in over
        ):
            return True
        tiles = [landed[n, b.runs - by] for n, by in late.items() if (n, b.runs - by) in landed]
        return b.kind == "compute" and not accused and any(at is None or at > b.start for at in tiles)

    return [replace(b, wrong=True) if wrong(b) else b for b in bars]


def _read_at(plan: Plan, loop: Loop, name: str) -> int:
    """How many iterations after its own a tile is read (0, unless the reader was shifted)."""
    for leaf, above, _ in plan.leaves:
        if any(x.id == loop.id for x in above):
            for slot, view in leaf.views:
                if view.buffer == name and slot < len(plan.statement_of[leaf.statement].reads) and view.element:
                    dims = plan.statement_of[name].dims
                    made = next(x for x, _, _ in plan.leaves if x.statement == name)
                    e = view.element[dims.index(scope_dim(plan, made))]
                    if e.variables() == {loop.id} and e.coefficient(loop.id) == 1:
                        return -e.const
    return 0
