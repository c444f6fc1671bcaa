"""A plan executed in NumPy, with its storage, in an order that its kernels allow: to show what an illegal order computes.

All places (threads of blocks) run every statement together: at one instant all read before any writes, and of several writes
to one cell one survives.  Every barrier that could stand between two statements of a block is thereby respected, so what goes
wrong goes wrong with any barriers.  Blocks of a launch run together too, or one after the other in either direction: no
barrier orders them.  Floats are computed in float64 and not rounded; storage starts as NaN, and again whenever its scope is
entered; an asynchronous copy lands at the wait for its group, or as soon as it is issued: it may at any time between.

It takes any plan, legal or not; for a legal one every order gives what the program says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ...errors import DeviceError
from ...ir.dtype import DType, bf16_to_f32
from ...ir.expr import Expr
from ...ir.operations import OPERATIONS
from ...ir.plan import Plan, block_extents, grid_extents
from ...ir.program import Constraint, Statement
from ...ir.scalar import REDUCTIONS, Call, Cast, IndexValue, Literal, Read, Scalar, argument_types
from ...ir.tree import WARP_SIZE, Kernel, Leaf, Loop, Node, Sync

AXES = ("block.x", "block.y", "block.z", "thread.x", "thread.y", "thread.z")
Env = dict[str, np.ndarray]
"""Loop variable or statement dimension to its value in every place."""
Where = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Order:
    """One order of places.

    Attributes
    ----------
    blocks : str
        ``"together"``, ``"first to last"`` or ``"last to first"``.
    last_wins : bool
        Of several places that write one cell at one instant, whether the last one's value stays.
    early : bool
        Whether asynchronous copies land as soon as they are issued.
    """

    blocks: str = "together"
    last_wins: bool = True
    early: bool = False

    def __str__(self) -> str:
        blocks = "all blocks at once" if self.blocks == "together" else f"the blocks from {self.blocks}"
        early = ", asynchronous copies landing at once" if self.early else ""
        return f"{blocks}, the {'last' if self.last_wins else 'first'} thread's write kept{early}"


def run_lockstep(plan: Plan, arrays: Mapping[str, np.ndarray], order: Order) -> dict[str, np.ndarray]:
    """What the plan writes.

    Parameters
    ----------
    plan : Plan
        Legal or not.
    arrays : mapping of str to ndarray
        Every input, as a device takes it (bf16 as its bits).
    order : Order

    Returns
    -------
    dict of str to ndarray
        The outputs in float64, or the compute type of integers.

    Raises
    ------
    DeviceError
        If an access leaves its storage.
    """
    return _Machine(plan, arrays, order).run()


def _wide(dtype: DType) -> np.dtype:
    return np.dtype(np.float64) if dtype.kind == "float" else dtype.wide.numpy


class _Cells:
    """Storage of an array or buffer; `owner` says who has one of their own."""

    def __init__(self, name: str, dtype: DType, shape: tuple[int, ...], owner: str = "") -> None:
        self.name, self.kind, self.owner = name, dtype.kind, owner
        self.data = np.empty(shape or (1,), _wide(dtype))
        self.poison()

    def poison(self) -> None:
        self.data[...] = {"float": np.nan, "int": 90, "bool": False}[self.kind]


class _Machine:
    """Global memory, and the places of the launch that runs now."""

    def __init__(self, plan: Plan, arrays: Mapping[str, np.ndarray], order: Order) -> None:
        self.plan, self.order = plan, order
        self.globals = {a.name: _Cells(a.name, a.dtype, a.shape) for a in plan.program.arrays}
        self.globals |= {b.name: _Cells(b.name, b.dtype, b.shape) for b in plan.buffers if b.space == "global"}
        for a in plan.program.parameters:
            if a.role != "out":
                given = arrays[a.name]
                values = bf16_to_f32(given).reshape(a.shape) if a.dtype.name == "bf16" else given
                self.globals[a.name].data.reshape(a.shape)[...] = values

    def run(self) -> dict[str, np.ndarray]:
        with np.errstate(all="ignore"):
            for kernel in self.plan.kernels:
                self.launch(kernel, kernel.body, {})
        return {a.name: self.globals[a.name].data.reshape(a.shape) for a in self.plan.program.parameters if a.role != "in"}

    def launch(self, kernel: Kernel, body: tuple[Node, ...], env: dict[str, int]) -> None:
        """One launch, or one for each iteration of the kernel's host loops."""
        if len(body) == 1 and isinstance(body[0], Loop) and body[0].role == "launch":
            for value in range(body[0].start, body[0].start + body[0].extent):
                self.launch(kernel, body[0].body, {**env, body[0].id: value})
            return
        grid, block = grid_extents(kernel), block_extents(kernel)
        self.sizes = dict(zip(AXES, (*grid, *block), strict=True))
        self.blocks, self.threads = prod(grid), prod(block)
        flat = np.arange(self.blocks * self.threads)
        self.block_of, thread = flat // self.threads, flat % self.threads
        tx = thread % block[0]
        self.at = {"block.x": self.block_of % grid[0], "block.y": self.block_of // grid[0] % grid[1],
                   "block.z": self.block_of // (grid[0] * grid[1]), "thread.x": tx, "thread.y": thread // block[0] % block[1],
                   "thread.z": thread // (block[0] * block[1]), "warp": tx // WARP_SIZE, "lane": tx % WARP_SIZE}
        self.local = {b.name: _Cells(b.name, b.dtype, (self.blocks if b.space == "shared" else flat.size, *b.shape), b.space)
                      for b in self.plan.buffers if b.space != "global"}
        everywhere = {name: np.broadcast_to(value, flat.shape) for name, value in env.items()}
        for mask in self.turns():
            self.open: list[tuple[_Cells, Where, np.ndarray]] = []
            self.groups: list[list[tuple[_Cells, Where, np.ndarray]]] = []
            self.nodes(body, everywhere, mask, ())

    def turns(self) -> list[np.ndarray]:
        """The places that run together, turn after turn."""
        if self.order.blocks == "together":
            return [np.ones(self.block_of.shape, bool)]
        numbers = range(self.blocks) if self.order.blocks == "first to last" else range(self.blocks - 1, -1, -1)
        return [self.block_of == number for number in numbers]

    def nodes(self, nodes: tuple[Node, ...], env: Env, mask: np.ndarray, above: tuple[Loop, ...]) -> None:
        for node in nodes:
            if isinstance(node, Leaf):
                self.leaf(node, env, mask, above)
            elif isinstance(node, Sync):
                self.sync(node)
            elif node.is_place:
                value = self.at[node.role]
                inside = (value >= node.start) & (value < node.start + node.extent)
                self.enter(node, {**env, node.id: value}, mask & inside, above)
            else:
                for value in range(node.start, node.start + node.extent):
                    self.enter(node, {**env, node.id: np.full(mask.shape, value)}, mask, above)

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

    def leaf(self, leaf: Leaf, env: Env, mask: np.ndarray, above: tuple[Loop, ...]) -> None:
        statement = self.plan.statement_of[leaf.statement]
        mask = mask & self.workers(leaf, statement, above)
        point = {d: np.broadcast_to(e.evaluate(env), mask.shape) for d, e in leaf.at}
        active = np.flatnonzero(mask & _holds(statement.domain, point, mask.shape))
        if not active.size:
            return
        value = self.value(leaf, statement, _some(env, active), _some(point, active), active)
        cells, where = self.place(leaf, statement, len(statement.reads), _some(env, active), _some(point, active), active, [])
        if leaf.mechanism == "async" and not self.order.early:
            self.open.append((cells, where, value))
        elif statement.update is None:
            self.write(cells, where, value)
        else:
            self.update(leaf, statement, cells, where, value, active, env, point, mask, above)

    def workers(self, leaf: Leaf, statement: Statement, above: tuple[Loop, ...]) -> np.ndarray:
        """The places that run the leaf where no loop around it says: all for registers, the first one for what they share."""
        target = leaf.view(len(statement.reads))
        space = self.plan.buffer_of[target.buffer].space if target else "global"
        bound = {loop.role for loop in above}
        if {"warp", "lane"} <= bound or ("lane" in bound and self.sizes["thread.x"] <= WARP_SIZE):
            bound.add("thread.x")
        out = np.ones(self.block_of.shape, bool)
        for role, size in self.sizes.items():
            single = space == "global" or (space == "shared" and role.startswith("thread"))
            if size > 1 and role not in bound and single:
                out &= self.at[role] == 0
        return out

    def value(self, leaf: Leaf, s: Statement, env: Env, point: Env, places: np.ndarray) -> np.ndarray:
        """The statement's value in these places; where `inside` fails, its fill."""
        kept = np.flatnonzero(_holds(s.inside, point, places.shape))
        env, there = _some(env, kept), _some(point, kept)
        read: list[Any] = [None] * len(s.reads)
        for slot in sorted(range(len(s.reads)), key=lambda n: not s.reads[n].affine):
            cells, where = self.place(leaf, s, slot, env, there, places[kept], read)
            read[slot] = cells.data[where]
        result = self.evaluate(s.value, self.types(s), there, read, kept.shape)
        out = np.full(places.shape, s.fill, dtype=result.dtype)
        out[kept] = result
        return out

    def types(self, s: Statement) -> list[DType]:
        return [self.plan.array_of[r.array].dtype for r in s.reads]

    def place(self, leaf: Leaf, s: Statement, slot: int, env: Env, point: Env, places: np.ndarray,
              read: list[Any]) -> tuple[_Cells, Where]:  # fmt: skip
        """The storage of an access and the cells that these places touch."""
        view, access = leaf.view(slot), s.accesses[slot]
        if view is None:
            cells = self.globals[access.array]
            types = self.types(s)
            index = [e.evaluate(point) if isinstance(e, Expr) else self.evaluate(e.value, types, point, read, places.shape)
                     for e in access.index]
        else:
            cells = self.local.get(view.buffer) or self.globals[view.buffer]
            index = [e.evaluate(env) for e in view.index]
            index = [*{"register": [places], "shared": [self.block_of[places]]}.get(cells.owner, []), *index]
        where = tuple(np.broadcast_to(np.asarray(i, np.int64), places.shape) for i in index or [0])
        for axis, (i, n) in enumerate(zip(where, cells.data.shape, strict=True)):
            if i.size and not (i.min() >= 0 and i.max() < n):
                raise DeviceError(f"{leaf.id} leaves {cells.name}",
                                  why=f"index {int(i.min())} to {int(i.max())} along axis {axis} of {n}")
        return cells, where

    def write(self, cells: _Cells, where: Where, value: np.ndarray) -> None:
        """Of several writes to one cell, the last or the first stays."""
        if not self.order.last_wins:
            where, value = tuple(w[::-1] for w in where), value[::-1]
        cells.data[where] = value

    def update(self, leaf: Leaf, s: Statement, cells: _Cells, where: Where, value: np.ndarray, active: np.ndarray, env: Env,
               point: Env, mask: np.ndarray, above: tuple[Loop, ...]) -> None:  # fmt: skip
        """A reduction: collected as the leaf says; what nothing collects is read, changed and written by all at once."""
        how = dict(leaf.collect)
        op = OPERATIONS[REDUCTIONS[s.update or ""].operation].numpy
        value = value.astype(cells.data.dtype)
        together = [loop.role for loop in above if how.get(loop.id) in ("shuffle", "shared")]
        if together:
            group = self.groups_of(together)
            total: dict[tuple[int, ...], Any] = {}
            first: dict[tuple[int, ...], int] = {}
            for place, part in zip(active, value, strict=True):
                key = tuple(int(g[place]) for g in group)
                total[key] = op(total[key], part) if key in total else part
                first.setdefault(key, int(place))
            everyone = [int(p) for p in np.flatnonzero(mask) if tuple(int(g[p]) for g in group) in total]
            members = np.array(everyone if cells.owner == "register" else list(first.values()))
            value = np.array([total[tuple(int(g[p]) for g in group)] for p in members], cells.data.dtype)
            cells, where = self.place(leaf, s, len(s.reads), _some(env, members), self.dims(leaf, env, members), members, [])
        if any(h in ("atomic", "cluster") for h in how.values()):
            for n, part in enumerate(value):
                one = tuple(w[n] for w in where)
                cells.data[one] = op(cells.data[one], part)
            return
        self.write(cells, where, op(cells.data[where], value).astype(cells.data.dtype))

    def dims(self, leaf: Leaf, env: Env, members: np.ndarray) -> Env:
        return {d: np.broadcast_to(e.evaluate(_some(env, members)), members.shape) for d, e in leaf.at}

    def groups_of(self, together: list[str]) -> list[np.ndarray]:
        """The coordinates in which places stay apart when these roles are combined."""
        left = {"block": self.block_of, **{role: self.at[role] for role in AXES[3:]}}
        if "lane" in together or "warp" in together:
            left |= {"thread.x": self.at["thread.x"] * 0, "warp": self.at["warp"], "lane": self.at["lane"]}
        return [v for role, v in left.items() if role not in together]

    def evaluate(self, node: Scalar, types: list[DType], point: Env, read: list[Any], shape: tuple[int, ...]) -> np.ndarray:
        """A scalar expression, one value for each place."""
        if isinstance(node, Literal):
            return np.full(shape, node.value, _wide(node.dtype))
        if isinstance(node, IndexValue):
            return np.broadcast_to(np.asarray(node.expr.evaluate(point), np.int64), shape)
        if isinstance(node, Read):
            return np.asarray(read[node.slot])
        if isinstance(node, Cast):
            value = self.evaluate(node.arg, types, point, read, shape)
            kept = value if node.dtype.kind == "float" else value.astype(node.dtype.numpy)
            return kept.astype(_wide(node.dtype))
        assert isinstance(node, Call)
        kinds = [_wide(t) for t in argument_types(node, types)]
        parts = [self.evaluate(a, types, point, read, shape).astype(kind) for kind, a in zip(kinds, node.args, strict=True)]
        return np.asarray(OPERATIONS[node.op].numpy(*parts))


def _some(values: Env, chosen: np.ndarray) -> Env:
    return {name: value[chosen] for name, value in values.items()}


def _holds(constraints: tuple[Constraint, ...], point: Env, shape: tuple[int, ...]) -> np.ndarray:
    """Where all constraints hold."""
    out = np.ones(shape, bool)
    for c in constraints:
        value = c.expr.evaluate(point)
        out &= (value == 0) if c.equality else (value >= 0)
    return out
