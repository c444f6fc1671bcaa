"""An executable meaning of a plan: run it in NumPy with its real storage, block after block, threads in lockstep per leaf.

Independent of isl and of code generation, and adversarial where the hardware is free: storage starts as NaN and is
poisoned again whenever its scope is entered; asynchronous copies poison their destination until the wait for their
group; two threads that touch one cell at one time, and two blocks that touch one cell in one launch, are a `Hazard`.
What it cannot see are missing barriers: every leaf runs for all threads of a block before the next leaf does.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Any

import numpy as np

from explorer.ir.dtype import DType, bf16_to_f32, f32_to_bf16
from explorer.ir.expr import Expr
from explorer.ir.operations import OPERATIONS
from explorer.ir.plan import Buffer, Plan, block_extents, grid_extents
from explorer.ir.program import Constraint, Indirect, Statement
from explorer.ir.scalar import REDUCTIONS, Call, Cast, IndexValue, Literal, Read, Scalar, argument_types
from explorer.ir.tree import WARP_SIZE, Kernel, Leaf, Loop, Node, Sync

ATOMIC = -2
Env = dict[str, Any]
"""Loop variable or dimension to its value: one integer, or one per thread."""


class Hazard(AssertionError):
    """The plan does something that no order of blocks and threads makes right."""


def run_plan(plan: Plan, arrays: Mapping[str, np.ndarray], seed: int = 0) -> dict[str, np.ndarray]:
    """Outputs of the plan on copies of `arrays`; `seed` shuffles the order of the blocks."""
    return Machine(plan, arrays, seed).run()


class Cells:
    """Storage: elements held in their compute type, rounded as the element type keeps them."""

    def __init__(self, name: str, dtype: DType, shape: tuple[int, ...]) -> None:
        self.name, self.dtype, self.shape = name, dtype, shape
        self.data = np.empty(shape or (1,), dtype.wide.numpy)
        self.owner = np.full(shape or (1,), -1)
        self.poison()

    def poison(self) -> None:
        self.data[...] = {"float": np.nan, "int": 90, "bool": False}[self.dtype.kind]

    def rounded(self, value: np.ndarray) -> np.ndarray:
        if self.dtype.name == "bf16":
            return bf16_to_f32(f32_to_bf16(np.asarray(value, np.float32)))
        return np.asarray(value).astype(self.dtype.numpy).astype(self.data.dtype)


class Machine:
    """One run: global memory, and the state of the block that runs now."""

    def __init__(self, plan: Plan, arrays: Mapping[str, np.ndarray], seed: int) -> None:
        self.plan, self.rng = plan, np.random.default_rng(seed)
        self.globals = {a.name: Cells(a.name, a.dtype, a.shape) for a in plan.program.arrays}
        self.globals |= {b.name: Cells(b.name, b.dtype, b.shape) for b in plan.buffers if b.space == "global"}
        for a in plan.program.parameters:
            if a.name in arrays and a.role != "out":
                given = arrays[a.name]
                self.globals[a.name].data[...] = bf16_to_f32(given) if a.dtype.name == "bf16" else given

    def run(self) -> dict[str, np.ndarray]:
        with np.errstate(all="ignore"):
            for group in self.plan.launched:
                if len(group) == 1:
                    self.launch(group[0], group[0].body, {})
                else:
                    self.together(group)
        out = {}
        for a in self.plan.program.parameters:
            if a.role != "in":
                data = self.globals[a.name].data
                out[a.name] = f32_to_bf16(data) if a.dtype.name == "bf16" else data.astype(a.dtype.numpy)
        return out

    def launch(self, kernel: Kernel, body: tuple[Node, ...], env: Env) -> None:
        """One launch of the kernel, or one for each iteration of its host loops."""
        if len(body) == 1 and isinstance(body[0], Loop) and body[0].role == "launch":
            for value in range(body[0].start, body[0].start + body[0].extent):
                self.launch(kernel, body[0].body, {**env, body[0].id: value})
            return
        for cells in self.globals.values():
            cells.owner[...] = -1
        self.block, self.grid = block_extents(kernel), grid_extents(kernel)
        blocks = list(product(*(range(n) for n in reversed(self.grid))))
        self.rng.shuffle(blocks)
        for z, y, x in blocks:
            self.run_block(body, env, (x, y, z))

    def together(self, group: tuple[Kernel, ...]) -> None:
        """One launch of several phases: behind a ticket a block goes on as early as it may, whatever others have to do."""
        starts = [i for i, k in enumerate(group) if i == 0 or not k.by_one]
        for first, end in zip(starts, (*starts[1:], len(group)), strict=True):
            phases = group[first:end]
            owners = [{name: np.full_like(c.owner, -1) for name, c in self.globals.items()} for _ in phases]
            counts: list[dict[tuple[int, ...], int]] = [{} for _ in phases]
            blocks = list(product(*(range(n) for n in reversed(self.plan.extents[phases[0].id][:3]))))
            self.rng.shuffle(blocks)
            for z, y, x in blocks:
                self.phase(phases, 0, (x, y, z), owners, counts)

    def phase(self, phases: tuple[Kernel, ...], number: int, place: tuple[int, ...], owners: list[dict[str, np.ndarray]],
              counts: list[dict[tuple[int, ...], int]]) -> None:
        """One block of a phase, and the block of the next one that it was the last to be waited for."""
        extents = self.plan.extents[phases[number].id]
        self.grid, self.block = extents[:3], extents[3:]
        for name, cells in self.globals.items():
            cells.owner = owners[number][name]
        self.run_block(phases[number].body, {}, place)
        if number + 1 == len(phases):
            return
        after = self.plan.extents[phases[number + 1].id][:3]
        here = tuple(c if n > 1 else 0 for c, n in zip(place, after, strict=True))
        counts[number + 1][here] = counts[number + 1].get(here, 0) + 1
        if counts[number + 1][here] == prod(n for n, m in zip(extents[:3], after, strict=True) if m == 1):
            self.phase(phases, number + 1, here, owners, counts)

    def run_block(self, body: tuple[Node, ...], env: Env, place: tuple[int, ...]) -> None:
        self.threads = prod(self.block)
        flat = np.arange(self.threads)
        tx, ty, tz = flat % self.block[0], flat // self.block[0] % self.block[1], flat // (self.block[0] * self.block[1])
        self.coordinate: dict[str, Any] = dict(zip(("block.x", "block.y", "block.z"), place, strict=True))
        self.coordinate |= {"thread.x": tx, "thread.y": ty, "thread.z": tz, "warp": tx // WARP_SIZE, "lane": tx % WARP_SIZE}
        self.number = place[0] + self.grid[0] * (place[1] + self.grid[1] * place[2])
        self.local = {b.name: Cells(b.name, b.dtype, self.shape(b)) for b in self.plan.buffers if b.space != "global"}
        self.open: list[tuple[Cells, tuple, np.ndarray]] = []
        self.groups: list[list[tuple[Cells, tuple, np.ndarray]]] = []
        self.nodes(body, env, np.ones(self.threads, bool), ())

    def shape(self, buffer: Buffer) -> tuple[int, ...]:
        return (self.threads, *buffer.shape) if buffer.space == "register" else buffer.shape

    def nodes(self, nodes: tuple[Node, ...], env: Env, mask: np.ndarray, above: tuple[Loop, ...]) -> None:
        for node in nodes:
            if isinstance(node, Leaf):
                self.leaf(node, env, mask, above)
            elif isinstance(node, Sync):
                self.sync(node)
            elif node.is_place:
                value = self.coordinate[node.role]
                inside = np.broadcast_to((value >= node.start) & (value < node.start + node.extent), mask.shape)
                self.enter(node, {**env, node.id: value}, mask & inside, above)
            else:
                for value in range(node.start, node.start + node.extent):
                    self.enter(node, {**env, node.id: value}, mask, above)

    def enter(self, loop: Loop, env: Env, mask: np.ndarray, above: tuple[Loop, ...]) -> None:
        for b in self.plan.buffers:
            if b.scope == loop.id and b.space != "global":
                self.local[b.name].poison()
        self.nodes(loop.body, env, mask, (*above, loop))

    def sync(self, node: Sync) -> None:
        if node.kind == "commit":
            self.groups.append(self.open)
            self.open = []
            return
        while len(self.groups) > node.pending:
            for cells, where, value in self.groups.pop(0):
                cells.data[where] = value
        for cells, where, _ in (c for group in (*self.groups, self.open) for c in group):
            cells.data[where] = np.nan  # still in flight, it may land at any moment

    def leaf(self, leaf: Leaf, env: Env, mask: np.ndarray, above: tuple[Loop, ...]) -> None:
        statement = self.plan.statement_of[leaf.statement]
        target = leaf.view(len(statement.reads))
        space = self.plan.buffer_of[target.buffer].space if target else "global"
        bound = {loop.role for loop in above}
        if bound & {"warp", "lane"}:
            bound.add("thread.x")
            for role in {"warp", "lane"} - bound if space != "register" else ():
                mask = mask & (self.coordinate[role] == 0)
        for role, size in zip(("block.x", "block.y", "block.z", "thread.x", "thread.y", "thread.z"), (*self.grid, *self.block),
                              strict=True):
            single = space == "global" or (space == "shared" and role.startswith("thread"))
            if size > 1 and role not in bound and single:
                mask = mask & np.broadcast_to(self.coordinate[role] == 0, mask.shape)
        env = {name: np.broadcast_to(value, mask.shape) for name, value in env.items()}
        dims = {d: np.broadcast_to(e.evaluate(env), mask.shape) for d, e in leaf.at}
        active = np.flatnonzero(mask & holds(statement.domain, dims, mask.shape))
        if not len(active):
            return
        some = {n: v[active] for n, v in env.items()}
        point = {n: v[active] for n, v in dims.items()}
        value = self.value(leaf, statement, some, point, active)
        cells, where = self.place(leaf, statement, len(statement.reads), some, point, active, [])
        if leaf.mechanism == "async":
            cells.data[where] = np.nan
            self.open.append((cells, where, cells.rounded(value)))
        elif statement.update is None:
            self.distinct(leaf, cells, where, len(active))
            self.own(leaf, cells, where)
            cells.data[where] = cells.rounded(value)
        else:
            self.update(leaf, statement, cells, where, value, active, env, dims, mask, above, space)

    def value(self, leaf: Leaf, s: Statement, env: Env, point: Env, threads: np.ndarray) -> np.ndarray:
        """The statement's value for these threads; where `inside` fails, its fill."""
        kept = np.flatnonzero(holds(s.inside, point, threads.shape))
        some, there = {n: v[kept] for n, v in env.items()}, {n: v[kept] for n, v in point.items()}
        read: list[Any] = [None] * len(s.reads)
        for slot in sorted(range(len(s.reads)), key=lambda n: not s.reads[n].affine):
            cells, where = self.place(leaf, s, slot, some, there, threads[kept], read)
            self.seen(leaf, cells, where)
            read[slot] = cells.data[where]
        types = [self.plan.array_of[r.array].dtype for r in s.reads]
        result = evaluate(s.value, types, there, read, kept.shape)
        out = np.full(threads.shape, s.fill, dtype=result.dtype)
        out[kept] = result
        return out

    def place(self, leaf: Leaf, s: Statement, slot: int, env: Env, point: Env, threads: np.ndarray,
              read: list[Any]) -> tuple[Cells, tuple]:
        """The storage of an access and the cells these threads touch; raises when one is outside."""
        view, access = leaf.view(slot), s.accesses[slot]
        if view is None:
            types = [self.plan.array_of[r.array].dtype for r in s.reads]
            cells = self.globals[access.array]
            index = [e.evaluate(point) if isinstance(e, Expr) else evaluate(e.value, types, point, read, threads.shape)
                     for e in access.index if isinstance(e, Expr | Indirect)]
        else:
            outside = view.buffer in self.globals and view.buffer not in self.local
            cells = (self.globals if outside else self.local)[view.buffer]
            index = [e.evaluate(env) for e in view.index]
            if self.plan.buffer_of[view.buffer].space == "register":
                index = [threads, *index]
        if len(index) != len(cells.shape):
            raise Hazard(f"{leaf.id} uses {cells.name} with {len(index)} indices, its shape is {cells.shape}")
        where = tuple(np.broadcast_to(np.asarray(i, np.int64), threads.shape) for i in index or [0])
        for axis, (i, n) in enumerate(zip(where, cells.data.shape, strict=True)):
            if len(i) and not (i.min() >= 0 and i.max() < n):
                raise Hazard(f"{leaf.id} leaves {cells.name} along axis {axis}: {i.min()}…{i.max()} of {n}")
        return cells, where

    def update(self, leaf: Leaf, s: Statement, cells: Cells, where: tuple, value: np.ndarray, active: np.ndarray, env: Env,
               dims: Env,
               mask: np.ndarray, above: tuple[Loop, ...], space: str) -> None:
        how = dict(leaf.collect)
        op = OPERATIONS[REDUCTIONS[s.update or ""].operation].numpy
        wide = cells.data.dtype
        value = value.astype(wide)
        together = [loop.role for loop in above if how.get(loop.id) in ("shuffle", "shared")]
        atomic = [loop for loop in above if how.get(loop.id) in ("atomic", "cluster")]  # one after the other, in any order
        if atomic and space == "register":
            raise Hazard(f"{leaf.id} collects registers by atomics")
        if together:
            groups = self.groups_of(together)
            first = {}
            for thread, part in zip(active, value, strict=True):
                g = groups[thread]
                first[g] = (thread, part) if g not in first else (first[g][0], wide.type(op(first[g][1], part)))
            members = np.flatnonzero(mask) if space == "register" else np.array([t for t, _ in first.values()])
            members = np.array([t for t in members if groups[t] in first])
            if space != "register":
                position = {t: n for n, t in enumerate(active)}
                for n, t in enumerate(active):
                    if any(w[n] != w[position[first[groups[t]][0]]] for w in where):
                        raise Hazard(f"{leaf.id} collects updates of different cells of {cells.name}")
            some, point = {n: v[members] for n, v in env.items()}, {n: v[members] for n, v in dims.items()}
            value = np.array([first[groups[t]][1] for t in members], wide)
            cells, where = self.place(leaf, s, len(s.reads), some, point, members, [])
        if not atomic:
            self.distinct(leaf, cells, where, len(value))
            self.own(leaf, cells, where)
            self.seen(leaf, cells, where)
            cells.data[where] = cells.rounded(op(cells.data[where], value).astype(wide))
            return
        self.own(leaf, cells, where, atomic=any(loop.is_block for loop in atomic))
        for n, part in enumerate(value):
            one = tuple(w[n] for w in where)
            cells.data[one] = cells.rounded(wide.type(op(cells.data[one], part)))

    def groups_of(self, together: list[str]) -> list[tuple]:
        """For each thread, the coordinates in which it stays apart when these roles are combined."""
        tx = self.coordinate["thread.x"]
        left = {"thread.x": tx, "thread.y": self.coordinate["thread.y"], "thread.z": self.coordinate["thread.z"]}
        if "lane" in together or "warp" in together:
            left |= {"thread.x": tx * 0, "warp": tx // WARP_SIZE, "lane": tx % WARP_SIZE}
        kept = [v for role, v in left.items() if role not in together]
        return list(zip(*kept, strict=True)) if kept else [()] * self.threads

    def distinct(self, leaf: Leaf, cells: Cells, where: tuple, count: int) -> None:
        rows = np.stack([*where, np.zeros(count, int)], axis=1)
        if len(np.unique(rows, axis=0)) < count:
            raise Hazard(f"{leaf.id} writes one cell of {cells.name} in several threads at one time")

    def own(self, leaf: Leaf, cells: Cells, where: tuple, atomic: bool = False) -> None:
        """This block writes these cells of global memory in this launch; no other block may have touched them."""
        if cells.name in self.local or prod(self.grid) == 1:
            return
        allowed = (-1, ATOMIC) if atomic else (-1, self.number)
        if not np.isin(cells.owner[where], allowed).all():
            raise Hazard(f"{leaf.id} writes {cells.name} where another block of the launch does")
        cells.owner[where] = ATOMIC if atomic else self.number

    def seen(self, leaf: Leaf, cells: Cells, where: tuple) -> None:
        if cells.name not in self.local and prod(self.grid) > 1 and not np.isin(cells.owner[where], (-1, self.number)).all():
            raise Hazard(f"{leaf.id} reads {cells.name} where another block of the launch writes")


def holds(constraints: tuple[Constraint, ...], point: Env, shape: tuple[int, ...]) -> np.ndarray:
    """Where all constraints hold."""
    out = np.ones(shape, bool)
    for c in constraints:
        value = c.expr.evaluate(point)
        out &= (value == 0) if c.equality else (value >= 0)
    return out


def evaluate(node: Scalar, types: list[DType], point: Env, read: list[Any], shape: tuple[int, ...]) -> np.ndarray:
    """A scalar expression, one value per thread, in the types that the language prescribes."""
    if isinstance(node, Literal):
        return np.full(shape, node.value, node.dtype.wide.numpy)
    if isinstance(node, IndexValue):
        return np.broadcast_to(np.asarray(node.expr.evaluate(point), np.int64), shape)
    if isinstance(node, Read):
        return read[node.slot]
    if isinstance(node, Cast):
        return Cells("", node.dtype, ()).rounded(evaluate(node.arg, types, point, read, shape))
    assert isinstance(node, Call)
    kinds = [t.numpy for t in argument_types(node, types)]
    parts = [evaluate(a, types, point, read, shape).astype(kind) for kind, a in zip(kinds, node.args, strict=True)]
    return np.asarray(OPERATIONS[node.op].numpy(*parts))
