"""Asynchronous copies (cp.async): what one moves, and plans for GPUs that have none.

What a leaf moves was decided when it was judged (:mod:`~explorer.poly.mechanism`); the text follows, or there is none.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ..errors import ScheduleError
from ..ir.plan import Plan
from ..ir.tree import Loop, Node, Sync
from ..poly.mechanism import Moved, Never, asynchronous
from .sites import Lowered, Site

FIRST = 80
"""Compute capability, times ten, of the first GPUs with cp.async (PTX ISA, "cp.async": sm_80)."""


def for_arch(plan: Plan, arch: str) -> Plan:
    """The plan as a GPU of this compute capability runs it: with plain copies and no waits where it has no others.

    Barriers are then asked for of this plan, not of the other.
    """
    if int(re.sub(r"\D", "", arch) or 0) >= FIRST or not any(leaf.mechanism == "async" for leaf, _, _ in plan.leaves):
        return plan

    def without_waits(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        kept = (n for n in nodes if not isinstance(n, Sync))
        return tuple(replace(n, body=without_waits(n.body)) if isinstance(n, Loop) else n for n in kept)

    plain = plan.map_leaves(lambda leaf: replace(leaf, mechanism="plain") if leaf.mechanism == "async" else leaf)
    return plain.map_bodies(without_waits)


def moved(low: Lowered, site: Site) -> Moved:
    """What one copy of the leaf moves.

    Raises
    ------
    ScheduleError
        If it cannot be asynchronous: the plan was not judged.
    """
    found = asynchronous(low.plan, site.leaf, site.loops)
    if isinstance(found, Never):
        raise ScheduleError(f"{site.leaf.id} is to copy asynchronously and cannot: {found.what}", why=found.why, hint=found.hint)
    return found
