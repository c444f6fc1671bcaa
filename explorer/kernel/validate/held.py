"""Reaching definitions of the passes' registers: the load, lane or value that was last written at each read.

A register array that a pass makes is written and read by one thread, at indices that are the loops' own variables.  So who wrote
an element last follows from the indices: loops around both are in one iteration, and the other loops of the writer are those
that the index names.  A text in which that is not so is not understood, and not believed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from ...ir.expr import Expr, var
from ...ir.program import Indirect
from ..conditions import Condition
from ..nodes import AnyOf, Contribute, Copy, Do, Get, Held, Load, Mask, Number, Ref
from .points import EVERYWHERE, Cases, both, change, negated
from .steps import Step, common

LANE = "@lane"


class NotUnderstood(Exception):
    """A use of registers that does not say who wrote them."""


@dataclass(frozen=True)
class Cell:
    """An element of memory, as it is when a step reads it."""

    ref: Ref
    step: Step


@dataclass(frozen=True)
class Fixed:
    """A number that stands in the text."""

    value: Number


@dataclass(frozen=True)
class Made:
    """What an instance of a statement has computed.

    Attributes
    ----------
    step : Step
    at : dict of str to Expr
        Its variables, over those of the reader.
    """

    step: Step
    at: Mapping[str, Expr]


Value = Cell | Fixed | Made
Piece = tuple[Cases, Value]
"""Where, and what; of several pieces the first that fits counts."""


def flat(ref: Ref) -> Expr:
    """The row-major offset of an element."""
    if ref.flat:
        (e,) = ref.index
        assert isinstance(e, Expr)
        return e
    total = Expr()
    for position, e in enumerate(ref.index):
        if isinstance(e, Indirect):
            raise NotUnderstood("a vector at a place that data names")
        total = total + e * prod(ref.store.shape[position + 1 :])
    return total


def in_lane(ref: Ref, lane: Expr) -> Ref:
    """One lane of a vector, by its offset: the lanes lie side by side, whatever the array's axes are."""
    return replace(ref, index=(flat(ref) + lane,), flat=True, lanes=1)


def got(get: Get, lane: Expr, step: Step) -> Iterator[Piece]:
    """What one lane of a load gives."""
    for conj in get.when:
        yield negated(conj), Fixed(get.otherwise)
    if get.count is not None:
        yield ((Condition(lane - get.count),),), Fixed(get.outside)
    if get.within:
        beyond = ((Condition(flat(get.ref) + lane - prod(get.ref.store.shape)),),)
        yield both(_asked(get.edge), beyond), Fixed(get.outside)
    yield EVERYWHERE, Cell(in_lane(get.ref, lane) if get.ref.lanes > 1 else get.ref, step)


def copied(copy: Copy, lane: Expr, step: Step) -> Iterator[Piece]:
    """What one lane of an asynchronous copy brings: an element, or zeros."""
    if copy.inside:
        yield negated(copy.inside), Fixed(0)
    for begin in copy.begins:
        yield ((Condition(begin - 1 - lane),),), Fixed(0)
    for end in copy.ends:
        yield ((Condition(lane - end),),), Fixed(0)
    yield EVERYWHERE, Cell(in_lane(copy.source, lane) if copy.lanes > 1 else copy.source, step)


def _asked(edge: AnyOf | None) -> Cases:
    return edge or EVERYWHERE


class Registers:
    """The registers of a kernel's passes.

    Parameters
    ----------
    steps : sequence of Step
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.writers: dict[str, list[Step]] = {}
        for step in steps:
            if (to := written(step)) is not None:
                self.writers.setdefault(to.local.name, []).append(step)

    def content(self, at: Step, held: Held, lane: Expr) -> Iterator[Piece]:
        """What one element and lane holds where a step reads it.

        Raises
        ------
        NotUnderstood
            If the indices do not say who wrote it.
        """
        for step in reversed(self.writers.get(held.local.name, [])):
            if step.number >= at.number:
                continue
            solved, when = solve(step, at, written(step) or held, held, lane)
            for cases, value in self.values(step):
                yield both(both(change(step.cases, solved), when), change(cases, solved)), moved(value, solved)

    def values(self, step: Step) -> Iterator[Piece]:
        """What a step puts into its register, over its own variables and the lane's."""
        node, lane = step.node, var(LANE)
        if isinstance(node, (Do, Contribute)):
            yield EVERYWHERE, Made(step, {name: var(name) for name in step.ranges})
        elif isinstance(node, Mask):
            offset = flat(node.first) + lane
            for outside in (Condition(node.begin - 1 - offset), Condition(offset - node.end)):
                yield both(_asked(node.edge), ((outside,),)), Fixed(node.outside)
        elif isinstance(node.value, Get):
            yield from got(node.value, lane, step)
        else:
            yield from self.content(step, node.value, lane)


def written(step: Step) -> Held | None:
    """The register that a step writes."""
    match step.node:
        case Load(to=held) | Contribute(to=held) | Mask(local=held) | Do(target=Held() as held):
            return held
        case _:
            return None


def moved(value: Value, solved: Mapping[str, Expr]) -> Value:
    """A value over the reader's variables."""
    match value:
        case Cell(ref, step):
            index = tuple(e.substitute(solved) if isinstance(e, Expr) else e for e in ref.index)
            other = ref.of_lane.substitute(solved) if ref.of_lane is not None else None
            return Cell(replace(ref, index=index, of_lane=other), step)
        case Made(step, at):
            return Made(step, {name: e.substitute(solved) for name, e in at.items()})
        case Fixed():
            return value


def solve(writer: Step, reader: Step, to: Held, held: Held, lane: Expr) -> tuple[dict[str, Expr], Cases]:
    """The writer's variables over the reader's, and where there are such."""
    loops = writer.loops[common(writer, reader):]
    unknown = {a.node.var for a in loops}
    solved: dict[str, Expr] = {LANE: lane}
    left: list[tuple[Expr, Expr]] = []
    pairs = list(zip(to.index, held.index, strict=True))
    if to.lane is not None:
        pairs.append((to.lane, lane))
    for mine, theirs in pairs:
        own = mine.variables() & unknown
        name = next(iter(own)) if len(own) == 1 else ""
        if name and mine.coefficient(name) == 1 and name not in solved and mine.variables() == frozenset((name,)):
            solved[name] = theirs - (mine - var(name))
        else:
            left.append((mine, theirs))
    if missing := unknown - solved.keys():
        names = ", ".join(sorted(missing))
        raise NotUnderstood(f"{to.local.name} is written in a loop over {names}, which its index does not name")
    conditions = [Condition(mine.substitute(solved) - theirs, True) for mine, theirs in left]
    for a in loops:
        e = solved[a.node.var]
        conditions += [Condition(e - a.node.start), Condition(-e + (a.node.start + a.node.extent - 1))]
    return solved, (tuple(conditions),)
