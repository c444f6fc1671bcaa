"""One launch while it runs: its threads, where their storage is, and who has touched it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

import numpy as np

from ...ir.finding import Instance
from ...ir.layout import GROUP
from ...ir.tree import BLOCK_ROLES, WARP_SIZE
from ..launches import LaunchIR
from ..nodes import Local, Node
from ..sites import Store
from .flights import Access, Boxes, Flight
from .lanes import Numbers, fixed
from .memory import Cells, Kahan, Pairwise
from .order import Order
from .watch import Clocks, Hazard, Hazards


@dataclass
class Machine:
    """The state of a launch.

    Attributes
    ----------
    launch : LaunchIR
    order : Order
    arrays : dict of (str, str) to Cells
        Global memory, which outlives the launch.
    hazards : Hazards
    exact : bool
    watch : bool
        Whether hazards are looked for.
    """

    launch: LaunchIR
    order: Order
    arrays: dict[tuple[str, str], Cells]
    hazards: Hazards
    exact: bool
    watch: bool
    own: dict[tuple[str, str], Cells] = field(default_factory=dict[tuple[str, str], Cells])
    flights: list[Flight] = field(default_factory=list[Flight])
    stores: list[Flight] = field(default_factory=list[Flight])
    boxes: Boxes = field(init=False)
    accesses: list[Access] = field(default_factory=list[Access])
    scratch: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])

    def __post_init__(self) -> None:
        low, plan = self.launch.lows[0], self.launch.plan
        self.grid, self.block = low.grid, low.block
        self.blocks, self.threads = prod(self.grid), prod(self.block)
        flat = np.arange(self.blocks * self.threads)
        self.block_of, self.thread_of, self.everyone = fixed(flat // self.threads), fixed(flat % self.threads), fixed(flat)
        self.at = self._coordinates()
        cluster = plan.clusters[self.launch.kernels[0].id]
        self.cluster_of, self.rank = self._clusters(cluster)
        self.cluster_blocks = prod(cluster)
        meeting = len(self.launch.kernels) > 1 or self.cluster_blocks > 1
        self.clocks = Clocks(self.blocks, self.threads, meeting)
        self.commits, self.boxes = np.zeros(flat.size, np.int64), Boxes(flat.size)
        for cells in self.arrays.values():
            cells.watched(self.watch and len(self.everyone) > 1)

    def _coordinates(self) -> dict[str, Numbers]:
        (gx, gy, _), (bx, by, _) = self.grid, self.block
        b, t = self.block_of, self.thread_of
        blocks = dict(zip(BLOCK_ROLES, (b % gx, b // gx % gy, b // (gx * gy)), strict=True))
        tx = t % bx
        return {role: fixed(value) for role, value in {
            **blocks, "thread.x": tx, "thread.y": t // bx % by, "thread.z": t // (bx * by), "warp": tx // WARP_SIZE,
            "lane": tx % WARP_SIZE}.items()}

    def _clusters(self, cluster: tuple[int, int, int]) -> tuple[Numbers, Numbers]:
        """For each thread the number of its cluster, and its block's in the cluster."""
        x, y, z = (self.at[role] for role in BLOCK_ROLES)
        counts = [-(-n // c) for n, c in zip(self.grid, cluster, strict=True)]
        number = x // cluster[0] + counts[0] * (y // cluster[1] + counts[1] * (z // cluster[2]))
        rank = x % cluster[0] + cluster[0] * (y % cluster[1] + cluster[1] * (z % cluster[2]))
        return fixed(number), fixed(rank)

    def warps(self) -> Numbers:
        """For each thread the number of its warp in the launch."""
        return self.block_of * -(-self.threads // WARP_SIZE) + self.thread_of // WARP_SIZE

    def warpgroups(self) -> Numbers:
        """For each thread the number of its warpgroup in the launch."""
        return self.block_of * -(-self.threads // GROUP) + self.thread_of // GROUP

    # -- storage ------------------------------------------------------------------------------------------------

    def cells(self, what: Store | Local) -> tuple[Cells, Numbers | None]:
        """The elements of a store or of a local, and for each thread which copy is its own (None: there is one)."""
        if isinstance(what, Local):
            return self._made(("local", what.name), what, (*what.shape, what.lanes), len(self.everyone)), self.everyone
        if what.slots:
            shape, copies = (what.slots.size,), int(self.cluster_of.max()) + 1
            return self._made(("slots", what.slots_name), what, shape, copies, shared=True), self.cluster_of
        if what.space == "register":
            return self._made(("register", what.name), what, what.shape, len(self.everyone)), self.everyone
        if what.space == "shared":
            return self._made(("shared", what.name), what, what.shape, self.blocks, shared=True), self.block_of
        name = what.array.name if what.array else what.buffer.name  # type: ignore[union-attr]
        return self.arrays["array" if what.array else "buffer", name], None

    def _made(self, key: tuple[str, str], what: Store | Local, shape: tuple[int, ...], copies: int,
              shared: bool = False) -> Cells:
        found = self.own.get(key)
        if found is None:
            method = what.method if isinstance(what, Store) else ""
            if method == "pairwise":
                levels = max(what.terms.bit_length(), 1) if isinstance(what, Store) else 1
                found = Pairwise(what.name, what.dtype, shape, copies, self.exact, levels=levels)
            else:
                found = (Kahan if method == "kahan" else Cells)(what.name, what.dtype, shape, copies, self.exact)
            found.watched(shared and self.watch and len(self.everyone) > 1)
            self.own[key] = found
        return found

    def use_scratch(self, name: str, block: int, node: Node) -> None:
        """A block's threads leave values in a scratch array, meet, and read them; what stood there must have been read."""
        if not name:
            return
        if self.watch and self.threads > 1 and self.scratch.get((name, block), -1) >= self.clocks.now[block]:
            self.hazards.report("race", node.ids, name, lambda: Hazard(
                "race", f"{', '.join(node.ids)} writes {name} in block {block} while threads may still read what stands there",
                node.ids, name))
        self.clocks.advance([block])
        self.scratch[name, block] = int(self.clocks.now[block])

    # -- what goes wrong ----------------------------------------------------------------------------------------

    def outside(self, access: Access, cells: Cells, flat: Numbers, wrong: Numbers, lanes: Numbers) -> None:
        """Accesses that do not lie in the array: the first of them is reported."""
        if wrong.any():
            n = int(np.flatnonzero(wrong.reshape(-1))[0])
            beyond, lane = int(flat.reshape(-1)[n]), int(lanes.reshape(-1)[n])
            at = self.instance(access, lane)
            self.hazards.report("bounds", access.nodes, cells.name, lambda: Hazard(
                "bounds", f"{at} of thread {self.place(lane)} is at element {beyond} of {cells.name}, which has {cells.size}",
                access.nodes, cells.name, (beyond,), None, at))

    def note(self, access: Access, cells: Cells, where: Numbers, lanes: Numbers, writes: bool, atomic: bool = False,
             lands: bool = False, kept: bool = True) -> None:
        """Threads touch elements: races with what others did, and copies that are on their way there.

        What is not `kept` is not looked at when others come: who waits for a box has waited for all of it.
        """
        if self.watch and cells.phase is not None:
            early = self.boxes.unseen(cells, where, lanes, self.clocks.now, self.threads)
            if early.any():
                self._unseen(access, cells, where[early], lanes[early], writes)
        for marks in (cells.flight, cells.lent if writes else None):
            if self.watch and marks is not None and not lands and (marks[where] >= 0).any():
                self._in_flight(access, cells, marks, where, lanes, writes)
        if not self.watch or cells.written is None or cells.read is None:
            return
        for marks, wrote in ((cells.written, True), (cells.read, False)) if writes else ((cells.written, True),):
            for slot in (0, 1):
                met = self.clocks.unordered(lanes, marks.lane[slot, where], marks.time[slot, where])
                met &= ~(atomic & marks.atomic[slot, where])
                if met.any():
                    n = int(np.flatnonzero(met)[0])
                    first = self.accesses[int(marks.access[slot, where[n]])], int(marks.lane[slot, where[n]]), wrote
                    self._race(cells, int(where[n]), first, (access, int(lanes[n]), writes))
        if not kept:
            return
        number = len(self.accesses)
        self.accesses.append(access)
        marks = cells.written if writes else cells.read
        marks.add(where, lanes, self.clocks.now[lanes // self.threads], number, atomic)
        if writes and not atomic and (lost := marks.lane[0, where] != lanes).any():
            n = int(np.flatnonzero(lost)[0])
            self._race(cells, int(where[n]), (access, int(lanes[n]), True), (access, int(marks.lane[0, where[n]]), True))

    def unknown(self, access: Access, cells: Cells, where: Numbers, lanes: Numbers) -> None:
        """Elements are used that nothing has written."""
        if self.watch and not (known := cells.known[where]).all():
            n = int(np.flatnonzero(~known)[0])
            lane, element = int(lanes[n]), cells.element(int(where[n]))
            at = self.instance(access, lane)
            self.hazards.report("uninitialised", access.nodes, cells.name, lambda: Hazard(
                "uninitialised", f"{at} of thread {self.place(lane)} uses {_cell(cells, element)}, which nothing has written",
                access.nodes, cells.name, element, None, at))

    def unfenced(self, access: Access, cells: Cells, where: Numbers, reader: int) -> None:
        """Whether an instruction reads what a thread has written without a fence behind it."""
        marks = cells.written
        if marks is None:
            return
        late = (marks.lane[0, where] >= 0) & (marks.time[0, where] >= self.clocks.fenced[reader // self.threads])
        if late.any():
            writer = self.accesses[int(marks.access[0, where[late][0]])]
            nodes = (*access.nodes, *writer.nodes)
            self.hazards.report("race", nodes, cells.name, lambda: Hazard(
                "race", f"{access.nodes[0]} reads {cells.name} by itself, and no fence stands behind the write of "
                f"{writer.nodes[0]}", nodes, cells.name, cells.element(int(where[late][0]))))

    def _in_flight(self, access: Access, cells: Cells, marks: Numbers, where: Numbers, lanes: Numbers, writes: bool) -> None:
        n = int(np.flatnonzero(marks[where] >= 0)[0])
        element, at, owner = cells.element(int(where[n])), self.instance(access, int(lanes[n])), int(marks[where[n]])
        does = "on its way there" if marks is cells.flight else "reading it"
        verb = "writes" if writes else "reads"
        self.hazards.report("in flight", access.nodes, cells.name, lambda: Hazard(
            "in flight", f"{at} {verb} {_cell(cells, element)} while an asynchronous copy, store or product "
            f"of thread {self.place(owner)} is {does}", access.nodes, cells.name, element, None, at))

    def _unseen(self, access: Access, cells: Cells, where: Numbers, lanes: Numbers, writes: bool) -> None:
        element, at, thread = cells.element(int(where[0])), self.instance(access, int(lanes[0])), self.place(int(lanes[0]))
        self.hazards.report("in flight", access.nodes, cells.name, lambda: Hazard(
            "in flight", f"{at} {'writes' if writes else 'reads'} {_cell(cells, element)} before thread {thread} has waited for "
            "the bulk copy that is on its way there", access.nodes, cells.name, element, None, at))

    def _race(self, cells: Cells, flat: int, first: tuple[Access, int, bool], second: tuple[Access, int, bool]) -> None:
        nodes = tuple(dict.fromkeys((*first[0].nodes, *second[0].nodes)))
        element = cells.element(flat)

        def said() -> Hazard:
            both = [(self.instance(a, lane), self.place(lane), "writes" if w else "reads") for a, lane, w in (first, second)]
            (one, here, does), (other, there, then) = both
            what = f"{one} of thread {here} {does} {_cell(cells, element)} and {other} of thread {there} {then} it"
            return Hazard("race", f"{what}, and nothing orders the two", nodes, cells.name, element, one, other)

        self.hazards.report("race", nodes, cells.name, said)

    def instance(self, access: Access, lane: int) -> Instance:
        """What a thread executes there; of a vector, the first lane."""
        site, first = access.site, {name: low for name, (low, _) in access.site.ranges.items()}
        values = first | {name: int(v[lane]) if isinstance(v, np.ndarray) else v for name, v in access.env.items()}
        point = tuple(int(site.at[d].evaluate(values)) if d in site.at else 0 for d in site.statement.dims)
        return Instance(site.statement.name, point, tuple(self._place(lane)))

    def place(self, lane: int) -> str:
        """A thread's coordinates in words."""
        return " ".join(f"{role}={value}" for role, value in self._place(lane)) or "0"

    def _place(self, lane: int) -> Iterator[tuple[str, int]]:
        for role, extent in zip((*BLOCK_ROLES, "thread.x", "thread.y", "thread.z"), (*self.grid, *self.block), strict=True):
            if extent > 1:
                yield role, int(self.at[role][lane])


def _cell(cells: Cells, element: tuple[int, ...]) -> str:
    return f"{cells.name}[{', '.join(map(str, element))}]" if element else cells.name
