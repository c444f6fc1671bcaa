"""Everything a plan executes, thread by thread, with its time and place: plain Python, independent of isl.

Two executions are ordered if one is in an earlier launch, or both are in one block and one has the earlier time; threads of a
block meet in between at the barriers that code generation derives, so within a block time alone decides.  A kernel that joins
a launch by ``last_block`` is ordered behind those blocks of the kernels before it with its own coordinates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, product

from explorer.ir.expr import Expr
from explorer.ir.instructions import INSTRUCTIONS
from explorer.ir.plan import Plan
from explorer.ir.program import Statement
from explorer.ir.tree import BLOCK_ROLES, WARP_SIZE, Kernel, Leaf, Loop, Node, Sync

Instance = tuple[str, tuple[int, ...]]
LIMIT, MOST_VISITS = 40_000, 1_000_000
"""Executions beyond which a plan is not enumerated; and nodes that are visited, most of whose iterations may run nothing."""


class TooLarge(Exception):
    """The plan executes more than :data:`LIMIT` leaves, or its loops have too many iterations."""


@dataclass(frozen=True)
class Execution:
    """One leaf (or commit, or wait) at one time in one thread; a commit or wait stands for all threads of its block."""

    launch: tuple[int, ...]
    block: tuple[int, ...]
    time: tuple[int, ...]
    thread: tuple[int, ...]
    leaf: Leaf | None
    sync: Sync | None
    instance: Instance
    values: dict[str, int]
    waits: tuple[int, tuple[int, ...]] | None = None
    """Joined by ``last_block``: since which kernel only blocks with its coordinates along these axes are waited for."""

    def ordered_before(self, other: Execution) -> bool:
        """Whether every run has this one first."""
        if self.launch != other.launch:
            since, axes = other.waits or (other.launch[0], ())
            near = since <= self.launch[0] < other.launch[0]
            return self.launch < other.launch and not (near and any(self.block[a] != other.block[a] for a in axes))
        return self.block == other.block and self.time < other.time


def executions(plan: Plan) -> list[Execution]:
    """Every execution of the plan, unsorted.

    Raises
    ------
    TooLarge
    """
    out: list[Execution] = []
    for number, kernel in enumerate(plan.kernels):
        for found in _kernel(plan, number, kernel):
            out.append(found)
            if len(out) > LIMIT:
                raise TooLarge
    return out


def _kernel(plan: Plan, number: int, kernel: Kernel) -> Iterator[Execution]:
    extents = plan.extents[kernel.id]
    grid, block = extents[:3], extents[3:]
    since = number
    while since and plan.kernels[since].by_one:
        since -= 1
    waits = (since, tuple(a for a in range(3) if grid[a] > 1)) if since < number else None
    visits = count()

    def visit(nodes: tuple[Node, ...], values: dict[str, int], place: dict[str, int], launch: tuple[int, ...],
              time: tuple[int, ...]) -> Iterator[Execution]:
        hosted = [isinstance(n, Loop) and n.role == "launch" for n in nodes]
        outside = launch
        for index, node in enumerate(nodes):
            if next(visits) > MOST_VISITS:
                raise TooLarge
            if any(hosted) and len(nodes) > 1:  # what stands between two such loops is a launch of its own
                launch = (*outside, sum(hosted[:index]) + sum(hosted[:index + 1]))
            if isinstance(node, Loop):
                for value in range(node.start, node.start + node.extent):
                    here = {**place, node.role: value} if node.is_place else place
                    launched = (*launch, value) if node.role == "launch" else launch
                    inner = (*time, index, 0 if node.is_place else value)
                    yield from visit(node.body, {**values, node.id: value}, here, launched, inner)
            elif isinstance(node, Sync):
                for at in product(*(range(n) for n in grid)):
                    yield Execution((number, *launch), at, (*time, index), (), None, node, ("", ()), values, waits)
            else:
                statement = plan.statement_of[node.statement]
                dims = {d: int(e.evaluate(values)) for d, e in node.at}
                if all(c.holds(dims) for c in statement.domain):
                    instance = (statement.name, tuple(dims[d] for d in statement.dims))
                    for b, t in _places(plan, node, statement, place, grid, block, values):
                        yield Execution((number, *launch), b, (*time, index), t, node, None, instance, values, waits)

    yield from visit(kernel.body, {}, {}, (), ())


def _places(plan: Plan, leaf: Leaf, statement: Statement, place: dict[str, int], grid: tuple[int, int, int],
            block: tuple[int, int, int], values: dict[str, int]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Blocks and threads (x, y, z) that run a leaf: all where its target has a copy for each, else the first one."""
    space = target_space(plan, leaf, statement)
    blocks = [_axis(place.get(role), n, space != "global") for role, n in zip(BLOCK_ROLES, grid, strict=True)]
    private = space == "register"
    if leaf.mechanism in INSTRUCTIONS:
        place = {**place, "lane": held_by(plan, leaf, values)[-1]}
    if "warp" in place or "lane" in place:
        warps = _axis(place.get("warp"), -(-block[0] // WARP_SIZE), private)
        lanes = _axis(place.get("lane"), min(block[0], WARP_SIZE), private)
        x = [WARP_SIZE * w + lane for w in warps for lane in lanes]
    else:
        x = _axis(place.get("thread.x"), block[0], private)
    threads = [x, _axis(place.get("thread.y"), block[1], private), _axis(place.get("thread.z"), block[2], private)]
    for b in product(*blocks):
        for t in product(*threads):
            yield b, t


def held_by(plan: Plan, leaf: Leaf, values: dict[str, int]) -> tuple[int, int, int]:
    """Lanes that hold a tensor instruction's elements of A, B and C (PTX ISA, "Matrix Fragments for mma")."""
    hit = plan.find(leaf.id)
    assert hit is not None
    m, n, k = (values[x.id] for x in hit[1][-3:])
    row = INSTRUCTIONS[leaf.mechanism]
    pack, other = (max(4 // d.bytes, 1) for d in (row.a, row.b))
    return 4 * (m % 8) + k % (4 * pack) // pack, 4 * n + k % (4 * other) // other, 4 * (m % 8) + n // 2


def _axis(bound: int | None, extent: int, everywhere: bool) -> list[int]:
    return [bound] if bound is not None else list(range(extent if everywhere else 1))


def target_space(plan: Plan, leaf: Leaf, statement: Statement) -> str:
    """Where the leaf's result lives: register, shared or global."""
    view = leaf.view(len(statement.reads))
    return plan.buffer_of[view.buffer].space if view else "global"


def cell(plan: Plan, run: Execution, slot: int) -> tuple:
    """(storage, replica, index, lifetime) of an access; an index that is data is None.

    A buffer in the body of a loop is a new one in each iteration of it and of the loops around it.
    """
    assert run.leaf is not None
    statement, view = plan.statement_of[run.instance[0]], run.leaf.view(slot)
    if view is None:
        access = statement.accesses[slot]
        return access.array, (), element(statement, slot, run.instance[1]), ()
    thread = run.thread
    if run.leaf.mechanism in INSTRUCTIONS:  # the lane that has the element
        thread = (thread[0] // WARP_SIZE * WARP_SIZE + held_by(plan, run.leaf, run.values)[slot], *thread[1:])
    replica = {"register": (run.block, thread), "shared": run.block, "global": ()}[plan.buffer_of[view.buffer].space]
    buffer = plan.buffer_of[view.buffer]
    hit = plan.find(buffer.scope) if buffer.space != "global" else None
    life = tuple(run.values.get(x.id) for x in (*hit[1], hit[0]) if isinstance(x, Loop) and not x.is_place) if hit else ()
    return view.buffer, replica, tuple(int(e.evaluate(run.values)) for e in view.index), life


def element(statement: Statement, slot: int, point: tuple[int, ...]) -> tuple[int | None, ...]:
    """The element of the program's array that an access of an instance touches; None along a data-dependent dimension."""
    dims = dict(zip(statement.dims, point, strict=True))
    return tuple(int(e.evaluate(dims)) if isinstance(e, Expr) else None for e in statement.accesses[slot].index)


def is_inside(statement: Statement, point: tuple[int, ...]) -> bool:
    """Whether the instance reads at all (a copy beyond the edge does not)."""
    dims = dict(zip(statement.dims, point, strict=True))
    return all(c.holds(dims) for c in statement.inside)


def copy_in(plan: Plan, buffer: str) -> str:
    """The copy whose leaves fill this buffer, or empty."""
    copies = {c.name: len(c.reads) for c in plan.copies}
    found = (leaf.statement for leaf, _, _ in plan.leaves
             if leaf.statement in copies and (v := leaf.view(copies[leaf.statement])) and v.buffer == buffer)
    return next(found, "")


def copy_read(plan: Plan, run: Execution, slot: int) -> Instance | None:
    """The copy's instance that a read goes through, or None."""
    view = run.leaf.view(slot) if run.leaf else None
    if view is None or not view.element or slot >= len(plan.statement_of[run.instance[0]].reads):
        return None
    copy = copy_in(plan, view.buffer)
    return (copy, tuple(int(e.evaluate(run.values)) for e in view.element)) if copy else None


def copy_chain(plan: Plan, name: Instance, through: Mapping[Instance, Instance] = {}) -> tuple[Instance, ...]:
    """A copy's instance, the instance of the copy that it reads from, and so on down to the one that reads the array.

    `through` has the copies' instances that are read by way of a view: see :func:`read_through`.
    """
    out: list[Instance] = []
    copies = {c.name for c in plan.copies}
    while name[0] in copies:
        out.append(name)
        source = plan.statement_of[name[0]]
        name = through.get(name) or (source.reads[0].array, tuple(-1 if n is None else n for n in element(source, 0, name[1])))
    return tuple(out)


def read_through(plan: Plan, runs: Iterable[Execution]) -> dict[Instance, Instance]:
    """Of each copy's instance that reads another copy through its view: that copy's instance."""
    copies = {c.name for c in plan.copies}
    return {run.instance: name for run in runs if run.instance[0] in copies and (name := copy_read(plan, run, 0))}


def holds_element(plan: Plan, copy: Instance, reader: Statement, slot: int, point: tuple[int, ...]) -> bool:
    """Whether a copy's instance holds the element that a reader's access wants: copied all the way from the array."""
    wanted, array = element(reader, slot, point), reader.accesses[slot].array
    if array in {c.name for c in plan.copies}:
        return (array, wanted) == copy
    chain = copy_chain(plan, copy)
    first = plan.statement_of[chain[-1][0]]
    complete = all(is_inside(plan.statement_of[c], at) for c, at in chain)
    return complete and first.reads[0].array == array and element(first, 0, chain[-1][1]) == wanted
