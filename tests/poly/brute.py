"""Brute force: walk the loops of every thread and see what meets what.  Shares nothing with the analyses but the data model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

from explorer.ir.expr import Expr
from explorer.ir.plan import Plan, block_extents, grid_extents
from explorer.ir.program import Program, Statement
from explorer.ir.tree import WARP_SIZE, Kernel, Leaf, Loop, Node, Sync

Env = dict[str, int]
Instance = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Run:
    """One thread runs a leaf (`leaf` set) or a wait or commit (`sync` set)."""

    time: tuple[int, ...]
    phase: int
    block: tuple[int, ...]
    thread: int
    leaf: Leaf | None
    sync: Sync | None
    env: tuple[tuple[str, int], ...]


def thread_runs(plan: Plan, kernel: Kernel, block: tuple[int, ...], number: int,
                before: frozenset = frozenset()) -> Iterator[Run]:
    """Everything one thread does, in order; `phase` counts the barriers it has passed."""
    x, y, _ = plan.extents[kernel.id][3:]
    tx, ty, tz = number % x, number // x % y, number // (x * y)
    at = {"thread.x": tx, "thread.y": ty, "thread.z": tz, "warp": tx // WARP_SIZE, "lane": tx % WARP_SIZE}
    at |= dict(zip(("block.x", "block.y", "block.z"), block, strict=True))
    phase = 0

    def visit(parent: str, nodes: tuple[Node, ...], env: Env, time: tuple[int, ...], on: bool, bound: frozenset) -> Iterator[Run]:
        nonlocal phase
        for index, node in enumerate(nodes):
            if (parent, index) in before:
                phase += 1
            if isinstance(node, Loop):
                values = [at[node.role]] if node.is_place else range(node.start, node.start + node.extent)
                for value in values:
                    here = on and node.start <= value < node.start + node.extent
                    step = 0 if node.is_place else value
                    yield from visit(node.id, node.body, {**env, node.id: value}, (*time, index, step), here, bound | {node.role})
            elif isinstance(node, Sync):
                yield Run((*time, index), phase, block, number, None, node, ())
            elif on and runs_here(plan, kernel, node, env, at, bound):
                yield Run((*time, index), phase, block, number, node, None, tuple(env.items()))

    yield from visit(kernel.id, kernel.body, {}, (), True, frozenset())


def runs_here(plan: Plan, kernel: Kernel, leaf: Leaf, env: Env, at: Env, bound: frozenset) -> bool:
    """In the domain, and not left to thread or block 0."""
    statement = plan.statement_of[leaf.statement]
    point = {d: e.evaluate(env) for d, e in leaf.at}
    if not all(c.holds(point) for c in statement.domain):
        return False
    view = leaf.view(len(statement.reads))
    space = plan.buffer_of[view.buffer].space if view else "global"
    sizes = dict(zip(("block.x", "block.y", "block.z"), plan.extents[kernel.id][:3], strict=True))
    sizes |= dict(zip(("thread.x", "thread.y", "thread.z"), plan.extents[kernel.id][3:], strict=True))
    if bound & {"warp", "lane"}:
        x = sizes.pop("thread.x")
        sizes |= {"warp": -(-x // WARP_SIZE), "lane": min(x, WARP_SIZE)}
    single = {"register": (), "shared": ("thread",), "global": ("thread", "block")}[space]
    kind = {role: "block" if role.startswith("block") else "thread" for role in sizes}
    return all(at[role] == 0 for role, size in sizes.items() if size > 1 and role not in bound and kind[role] in single)


def cell_of(plan: Plan, run: Run, slot: int) -> tuple:
    """(storage, replica, index) of an access."""
    assert run.leaf is not None
    env, statement = dict(run.env), plan.statement_of[run.leaf.statement]
    view = run.leaf.view(slot)
    if view is None:
        point = {d: e.evaluate(env) for d, e in run.leaf.at}
        index = tuple(e.evaluate(point) for e in statement.accesses[slot].index if isinstance(e, Expr))
        return statement.accesses[slot].array, "array", index
    replica = {"register": (run.block, run.thread), "shared": run.block, "global": ()}[plan.buffer_of[view.buffer].space]
    return view.buffer, replica, tuple(e.evaluate(env) for e in view.index)


def instance_of(run: Run, statement: Statement) -> Instance:
    assert run.leaf is not None
    at, env = dict(run.leaf.at), dict(run.env)
    return statement.name, tuple(at[d].evaluate(env) for d in statement.dims)


def blocks_of(kernel: Kernel) -> list[tuple[int, ...]]:
    return list(product(*(range(n) for n in grid_extents(kernel))))


# -- races -------------------------------------------------------------------------------------------------------


def races(plan: Plan, kernel: Kernel, before: frozenset) -> set[frozenset[Instance]]:
    """Pairs of instances in different threads of a block that touch one cell, one writing, with no barrier between.

    An asynchronous copy writes from its issue to the first wait of its thread that covers its group.
    """
    found: set[frozenset[Instance]] = set()
    for block in blocks_of(kernel):
        touched: dict[tuple, list[tuple[int, int, int, bool, Instance]]] = defaultdict(list)
        for number in range(prod(block_extents(kernel))):
            everything = list(thread_runs(plan, kernel, block, number, before))
            landed = landings(everything)
            for position, run in enumerate(everything):
                if run.leaf is None:
                    continue
                statement = plan.statement_of[run.leaf.statement]
                for slot in range(len(statement.accesses)):
                    cell, writes = cell_of(plan, run, slot), slot == len(statement.reads)
                    view = run.leaf.view(slot)
                    if view and plan.buffer_of[view.buffer].space == "register":
                        continue
                    end = landed.get(position, run.phase) if writes else run.phase
                    touched[cell].append((run.phase, end, number, writes, instance_of(run, statement)))
        for uses in touched.values():
            for i, (start, end, thread, writes, one) in enumerate(uses):
                for start_2, end_2, thread_2, writes_2, two in uses[i + 1:]:
                    if thread != thread_2 and (writes or writes_2) and start <= end_2 and start_2 <= end:
                        found.add(frozenset((one, two)))
    return found


def landings(everything: list[Run]) -> dict[int, int]:
    """For every asynchronous copy (by position) the phase in which the wait that covers it returns."""
    out, groups, open_group = {}, [], []
    for position, run in enumerate(everything):
        if run.leaf is not None and run.leaf.mechanism == "async":
            open_group.append(position)
        elif run.sync is not None and run.sync.kind == "commit":
            groups.append(open_group)
            open_group = []
        elif run.sync is not None:
            while len(groups) > run.sync.pending:
                for p in groups.pop(0):
                    out[p] = run.phase
    for p in (q for group in (*groups, open_group) for q in group):
        out[p] = everything[-1].phase
    return out


def reads_in_flight(plan: Plan, kernel: Kernel) -> set[Instance]:
    """Reading instances that see a staged element before the wait for its group (same or any thread, in program text)."""
    found: set[Instance] = set()
    for block in blocks_of(kernel):
        landed_at: dict[Instance, tuple[int, ...]] = {}
        readers = []
        for number in range(prod(block_extents(kernel))):
            everything = list(thread_runs(plan, kernel, block, number))
            groups: list[list[Instance]] = []
            group: list[Instance] = []
            for run in everything:
                if run.sync is not None and run.sync.kind == "commit":
                    groups.append(group)
                    group = []
                elif run.sync is not None:
                    while len(groups) > run.sync.pending:
                        landed_at |= dict.fromkeys(groups.pop(0), run.time)
                elif run.leaf is not None and run.leaf.mechanism == "async":
                    group.append(instance_of(run, plan.statement_of[run.leaf.statement]))
                elif run.leaf is not None:
                    readers.append(run)
        for run in readers:
            assert run.leaf is not None
            for _, view in run.leaf.views:
                if view.element and plan.buffer_of[view.buffer].space == "shared":
                    element = (view.buffer, tuple(e.evaluate(dict(run.env)) for e in view.element))
                    if element not in landed_at or landed_at[element] > run.time:
                        found.add(instance_of(run, plan.statement_of[run.leaf.statement]))
    return found


# -- values ------------------------------------------------------------------------------------------------------


def wanted(program: Program) -> dict[tuple[Instance, int], frozenset[Instance]]:
    """For every read the writes that made its value: the last plain write of the element and the updates since."""
    plan = Plan(program, (Kernel("program", program.body),))
    memory: dict[tuple, list[Instance]] = {}
    out = {}
    for run in thread_runs(plan, plan.kernels[0], (0, 0, 0), 0):
        assert run.leaf is not None
        statement = program.statement_of[run.leaf.statement]
        name = instance_of(run, statement)
        for slot in range(len(statement.reads)):
            out[name, slot] = frozenset(memory.get(cell_of(plan, run, slot), ()))
        cell = cell_of(plan, run, len(statement.reads))
        held = memory.get(cell, []) if statement.update else []
        out[name, len(statement.reads)] = frozenset(w for w in held if w[0] != statement.name)
        memory[cell] = [*held, name]
    return out


def wrong_reads(plan: Plan, reverse: bool = False) -> set[Instance]:
    """Instances that read a cell whose contents are not what the program gives them; leaves run in lockstep.

    `reverse` runs the threads of a block in the opposite order.  Collected updates reach every thread of the block.
    """
    expected, copies = wanted(plan.program), {c.name for c in plan.copies}
    memory: dict[tuple, list] = {}
    found: set[Instance] = set()
    for kernel in plan.kernels:
        for block in blocks_of(kernel):
            threads = range(prod(block_extents(kernel)))
            runs = [r for n in threads for r in thread_runs(plan, kernel, block, n) if r.leaf is not None]
            runs.sort(key=lambda r: (r.time, -r.thread if reverse else r.thread))
            for at in sorted({r.time for r in runs}):
                together = [r for r in runs if r.time == at]
                assert together[0].leaf is not None
                for run in together if not together[0].leaf.collect else ():
                    found |= _step(plan, run, memory, expected, copies)
                if together[0].leaf.collect:
                    for group in _groups(kernel, together):
                        found |= _collective(plan, *group, memory, expected, copies)
        memory = {c: v for c, v in memory.items() if c[1] == "array" or plan.buffer_of[c[0]].space == "global"}
    return found


def _check_reads(plan: Plan, run: Run, memory: dict, expected: dict, copies: set[str]) -> bool:
    assert run.leaf is not None
    statement = plan.statement_of[run.leaf.statement]
    name = instance_of(run, statement)
    for slot, use in enumerate(statement.reads):
        view, cell = run.leaf.view(slot), cell_of(plan, run, slot)
        if view is None and use.array in plan.program.array_of and plan.array_of[use.array].role != "temporary":
            continue
        held = frozenset(memory.get(cell, ()))
        if view and view.buffer in copies:
            if held != {(view.buffer, tuple(e.evaluate(dict(run.env)) for e in view.element))}:
                return False
        elif held != expected[name, slot]:
            return False
    if statement.name in copies or not statement.update:
        return True
    held = memory.get(cell_of(plan, run, len(statement.reads)), ())
    others = frozenset(w for w in held if w[0] != name[0] or _updated(statement, w) != _updated(statement, name))
    return others == expected[name, len(statement.reads)]


def _updated(statement: Statement, instance: Instance) -> tuple[int, ...]:
    """The element that an instance updates."""
    point = dict(zip(statement.dims, instance[1], strict=True))
    return tuple(e.evaluate(point) for e in statement.target.index if isinstance(e, Expr))


def _step(plan: Plan, run: Run, memory: dict, expected: dict, copies: set[str]) -> set[Instance]:
    assert run.leaf is not None
    statement = plan.statement_of[run.leaf.statement]
    name = instance_of(run, statement)
    good = _check_reads(plan, run, memory, expected, copies)
    cell = cell_of(plan, run, len(statement.reads))
    memory[cell] = [*(memory.get(cell, []) if statement.update else []), name]
    return set() if good else {name}


def _groups(kernel: Kernel, together: list[Run]) -> list[tuple[list[Run], list[int]]]:
    """Runs that are combined, with all threads of their group: those that differ in collected roles only."""
    assert together[0].leaf is not None
    collected = {name for name, _ in together[0].leaf.collect}
    roles = {n.role for n in _walk(kernel.body) if isinstance(n, Loop) and n.id in collected}
    x, y, z = block_extents(kernel)

    def apart(number: int) -> tuple:
        tx, ty, tz = number % x, number // x % y, number // (x * y)
        split = {"warp": tx // WARP_SIZE, "lane": tx % WARP_SIZE} if roles & {"warp", "lane"} else {"thread.x": tx}
        return tuple(v for role, v in {**split, "thread.y": ty, "thread.z": tz}.items() if role not in roles)

    groups: dict[tuple, tuple[list[Run], list[int]]] = {}
    for number in range(x * y * z):
        groups.setdefault(apart(number), ([], []))[1].append(number)
    for run in together:
        groups[apart(run.thread)][0].append(run)
    return [g for g in groups.values() if g[0]]


def _walk(nodes: tuple[Node, ...]) -> Iterator[Node]:
    for node in nodes:
        yield node
        yield from _walk(node.body) if isinstance(node, Loop) else ()


def _collective(plan: Plan, together: list[Run], members: list[int], memory: dict, expected: dict,
                copies: set[str]) -> set[Instance]:
    found: set[Instance] = set()
    names, cells = [], []
    for run in together:
        assert run.leaf is not None
        statement = plan.statement_of[run.leaf.statement]
        names.append(instance_of(run, statement))
        cells.append(cell_of(plan, run, len(statement.reads)))
        found |= set() if _check_reads(plan, run, memory, expected, copies) else {names[-1]}
    storage, replica, index = cells[0]
    if replica != "array" and plan.buffer_of[storage].space == "register":
        cells = [(storage, (replica[0], n), index) for n in members]
    for cell in dict.fromkeys(cells):
        memory[cell] = [*memory.get(cell, []), *names]
    return found
