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
from ...poly.ring import Ring, ring
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

    def made(self, s: int, r: int) -> Plan:
        """The plan with `s` slots and release distance `r`, its waits as the step makes them."""
        if isinstance(self.way, Specialise):
            return replace(self.way, stages=s).rewrite(self.base)
        return replace(self.way, stages=s - r + 1, buffers=s).rewrite(self.base)

    def plan(self, s: int, r: int, f: int) -> Plan:
        """The plan with `s` slots, release distance `r`, and `f` in flight."""
        plan = self.made(s, r)
        loop = plan.loops[self.way.loop]
        only = {n.id for n in loop.body}
        if isinstance(self.way, Pipeline) and self.way.copies and isinstance(found := ring(plan, loop.id, self.way.copies), Ring):
            only = {w.node for w in found.waits}  # other copies' waits stay as they are
        over = replace(self.overlapped, steps=f) if self.overlapped and self.flight == "products" else self.overlapped
        plan = over.rewrite(plan) if over else plan
        loop = plan.loops[self.way.loop]
        kinds = {"acquire": s - r - 1} | ({"wait": f} if self.flight == "copies" and not isinstance(self.way, Specialise) else {})
        return plan.replace_node(loop.id, replace(loop, body=tuple(_with(n, kinds) if n.id in only else n for n in loop.body)))

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


def kin_of(schedule: Schedule, loop: str, flight: str = "", of: tuple[str, ...] = ()) -> tuple[Schedule, Kin] | str:
    """The schedule without the pipeline of a loop, and the family of the plans with one; or a sentence why there is none.

    Parameters
    ----------
    schedule : Schedule
    loop : str
    flight : str
        What is varied in flight: ``"products"`` of a warpgroup, or ``"copies"``; by default the products where there are such.
    of : tuple of str
        The copies whose pipeline is in question, the loop's others stay as they are; by default all of the loop.
    """
    bare = without(schedule, loop, of)
    if bare is None or loop not in bare.plan.loops:
        return f"the steps of this schedule cannot be taken without the pipeline of {loop}"
    made = [leaf.statement for leaf, _ in leaves(copy_nests(bare.plan, bare.plan.loops[loop]))]
    if not made:
        return f"no copies are made in the body of {loop}, so there is nothing to pipeline"
    if odd := next((name for name in of if name not in made), None):
        return f"{odd} is no copy in the body of {loop}; there are {', '.join(dict.fromkeys(made))}"
    way, over = template(schedule.steps, loop, of), overlap_of(bare.plan, bare.plan.loops[loop])
    if isinstance(way, Pipeline) and not any(x == way for x in schedule.steps) and not way.check(bare.plan):
        way = replace(way, asynchronous=False)
    if isinstance(way, Pipeline) and way.across and not way.check(bare.plan):  # the loop around it has been divided since
        way = replace(way, across="")
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


def template(steps: tuple[Transform, ...], loop: str, of: tuple[str, ...] = ()) -> Pipeline | Specialise:
    """The step that gives a loop, or these copies of it, its stages: the one there is, or a plain pipeline."""
    own = (x for x in steps if isinstance(x, Pipeline | Specialise) and x.loop == loop and _is_for(x, of))
    return next(own, Pipeline(loop, 2, of))


def _is_for(step: Transform, of: tuple[str, ...]) -> bool:
    """Whether a step gives these copies their stages."""
    return not of or not isinstance(step, Pipeline) or not step.copies or set(of) <= set(step.copies)


def key(steps: tuple[Transform, ...], loop: str) -> tuple[tuple[Any, ...], int, int]:
    """What schedules of one ablation have in common, and what tells them apart: their other steps; stages, and level."""
    own = [x for x in steps if isinstance(x, Pipeline | Specialise | Overlap)]
    stages = next((x.stages for x in own if not isinstance(x, Overlap) and x.loop == loop), 1)
    level = any(isinstance(x, Overlap) or x.loop != loop for x in own)
    roles = any(isinstance(x, Specialise) for x in own)
    return (*(x for x in steps if x not in own), roles), stages, int(level)


def without(schedule: Schedule, loop: str, of: tuple[str, ...] = ()) -> Schedule | None:
    """A schedule without its pipelines, but for those of other copies of the loop; None where its other steps need them."""
    rest, stages, level = key(schedule.steps, loop)
    if stages == 1 and not level:
        return schedule
    now = Schedule.of(schedule.source, schedule.definition)
    own = [x for x in schedule.steps if x in rest or (isinstance(x, Pipeline) and x.loop == loop and not _is_for(x, of))]
    try:
        for step in own:
            now = now.apply(step, judge=False)
    except ExplorerError:
        return None
    return now
