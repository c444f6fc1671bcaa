"""What threads do between two meetings: loads, stores, arithmetic, loops and conditions, for some threads at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import singledispatchmethod
from typing import Any

import numpy as np

from ...ir.coding import coded
from ...ir.dtype import DType
from ...ir.operations import OPERATIONS
from ...ir.scalar import REDUCTIONS, Read
from ..accesses import is_move
from ..conditions import Condition
from ..nodes import (
    Apply,
    Arrive,
    AwaitTurn,
    Begin,
    BulkCopy,
    BulkStore,
    Collect,
    Commit,
    Contribute,
    Copy,
    Declare,
    Do,
    For,
    Get,
    Held,
    If,
    Let,
    Load,
    Mask,
    MoveMatrix,
    Node,
    Operand,
    PassTurn,
    Put,
    Ref,
    Wait,
    WaitStores,
)
from ..printer import cells_of, writers_of
from ..sites import Lowered, Site
from ..unfold import unfolded
from . import boxes, stores
from .copies import commit, issue, wait
from .elements import Elements, Reads
from .flights import Access
from .lanes import Env, Lanes, Numbers, spread
from .machine import Machine
from .memory import Cells, rounded


class Threads(Elements):
    """The threads of one kernel.

    Parameters
    ----------
    machine : Machine
    low : Lowered
    """

    def __init__(self, machine: Machine, low: Lowered) -> None:
        super().__init__(machine, low)
        self._writers: dict[int, tuple[Condition, ...]] = {}

    # -- values -------------------------------------------------------------------------------------------------

    def written(self, node: Do, access: Access, lanes: Lanes) -> tuple[Any, Any]:
        """The value of a plain write and whether it is known: the statement's, or its fill where `inside` fails."""
        statement = node.site.statement
        kept = lanes.among(self.holds(node.inside, lanes, access.env))
        if isinstance(statement.value, Read) and is_move(self.low, node.site):
            source = node.operands[statement.value.slot]
            value, known = self.load(access, source, kept, node.operands, used=_outlives(node.target))
        else:
            value, known = self.scalar(access, statement.value, kept, node.operands), True
            if coded(dtype := self.dtype(node.site)):
                value = rounded(value, dtype, self.exact)
        if kept is lanes:
            return value, known
        dtype, mask, sure = self.dtype(node.site), np.isin(lanes.index, kept.index), np.ones(len(lanes), bool)
        out = np.full(len(lanes), rounded(statement.fill, dtype, self.exact))
        out[mask], sure[mask] = rounded(value, dtype, self.exact, moved=True), known
        return out, sure

    def dtype(self, site: Site) -> DType:
        """The type of what the site's statement writes."""
        return self.low.store(site.leaf, len(site.statement.reads)).dtype

    def update(self, access: Access, target: Operand, lanes: Lanes, value: Any, reads: Reads, atomic: bool,
               used: bool = True) -> None:
        """``target (op)= value``: read and written by all at once, or one after the other if atomic; `used` later on."""
        site, dtype = access.site, self.dtype(access.site)
        combine = OPERATIONS[REDUCTIONS[site.statement.update or "sum"].operation].numpy
        value = lanes.each(rounded(value, dtype.wide, self.exact))
        cells, where, good = self.where(access, target, lanes, reads)
        if not good.all():
            lanes, where, value = lanes.among(good), where[good], value[good]
        if not len(lanes):
            return
        if atomic:
            self.machine.note(access, cells, where, lanes.index, True, atomic=True)
            self.machine.unknown(access, cells, where, lanes.index)
            for one, part in zip(where, value, strict=True):
                cells.store(one, combine(cells.data[one], rounded(part, dtype, self.exact)), cells.known[one])
            return
        self.machine.note(access, cells, where, lanes.index, False)
        if used:
            self.machine.unknown(access, cells, where, lanes.index)
        self.machine.note(access, cells, where, lanes.index, True)
        known = cells.known[where]
        if type(cells) is not Cells:
            cells.add(where, value)
        else:
            cells.store(where, combine(cells.data[where], value), known)

    def get(self, got: Get, access: Access, lanes: Lanes) -> tuple[Numbers, Numbers]:
        """What a load gives, and whether it is known."""
        chosen: Any = True
        for conditions in got.when:
            chosen = chosen & self.holds(conditions, lanes, access.env)
        wanted, other = lanes.each(chosen), lanes.each(got.otherwise)
        if got.ref.lanes == 1:
            value, known = self.load(access, got.ref, lanes, valid=wanted, used=False)
            return _either(wanted, value, other), known | ~wanted
        valid = spread(wanted[:, None], (len(lanes), got.ref.lanes))
        if got.count is not None:
            count = lanes.each(self.number(got.count, lanes, access.env))
            valid = valid & (np.arange(got.ref.lanes) < count[:, None])
        elif got.within:
            flat = self.place(access, got.ref, lanes)[1]
            valid = valid & ((flat < got.ref.store.array.size) | ~self.any_of(got.edge, lanes, access.env)[:, None])  # type: ignore[union-attr]
        value, known = self.load(access, got.ref, lanes, valid=valid, used=False)
        return _either(valid, value, np.where(wanted[:, None], got.outside, other[:, None])), known | ~valid

    # -- nodes --------------------------------------------------------------------------------------------------

    def body(self, nodes: Sequence[Node], lanes: Lanes, env: Env) -> None:
        """The nodes in order; names that they give hold in the rest of the body."""
        for node in nodes:
            if len(lanes):
                self.node(node, lanes, env)

    def iterations(self, node: For, lanes: Lanes, env: Env) -> Iterator[tuple[Lanes, Env]]:
        """The threads and variables of each iteration that some thread runs."""
        for value in range(node.start, node.start + node.extent):
            inner = {**env, node.var: value}
            some = lanes.among(self.holds(node.limits, lanes, inner)) if node.limits else lanes
            if len(some):
                yield some, inner

    def branches(self, node: If, lanes: Lanes, env: Env) -> tuple[Lanes, Lanes]:
        """The threads for which the conditions hold, and the others."""
        held = self.holds(node.conditions, lanes, env)
        return lanes.among(held), lanes.among(np.logical_not(held))

    @singledispatchmethod
    def node(self, node: Node, lanes: Lanes, env: Env) -> None:
        """One node, by all of these threads together."""
        raise TypeError(f"the interpreter has no meaning for a {type(node).__name__} node here")

    @node.register
    def _(self, node: For, lanes: Lanes, env: Env) -> None:
        for some, inner in self.iterations(node, lanes, env):
            self.body(node.body, some, inner)

    @node.register
    def _(self, node: If, lanes: Lanes, env: Env) -> None:
        chosen, others = self.branches(node, lanes, env)
        self.body(node.body, chosen, env)
        self.body(node.otherwise, others, env)

    @node.register
    def _(self, node: Declare, lanes: Lanes, env: Env) -> None:
        cells, own = self.machine.cells(node.what)
        assert own is not None
        cells.poison((lanes.index[:, None] * cells.size + np.arange(cells.size)).reshape(-1))

    @node.register
    def _(self, node: Let, lanes: Lanes, env: Env) -> None:
        value = np.zeros(len(self.machine.block_of), np.int64)
        value[lanes.index] = self.number(node.value, lanes, env)
        env[node.name] = value

    @node.register
    def _(self, node: Do, lanes: Lanes, env: Env) -> None:
        access = Access(node, node.site, env)
        if node.site.statement.update:
            value = self.scalar(access, node.site.statement.value, lanes, node.operands)
            self.update(access, node.target, lanes, value, node.operands, node.atomic)
        else:
            value, known = self.written(node, access, lanes)
            self.put(access, node.target, lanes, value, known, node.operands)

    @node.register
    def _(self, node: Load, lanes: Lanes, env: Env) -> None:
        access = Access(node, node.site, env)
        get = isinstance(node.value, Get)
        value, known = self.get(node.value, access, lanes) if get else self.load(access, node.value, lanes, used=False)  # type: ignore[arg-type]
        self.put(access, node.to, lanes, value, known)

    @node.register
    def _(self, node: Put, lanes: Lanes, env: Env) -> None:
        access, value = Access(node, node.site, env), node.value
        if isinstance(value, Get):
            got, known = self.get(value, access, lanes)
        elif isinstance(value, Held):
            got, known = self.load(access, value, lanes, used=False)
        else:
            got, known = np.asarray(value), True
        self.put(access, node.to, lanes, got, known)

    @node.register
    def _(self, node: Mask, lanes: Lanes, env: Env) -> None:
        access = Access(node, node.site, env)
        flat = self.place(access, node.first, lanes)[1]
        begin, end = (lanes.each(self.number(e, lanes, env))[:, None] for e in (node.begin, node.end))
        asked = self.any_of(node.edge, lanes, env)[:, None]
        kept = ((flat >= begin) & (flat < end)) | ~asked
        value, known = self.load(access, node.local, lanes, used=False)
        self.put(access, node.local, lanes, _either(kept, value, node.outside), known | ~kept)

    @node.register
    def _(self, node: Contribute, lanes: Lanes, env: Env) -> None:
        access = Access(node, node.site, env)
        self.put(access, node.to, lanes, self.contribution(node, access, lanes))

    def contribution(self, node: Any, access: Access, lanes: Lanes) -> Numbers:
        """Each thread's own value for a collective, or the identity where its guards do not hold."""
        site, wide = node.site, self.dtype(node.site).wide
        kept = lanes.among(self.holds(node.guards, lanes, access.env))
        identity = REDUCTIONS[site.statement.update or "sum"].identity(wide)
        out = np.full(len(lanes), rounded(identity, wide, self.exact))
        if len(kept):
            out[np.isin(lanes.index, kept.index)] = rounded(self.scalar(access, site.statement.value, kept, node.operands),
                                                            wide, self.exact)
        return out

    @node.register
    def _(self, node: Copy, lanes: Lanes, env: Env) -> None:
        issue(self, node, lanes, env)

    @node.register
    def _(self, node: MoveMatrix, lanes: Lanes, env: Env) -> None:
        self.node(unfolded(node, self.low), lanes, env)

    @node.register
    def _(self, node: AwaitTurn | PassTurn, lanes: Lanes, env: Env) -> None:
        """Turns order no accesses."""

    @node.register
    def _(self, node: BulkStore, lanes: Lanes, env: Env) -> None:
        stores.issue(self, node, lanes, env)

    @node.register
    def _(self, node: WaitStores, lanes: Lanes, env: Env) -> None:
        stores.wait(self.machine, lanes)

    @node.register
    def _(self, node: Commit, lanes: Lanes, env: Env) -> None:
        commit(self.machine, lanes)

    @node.register
    def _(self, node: Wait, lanes: Lanes, env: Env) -> None:
        wait(self.machine, node.pending, lanes)

    @node.register
    def _(self, node: Begin, lanes: Lanes, env: Env) -> None:
        boxes.begin(self, node, lanes)

    @node.register
    def _(self, node: BulkCopy, lanes: Lanes, env: Env) -> None:
        boxes.issue(self, node, lanes, env)

    @node.register
    def _(self, node: Arrive, lanes: Lanes, env: Env) -> None:
        boxes.arrive(self, node, lanes, env)

    @node.register
    def _(self, node: Apply, lanes: Lanes, env: Env) -> None:
        access = Access(node, node.site, env)
        self.by_writers(node, access, lanes, self.load(access, node.value, lanes)[0])

    def by_writers(self, node: Collect | Apply, access: Access, lanes: Lanes, value: Numbers, reads: Any = ()) -> None:
        """The update, in every thread's register or by one thread in memory."""
        if id(node) not in self._writers:
            of = cells_of if node.target.store.space == "register" else writers_of
            self._writers[id(node)] = of(self.low, node)
        chosen = lanes.among(self.holds(self._writers[id(node)], lanes, access.env))
        if len(chosen):
            part = value[np.isin(lanes.index, chosen.index)]  # registers: of threads, too, that never use theirs
            self.update(access, node.target, chosen, part, reads, node.atomic, node.target.store.space != "register")


def _outlives(target: Operand) -> bool:
    """Whether an element is of an array in global memory: what is moved there is used."""
    return isinstance(target, Ref) and target.store.space == "global"


def _either(chosen: Any, value: Numbers, other: Any) -> Numbers:
    """The value where that is chosen, and another one of its type elsewhere."""
    return np.where(chosen, value, np.asarray(other).astype(value.dtype))
