"""The prologue of an inner pipeline, moved into the last iterations of its loop, for the next iteration of the outer loop.

A pipelined loop begins with a prologue, the copies of its first iterations.  Inside of an outer loop, the prologue runs again
in each iteration of that loop, and nothing is computed meanwhile.  Here the last iterations of the inner loop make these
copies for the next iteration of the outer one; only the very first prologue stays, in front of the outer loop.  The outer
loop's waits move to just before those last iterations, because they read the next tile; they leave as many groups pending as
before.

Pipelines of several levels in ALCOP (Huang et al., MLSys 2023) and the main loop of CUTLASS for cp.async
(``include/cutlass/gemm/threadblock/mma_multistage.h``) are of this form.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.expr import var
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import Loop, Node, Sync, leaves, ranges, retime, walk
from ._cut import rename_loops
from ._nest import enclosing
from .base import get_loop
from .cut import Cut


def can_be_carried(plan: Plan, inner: Loop, outer: str, ahead: int) -> Verdict:
    """Whether the first copies of a loop can be made by its last iterations, for the next iteration of the loop around it."""
    around = get_loop(plan, outer)
    if isinstance(around, Verdict):
        return around
    if inner not in around.body:
        parent = next((x.id for x in reversed(enclosing(plan, inner.id))), "")
        return no(f"{inner.id} does not stand in the body of {outer}", "there its last iterations come right before the next one",
                  f"across={parent!r}" if parent else "")
    if around.role not in ("seq", "unroll"):
        return no(f"{outer} is bound or vectorised ({around.role}), so its iterations are not one after the other")
    if any(isinstance(n, Sync) and n.kind == "acquire" for n in around.body):
        return no(f"{outer} has a producer", "behind its last tile there is none to wait for", "leave `across` out")
    if inner.extent < 2:
        return no(f"{inner.id} runs once", "an iteration copies for itself, and its last ones for the next one of the outer loop",
                  "leave `across` out")
    if inner.extent <= ahead:
        return no(f"{inner.id} runs {inner.extent} times", f"its last {ahead} copy for the next one of {outer}",
                  f"{inner.extent} stages or fewer")
    return YES


def fewest_slots(steps: int, ahead: int) -> int:
    """Slots with which the next tile's first copies take none that the last steps of a tile still read."""
    def free(slots: int) -> bool:
        return all(e % slots not in {x % slots for x in range(steps - ahead + e, steps)} for e in range(ahead))

    return next(n for n in range(ahead + 1, steps + ahead + 1) if free(n))


def carried(plan: Plan, inner: str, early: str, outer: str) -> Plan:
    """The plan whose loop `inner` makes the copies of its prologue `early` for the next iteration of `outer`."""
    loop, first, around = plan.loops[inner], plan.loops[early], plan.loops[outer]
    copied = {leaf.statement for leaf, _ in leaves(first.body)}
    plan = Cut(inner, loop.extent - first.extent).rewrite(plan)
    around = plan.loops[outer]
    last = next(n for n, before in zip(around.body[1:], around.body, strict=False) if before.id == inner)
    assert isinstance(last, Loop)
    above = enclosing(plan, outer)

    names = {n.id: plan.fresh(f"{n.id}.next") for n in walk(first.body)} | {early: last.id}
    scope = {**ranges(above), outer: around.range, last.id: last.range}
    behind = first.start - last.start
    again = tuple(_named(rename_loops(n, names, scope), names) for n in first.body)
    more = {outer: var(outer) + 1, last.id: var(last.id) + behind}
    less = {outer: var(outer) - 1, last.id: var(last.id) - behind}
    again = retime(again, more, less, scope)
    last = replace(last, body=(*again, *(n for n in last.body if not {leaf.statement for leaf, _ in leaves((n,))} & copied)))

    waits = tuple(n for n in around.body if isinstance(n, Sync) and n.kind == "wait")
    once = Loop(plan.fresh(f"{outer}.first"), min(1, around.extent), (), "seq", around.start)
    only = rename_loops(first, {outer: once.id}, {**ranges(above), once.id: once.range})
    before = (*(replace(n, id=plan.fresh(f"{n.id}.pro")) for n in waits), replace(once, body=(only,)))
    body = list[Node]()
    for n in around.body:
        body += [*waits, last] if n.id == last.id else [] if n in waits or n.id == early else [n]
    return plan.replace_node(outer, *before, replace(around, body=tuple(body)))


def _named(node: Node, names: dict[str, str]) -> Node:
    if isinstance(node, Loop):
        return replace(node, body=tuple(_named(n, names) for n in node.body))
    return replace(node, id=names.get(node.id, node.id))
