"""Where the operands of a node lie, and what is there: loads and stores of some threads at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.expr import Expr
from ...ir.program import Indirect
from ...ir.tree import WARP_SIZE
from ..conditions import Condition
from ..index import linear
from ..nodes import AnyOf, Held, Operand, Ref
from ..sites import Lowered
from .flights import Access
from .lanes import Env, Lanes, Numbers, spread
from .machine import Machine
from .memory import Cells
from .values import evaluate

Reads = Sequence[Operand]


class Elements:
    """Indices, conditions and operands of one kernel.

    Parameters
    ----------
    machine : Machine
    low : Lowered
    """

    def __init__(self, machine: Machine, low: Lowered) -> None:
        self.machine, self.low, self.exact = machine, low, machine.exact
        self._offsets: dict[int, tuple[Operand, Expr | None]] = {}
        self._indices: dict[tuple[str, Expr], Expr] = {}

    # -- indices and conditions ---------------------------------------------------------------------------------

    def number(self, e: Expr, lanes: Lanes, env: Env) -> Any:
        """An integer expression: one number, or one for each of the threads."""
        if not e.terms:
            return e.const
        return e.evaluate({name: lanes.of(env[name]) for name in e.variables()})

    def holds(self, conditions: Sequence[Condition], lanes: Lanes, env: Env) -> Any:
        """Where all conditions hold."""
        out: Any = True
        for c in conditions:
            value = self.number(c.expr, lanes, env)
            out = out & ((value == 0) if c.equality else (value >= 0))
        return out

    def any_of(self, edge: AnyOf | None, lanes: Lanes, env: Env) -> Any:
        """Where one of several conjunctions holds; without any, everywhere."""
        out: Any = not edge
        for conjunction in edge or ():
            out = out | self.holds(conjunction, lanes, env)
        return lanes.each(out)

    # -- elements -----------------------------------------------------------------------------------------------

    def place(self, access: Access, o: Operand, lanes: Lanes, reads: Reads = ()) -> tuple[Cells, Numbers]:
        """The storage of an operand and its element in it, without the threads' own copies; all lanes of a vector."""
        env, offset = access.env, self.offset(o)
        held = isinstance(o, Held)
        cells = self.machine.cells(o.local if held else o.store)[0]
        if offset is not None:
            first = self.number(offset, lanes, env)
        else:
            assert isinstance(o, Ref)
            first = 0
            for e, extent in zip(o.index, cells.shape, strict=True):
                part = self.number(e, lanes, env) if isinstance(e, Expr) else self._indirect(access, e, lanes, reads)
                first = first * extent + part
        width = o.lanes if isinstance(o, Ref) else 1 if o.lane is not None else o.local.lanes
        flat = lanes.each(first)
        return cells, flat[:, None] + np.arange(width) if width > 1 else flat

    def offset(self, o: Operand) -> Expr | None:
        """The operand's offset as one expression; None where an index is data."""
        known = self._offsets.get(id(o))
        if known is None:
            known = self._offsets[id(o)] = o, _offset(o)
        return known[1]

    def _indirect(self, access: Access, index: Indirect, lanes: Lanes, reads: Reads) -> Numbers:
        value = self.scalar(access, index.value, lanes, reads)
        return lanes.each(value).astype(np.int64)

    def copies(self, o: Operand, lanes: Lanes, cells: Cells, env: Env | None = None) -> Any:
        """Where the threads' own copies of the storage begin."""
        own = self.machine.cells(o.local if isinstance(o, Held) else o.store)[1]
        if own is None or not isinstance(o, Ref) or o.of_lane is None:
            return 0 if own is None else np.asarray(lanes.of(own)) * cells.size
        return np.asarray(own)[self.asked(o.of_lane, lanes, env or {})] * cells.size

    def asked(self, lane: Expr, lanes: Lanes, env: Env) -> Numbers:
        """The threads whose registers some threads read by a shuffle: other lanes of their warps."""
        return lanes.index // WARP_SIZE * WARP_SIZE + lanes.each(self.number(lane, lanes, env))

    def where(self, access: Access, o: Operand, lanes: Lanes, reads: Reads = (),
              valid: Any = True) -> tuple[Cells, Numbers, Numbers]:
        """Storage, elements in it, and which of them exist (of those that are `valid`)."""
        cells, flat = self.place(access, o, lanes, reads)
        good = (flat >= 0) & (flat < cells.size)
        if self.machine.watch:
            good = good & self.in_axes(o, lanes, access.env)
        if not good.all():
            self.machine.outside(access, cells, flat, ~good & valid, lanes.by(flat))
        base = self.copies(o, lanes, cells, access.env)
        base = base[:, None] if np.ndim(base) and flat.ndim > 1 else base
        if valid is not True:
            good = good & valid
        return cells, (flat if good.all() else np.where(good, flat, 0)) + base, good

    def in_axes(self, o: Operand, lanes: Lanes, env: Env) -> Any:
        """Where each index of an element is one of its axis: the next row is no part of this one."""
        shape = o.store.shape if isinstance(o, Ref) and not (o.flat or o.store.slots or o.lanes > 1) else ()
        out: Any = True
        for e, extent in zip(o.index, shape, strict=False) if len(shape) > 1 else ():
            if isinstance(e, Expr):
                value = self.number(e, lanes, env)
                out = out & (value >= 0) & (value < extent)
        return out

    def load(self, access: Access, o: Operand, lanes: Lanes, reads: Reads = (), valid: Any = True,
             used: bool = True) -> tuple[Numbers, Numbers]:
        """What an operand holds where that is `valid`, and whether it is known; `used` is not just moved."""
        cells, where, good = self.where(access, o, lanes, reads, valid)
        if self.machine.watch:
            other = o.of_lane if isinstance(o, Ref) else None
            some, by = where[good], (lanes.by(where) if other is None else self.asked(other, lanes, access.env))[good]
            if some.size:
                self.machine.note(access, cells, some, by, writes=False)
                if used:
                    self.machine.unknown(access, cells, some, by)
        value = cells.load(where)
        return value, cells.known[where] & good

    def put(self, access: Access, o: Operand, lanes: Lanes, value: Any, known: Any = True, reads: Reads = (),
            atomic: bool = False) -> None:
        """An operand becomes a value."""
        cells, where, good = self.where(access, o, lanes, reads)
        value, known, by = spread(value, where.shape), spread(known, where.shape), lanes.by(where)
        if not good.all():
            where, value, known, by = where[good], value[good], known[good], by[good]
        if where.size:
            self.machine.note(access, cells, where.reshape(-1), by.reshape(-1), True, atomic)
            cells.store(where, value, known)

    def scalar(self, access: Access, value: Any, lanes: Lanes, reads: Reads) -> Numbers:
        """A scalar expression over the operands."""
        site, held = access.site, dict[int, Numbers]()

        def read(slot: int) -> Numbers:
            if slot not in held:
                held[slot] = self.load(access, reads[slot], lanes, reads)[0]
            return held[slot]

        def index(e: Expr) -> Any:
            key = site.leaf.id, e
            if key not in self._indices:
                self._indices[key] = e.substitute(site.at, site.ranges)
            return self.number(self._indices[key], lanes, access.env)

        return evaluate(value, self.low.dtypes(site), read, index, self.exact)


def _offset(o: Operand) -> Expr | None:
    if isinstance(o, Held):
        first = linear(list(o.index), o.local.shape) * o.local.lanes
        return first + o.lane if o.lane is not None else first
    index = [e for e in o.index if isinstance(e, Expr)]
    if len(index) < len(o.index):
        return None
    return index[0] if o.flat or o.store.slots else linear(index, o.store.shape)
