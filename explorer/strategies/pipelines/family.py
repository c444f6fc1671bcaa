"""The plans of a pipeline's family: the loop of a schedule with other slots, release distances and work in flight.

Each is made by the moves that a user would take, without asking whether it is legal: those that are not run as counterexamples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...errors import ExplorerError
from ...ir.instructions import Wgmma, instruction, stays_in_flight
from ...ir.plan import Plan
from ...ir.tree import Loop, Node, Sync, leaves
from ...poly.ring_questions import Flight
from ...schedule import Schedule
from ...transforms.base import Transform
from ...transforms.overlap import Overlap
from ...transforms.pipeline import Pipeline, copy_nests
from ...transforms.specialise import Specialise

Way = Pipeline | Specialise


@dataclass(frozen=True)
class Kin:
    """A family of plans.

    Attributes
    ----------
    base : Plan
        Before the loop is pipelined.
    way : Pipeline or Specialise
        The step that does; its stages and slots are varied.
    overlapped : Overlap or None
        The step behind it, with products in flight.
    flight : str
        What is varied besides: ``"products"`` or ``"copies"`` in flight.
    """

    base: Plan
    way: Way
    overlapped: Overlap | None
    flight: Flight

    def plan(self, s: int, r: int, f: int) -> Plan:
        """The plan with `s` slots, release distance `r`, and `f` in flight."""
        if isinstance(self.way, Specialise):
            plan = replace(self.way, stages=s).rewrite(self.base)
        else:
            plan = replace(self.way, stages=s - r + 1, buffers=s).rewrite(self.base)
        over = replace(self.overlapped, steps=f) if self.overlapped and self.flight == "products" else self.overlapped
        plan = over.rewrite(plan) if over else plan
        kinds = {"acquire": s - r - 1} | ({"wait": f} if self.flight == "copies" and not isinstance(self.way, Specialise) else {})
        loop = plan.loops[self.way.loop]
        return plan.replace_node(loop.id, replace(loop, body=tuple(_with(n, kinds) for n in loop.body)))

    def alike(self, plan: Plan) -> Plan:
        """A schedule's plan as one of the family: products that it waits for at once are 0 in flight."""
        none = replace(self.overlapped, steps=0) if self.overlapped else None
        return none.rewrite(plan) if none and none.check(plan) else plan

    @property
    def varies(self) -> bool:
        """Whether anything is in flight that could be varied."""
        if self.flight == "products":
            return self.overlapped is not None
        return isinstance(self.way, Pipeline) and self.way.asynchronous


def _with(node: Node, pending: dict[str, int]) -> Node:
    return replace(node, pending=pending[node.kind]) if isinstance(node, Sync) and node.kind in pending else node


def kin_of(schedule: Schedule, loop: str, flight: str = "") -> tuple[Schedule, Kin] | str:
    """The schedule without the pipeline of a loop, and the family of the plans with one; or a sentence why there is none.

    Parameters
    ----------
    schedule : Schedule
    loop : str
    flight : str
        What is varied in flight: ``"products"`` of a warpgroup, or ``"copies"``; by default the products where there are such.
    """
    bare = without(schedule, loop)
    if bare is None or loop not in bare.plan.loops:
        return f"the steps of this schedule cannot be taken without the pipeline of {loop}"
    if not copy_nests(bare.plan, bare.plan.loops[loop]):
        return f"no copies are made in the body of {loop}, so there is nothing to pipeline"
    way, over = template(schedule.steps, loop), overlap_of(bare.plan, bare.plan.loops[loop])
    if isinstance(way, Pipeline) and not any(x == way for x in schedule.steps) and not way.check(bare.plan):
        way = replace(way, asynchronous=False)
    chosen = flight or ("products" if over else "copies")
    if chosen == "products" and not over and not isinstance(way, Specialise):
        return f"no product of a warpgroup stands in {loop}, so none can be in flight"
    if chosen == "copies" and isinstance(way, Specialise):
        return f"the copies of {loop} are a producer's, who waits for releases alone"
    return bare, Kin(bare.plan, way, over if chosen == "products" else None, "products" if chosen == "products" else "copies")


def overlap_of(plan: Plan, loop: Loop) -> Overlap | None:
    """The step that leaves the products of a loop in flight, where it has such."""
    rows = [instruction(leaf.mechanism) for leaf, _ in leaves((loop,))]
    alike = all(not isinstance(row, Wgmma) or not stays_in_flight(row.name) for row in rows)
    return Overlap(loop.id) if any(isinstance(row, Wgmma) for row in rows) and alike and Overlap(loop.id, 0).check(plan) else None


def template(steps: tuple[Transform, ...], loop: str) -> Pipeline | Specialise:
    """The step that gives a loop its stages: the one there is, or a plain pipeline."""
    return next((x for x in steps if isinstance(x, Pipeline | Specialise) and x.loop == loop), Pipeline(loop, 2))


def key(steps: tuple[Transform, ...], loop: str) -> tuple[tuple[Any, ...], int, int]:
    """What schedules of one ablation have in common, and what tells them apart: their other steps; stages, and level."""
    own = [x for x in steps if isinstance(x, Pipeline | Specialise | Overlap)]
    stages = next((x.stages for x in own if not isinstance(x, Overlap) and x.loop == loop), 1)
    level = any(isinstance(x, Overlap) or x.loop != loop for x in own)
    roles = any(isinstance(x, Specialise) for x in own)
    return (*(x for x in steps if x not in own), roles), stages, int(level)


def without(schedule: Schedule, loop: str) -> Schedule | None:
    """A schedule without its pipelines, or None where its other steps need them."""
    rest, stages, level = key(schedule.steps, loop)
    if stages == 1 and not level:
        return schedule
    now = Schedule.of(schedule.source, schedule.definition)
    try:
        for step in rest[:-1]:
            now = now.apply(step, judge=False)
    except ExplorerError:
        return None
    return now
