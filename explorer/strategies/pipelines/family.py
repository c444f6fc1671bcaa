"""The plans of a pipeline's family: the loop of a schedule with other slots, release distances and work in flight.

Each is made by the moves that a user would take, without asking whether it is legal: those that are not run as counterexamples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...errors import ExplorerError, TransformError
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
_NEEDED = "the steps of this schedule cannot be taken without the pipeline of {}"


@dataclass(frozen=True)
class Kin:
    """A family of plans.

    Attributes
    ----------
    base : Plan, or a function that makes it
        Before the loop is pipelined; made when a plan of the family is asked for.
    way : Pipeline or Specialise
        The step that does; its stages and slots are varied.
    overlapped : Overlap or None
        The step behind it, with products in flight.
    flight : str
        What is varied besides: ``"products"`` or ``"copies"`` in flight.
    """

    base: Plan | Callable[[], Plan]
    way: Way
    overlapped: Overlap | None
    flight: Flight

    @property
    def before(self) -> Plan:
        """The plan before the loop is pipelined."""
        return self.base if isinstance(self.base, Plan) else self.base()

    def made(self, s: int, r: int) -> Plan:
        """The plan with `s` slots and release distance `r`, its waits as the step makes them."""
        if isinstance(self.way, Specialise):
            return replace(self.way, stages=s).rewrite(self.before)
        return replace(self.way, stages=s - r + 1, buffers=s).rewrite(self.before)

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


def kin_of(schedule: Schedule, loop: str, flight: str = "", of: tuple[str, ...] = ()) -> Kin | str:
    """The family of a schedule's plans with a pipeline of a loop; or a sentence why there is none.

    Parameters
    ----------
    schedule : Schedule
    loop : str
    flight : str
        What is varied in flight: ``"products"`` of a warpgroup, or ``"copies"``; by default the products where some are in
        flight, or a producer copies.
    of : tuple of str
        The copies whose pipeline is in question, the loop's others stay as they are; by default all of the loop.
    """
    way = template(schedule.steps, loop, of)
    if way in schedule.steps and _shows_all(way, ring(schedule.plan, loop, of)):
        around = schedule.plan.loops[loop]  # the plan shows all that is asked: the steps behind need not be taken again
        taken = any(isinstance(x, Overlap) and x.loop == loop for x in schedule.steps)
        over = Overlap(loop) if taken else overlap_of(schedule.plan, around)
        return _kin(partial(_before, schedule, loop, of), way, over, flight or _usual(schedule, way))
    bare = without(schedule, loop, of)
    if bare is None or loop not in bare.plan.loops:
        return _NEEDED.format(loop)
    made = [leaf.statement for leaf, _ in leaves(copy_nests(bare.plan, bare.plan.loops[loop]))]
    if not made:
        return f"no copies are made in the body of {loop}, so there is nothing to pipeline"
    if odd := next((name for name in of if name not in made), None):
        return f"{odd} is no copy in the body of {loop}; there are {', '.join(dict.fromkeys(made))}"
    if isinstance(way, Pipeline) and not any(x == way for x in schedule.steps) and not way.check(bare.plan):
        way = replace(way, asynchronous=False)
    if isinstance(way, Pipeline) and way.across and not way.check(bare.plan):  # the loop around it has been divided since
        way = replace(way, across="")
    return _kin(bare.plan, way, overlap_of(bare.plan, bare.plan.loops[loop]), flight or _usual(schedule, way))


def _usual(schedule: Schedule, way: Way) -> str:
    """What is varied in flight by default: products where some are in flight or a producer copies, else copies."""
    around = schedule.plan.loops.get(way.loop)
    flying = around is not None and any(stays_in_flight(leaf.mechanism) for leaf, _ in leaves((around,)))
    overlapped = any(isinstance(x, Overlap) and x.loop == way.loop for x in schedule.steps)
    return "products" if flying or overlapped or isinstance(way, Specialise) else "copies"


def _shows_all(way: Way, found: Ring | str) -> bool:
    """Whether a pipelined loop is what one step has made, so that its plan shows the family."""
    if isinstance(found, str) or (isinstance(way, Pipeline) and way.across):
        return False
    return isinstance(way, Specialise) or not way.copies or {c.statement for c in found.copies} <= {*way.copies}


def _kin(base: Plan | Callable[[], Plan], way: Way, over: Overlap | None, chosen: str) -> Kin | str:
    """The family by what is varied in flight, or why that cannot be."""
    if chosen == "products" and not over and not isinstance(way, Specialise):
        return f"no product of a warpgroup stands in {way.loop}, so none can be in flight"
    if chosen == "copies" and isinstance(way, Specialise):
        return f"the copies of {way.loop} are a producer's, who waits for releases alone"
    return Kin(base, way, over if chosen == "products" else None, "products" if chosen == "products" else "copies")


def _before(schedule: Schedule, loop: str, of: tuple[str, ...]) -> Plan:
    """The plan of a schedule without the pipeline of a loop."""
    return required(schedule, loop, of).plan


def required(schedule: Schedule, loop: str, of: tuple[str, ...] = ()) -> Schedule:
    """A schedule without the pipeline of a loop, or of these copies in it.

    Raises
    ------
    TransformError
        If its other steps need the pipeline.
    """
    bare = without(schedule, loop, of)
    if bare is None or loop not in bare.plan.loops:
        raise TransformError(_NEEDED.format(loop), hint="undo the steps behind the pipeline that need it")
    return bare


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
