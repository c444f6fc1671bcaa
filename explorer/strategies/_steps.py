"""Taking steps that may or may not apply: what the strategies are written with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from ..ir.plan import Plan
from ..ir.tree import Leaf, Loop, Node
from ..schedule import Schedule
from ..transforms.base import Transform, catalogue

S = TypeVar("S", bound=Schedule)


class Builder(Generic[S]):
    """A schedule that grows step by step.

    Parameters
    ----------
    schedule : Schedule
    """

    def __init__(self, schedule: S) -> None:
        self.schedule = schedule

    @property
    def plan(self) -> Plan:
        """What the schedule is now."""
        return self.schedule.plan

    def do(self, name: str, *arguments: object, **options: object) -> Builder[S]:
        """Take a step that must apply.

        Raises
        ------
        TransformError, IllegalSchedule
            If it does not.
        """
        self.schedule = self.schedule.apply(_step(name, arguments, options))
        return self

    def attempt(self, name: str, *arguments: object, **options: object) -> bool:
        """Take a step if it applies; whether it did."""
        step = _step(name, arguments, options)
        verdict, _ = self.schedule.try_step(step)
        if verdict:
            self.schedule = self.schedule.apply(step)
        return bool(verdict)

    def parent(self, node: str) -> str:
        """The innermost loop around a node; "" at the top of a kernel."""
        hit = self.plan.find(node)
        return hit[1][-1].id if hit and hit[1] else ""

    def extent(self, loop: str) -> int:
        """How often a loop runs."""
        return self.plan.loops[loop].extent


def _step(name: str, arguments: tuple[object, ...], options: dict[str, object]) -> Transform:
    kind: type[Transform] = catalogue()[name]
    return kind(*arguments, **options)


def chain(node: Node) -> list[Loop]:
    """The loops of the perfect nest that begins at a node, outermost first."""
    found = []
    while isinstance(node, Loop):
        found.append(node)
        if len(node.body) != 1:
            break
        node = node.body[0]
    return found


def leaves_of(node: Node) -> Iterator[Leaf]:
    """Every statement at or below a node."""
    if isinstance(node, Loop):
        for inner in node.body:
            yield from leaves_of(inner)
    elif isinstance(node, Leaf):
        yield node
