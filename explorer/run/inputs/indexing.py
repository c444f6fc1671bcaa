"""Which values an array may hold so that every index made of them is valid: what a seeded input is drawn from.

The demand that an index lies in its dimension is pushed back through the arithmetic, and through temporaries to what writes
them, until it reaches inputs; loop variables on the way count with their whole range.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from ...errors import DeviceError
from ...ir.expr import Ranges
from ...ir.operation import Interval
from ...ir.operations import OPERATIONS
from ...ir.program import Indirect, Program, Statement
from ...ir.scalar import Call, Cast, IndexValue, Literal, Read, Scalar, walk
from ...ir.tree import leaves
from ...kernel.reference.error_bound import updates_per_cell

FAR = 1 << 62
"""An end of ±FAR is none."""


def index_ranges(program: Program) -> dict[str, Interval]:
    """Valid half-open range of each input whose values make an index.

    Raises
    ------
    DeviceError
        Where a demand meets an operation that does not say which of its operands' values are valid.
    """
    asked = _Demands(program)
    for statement in program.statements:
        for access in statement.reads:
            for index, extent in zip(access.index, program.array_of[access.array].shape, strict=True):
                if isinstance(index, Indirect):
                    asked.value(statement, index.value, (0, extent - 1), access.array)
    inputs = {a.name for a in program.parameters if a.role != "out"}
    return {name: _drawn(*ends) for name, ends in asked.found.items() if name in inputs and ends != (-FAR, FAR)}


def _drawn(low: int, high: int) -> Interval:
    """A half-open range within these ends, some integers wide where one of them is none."""
    if low == -FAR:
        return min(-8, high), high + 1
    return low, max(9, low + 9) if high == FAR else high + 1


def _ends(low: int, high: int) -> Interval:
    """An interval after arithmetic on its ends: what is far is no end."""
    return (-FAR if low < -FAR // 2 else low), (FAR if high > FAR // 2 else high)


@dataclass
class _Demands:
    """Pushes demands back to the arrays that they concern."""

    program: Program
    found: dict[str, Interval] = field(default_factory=dict)

    @cached_property
    def ranges(self) -> dict[str, Ranges]:
        return {leaf.statement: {loop.id: loop.range for loop in above} for leaf, above in leaves(self.program.body)}

    def value(self, s: Statement, value: Scalar, wanted: Interval, of: str) -> None:
        """Ask that `value`, computed in `s`, lies in `wanted`."""
        low, high = wanted = _ends(*wanted)
        known = self.known(s, value)
        if wanted == (-FAR, FAR) or (known is not None and low <= known[0] and known[1] <= high):
            return
        if isinstance(value, Read):
            return self.array(s.reads[value.slot].array, wanted, of)
        if isinstance(value, Cast) and value.dtype.kind == "int" and not any(
                isinstance(n, Read) and self.program.array_of[s.reads[n.slot].array].dtype.kind == "float" for n in walk(value)):
            return self.value(s, value.arg, wanted, of)
        if isinstance(value, Call):
            for part, demand in self.parts(s, value, wanted):
                self.value(s, part, demand, of)
            if any(True for _ in self.parts(s, value, wanted)):
                return None
        raise self.refused(of, s)

    def refused(self, of: str, s: Statement | None = None) -> DeviceError:
        """The error that says that no input can be made."""
        return DeviceError(f"No seeded input for {self.program.name}: which values index {of} is not plain.",
                           where=f"source line {s.line}" if s is not None and s.line else "",
                           hint="pass arrays of your own to run()")

    def parts(self, s: Statement, call: Call, wanted: Interval) -> Iterator[tuple[Scalar, Interval]]:
        """What is asked of the operands, enough for the result; nothing where that is not known."""
        low, high = wanted
        a = call.args[0]
        if call.op == "where":
            yield from ((part, wanted) for part in call.args[1:])
        elif call.op in ("min", "max"):
            bounds = [self.known(s, part) for part in call.args]
            capped = any(k is not None and (low <= k[0] and k[1] <= high) for k in bounds)
            free = ((low, FAR) if call.op == "min" else (-FAR, high)) if capped else wanted
            yield from ((part, free) for part, k in zip(call.args, bounds, strict=True)
                        if k is None or not (low <= k[0] and k[1] <= high))
        elif call.op == "neg":
            yield a, (-high, -low)
        elif call.op in ("add", "sub"):
            yield from self.sum(s, call, wanted)
        elif call.op == "floordiv" and (by := self.known(s, call.args[1])) and by[0] == by[1] > 0:
            yield a, (-FAR if low == -FAR else low * by[0], FAR if high == FAR else high * by[0] + by[0] - 1)
        elif call.op == "mul":
            for part, factor in ((a, self.known(s, call.args[1])), (call.args[1], self.known(s, a))):
                if factor is not None and factor[0] == factor[1] != 0:
                    c = factor[0]
                    low, high = (low, high) if c > 0 else (-high, -low)
                    yield part, (-FAR if low == -FAR else -(-low // abs(c)), FAR if high == FAR else high // abs(c))
                    return
                if factor is not None and factor[0] >= 0 and low <= 0:
                    yield part, (0, high // max(factor[1], 1))
                    return

    def sum(self, s: Statement, call: Call, wanted: Interval) -> Iterator[tuple[Scalar, Interval]]:
        low, high = wanted
        a, b = call.args
        sign = 1 if call.op == "add" else -1
        first, second = self.known(s, a), self.known(s, b)
        if second is not None:
            least, most = sorted((sign * second[0], sign * second[1]))
            yield a, (low - least, high - most)
        elif first is not None:
            ends = sorted((sign * (low - first[0]), sign * (high - first[1])))
            yield b, (ends[0], ends[1])
        else:  # both are data: half of the room for each
            half = (high - low) // 2
            yield b, (0, half)
            yield a, (low, high - half) if sign > 0 else (low + half, high)

    def array(self, name: str, wanted: Interval, of: str) -> None:
        """Ask that every element of an array lies in `wanted`."""
        array = self.program.array_of[name]
        before = self.found.get(name, (-FAR, FAR))
        now = max(before[0], wanted[0]), min(before[1], wanted[1])
        if now == before and name in self.found:
            return
        self.found[name] = now
        if array.dtype.kind != "int":
            raise self.refused(of)
        if array.role == "in":
            return
        for s in self.program.statements:
            if s.target.array != name:
                continue
            if s.update in (None, "max", "min"):
                if not (s.update and isinstance(s.value, Literal)) and not self._start(s, name):
                    self.value(s, s.value, now, of)
            elif (known := self.cell(name)) is None or known[0] < now[0] or known[1] > now[1]:
                raise self.refused(of, s)

    def _start(self, s: Statement, name: str) -> bool:
        """Whether `s` starts a reduction whose updates decide the value."""
        return s.update is None and isinstance(s.value, Literal) and any(
            o.update in ("max", "min") and o.target.array == name for o in self.program.statements)

    def cell(self, name: str) -> Interval | None:
        """What an array holds that the program computes of loop variables alone: counters, places of the largest."""
        array = self.program.array_of[name]
        writers = [s for s in self.program.statements if s.target.array == name]
        if array.role in ("in", "inout") or array.dtype.kind == "float" or not writers or name in self._open:
            return None
        self._open.add(name)
        try:
            plain = [self.known(s, s.value) for s in writers if not s.update]
            total = [(self.known(s, s.value), updates_per_cell(s, self.program)) for s in writers if s.update == "sum"]
            if any(k is None for k in plain) or any(k is None for k, _ in total) or len(plain) + len(total) < len(writers):
                return None
            low = min((k[0] for k in plain if k), default=0) + sum(min(k[0], 0) * n for k, n in total if k)
            high = max((k[1] for k in plain if k), default=0) + sum(max(k[1], 0) * n for k, n in total if k)
            return low, high
        finally:
            self._open.discard(name)

    @cached_property
    def _open(self) -> set[str]:
        return set()

    def known(self, s: Statement, value: Scalar) -> Interval | None:
        """The values that an expression can have whatever the inputs hold, or None."""
        if isinstance(value, Literal):
            return (int(value.value), int(value.value)) if float(value.value).is_integer() else None
        if isinstance(value, IndexValue):
            return value.expr.interval(self.ranges.get(s.name, {}))
        if isinstance(value, Cast):
            return self.known(s, value.arg) if value.dtype.kind == "int" else None
        if isinstance(value, Read):
            return self.cell(s.reads[value.slot].array)
        if isinstance(value, Call) and value.op in ("argmax_index", "argmin_index"):
            return self.place(s, value.args[0], value.op[:6])
        return OPERATIONS[value.op].interval(*(self.known(s, part) for part in value.args))

    def place(self, s: Statement, key: Scalar, name: str) -> Interval | None:
        """The indices that the keys of a reduction hold."""
        if not isinstance(key, Read):
            return None
        array = s.reads[key.slot].array
        found = [self.known(o, node.args[1]) for o in self.program.statements if o.target.array == array
                 for node in walk(o.value) if isinstance(node, Call) and node.op == f"{name}_key"]
        kept = [k for k in found if k is not None]
        return (min(k[0] for k in kept), max(k[1] for k in kept)) if kept and len(kept) == len(found) else None
