"""Tensor instructions: what lanes hold, or what lies in shared memory, becomes matrices; their product goes back to the lanes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...ir.expr import Expr, const
from ...ir.instructions import Wgmma, stays_in_flight
from ...ir.layout import Layout
from ...ir.meaning import tf32
from ...ir.tree import Loop
from ..nodes import Multiply, Ref
from .flights import Access
from .lanes import Env, Lanes, Numbers
from .memory import Cells, rounded

if TYPE_CHECKING:
    from .blocks import Blocks


@dataclass
class Fragment:
    """An operand: its storage, and for each thread where its registers are; in shared memory where its tile begins.

    `steps` are how far the next row and the next column of a tile in shared memory are.
    """

    cells: Cells
    where: Numbers
    steps: tuple[int, int] = (0, 0)


def scope(node: Multiply) -> str:
    """Which threads multiply together."""
    return "warpgroup" if isinstance(node.instruction, Wgmma) else "warp"


def layouts(node: Multiply) -> Mapping[Ref, Layout]:
    """The operands that lanes hold, with where their elements lie."""
    row = node.instruction
    if isinstance(row, Wgmma):
        return {node.target: row.accumulator} if row.left is None else {node.operands[0]: row.left, node.target: row.accumulator}
    return dict(zip((*node.operands, node.target), (row.left, row.right, row.accumulator), strict=True))


def collect(blocks: Blocks, node: Multiply, lanes: Lanes, env: Env) -> None:
    """Note where the operands of some threads are: their group multiplies when all have come."""
    access, machine = Access(node, node.site, env), blocks.machine
    for ref, layout in layouts(node).items():
        elements = (replace(ref, index=(*ref.index[:-1], const(r))) for r in range(layout.registers))
        parts = [blocks.where(access, element, lanes)[:2] for element in elements]
        cells, where = parts[0][0], np.stack([p[1] for p in parts], axis=1)
        if machine.watch:
            asked = _exist(blocks, node, layout, lanes, env) if ref is node.target else np.ones(where.shape, bool)
            machine.unknown(access, cells, where[asked], np.repeat(lanes.index, layout.registers).reshape(where.shape)[asked])
        key = id(node), ref
        if key not in blocks.fragments:
            blocks.fragments[key] = Fragment(cells, np.zeros((len(machine.everyone), layout.registers), np.int64))
        blocks.fragments[key].where[lanes.index] = where
    for ref, loops, shape in _tiles(node):
        corners = [blocks.where(access, _at(blocks, ref, loops, place), lanes)[:2] for place in ((0, 0), (1, 0), (0, 1))]
        (cells, first), below, right = corners[0], corners[1][1], corners[2][1]
        steps = int((below - first)[0]), int((right - first)[0])
        key = id(node), ref
        if key not in blocks.fragments:
            blocks.fragments[key] = Fragment(cells, np.zeros((len(machine.everyone), 1), np.int64), steps)
        blocks.fragments[key].where[lanes.index, 0] = first
        if machine.watch:
            by, every = lanes.index, _grid(first, steps, shape).reshape(len(lanes), -1)
            for n in {0, len(lanes) - 1}:  # which thread of the group reads is not known: of two, one is not the writer
                reader = np.repeat(by[n], every.shape[1])
                machine.note(access, cells, every[n], reader, writes=False)
                machine.unknown(access, cells, every[n], reader)
            machine.unfenced(access, cells, every[0], int(by[0]))


def _exist(blocks: Blocks, node: Multiply, layout: Layout, lanes: Lanes, env: Env) -> Numbers:
    """Which elements of the accumulator, for each lane and register, are of the program: the others of a tile are nobody's."""
    rows, columns, depth = (blocks.low.variable[x.id] for x in node.loops)
    out = np.ones((len(lanes), layout.registers), bool)
    conditions = [c for c in node.site.conditions if depth not in c.variables()]
    lane = blocks.machine.thread_of % layout.lanes
    for register in range(layout.registers) if conditions else ():
        at = {"lane": lane, "register": np.full_like(lane, register)}
        here = {**env, rows: layout.row.evaluate(at), columns: layout.column.evaluate(at)}
        for c in conditions:
            out[:, register] &= lanes.each(blocks.holds((c,), lanes, here))
    return out


def _tiles(node: Multiply) -> Sequence[tuple[Ref, tuple[Loop, Loop], tuple[int, int]]]:
    """The factors in shared memory, with the loops over their rows and columns, and how many there are of these."""
    row, (m, n, k) = node.instruction, node.loops
    if not isinstance(row, Wgmma):
        return ()
    both = (node.operands[0], (m, k), (row.m, row.k)), (node.operands[1], (k, n), (row.k, row.n))
    return tuple(both[slot] for slot in row.shared)


def _at(blocks: Blocks, ref: Ref, loops: tuple[Loop, Loop], place: tuple[int, int]) -> Ref:
    """An element of a tile in shared memory."""
    values = {blocks.low.variable[x.id]: const(n) for x, n in zip(loops, place, strict=True)}
    return replace(ref, index=tuple(e.substitute(values) if isinstance(e, Expr) else e for e in ref.index))


def _grid(first: Numbers, steps: tuple[int, int], shape: tuple[int, int]) -> Numbers:
    """Where the elements of tiles are, row by row."""
    rows, columns = np.arange(shape[0]) * steps[0], np.arange(shape[1]) * steps[1]
    return first.reshape(-1)[:, None, None] + rows[:, None] + columns


@dataclass
class Product:
    """The product of a warp or a warpgroup, with where its operands are; in flight until it is `done` and waited for."""

    access: Access
    threads: Numbers
    held: dict[Ref, Fragment]
    tiles: dict[Ref, Fragment]
    done: bool = False

    @property
    def node(self) -> Multiply:
        """The instruction."""
        assert isinstance(self.access.node, Multiply)
        return self.access.node

    def compute(self, blocks: Blocks) -> None:
        """``c += a @ b``, of what the operands are now."""
        node, layout = self.node, layouts(self.node)
        matrices = {ref: _matrix(fragment, layout[ref]) for ref, fragment in self.held.items()}
        for ref, _, shape in _tiles(node):
            tile = self.tiles[ref]
            matrices[ref] = tile.cells.load(_grid(tile.where, tile.steps, shape)[0])
        left, right, total = (_wide(matrices[ref]) for ref in (*node.operands, node.target))
        if node.instruction.significand:
            left, right = tf32(left), tf32(right)
        wide, result, at = blocks.dtype(node.site).wide, self.held[node.target], _places(layout[node.target])
        out = rounded(left.astype(total.dtype) @ right.astype(total.dtype) + total, wide, blocks.exact)
        row, column = layout[node.target].row.evaluate(at), layout[node.target].column.evaluate(at)
        result.cells.store(result.where, out[row, column])
        self.done = True

    def mark(self, on: bool) -> None:
        """The accumulator is, or is no longer, one that nobody else may use; a left factor in registers, that nobody writes."""
        for ref, fragment in self.held.items():
            cells, owner = fragment.cells, self.threads[:, None] if on else -1
            if ref is self.node.target:
                cells.flight = np.full(cells.data.size, -1) if cells.flight is None else cells.flight
                cells.flight[fragment.where] = owner
            else:
                cells.lent = np.full(cells.data.size, -1) if cells.lent is None else cells.lent
                cells.lent[fragment.where] = owner


def multiply(blocks: Blocks, access: Access, group: int) -> None:
    """The product of the tile that a warp or a warpgroup holds: at once, or some time before its wait."""
    machine, node = blocks.machine, access.node
    assert isinstance(node, Multiply)
    threads = np.flatnonzero((machine.warpgroups() if scope(node) == "warpgroup" else machine.warps()) == group)
    assert len(threads) == node.instruction.lanes, "blocks are whole warps, or warpgroups, where lanes are bound"

    def own(ref: Ref, of: Numbers) -> Fragment:
        found = blocks.fragments[id(node), ref]
        return replace(found, where=found.where[of])

    product = Product(access, threads, {ref: own(ref, threads) for ref in layouts(node)},
                      {ref: own(ref, threads[:1]) for ref, _, _ in _tiles(node)})
    if not stays_in_flight(node.site.leaf.mechanism):
        product.compute(blocks)
        return
    if machine.order.early:
        product.compute(blocks)
    if machine.watch:
        product.mark(True)
    blocks.products.setdefault(group, []).append(product)


def wait(blocks: Blocks, pending: int, group: int) -> None:
    """All but the youngest products of a warpgroup are complete."""
    flying = blocks.products.get(group, [])
    for product in flying[: max(len(flying) - pending, 0)]:
        if not product.done:
            product.compute(blocks)
        if blocks.machine.watch:
            product.mark(False)
            _read_again(blocks, product)
    del flying[: max(len(flying) - pending, 0)]
    if blocks.machine.watch:
        for product in flying:  # one of the same registers
            product.mark(True)


def _read_again(blocks: Blocks, product: Product) -> None:
    """Up to its wait a product may still read its factors."""
    for ref, _, shape in _tiles(product.node):
        tile = product.tiles[ref]
        every = _grid(tile.where, tile.steps, shape).reshape(-1)
        for reader in product.threads[[0, -1]]:
            blocks.machine.note(product.access, tile.cells, every, np.full(len(every), reader), writes=False)


def _places(layout: Layout) -> dict[str, Numbers]:
    lane, register = np.meshgrid(np.arange(layout.lanes), np.arange(layout.registers), indexing="ij")
    return {"lane": lane, "register": register}


def _wide(matrix: Numbers) -> Numbers:
    return matrix.astype(np.float64 if matrix.dtype.kind == "f" else np.int64)


def _matrix(fragment: Fragment, layout: Layout) -> Numbers:
    """The matrix of which each lane holds some elements."""
    at, data = _places(layout), fragment.cells.load(fragment.where)
    out = np.zeros((layout.rows, layout.columns), data.dtype)
    out[layout.row.evaluate(at), layout.column.evaluate(at)] = data
    return out
