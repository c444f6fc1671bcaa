"""What the operands of an instance are, against what the plan's instance reads; and what an extra run computes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from ...ir.expr import Expr
from ...ir.operations import OPERATIONS
from ...ir.plan import Plan
from ...ir.program import Indirect, Statement
from ...ir.scalar import REDUCTIONS, Call, Cast, Literal, Read, Scalar, argument_types
from ...poly.region import Region
from ..conditions import Condition
from ..nodes import Copy, Get, Held, Operand, Ref
from ..sites import Store
from .held import Cell, Fixed, Made, Piece, Registers, Value, copied, got
from .points import EVERYWHERE, Conj, Space, negated, overlap
from .steps import Step
from .wanted import Wanted


class Data:
    """A finite number of the program's data, not known here."""


DATA = Data()


class Missing:
    """An element that a copy does not hold."""


MISSING = Missing()


@dataclass(frozen=True, eq=False)
class Instances:
    """A step that runs instances of a leaf.

    Attributes
    ----------
    step : Step
        With a variable for its lanes, where it takes several at once.
    wanted : Wanted
    operands : tuple
        What the reads are: an operand, or a load.
    lane : Expr
        The lane that an instance is.
    registers : Registers
    leaves : mapping of str to Wanted
        All leaves of the kernel.
    inside : tuple of Condition or None
        Where the value is the statement's; None: it is just moved.
    """

    step: Step
    wanted: Wanted
    operands: tuple[Operand | Get | Copy | Any, ...]
    lane: Expr
    registers: Registers
    leaves: Mapping[str, Wanted]
    inside: Conj | None = ()

    @property
    def statement(self) -> Statement:
        """The statement."""
        return self.wanted.accesses[-1].statement

    @cached_property
    def space(self) -> Space:
        """The instances' variables."""
        return self.step.space

    @cached_property
    def points(self) -> Region:
        """Where it runs."""
        return self.step.points

    @cached_property
    def real(self) -> Region:
        """Where it runs an instance of the program."""
        return overlap(self.points, self.wanted.points)

    def pieces(self, slot: int) -> Iterator[Piece]:
        """What a read gives; the first piece that fits counts."""
        operand = self.operands[slot]
        if isinstance(operand, Get):
            yield from got(operand, self.lane, self.step)
        elif isinstance(operand, Held):
            lane = self.lane if operand.lane is None else operand.lane
            yield from self.registers.content(self.step, operand, lane)
        elif isinstance(operand, Ref):
            yield EVERYWHERE, Cell(operand, self.step)
        elif isinstance(operand, Copy):
            yield from copied(operand, self.lane, self.step)
        else:
            yield EVERYWHERE, Fixed(operand)

    def parts(self, slot: int, region: Region) -> Iterator[tuple[Region, Value | None]]:
        """A region in parts, each with what the read gives there; None where nothing has been put."""
        for cases, value in self.pieces(slot):
            here = region.intersect(self.space.points(cases))
            if not here.is_empty():
                yield here, value
                region = region.subtract(here)
                if region.is_empty():
                    return
        if not region.is_empty():
            yield region, None


def same_cell(space: Space, region: Region, found: Ref, wanted: tuple[Expr | None, ...], store: Store) -> bool:
    """Whether an element is the wanted cell all over a region."""
    ranges = dict(space.ranges)
    if found.flat:
        offset = Expr()
        for size, e in zip(store.shape, wanted, strict=True):
            if e is None:
                return False
            offset = offset * size + e
        pairs: list[tuple[Any, Expr | None]] = [(found.index[0], offset)]
    elif len(found.index) != len(wanted):
        return False
    else:
        pairs = list(zip(found.index, wanted, strict=True))
    for e, f in pairs:
        if isinstance(e, Indirect) or f is None:
            if not isinstance(e, Indirect) or f is not None:
                return False
            continue
        if (e - f).simplify(ranges) == Expr():
            continue
        apart = space.points(negated((Condition(e - f, True),)))
        if not region.is_disjoint(apart):
            return False
    return True


def storage(store: Store) -> tuple[str, bool]:
    """What a store is called in the plan, and whether it is a buffer."""
    if store.buffer is not None:
        return store.buffer.name, True
    assert store.array is not None
    return store.array.name, False


def wrong_read(run: Instances, slot: int, region: Region) -> str:
    """Why a read does not give the wanted cell all over a region; empty where it does."""
    access = run.wanted.accesses[slot]
    cell = run.wanted.cell(slot)
    for here, value in run.parts(slot, region):
        match value:
            case None:
                return "reads a register that nothing has been put into"
            case Fixed(number):
                return f"gets {number} instead of an element of {access.storage}"
            case Cell(ref, _):
                if ref.store.slots:
                    w = run.wanted
                    own = w.coordinates.low.index(run.step.node.site, slot)
                    if ref.index != tuple(e.substitute(w.coordinates.values) if isinstance(e, Expr) else e for e in own):
                        return f"reads another slot of {ref.store.name} than the schedule says"
                    continue
                if storage(ref.store) != access.cells:
                    return f"reads {ref.store.name} instead of {access.storage}"
                if not same_cell(run.space, here, ref, cell, ref.store):
                    return f"reads another element of {access.storage} than the schedule says"
                if what := _wrong_lane(run, slot, ref, here):
                    return what
            case Made(step, at):
                target = _target(run.leaves, step, at)
                if target is None or target[0] != access.cells or not _equal(run.space, here, target[1], cell):
                    return f"reads what {step.leaf} has computed instead of an element of {access.storage}"
    return ""


def _wrong_lane(run: Instances, slot: int, ref: Ref, region: Region) -> str:
    """Why a read does not ask the lane that has the wanted register; empty where it does."""
    view, w = run.wanted.accesses[slot].leaf.view(slot), run.wanted
    wanted = w.coordinates.low.other_lane(run.step.node.site, slot) if view is not None else None
    if wanted is None and ref.of_lane is None:
        return ""
    if wanted is None or ref.of_lane is None or not _equal(
            run.space, region, (ref.of_lane.substitute(w.coordinates.values),), (wanted.substitute(w.coordinates.values),)):
        return f"asks another lane for {w.accesses[slot].storage} than the schedule says"
    return ""


def _target(leaves: Mapping[str, Wanted], step: Step,
            at: Mapping[str, Expr]) -> tuple[tuple[str, bool], tuple[Expr | None, ...]] | None:
    """The plan's cell of what another step has computed, over the reader's variables."""
    w = leaves.get(step.leaf)
    if w is None:
        return None
    access = w.accesses[-1]
    return access.cells, tuple(None if e is None else e.substitute(at) for e in w.cell(len(w.accesses) - 1))


def _equal(space: Space, region: Region, a: Sequence[Expr | None], b: Sequence[Expr | None]) -> bool:
    ranges = dict(space.ranges)
    for e, f in zip(a, b, strict=True):
        if e is None or f is None:
            return False
        if (e - f).simplify(ranges) != Expr() and not region.is_disjoint(space.points(negated((Condition(e - f, True),)))):
            return False
    return True


# -- values that are known ---------------------------------------------------------------------------------------------


def known(run: Instances, slot: int, region: Region, plan: Plan) -> Iterator[tuple[Region, Any]]:
    """A region in parts, each with the number that a read gives there, :data:`DATA`, or None where that is not known."""
    for here, value in run.parts(slot, region):
        match value:
            case Fixed(number):
                yield here, number
            case Cell(ref, _) if ref.store.array is not None:
                yield here, DATA if ref.store.array.role in ("in", "inout") else None
            case Cell(ref, step) if step is run.step:
                yield from _copied(run, slot, here, plan)
            case _:
                yield here, None


def _copied(run: Instances, slot: int, region: Region, plan: Plan) -> Iterator[tuple[Region, Any]]:
    """The fill of a staged copy, or its data, by the element that a view names."""
    buffer, element = run.wanted.element(slot)
    for here, value in _of_copy(run.space, buffer, element, region, plan):
        yield here, None if value is MISSING else value


def _of_copy(space: Space, buffer: str, element: tuple[Expr, ...], region: Region, plan: Plan) -> Iterator[tuple[Region, Any]]:
    """The same of any element; a copy of a copy has what that one has."""
    copy = next((s for s in plan.copies if _holds_copy(plan, s, buffer)), None) if buffer else None
    if copy is None:
        yield region, None
        return
    at = dict(zip(copy.dims, element, strict=True))
    exists = space.points((tuple(Condition(c.expr.substitute(at), c.equality) for c in copy.domain),))
    conj = tuple(Condition(c.expr.substitute(at), c.equality) for c in copy.inside)
    inside = space.points((conj,))
    filled = region.intersect(exists).subtract(inside)
    if not filled.is_empty():
        yield filled, copy.fill
    data = region.intersect(exists).intersect(inside)
    if not data.is_empty():
        direct, sources = _sources(plan, copy, at)
        yield from _of_sources(space, direct, sources, data, plan)
    missing = region.subtract(exists)
    if not missing.is_empty():
        yield missing, MISSING


def _of_sources(space: Space, direct: bool, sources: Sequence[tuple[str, tuple[Expr, ...]]], region: Region,
                plan: Plan) -> Iterator[tuple[Region, Any]]:
    """What an array or several copies have that one copy's leaves read, each some of the elements (a prologue's may differ)."""
    parts: list[tuple[Region, Any]] = [(region, DATA if direct else MISSING)]
    for source in sources:
        more = list(_of_copy(space, *source, region, plan))
        parts = [(both, _agreed(one, other)) for here, one in parts for there, other in more
                 if not (both := here.intersect(there)).is_empty()]
    for here, value in parts:
        yield here, None if value is MISSING else value


def _agreed(one: Any, other: Any) -> Any:
    """What holds of an element that comes from one of two places."""
    if one is MISSING or other is MISSING:
        return other if one is MISSING else one
    if one is None or other is None:
        return None
    return one if one is not DATA and other is not DATA and bool(one == other) else DATA


def _sources(plan: Plan, copy: Statement, at: Mapping[str, Expr]) -> tuple[bool, list[tuple[str, tuple[Expr, ...]]]]:
    """Whether a leaf of a copy reads the array itself; and the copies that others read, each with the element of it."""
    direct, found = False, dict[tuple[str, tuple[Expr, ...]], None]()
    for leaf, _, _ in plan.leaves:
        if leaf.statement != copy.name:
            continue
        view, when = leaf.view(0), dict(leaf.when)
        if view is not None and view.element:
            found[view.buffer, tuple(e.substitute(when).substitute(at) for e in view.element)] = None
        else:
            direct = True
    return direct, list(found)


def _holds_copy(plan: Plan, copy: Statement, buffer: str) -> bool:
    """Whether a copy's leaves write this buffer."""
    return any(leaf.statement == copy.name and (view := leaf.view(len(copy.reads))) is not None and view.buffer == buffer
               for leaf, _, _ in plan.leaves)


def constant(run: Instances, region: Region, plan: Plan) -> Iterator[tuple[Region, Any]]:
    """A region in parts, each with the number that the statement's value is there, or None."""
    slots = range(len(run.statement.reads))
    found = [list(known(run, slot, region, plan)) for slot in slots]
    for choice in product(*found):
        here = region
        for points, _ in choice:
            here = here.intersect(points)
        if not here.is_empty():
            yield here, fold(run.statement.value, run.statement, [value for _, value in choice], plan)


def fold(value: Scalar, statement: Statement, reads: Sequence[Any], plan: Plan) -> Any:
    """A value whose reads give these numbers; None where it is not known."""
    if isinstance(value, Literal):
        return value.dtype.wide.numpy.type(value.value)
    if isinstance(value, Read):
        read = reads[value.slot]
        if read is None or read is DATA:
            return read
        return plan.array_of[statement.reads[value.slot].array].dtype.wide.numpy.type(read)
    if isinstance(value, Cast):
        arg = fold(value.arg, statement, reads, plan)
        if arg is None or arg is DATA or not (np.isfinite(arg) or value.dtype.kind == "float"):
            return None
        return value.dtype.wide.numpy.type(arg)
    if not isinstance(value, Call):
        return None
    args = [fold(a, statement, reads, plan) for a in value.args]
    if any(a is None for a in args):
        return None
    if any(a is DATA for a in args):
        zero = value.op == "mul" and any(a is not DATA and a == 0 for a in args)
        return 0 if zero else DATA if OPERATIONS[value.op].keeps_finite else None
    kinds = argument_types(value, [plan.array_of[a.array].dtype for a in statement.reads])
    with np.errstate(all="ignore"):
        return OPERATIONS[value.op].numpy(*(kind.numpy.type(a) for kind, a in zip(kinds, args, strict=True)))


def is_identity(run: Instances, value: Any, plan: Plan) -> bool:
    """Whether an update by this value changes nothing."""
    statement = run.statement
    if statement.update is None or value is None or value is DATA:
        return False
    dtype = plan.array_of[statement.target.array].dtype
    return bool(value == REDUCTIONS[statement.update].identity(dtype))
