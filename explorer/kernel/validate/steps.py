"""The last IR as a list of steps: every node that does something, with where it runs and the loops and conditions around it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ...poly.region import Region
from ..conditions import Condition
from ..nodes import BulkCopy, BulkStore, Declare, For, If, Let, MoveMatrix, Multiply, Node
from ..traverse import map_exprs
from ..unfold import unfolded
from .boxes import unfolded as unfolded_box
from .boxes import unfolded_store
from .points import EVERYWHERE, Cases, Coordinates, Space, both, negated

APART = 4
"""Numbers between two steps: what happens within one has its place."""


@dataclass(frozen=True, eq=False)
class Round:
    """A loop around a step; compared by identity."""

    node: For


@dataclass(frozen=True, eq=False)
class Branch:
    """A branch of an ``if`` around a step, with the condition of the ``if``; compared by identity.

    The two branches of one have the same tuple of conditions.
    """

    conditions: tuple[Condition, ...]


Around = Round | Branch


@dataclass(frozen=True, eq=False)
class Step:
    """A node that does something.

    Attributes
    ----------
    node : Any
        With every name replaced by what it stands for.
    number : int
        In order of the text.
    around : tuple of Around
        Loops and branches, outermost first.
    cases : Cases
        The conditions around it.
    coordinates : Coordinates
    """

    node: Any
    number: int
    around: tuple[Around, ...]
    cases: Cases
    coordinates: Coordinates = field(repr=False)

    @cached_property
    def loops(self) -> tuple[Round, ...]:
        """The loops around it."""
        return tuple(a for a in self.around if isinstance(a, Round))

    @cached_property
    def branches(self) -> tuple[Branch, ...]:
        """The branches around it."""
        return tuple(a for a in self.around if isinstance(a, Branch))

    @cached_property
    def ranges(self) -> dict[str, tuple[int, int]]:
        """The variables here."""
        return self.coordinates.ranges | {a.node.var: (a.node.start, a.node.start + a.node.extent - 1) for a in self.loops}

    @cached_property
    def space(self) -> Space:
        """The variables here, as a space."""
        return Space.of(self.ranges)

    @cached_property
    def points(self) -> Region:
        """Where it runs."""
        return self.space.points(self.cases)

    @cached_property
    def leaf(self) -> str:
        """The plan's leaf that it is of, empty for a step of none."""
        return self.node.site.leaf.id if hasattr(self.node, "site") else ""


def common(a: Step, b: Step) -> int:
    """How many loops, outermost first, are around both."""
    shared = 0
    for x, y in zip(a.loops, b.loops, strict=False):
        if x is not y:
            break
        shared += 1
    return shared


def exclusive(a: Step, b: Step, threads: Collection[str]) -> bool:
    """Whether two steps are in the two branches of an ``if`` that is the same for all threads: in one iteration only one runs."""
    for x, y in zip(a.around, b.around, strict=False):
        if x is not y:
            return (isinstance(x, Branch) and isinstance(y, Branch) and x.conditions is y.conditions
                    and not any(c.variables() & set(threads) for c in x.conditions))
    return False


def steps(body: Sequence[Node], coordinates: Coordinates) -> tuple[Step, ...]:
    """The steps of a kernel, in order of the text."""
    return tuple(_Walk(coordinates).body(body, (), EVERYWHERE))


class _Walk:
    def __init__(self, coordinates: Coordinates) -> None:
        self.coordinates, self.values, self.number = coordinates, dict(coordinates.values), 0

    def told(self, value: Any) -> Any:
        """A value with names replaced by what they stand for."""
        return map_exprs(value, lambda e: e.substitute(self.values))

    def body(self, nodes: Sequence[Node], around: tuple[Around, ...], cases: Cases) -> list[Step]:
        return [step for node in nodes for step in self.node(node, around, cases)]

    def node(self, node: Node, around: tuple[Around, ...], cases: Cases) -> Iterator[Step]:
        if isinstance(node, Let):
            self.values[node.name] = node.value.substitute(self.values)
        elif isinstance(node, For):
            limits: tuple[Condition, ...] = self.told(node.limits)
            if node.extent > 0:
                here = Round(replace(node, body=(), limits=limits))
                yield from self.body(node.body, (*around, here), both(cases, (limits,)))
        elif isinstance(node, If):
            conditions: tuple[Condition, ...] = self.told(node.conditions)
            yield from self.body(node.body, (*around, Branch(conditions)), both(cases, (conditions,)))
            yield from self.body(node.otherwise, (*around, Branch(conditions)), both(cases, negated(conditions)))
        elif isinstance(node, (Multiply, MoveMatrix)):
            yield from self.node(unfolded(node, self.coordinates.low), around, cases)
        elif isinstance(node, BulkCopy):
            yield from self.node(unfolded_box(self.coordinates.low, node), around, cases)
        elif isinstance(node, BulkStore):
            yield from self.node(unfolded_store(self.coordinates.low, node), around, cases)
        elif not isinstance(node, Declare):
            self.number += APART
            yield Step(self.told(node), self.number, around, cases, self.coordinates)


def lane_variable(step: Step) -> tuple[str, int] | None:
    """The variable of the plan's vector loop whose lanes a node takes together, and its first value."""
    low = step.coordinates.low
    found = [x for x in step.node.site.loops if x.role == "vector" and low.is_counter(x)]
    return (low.variable[found[-1].id], found[-1].start) if found else None


def with_lane(step: Step, name: str, first: int, lanes: int) -> Step:
    """The step with a variable for its lanes."""
    node = For(name, first, lanes, (), "unroll", step.node.site.loops[-1])
    return replace(step, around=(*step.around, Round(node)))
