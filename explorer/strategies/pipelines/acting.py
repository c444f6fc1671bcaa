"""What each role of a kernel does on the clock, predicted: its nodes in the order of the text, with the times of the model.

The nodes are those of the kernel's IR with stamps (:mod:`explorer.kernel.stamped`), which say what a piece is; so a prediction
has the same pieces as a measurement.  Roles run side by side and wait for each other at mbarriers: copies share what a
multiprocessor takes in and land a latency after their issue at the earliest, products take turns on the tensor cores, results go
out behind the steps of each tile.  All times are those of :mod:`explorer.strategies.pipelines.terms`; what the model has no time
for takes none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ...gpu.spec import Gpu
from ...ir.memo import per_program
from ...ir.plan import Plan
from ...ir.tree import BLOCK_ROLES
from ...kernel.conditions import Condition
from ...kernel.launches import plan_ir
from ...kernel.nodes import (
    Acquire,
    Arrive,
    Await,
    Commit,
    Copy,
    For,
    If,
    Let,
    Node,
    Release,
    Stamp,
    Wait,
    WaitProducts,
)
from ...kernel.nodes_async import Mbarriers
from ...kernel.passes.stamps import Mark
from ...kernel.roles import Roles, apart
from ...kernel.sites import Lowered
from ...kernel.stamped import Stamped, stamped
from ...kernel.traverse import children, walk
from ..price import clock_of, price
from .facts import Stepping, steppings
from .rates import RATES
from .terms import Stepped

MOST = 20_000
"""Pieces of a role that are followed."""
EVENTS = (Stamp, Commit, Arrive, Await, Acquire, Wait, WaitProducts, Release, Let, Copy)
Blocked = tuple[tuple[str, int], int]
"""An mbarrier's slot, and how many of its phases have to be complete."""


@dataclass(frozen=True)
class Piece:
    """Something that a thread does, until it does the next thing.

    Attributes
    ----------
    mark : int
        Number of its mark in the kernel's text.
    kind : str
        As :class:`~explorer.kernel.passes.stamps.Mark` says.
    ids : tuple of str
        The plan's nodes.
    iteration : tuple of (str, int)
        The loops around it, each with its iteration, counted from 0.
    start, end : float
        Microseconds from the block's first stamp; where nothing is measured in time, turns of threads.
    """

    mark: int
    kind: str
    ids: tuple[str, ...]
    iteration: tuple[tuple[str, int], ...]
    start: float
    end: float


@dataclass(frozen=True)
class Acted:
    """What one role of a kernel does.

    Attributes
    ----------
    kernel, role : str
    pieces : tuple of Piece
        In order of time.
    groups : int
        Warpgroups that do the same.
    """

    kernel: str
    role: str
    pieces: tuple[Piece, ...]
    groups: int = 1


@dataclass(frozen=True)
class Costs:
    """Times of the model, in cycles.

    Attributes
    ----------
    product, period : float
        Of a piece that computes; from its begin to that of the next one at the earliest.
    barrier, store : float
        Of a piece.
    latency, load : float
        From a group of copies' issue to its landing; of its bytes on the way that all groups share.
    in_flight : bool
        Whether products go on while the warpgroup does.
    """

    product: float
    period: float
    barrier: float
    store: float
    latency: float
    load: float
    in_flight: bool


@dataclass
class _Block:
    """What the roles of a block share."""

    costs: Costs
    done: dict[tuple[str, int], list[float]] = field(default_factory=lambda: defaultdict(list))
    landed: float = 0.0
    free: float = 0.0

    def land(self, now: float) -> float:
        """When copies land that are issued now."""
        self.landed = max(now + self.costs.latency, self.landed + self.costs.load)
        return self.landed


@dataclass
class _Role:
    """One role at some moment."""

    block: _Block
    marks: Sequence[Mark]
    stepping: str
    computes: frozenset[str]
    values: dict[str, int]
    now: float = 0.0
    stamps: list[tuple[float, int, int]] = field(default_factory=list[tuple[float, int, int]])
    waited: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    groups: list[float] = field(default_factory=list[float])
    products: list[float] = field(default_factory=list[float])
    copied: bool = False

    def run(self, nodes: Sequence[Node]) -> Iterator[Blocked]:
        """The nodes in order; what comes out is what it has to wait for."""
        for node in nodes:
            if len(self.stamps) >= MOST:
                return
            if isinstance(node, For):
                if _happens(node):
                    yield from self._loop(node)
            elif isinstance(node, If):
                if _happens(node):
                    yield from self.run(node.body if self._hold(node.conditions) else node.otherwise)
            elif isinstance(node, Await | Acquire):
                yield from self._wait(node)
            else:
                self._do(node)

    def _loop(self, node: For) -> Iterator[Blocked]:
        if not any(isinstance(n, EVENTS) and not isinstance(n, Copy | Let) for n in walk(node.body)):
            self.copied = True  # each iteration does the same
            return
        for value in range(node.start, node.start + node.extent):
            self.values[node.var] = value
            if self._hold(node.limits):
                yield from self.run(node.body)

    def _hold(self, conditions: Sequence[Condition]) -> bool:
        found = ((c.expr.evaluate(self.values), c.equality) for c in conditions)
        return all(value == 0 if equality else value >= 0 for value, equality in found)

    def _wait(self, node: Await | Acquire) -> Iterator[Blocked]:
        key = self._slot(node.mbarriers, node)
        self.waited[key] += self.waited[key] % 2 == node.parity.evaluate(self.values)
        phase = self.waited[key]
        if phase:
            yield key, phase
            self.now = max(self.now, self.block.done[key][phase - 1])

    def _slot(self, mbarriers: Mbarriers, node: Await | Acquire | Arrive | Release) -> tuple[str, int]:
        return mbarriers.name, node.slot.evaluate(self.values)

    def _do(self, node: Node) -> None:
        if isinstance(node, Stamp):
            self._stamp(node)
        elif isinstance(node, Let):
            self.values[node.name] = node.value.evaluate(self.values)
        elif isinstance(node, Copy):
            self.copied = True
        elif isinstance(node, Commit):
            self.groups.append(self.block.land(self.now) if self.copied else self.now)
            self.copied = False
        elif isinstance(node, Wait) and len(self.groups) > node.pending:
            self.now = max(self.now, self.groups[len(self.groups) - 1 - node.pending])
        elif isinstance(node, WaitProducts) and len(self.products) > node.pending:
            self.now = max(self.now, self.products[len(self.products) - 1 - node.pending])
        elif isinstance(node, Arrive):
            self.block.done[self._slot(node.mbarriers, node)].append(self.block.land(self.now))
        elif isinstance(node, Release):
            self.block.done[self._slot(node.mbarriers, node)].append(self.now)

    def _stamp(self, node: Stamp) -> None:
        """A piece begins: the times that do not depend on others pass at once."""
        mark, costs = self.marks[node.mark], self.block.costs
        self.stamps.append((self.now, node.mark, node.at.evaluate(self.values)))
        inside = any(name == self.stepping for name, _ in mark.loops)
        if inside and mark.kind in self.computes:
            begin = max(self.now, self.block.free)
            self.block.free = begin + costs.period
            self.products.append(begin + costs.product)
            self.now = self.now if costs.in_flight else begin + costs.product
        elif mark.kind == "barrier" and inside:
            self.now += costs.barrier
        elif mark.kind == "store" and not inside:
            self.now += costs.store


def _happens(node: Node) -> bool:
    """Whether something inside is more than a piece's own work."""
    return any(isinstance(n, EVENTS) for n in walk(children(node)))


@per_program(16)
def acted(plan: Plan, gpu: Gpu, block: int = 0) -> tuple[Acted, ...]:
    """What each role of the kernels that compute in steps does, in one block.

    Parameters
    ----------
    plan : Plan
        A legal one.
    gpu : Gpu
    block : int
        By its number in the grid.

    Returns
    -------
    tuple of Acted
        Of kernels with one loop that steps, or with a producer and one inside of the others; nothing of others, for which the
        model has no such times.
    """
    out = list[Acted]()
    for launch in plan_ir(plan, arch=gpu.arch).launches:
        where = stamped((block,))
        before = [apart(low, body) for low, body in zip(launch.lows, launch.bodies, strict=True)]
        bodies, logs = where.bodies(plan, launch.lows, before)
        for low, body in zip(launch.lows, bodies, strict=True):
            found = _inner(plan, steppings(plan, low.kernel)) if low.kernel.has_roles else steppings(plan, low.kernel)
            if logs is not None and len(found) == 1:
                groups = sum(log.role != "producer" and log.kernel == low.kernel.id for log in logs.logs)
                out += _kernel(plan, low, body, found[0], gpu, where, block, groups)
    return tuple(out)


def _inner(plan: Plan, found: Sequence[Stepping]) -> tuple[Stepping, ...]:
    """The loops that step, without those around another one: what they copy, once a tile, the producer brings ahead."""
    above = {s.loop: {x.id for x in hit[1]} for s in found if (hit := plan.find(s.loop))}
    return tuple(s for s in found if not any(s.loop in around for around in above.values()))


def _kernel(plan: Plan, low: Lowered, body: Sequence[Node | Roles], s: Stepping, gpu: Gpu, where: Stamped, block: int,
            groups: int) -> list[Acted]:
    kernel = low.kernel
    both = next((n for n in body if isinstance(n, Roles)), None)
    plain = tuple(n for n in body if not isinstance(n, Roles))
    nodes = {"producer": both.producer, "consumers": both.consumers} if both else {"threads": plain}
    marks = [m for m in where.marks if m.kernel == kernel.id]
    computes = frozenset({"product"} if s.instructions else {"compute"})
    priced = next(k for k in price(plan, gpu).kernels if k.counts.kernel == kernel.id)
    assert priced.steps is not None
    number = [x.loop for x in steppings(plan, kernel)].index(s.loop)
    own = replace(priced.steps, steps=(priced.steps.steps[number],))
    shared = _Block(_costs(own, priced.counts.threads, s, gpu, marks, computes, nodes))
    values = dict.fromkeys(low.role_name.values(), 0) | {low.variable[x.id]: x.start for x in low.launch_loops}
    for role, extent in zip(BLOCK_ROLES, low.grid, strict=True):
        block, values[low.role_name[role]] = divmod(block, extent)
    roles = {name: _Role(shared, where.marks, s.loop, computes, dict(values)) for name in nodes}
    _run({name: role.run(nodes[name]) for name, role in roles.items()}, shared)
    ((_, us),) = own.steps
    clock = clock_of(gpu) / us.stretch(RATES[s.engine].norm)  # here all overlaps that may
    return [Acted(kernel.id, name, _pieces(role, clock), 1 if name == "producer" else groups) for name, role in roles.items()]


def _run(running: dict[str, Iterator[Blocked]], shared: _Block) -> None:
    """Each role as far as it comes, in turn, until all are done or none comes further."""
    blocked: dict[str, Blocked | None] = dict.fromkeys(running)
    while blocked:
        before = dict(blocked)
        for name, waits in before.items():
            while waits is None or len(shared.done[waits[0]]) >= waits[1]:
                try:
                    waits = next(running[name])
                    blocked[name] = waits
                except StopIteration:
                    del blocked[name]
                    break
        if blocked == before:
            return


def _pieces(role: _Role, clock: float) -> tuple[Piece, ...]:
    ends = [*(start for start, _, _ in role.stamps[1:]), role.now]
    found = list[Piece]()
    for (start, number, at), end in zip(role.stamps, ends, strict=True):
        mark = role.marks[number]
        found.append(Piece(number, mark.kind, mark.ids, mark.iteration(at), start / clock, end / clock))
    return tuple(found)


def _costs(whole: Stepped, threads: int, s: Stepping, gpu: Gpu, marks: Sequence[Mark], computes: frozenset[str],
           nodes: dict[str, tuple[Node, ...]]) -> Costs:
    """The times of the model, on the pieces that there are."""
    step, blocks = whole.steps[0][0], whole.resident
    rates, ahead = RATES[step.engine], step.stages - 1
    beside, alone = rates.step + rates.waited * step.waited, step.alone(threads)
    computed = alone - beside if alone > rates.least_step else min(alone, max(step.tensor, step.banks, step.issue))
    turn = max(step.tensor, step.banks, step.issue) * blocks
    each = _share(marks, s, computes)
    barriers = _share(marks, s, frozenset({"barrier"}))
    stores = sum(m.times for m in marks if m.kind == "store" and all(name != s.loop for name, _ in m.loops))
    landings = max(1, sum(isinstance(n, Arrive | Commit) for n in walk(_inside(nodes, s))))
    latency = step.landing
    if ahead and barriers and len(nodes) == 1:  # the model counts from the begin of a step, behind which its barriers are here
        latency -= beside
    stored = whole.store / whole.rounds * clock_of(gpu) / max(1, stores)
    return Costs(computed * each, max(alone, turn) * each, beside * barriers, stored, latency, step.load * blocks / landings,
                 step.engine == "warpgroup" and not step.waited)


def _share(marks: Sequence[Mark], s: Stepping, kinds: frozenset[str]) -> float:
    """The share of a step that a piece of these kinds is."""
    pieces = sum(m.times for m in marks if m.kind in kinds and any(name == s.loop for name, _ in m.loops))
    return s.most / pieces if pieces else 0.0


def _inside(nodes: dict[str, tuple[Node, ...]], s: Stepping) -> tuple[Node, ...]:
    """What is below the loop that steps."""
    loops = (n for role in nodes.values() for n in walk(role) if isinstance(n, For) and n.loop.id == s.loop)
    return tuple(n for loop in loops for n in loop.body)
