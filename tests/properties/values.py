"""Which write each read of a plan really sees: the program's provenance against that of an enumerated run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, product

from explorer.ir.plan import Plan, block_extents
from explorer.ir.program import Program, Statement
from explorer.ir.tree import WARP_SIZE, Kernel, Leaf
from explorer.poly.mechanism import ASYNCHRONOUS

from .walk import (
    Execution,
    Instance,
    cell,
    copy_chain,
    copy_read,
    element,
    executions,
    holds_element,
    is_inside,
    read_through,
    target_space,
)

Writes = frozenset[Instance]
POISON: Instance = ("an unfinished copy", ())


def program_order(program: Program) -> list[Instance]:
    """Every instance in the order it was written."""
    found = executions(Plan(program, (Kernel(program.name, program.body),)))
    return [e.instance for e in sorted(found, key=lambda e: e.time)]


def intended(program: Program) -> dict[tuple[Instance, int], Writes]:
    """For every read (and every update's old value, without its own statement) the writes that made the value."""
    memory: dict[tuple, list[Instance]] = {}
    out: dict[tuple[Instance, int], Writes] = {}
    for instance in program_order(program):
        statement, point = program.statement_of[instance[0]], instance[1]
        for slot, access in enumerate(statement.reads):
            out[instance, slot] = frozenset(memory.get((access.array, element(statement, slot, point)), ()))
        at = (statement.target.array, element(statement, len(statement.reads), point))
        held = memory.get(at, []) if statement.update else []
        out[instance, len(statement.reads)] = frozenset(w for w in held if w[0] != statement.name)
        memory[at] = [*held, instance]
    return out


def wrong_reads(plan: Plan, runs: list[Execution], backwards: bool = False) -> set[Instance]:
    """Instances that read a cell with other contents than the program's.

    Blocks run one after the other, the threads of a block in step; `backwards` turns both orders round.  Reads at
    data-dependent elements are left out.
    """
    return _played(plan, runs, backwards).wrong


def unordered_writes(plan: Plan, runs: list[Execution]) -> set[tuple[Instance, Instance]]:
    """Asynchronous copies with the writes of their cells that run before they have landed: either may come last."""
    return _played(plan, runs, False).unordered


def _played(plan: Plan, runs: list[Execution], backwards: bool) -> _Machine:
    sign = -1 if backwards else 1
    key = lambda e: (e.launch, tuple(sign * b for b in e.block), e.time)  # noqa: E731
    order = sorted(runs, key=lambda e: (*key(e), tuple(sign * t for t in reversed(e.thread))))
    machine = _Machine(plan, read_through(plan, runs))
    here: tuple = ()
    for at, together in groupby(order, key=key):
        if at[:2] != here:
            machine.enter_block()
            here = at[:2]
        machine.step(list(together))
    return machine


@dataclass(frozen=True)
class _Flight:
    """An asynchronous copy that no wait has let through, and the number of its group."""

    cell: tuple
    instance: Instance
    group: int
    bulk: bool

    def landed(self, groups: int) -> bool:
        """Whether a wait has let it through that counts the first so many groups; a bulk copy lands for its own wait alone."""
        return self.group == groups - 1 if self.bulk else self.group < groups


class _Machine:
    def __init__(self, plan: Plan, through: Mapping[Instance, Instance]) -> None:
        self.plan, self.expected, self.through = plan, intended(plan.program), through
        self.copies = {c.name for c in plan.copies}
        self.memory: dict[tuple, list[Instance]] = {}
        self.carried: dict[Instance, Writes] = {}
        self.wrong: set[Instance] = set()
        self.unordered: set[tuple[Instance, Instance]] = set()
        self.commits = 0
        self.in_flight: list[_Flight] = []

    def enter_block(self) -> None:
        """Registers and shared memory end with a block of a launch."""
        own = {b.name for b in self.plan.buffers if b.space != "global"}
        self.memory = {c: v for c, v in self.memory.items() if c[0] not in own}
        self.commits, self.in_flight = 0, []

    def step(self, together: list[Execution]) -> None:
        """All threads at one time."""
        sync, leaf = together[0].sync, together[0].leaf
        if sync is not None:
            self.sync(sync.kind, sync.pending)
        elif leaf is not None and any(how != "atomic" for _, how in leaf.collect):
            for run in together:
                self.check(run)
            for group in self.groups_of(together):
                self.collect(group)
        else:
            for run in together:
                self.check(run)
                self.write(run)

    def sync(self, kind: str, pending: int) -> None:
        if kind == "commit":
            self.commits += 1
            return
        for copy in self.in_flight:
            if copy.landed(self.commits - pending):
                self.memory[copy.cell] = [copy.instance]
        self.in_flight = [copy for copy in self.in_flight if not copy.landed(self.commits - pending)]
        for copy in self.in_flight:
            self.memory[copy.cell] = [POISON]  # it may land at any moment

    def write(self, run: Execution) -> None:
        statement = self.plan.statement_of[run.instance[0]]
        at = cell(self.plan, run, len(statement.reads))
        assert run.leaf is not None
        place = at[:3]  # a buffer's next lifetime is in the memory of the last one
        self.unordered.update((copy.instance, run.instance) for copy in self.in_flight if copy.cell[:3] == place)
        if statement.name in self.copies and is_inside(statement, run.instance[1]):
            self.carried[run.instance] = self.origin(self.memory.get(cell(self.plan, run, 0), ()))
        if run.leaf.mechanism in ASYNCHRONOUS:
            self.memory[at] = [POISON]
            self.in_flight.append(_Flight(at, run.instance, self.commits, run.leaf.mechanism == "bulk"))
            return
        self.memory[at] = [*(self.memory.get(at, []) if statement.update else []), run.instance]

    def check(self, run: Execution) -> None:
        statement = self.plan.statement_of[run.instance[0]]
        if not all(self.reads_right(run, statement)):
            self.wrong.add(run.instance)

    def reads_right(self, run: Execution, statement: Statement) -> Iterator[bool]:
        assert run.leaf is not None
        if not is_inside(statement, run.instance[1]):
            return
        for slot in range(len(statement.reads)):
            name, at = copy_read(self.plan, run, slot), cell(self.plan, run, slot)
            if None in at[2]:
                continue
            held = frozenset(self.memory.get(at, ()))
            if name:
                right = held == {name} and holds_element(self.plan, name, statement, slot, run.instance[1])
                if statement.name not in self.copies and right and self.carried.get(name) != self.expected[run.instance, slot]:
                    right = False
                    self.wrong.update(copy_chain(self.plan, name, self.through))
                yield right
            elif statement.name not in self.copies:
                yield held == self.expected[run.instance, slot]
        if statement.update and statement.name not in self.copies:
            target, held = len(statement.reads), self.memory.get(cell(self.plan, run, len(statement.reads)), ())
            mine = element(statement, target, run.instance[1])
            others = frozenset(w for w in held if w[0] != statement.name or element(statement, target, w[1]) != mine)
            yield others == self.expected[run.instance, target]

    def origin(self, held: Iterable[Instance]) -> Writes:
        """The program's writes behind what a cell holds: copies pass on what they read."""
        return frozenset(w for name in held for w in (self.carried.get(name, ()) if name[0] in self.copies else (name,)))

    def groups_of(self, together: list[Execution]) -> list[list[Execution]]:
        """Executions that one collective combines: threads equal in every coordinate but the collected ones."""
        out: dict[tuple, list[Execution]] = {}
        for run in together:
            out.setdefault(self.apart(run.leaf, run.thread), []).append(run)
        return list(out.values())

    def apart(self, leaf: Leaf | None, thread: tuple[int, ...]) -> tuple:
        """The coordinates of a thread that the leaf's collective does not combine."""
        assert leaf is not None
        roles = {self.plan.loops[loop].role for loop, how in leaf.collect if how != "atomic"}
        left = {"thread.x": thread[0], "thread.y": thread[1], "thread.z": thread[2]}
        if roles & {"lane", "warp"}:
            left |= {"thread.x": 0, "warp": thread[0] // WARP_SIZE, "lane": thread[0] % WARP_SIZE}
        return tuple(v for role, v in left.items() if role not in roles)

    def collect(self, group: list[Execution]) -> None:
        """The register of every thread of the group, or the one cell, receives all updates of the group."""
        statement, first = self.plan.statement_of[group[0].instance[0]], group[0]
        names = list(dict.fromkeys(run.instance for run in group))
        cells = dict.fromkeys(cell(self.plan, run, len(statement.reads)) for run in group)
        if first.leaf is not None and target_space(self.plan, first.leaf, statement) == "register":
            storage, _, index, life = next(iter(cells))
            threads = product(*(range(n) for n in block_extents(self.plan.kernels[first.launch[0]])))
            cells = dict.fromkeys((storage, (first.block, t), index, life) for t in threads
                                  if self.apart(first.leaf, t) == self.apart(first.leaf, first.thread))
        for at in cells:
            self.memory[at] = [*self.memory.get(at, []), *names]
