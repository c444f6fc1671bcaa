"""The scheme of each edge in a finished plan, read from the plan and not from the request."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.plan import Plan
from ...ir.tree import Loop
from ...poly.producer_consumer import ValueEdge
from .graph import APART


def came_about(plan: Plan, e: ValueEdge, wanted: str, heirs: Sequence[ValueEdge] = ()) -> str:
    """The scheme that an edge has in a plan; `heirs` are the edges that took its place where its consumer is computed again."""
    if heirs:
        found = [came_about(plan, heir, wanted) for heir in heirs]
        return next((scheme for scheme in found if scheme != wanted), wanted)
    owner = {leaf.id: k.id for leaf, _, k in plan.leaves}
    writers = [(leaf, above) for leaf, above, _ in plan.leaves if plan.statement_of[leaf.statement].target.array == e.array]
    readers = [(leaf, above) for leaf, above, _ in plan.leaves
               if any(r.array == e.array for r in plan.statement_of[leaf.statement].reads)]
    exact = [r for r in readers if plan.statement_of[r[0].statement].target.array.startswith(e.into)] or readers
    if not writers or not exact:
        return "recompute"
    (made, above), (used, around) = writers[-1], exact[0]
    if owner[made.id] != owner[used.id]:
        ended = wanted if wanted in APART and wanted != "grid" else "cut"
        return "grid" if _barrier(plan, owner[made.id], owner[used.id]) else ended
    if e.kind == "1:1" and (parts := _parts(plan, e, owner[made.id])):
        return "grid" if _barrier(plan, parts, owner[made.id]) else "global"
    combined = [how for leaf, _ in writers for _, how in leaf.collect]
    if combined:
        return combined[-1]
    statement = plan.statement_of[made.statement]
    view = made.view(len(statement.reads))
    if view is not None:
        return plan.buffer_of[view.buffer].space
    kept = plan.array_of[e.array].role != "temporary"  # a result is written in any case; its thread has the value at hand
    return "register" if kept and _places(above) == _places(around) else "global"


def _barrier(plan: Plan, first: str, then: str) -> bool:
    """Whether two kernels are phases of one launch with a barrier of the grid between them."""
    names = [k.id for k in plan.kernels]
    between = plan.kernels[names.index(first) + 1 : names.index(then) + 1]
    return all(k.join for k in between) and any(k.join == "grid" for k in between)


def _parts(plan: Plan, e: ValueEdge, kernel: str) -> str:
    """The earlier kernel that left the parts from which the value is joined in this one; "" where there is none."""
    names = [k.id for k in plan.kernels]
    here = names.index(kernel)
    for leaf, _, owner in plan.leaves:
        s = plan.statement_of[leaf.statement]
        if owner.id == kernel and f"{s.target.array}_p".startswith(f"{e.array}_p") and s.origin == "combine":
            read = {r.array for r in s.reads if r.array.startswith(f"{e.array}_p")}
            if found := next((k.id for x, _, k in plan.leaves
                              if plan.statement_of[x.statement].target.array in read and names.index(k.id) < here), ""):
                return found
    return ""


def _places(above: tuple[Loop, ...]) -> set[str]:
    return {x.id for x in above if x.is_place and x.extent > 1}


def why_not(scheme: str) -> str:
    """Why an edge did not get a scheme although every move applied."""
    return {"shuffle": "no loop that carries a reduction is spread over threads there",
            "shared": "the value does not lie in shared memory",
            "register": "another thread uses the value than the one that made it",
            "global": "no part of the value is made by another block",
            "grid": "no barrier of the grid stands between its statements",
            "cut": "both ends are in one kernel",
            "recompute": "the value is stored"}[scheme]
