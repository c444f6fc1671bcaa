"""The IR's order is the plan's: statements come in the same order, and between a load and its use nobody writes the element.

Statements keep their places: the loops around two of them are the plan's common loops, and they stand in the plan's order.  Where
a pass has taken one apart, the two must not touch one element.  Loads are moved before their use, and vectors are stored behind
their lanes: in between, no step may touch what was loaded or is still to be stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from ...ir.expr import var
from ...ir.finding import Finding, Proving
from ...poly.linear import Condition as Row
from ...poly.linear import differ, equal
from ..nodes import Apply, Collect, Contribute, Copy, Do, Held, Load, Put
from .held import LANE, Registers
from .leaves import finding
from .points import Coordinates
from .proofs.lifted import judged_as_plan
from .steps import Step, common, exclusive
from .touches import Touch, conflict, touches
from .wanted import Wanted


def check_order(wanted: Mapping[str, Wanted], steps: Sequence[Step], coordinates: Coordinates) -> Iterator[Finding]:
    """A finding for every pair of steps that the IR has in another order than the plan."""
    every = touches(steps)
    by_step: dict[Step, list[Touch]] = {}
    for touch in every:
        by_step.setdefault(touch.step, []).append(touch)
    placed = [s for s in steps if s.leaf in wanted and is_placed(s.node)]
    for a, b in combinations(placed, 2):
        if not _in_place(wanted[a.leaf], wanted[b.leaf], a, b) and _meet(by_step.get(a, []), by_step.get(b, []), coordinates):
            what = f"runs in another order with {b.leaf} than in the schedule"
            yield finding("order", a.leaf, what, a, wanted[a.leaf], Proving(lambda: judged_as_plan(steps, coordinates)))
    registers = Registers(steps)
    for moved, used in _apart(steps, registers):
        yield from _between(wanted, by_step.get(moved, []), moved, used, every, coordinates)


def is_placed(node: Any) -> bool:
    """Whether a step stands where its statement does in the plan."""
    if isinstance(node, Put):
        return not isinstance(node.value, Held)
    return isinstance(node, (Do, Copy, Collect, Contribute, Apply))


def _in_place(a: Wanted, b: Wanted, first: Step, second: Step) -> bool:
    """Whether two steps, the first of which stands first, are ordered as their leaves are."""
    if a is b:
        return True
    shared = 0
    for x, y in zip(a.counters, b.counters, strict=False):
        if x.id != y.id:
            break
        shared += 1
    mine = common(first, second)
    low = a.coordinates.low
    same = all(loop.node.var == low.variable[x.id] for loop, x in zip(first.loops[:mine], a.counters, strict=False))
    if exclusive(first, second, first.coordinates.threads):  # one or the other in each iteration of the loops around both
        return same and mine <= shared
    return a.number < b.number and same and mine == shared


def _meet(a: Sequence[Touch], b: Sequence[Touch], coordinates: Coordinates) -> bool:
    """Whether two steps of one block touch one element, at any times, one of them writing."""
    pairs = [(x, y) for x in a for y in b if x.store == y.store and (x.writes or y.writes)]
    return any(conflict(x, y, _together(x, y, coordinates)) for x, y in pairs if not _declared_apart(x, y, coordinates))


def _declared_apart(a: Touch, b: Touch, coordinates: Coordinates) -> bool:
    """Whether a register lives in one iteration of a loop that stands twice in the text, once around each touch."""
    buffer = a.store.buffer
    if buffer is None or a.store.space != "register" or buffer.scope not in coordinates.low.variable:
        return False
    name = coordinates.low.variable[buffer.scope]
    first, second = ([x for x in t.step.loops if x.node.var == name] for t in (a, b))
    return bool(first and second) and first[-1] is not second[-1]


def _together(a: Touch, b: Touch, coordinates: Coordinates, loops: int = 0) -> tuple[Row, ...]:
    """In one block, for a register in one thread, and in one iteration of the outermost common loops."""
    names = list(coordinates.shared)
    if a.store.space == "register":
        names += coordinates.threads
    names += [x.node.var for x in a.step.loops[:loops]]
    return tuple(equal(var(n), "a", var(n), "b") for n in names)


# -- what passes take apart --------------------------------------------------------------------------------------------


def _apart(steps: Sequence[Step], registers: Registers) -> Iterator[tuple[Step, Step]]:
    """A load and a step that uses what it loaded; a store of a vector and a step that computed it."""
    for step in steps:
        for held in _held(step.node):
            for writer in _sources(registers, held, step, set()):
                if isinstance(writer.node, Load):
                    yield writer, step
                elif isinstance(step.node, Put):
                    yield step, writer


def _sources(registers: Registers, held: Held, reader: Step, seen: set[Step]) -> Iterator[Step]:
    """Who put what a register holds, through other registers."""
    for writer in registers.writers.get(held.local.name, []):
        if writer.number < reader.number and writer not in seen:
            seen.add(writer)
            yield writer
            if isinstance(writer.node, Load) and isinstance(writer.node.value, Held):
                yield from _sources(registers, writer.node.value, writer, seen)


def _held(node: Any) -> list[Held]:
    """The registers that a node reads."""
    match node:
        case Do() | Collect() | Contribute():
            return [o for o in node.operands if isinstance(o, Held)]
        case Put(value=Held() as held):
            return [held]
        case _:
            return []


def _between(wanted: Mapping[str, Wanted], moved_touches: Sequence[Touch], moved: Step, used: Step, every: Sequence[Touch],
             coordinates: Coordinates) -> Iterator[Finding]:
    """Touches between a moved access and its statement that meet it."""
    shared = common(moved, used)
    low, high = sorted((moved, used), key=lambda s: s.number)
    first, last = _edge(low, shared, every, min), _edge(high, shared, every, max)
    for mine in moved_touches:
        for other in every:
            if other.step is moved or other.store != mine.store or not (mine.writes or other.writes):
                continue
            if not first <= other.number <= last + 1 or other.step.loops[:shared] != moved.loops[:shared]:
                continue
            instances = _other_instances(moved, used, shared) if other.step is used else ((),)
            if conflict(mine, other, _together(mine, other, coordinates, shared), instances):
                kind = "loads" if isinstance(moved.node, Load) else "stores"
                does = "writes" if other.writes else "reads"
                what = (f"{kind} an element of {mine.store.name} on the other side of {other.step.leaf or 'another step'}, "
                        f"which {does} it")
                yield finding("order", moved.leaf or used.leaf, what, moved, wanted.get(moved.leaf))
                return


def _other_instances(moved: Step, used: Step, shared: int) -> tuple[tuple[Row, ...], ...]:
    """Cases in which a moved access, on side ``a``, is not that of this instance of its statement."""
    own = {x.node.var for x in moved.loops[shared:]}
    both = [x.node.var for x in used.loops[shared:] if x.node.var in own]
    lanes = [x.node for x in used.loops[shared:] if x.node.loop.role == "vector" and x.node.var not in own]
    found = [case for name in both for case in differ(var(name), "a", var(name), "b")]
    return (*found, *(case for x in lanes for case in differ(var(LANE), "a", var(x.var) - x.start, "b")))


def _edge(step: Step, shared: int, every: Sequence[Touch], pick: Any) -> int:
    """The first or last number of the loops around a step, as far as another one does not share them."""
    if len(step.loops) == shared:
        return step.number
    loop = step.loops[shared]
    return pick([step.number, *(t.number for t in every if loop in t.step.loops)])
