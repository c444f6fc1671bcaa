"""Helpers for strategies: a schedule that grows by steps that may be refused, and questions about its loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..ir.expr import Expr
from ..ir.plan import Plan
from ..ir.program import Access
from ..ir.tree import Leaf, Loop, Node
from ..schedule import Schedule
from ..schedule.step import taken
from ..transforms.base import Transform, catalogue
from .deferred import ask, take


class Builder:
    """A schedule that grows step by step.

    Parameters
    ----------
    schedule : Schedule
    judged : bool
        Whether every step is judged when it is taken.  Without, a step is taken when its own precondition holds, and whoever
        builds asks for the judgement of the result: one instead of one for each step.
    """

    def __init__(self, schedule: Schedule, judged: bool = True) -> None:
        self.schedule = schedule
        self.judged = judged

    @property
    def plan(self) -> Plan:
        """What the schedule is now."""
        return self.schedule.plan

    def do(self, name: str, *arguments: object, **options: object) -> Builder:
        """Take a step that must apply.

        Raises
        ------
        TransformError, IllegalSchedule
            If it does not.
        """
        step = _step(name, arguments, options)
        self.schedule = take(self.schedule, step) if self.judged else self.schedule.apply(step, judge=False)
        return self

    def attempt(self, name: str, *arguments: object, **options: object) -> bool:
        """Take a step if it applies; whether it did."""
        step = _step(name, arguments, options)
        verdict, plan = ask(self.schedule, step) if self.judged else taken(self.plan, step, False)
        if verdict and plan is not None:
            self.schedule = replace(self.schedule, plan=plan, steps=(*self.schedule.steps, step))
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


def axes(leaf: Leaf, access: Access) -> tuple[str, ...]:
    """The loop that alone walks each axis of an access, "" where there is none."""
    at, out = dict(leaf.at), []
    for e in access.index:
        index = e.substitute(at) if isinstance(e, Expr) else None
        name = next(iter(index.variables()), "") if index else ""
        out.append(name if name and index == Expr(((name, 1),)) else "")
    return tuple(out)


def nest_apart(b: Builder, loops: Sequence[str], leaf: str) -> list[str]:
    """Distribute loops, given outermost first, so that a statement has a nest of its own; the loops around it then."""
    for loop in reversed(loops):
        body = b.plan.loops[loop].body
        number = next(n for n, node in enumerate(body) if any(x.id == leaf for x in leaves_of(node)))
        if number + 1 < len(body):
            b.do("distribute", loop, after=body[number].id)
        if number:
            b.do("distribute", loop, after=b.plan.loops[loop].body[number - 1].id)
    hit = b.plan.find(leaf)
    assert hit is not None
    return [x.id for x in hit[1]]


def own_temporaries(plan: Plan, kernel: str) -> list[str]:
    """Temporaries that one kernel uses and no other, in order of their declaration."""
    used: dict[str, set[str]] = {}
    for leaf, _, owner in plan.leaves:
        for access in plan.statement_of[leaf.statement].accesses:
            used.setdefault(access.array, set()).add(owner.id)
    return [a.name for a in plan.program.temporaries if used.get(a.name) == {kernel}]
