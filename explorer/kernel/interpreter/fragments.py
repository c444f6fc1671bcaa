"""Tensor instructions: what the lanes of a warp hold becomes matrices, and their product goes back to the lanes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...ir.expr import const
from ...ir.layout import LANES, Layout
from ..nodes import Multiply, Ref
from .flights import Access
from .lanes import Env, Lanes, Numbers
from .memory import Cells, rounded

if TYPE_CHECKING:
    from .blocks import Blocks

Fragment = tuple[Cells, Numbers]
"""Storage, and each thread's registers of the fragment in it."""


def layouts(node: Multiply) -> Mapping[Ref, Layout]:
    """The operands with where their elements lie."""
    row = node.instruction
    return dict(zip((*node.operands, node.target), (row.left, row.right, row.accumulator), strict=True))


def collect(blocks: Blocks, node: Multiply, lanes: Lanes, env: Env) -> None:
    """Note where the registers of some threads are: their warp multiplies when all have come."""
    access, machine = Access(node, node.site, env), blocks.machine
    for ref, layout in layouts(node).items():
        elements = (replace(ref, index=(*ref.index[:-1], const(r))) for r in range(layout.registers))
        parts = [blocks.where(access, element, lanes)[:2] for element in elements]
        cells, where = parts[0][0], np.stack([p[1] for p in parts], axis=1)
        if machine.watch:
            machine.unknown(access, cells, where.reshape(-1), np.repeat(lanes.index, layout.registers))
        key = id(node), ref
        if key not in blocks.fragments:
            blocks.fragments[key] = cells, np.zeros((len(machine.everyone), layout.registers), np.int64)
        blocks.fragments[key][1][lanes.index] = where


def multiply(blocks: Blocks, node: Multiply, warp: int) -> None:
    """``c += a @ b`` of the tile that a warp holds."""
    threads = np.flatnonzero(blocks.machine.warps() == warp)
    assert len(threads) == LANES, "blocks are whole warps where lanes are bound"
    found = [(*blocks.fragments[id(node), ref], layout) for ref, layout in layouts(node).items()]
    left, right, total = (_matrix(cells, where[threads], layout) for cells, where, layout in found)
    cells, where, layout = found[2]
    wide = blocks.dtype(node.site).wide
    out = rounded(left.astype(total.dtype) @ right.astype(total.dtype) + total, wide, blocks.exact)
    lane, register = _places(layout)
    cells.store(where[threads], out[layout.row.evaluate({"lane": lane, "register": register}),
                                    layout.column.evaluate({"lane": lane, "register": register})])


def _places(layout: Layout) -> tuple[Numbers, Numbers]:
    lane, register = np.meshgrid(np.arange(LANES), np.arange(layout.registers), indexing="ij")
    return lane, register


def _matrix(cells: Cells, where: Numbers, layout: Layout) -> Numbers:
    """The matrix of which each lane holds some elements."""
    lane, register = _places(layout)
    at = {"lane": lane, "register": register}
    data = cells.load(where)
    out = np.zeros((layout.rows, layout.columns), np.float64 if data.dtype.kind == "f" else np.int64)
    out[layout.row.evaluate(at), layout.column.evaluate(at)] = data
    return out
