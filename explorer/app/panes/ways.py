"""The alternatives for combining a reduction's updates at the selected node, with their costs and guarantees."""

from __future__ import annotations

from ...gpu.spec import Gpu
from ...ir.plan import Plan
from ...ir.rounding import METHODS
from ...ir.tree import JOINED, Leaf
from ...run.facts import scaled
from ...schedule import Schedule
from ...strategies.collects import Way, ways
from ...transforms._reduction import updates
from ..protocol_moves import WayData, WaysData
from . import problems

WORDS = {
    "shuffle": "lanes of a warp exchange values, warps meet in shared memory",
    "shared": "a tree of additions in shared memory",
    "atomic": "every place updates the memory, in no fixed order",
    "kernel": "parts in global memory, joined by a launch of its own",
    "last_block": f"parts in global memory, joined {JOINED['last_block']}",
    "handoff": f"parts with flags in global memory, joined {JOINED['handoff']}",
    "grid": f"parts in global memory, joined {JOINED['grid']}",
    "cluster": "blocks of a cluster meet in distributed shared memory",
}
"""Each way in one sentence."""


def ways_at(schedule: Schedule, node: str, gpu: Gpu) -> list[WaysData]:
    """The choice for every reduction that stands open at a node: at its statement, or at a bound loop that carries it."""
    return [_choice(schedule, leaf, gpu) for leaf in open_reductions(schedule.plan, node)]


def open_reductions(plan: Plan, node: str) -> list[str]:
    """Updates at or below a node that a bound loop carries and nothing combines yet; at a loop, those that it carries."""
    found = []
    for leaf, above, _ in plan.leaves:
        if not plan.statement_of[leaf.statement].update or node not in {leaf.id, *(x.id for x in above)}:
            continue
        carrying = [x for x in updates(plan, leaf, above).carrying if x.is_place and x.extent > 1]
        open_loops = [x.id for x in carrying if x.id not in dict(leaf.collect)]
        if open_loops and (node == leaf.id or node in open_loops):
            found.append(leaf.id)
    return found


def _choice(schedule: Schedule, leaf: str, gpu: Gpu) -> WaysData:
    plan = schedule.plan
    hit = plan.find(leaf)
    assert hit is not None
    assert isinstance(hit[0], Leaf)
    array = plan.statement_of[hit[0].statement].target.array
    over = [x for x in updates(plan, hit[0], hit[1]).carrying if x.is_place]
    blocks = [x.id for x in over if x.is_block]
    found = [_way(schedule, way) for way in ways(schedule, leaf, gpu)]
    unit = f"per unit of Σ|terms| of an element of {array}, against the exact sum" if any(w["errors"] for w in found) else ""
    return {"target": leaf, "array": array, "over": "blocks" if blocks else "threads", "loops": blocks or [x.id for x in over],
            "unit": unit, "ways": found}


def _way(schedule: Schedule, way: Way) -> WayData:
    """One way as plain data; bytes in short, and a refusal in words."""
    problem = None if way.verdict else problems.of_verdict(way.verdict, schedule, way.steps[0])
    return {
        "how": way.how, "words": WORDS[way.how], "calls": [str(step) for step in way.steps], "applies": bool(way.verdict),
        "problem": problem, "deterministic": way.deterministic, "launches": way.launches, "parts": way.parts,
        "workspace": scaled(way.workspace_bytes, "B"), "initial": scaled(way.initial_bytes, "B"), "atomics": way.atomics,
        "barriers": way.grid_barriers, "errors": [(m, float(f"{dict(way.errors)[m]:.3g}")) for m in METHODS] if way.error else [],
        "label": _label(way),
    }


def _label(way: Way) -> str:
    """The row as one sentence, for those who hear it."""
    if not way.verdict:
        return f"{way.how}: refused. {way.verdict.what}"
    parts = [
        WORDS[way.how], "the same bits in every run" if way.deterministic else "the last bits differ from run to run",
        f"{way.launches} launch{'es' * (way.launches != 1)}",
        f"{way.parts:,} partial results of each element", f"{scaled(way.workspace_bytes, 'B')} workspace",
        f"{scaled(way.initial_bytes, 'B')} set before the updates", f"{way.atomics:,} atomics on the busiest address",
    ]
    if way.grid_barriers:
        parts.append(f"{way.grid_barriers} barrier{'s' * (way.grid_barriers > 1)} of the whole grid")
    parts.append(f"error at most {way.error:.2g}" if way.error else "exact")
    return f"{way.how}: {'; '.join(parts)}"
