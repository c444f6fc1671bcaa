"""The fragments figure: which lane holds each element of a tensor instruction's operand, and in which register.

Operands that the instruction reads in shared memory have banks instead: the figure shows them as the buffer is placed, and as it
would be without its swizzle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir.instructions import instruction
from ...ir.layout import Layout
from ...ir.plan import Plan
from ...ir.swizzle import UNIT, offset, swizzled
from ...ir.tree import Leaf, Loop
from ...poly.sites import sites
from ...poly.tensor import operands
from ...poly.traffic import BANKS, WORD_BYTES
from ...schedule import Schedule
from .asked import Asked, Look

ROWS, COLUMNS = 16, 32
"""Elements that are drawn, down and across, at most."""
OPERANDS = ("left", "right", "sum")
TOGETHER = 8
"""Rows of 16 bytes that are read at once, as ldmatrix and wgmma do (PTX ISA, "Strides")."""


@dataclass(frozen=True)
class Element:
    """An element of an operand: where it is, and the lane and register, or the byte of shared memory, that hold it."""

    row: int
    column: int
    lane: int = -1
    register: int = -1
    byte: int = -1

    @property
    def bank(self) -> int:
        """Of shared memory."""
        return self.byte // WORD_BYTES % BANKS


@dataclass(frozen=True)
class Fragments:
    """An operand of a tensor instruction.

    Attributes
    ----------
    leaf, instruction, operand, buffer : str
        The buffer holds the operand in registers, or in shared memory.
    rows, columns : int
        Of the whole operand.
    lanes : int
        That hold it together; 0 for shared memory.
    registers : int
        Elements of a lane.
    swizzle : int
        Of the buffer as it is drawn, in bytes.
    passes : int
        Passes over the banks for eight rows of 16 bytes; 0 for registers.
    elements : tuple of Element
        Those that are drawn.
    """

    leaf: str
    instruction: str
    operand: str
    buffer: str
    rows: int
    columns: int
    lanes: int
    registers: int
    swizzle: int
    passes: int
    elements: tuple[Element, ...]


def fragments(schedule: Schedule, asked: Asked, look: Look) -> Fragments | str:
    """An operand, or a sentence where there is no tensor instruction."""
    plan = schedule.plan
    found = {leaf.id: (leaf, above) for leaf, above, _ in plan.leaves if operands(leaf, above)}
    if not found:
        return ("No leaf is a tensor instruction: each element is in the registers of one thread, or in memory. tensorize an "
                "update that multiplies and adds.")
    focus = next((n for n, (_, above) in found.items() if look.node == n or any(x.id == look.node for x in above[-3:])), "")
    leaf, above = found[asked.one_of("product", "product", list(found), focus or next(iter(found)))]
    row, held = instruction(leaf.mechanism), operands(leaf, above)
    assert row is not None
    assert held is not None
    words = {name: f"{name}: {view.buffer}" for slot, name in enumerate(OPERANDS) if (view := leaf.view(slot))}
    opened = next((name for slot, name in enumerate(OPERANDS) if (view := leaf.view(slot)) and view.buffer == look.node), "left")
    name = asked.one_of("operand", "operand", words or list(OPERANDS), opened if opened in words else next(iter(words), "left"))
    slot = OPERANDS.index(name)
    layout, i, j = held[slot]
    high, wide = plan.loops[i].extent, plan.loops[j].extent
    rows, columns = _window(asked, "rows", high, ROWS), _window(asked, "columns", wide, COLUMNS)
    view = leaf.view(slot)
    buffer = view.buffer if view else plan.statement_of[leaf.statement].accesses[slot].array
    if layout is not None:
        elements = _held(layout, rows, columns)
        return Fragments(leaf.id, row.name, name, buffer, high, wide, layout.lanes, layout.registers, 0, 0, elements)
    return _shared(plan, leaf, above, row.name, slot, (i, j), (high, wide), rows, columns, asked)


def _window(asked: Asked, name: str, extent: int, most: int) -> range:
    """The rows, or columns, that are drawn."""
    starts = range(0, extent, most)
    labels = {str(n): f"{n} to {min(n + most, extent) - 1}" for n in starts}
    start = int(asked.one_of(name, name, labels, "0"))
    return range(start, min(start + most, extent))


def _held(layout: Layout, rows: range, columns: range) -> tuple[Element, ...]:
    """Elements with their lanes and registers."""
    at = [(r, c, {"row": r, "column": c}) for r in rows for c in columns]
    return tuple(Element(r, c, int(layout.lane.evaluate(e)), int(layout.register.evaluate(e))) for r, c, e in at)


def _shared(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], name: str, slot: int, axes: tuple[str, str],
            extents: tuple[int, int], rows: range, columns: range, asked: Asked) -> Fragments:  # fmt: skip
    """Elements with their places in shared memory, in the first step of the first block."""
    kernel = next(k for x, _, k in plan.leaves if x.id == leaf.id)
    site = next(s for s in sites(plan)[kernel.id] if s.leaf.id == leaf.id and s.slot == slot)
    buffer = plan.buffer_of[site.storage]
    mode = buffer.swizzle
    if mode and asked.one_of("swizzle", "swizzle", {"as it is": f"{mode} bytes", "without": "without"}, "as it is") == "without":
        mode = 0
    place = offset(buffer, [e for e in site.cell if e is not None], {})
    start = {x.id: x.start for x in above}
    size = buffer.dtype.bytes

    def byte(r: int, c: int, swizzle: int) -> int:
        return int(swizzled(np.asarray(place.evaluate({**start, axes[0]: r, axes[1]: c})), swizzle, size)) * size

    elements = tuple(Element(r, c, byte=byte(r, c, mode)) for r in rows for c in columns)
    down = abs(byte(0, 1, 0) - byte(0, 0, 0)) == size  # rows of memory lie below each other
    eight = [byte(n, 0, mode) if down else byte(0, n, mode) for n in range(min(TOGETHER, extents[0 if down else 1]))]
    units = [b // UNIT % (BANKS * WORD_BYTES // UNIT) for b in eight]
    passes = max(units.count(u) for u in units)
    return Fragments(leaf.id, name, OPERANDS[slot], buffer.name, extents[0], extents[1], 0, 0, mode, passes, elements)
