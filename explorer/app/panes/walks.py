"""How the loops around a statement walk its arrays: parallel or reduced, the stride of every access, and what would help."""

from __future__ import annotations

from math import prod

from ...ir.plan import Plan
from ...ir.text import access_text
from ...ir.tree import Leaf, Loop
from ...poly.sites import Site, sites
from ...transforms._reduction import updates
from ..protocol_walks import Walk, WalkAccess

FAST = ("thread.x", "lane")
"""Roles whose neighbouring iterations are neighbouring lanes of a warp."""


def walks(plan: Plan) -> dict[str, Walk]:
    """For each statement in the loops: what every loop around it is to it."""
    by_leaf: dict[str, list[Site]] = {}
    for found in sites(plan).values():
        for site in found:
            if site.space != "register":
                by_leaf.setdefault(site.leaf.id, []).append(site)
    return {leaf.id: _walk(plan, leaf, above, by_leaf.get(leaf.id, [])) for leaf, above, _ in plan.leaves if above}


def _walk(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], found: list[Site]) -> Walk:
    accesses = {access_text(plan, leaf, s.slot): s for s in reversed(found)}
    shown = [_access(plan, text, site) for text, site in reversed(accesses.items())]
    kinds = {x.id: kind(plan, leaf, above, x) for x in above}
    notes: dict[str, str] = {}
    for access, site in zip(shown, reversed(accesses.values()), strict=True):
        if note := _note(access, site, kinds):
            notes.setdefault(access["array"], note)
    return {"loops": kinds, "accesses": shown, "notes": list(notes.values())}


def kind(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], loop: Loop) -> str:
    """``parallel``, ``reduced`` or ``ordered`` for a statement.

    Parallel: different iterations write different elements, and none reads what the statement writes.  Reduced: they update one
    element, in any order.  Ordered: anything else.
    """
    u = updates(plan, leaf, above)
    if u.statement.update:
        return "parallel" if u.parallel(loop) else "reduced"
    own = any(r.array == u.statement.target.array for r in u.statement.reads)
    return "parallel" if u.parallel(loop) and not own else "ordered"


def strides(plan: Plan, site: Site) -> dict[str, int | None]:
    """Elements in memory from one iteration of each loop to the next; None where it is not always the same."""
    if site.leaf.view(site.slot) is not None:
        shape = plan.buffer_of[site.storage].padded_shape
    else:
        shape = plan.array_of[site.storage].shape
    weights = [prod(shape[axis + 1:]) for axis in range(len(shape))]
    out: dict[str, int | None] = {}
    for loop in site.above:
        total: int | None = 0
        for weight, e in zip(weights, site.cell, strict=True):
            step = None if e is None else e.coefficient(loop.id)
            inside = e is None or any(not isinstance(atom, str) and loop.id in _inside(atom) for atom, _ in e.terms)
            total = None if total is None or step is None or inside else total + weight * step
        out[loop.id] = total
    return out


def _inside(atom: object) -> frozenset[str]:
    """Variables of a quotient or a remainder."""
    return atom.expr.variables()  # type: ignore[attr-defined]


def _access(plan: Plan, text: str, site: Site) -> WalkAccess:
    steps = strides(plan, site)
    vector = next((x for x in site.above if x.role == "vector"), None)
    width = vector.extent if vector and steps[vector.id] == 1 else 1
    marks: dict[str, str] = {}
    for loop in site.above:
        step = steps[loop.id]
        if loop.role in FAST and loop.extent > 1 and site.space == "global":
            marks[loop.id] = "coalesced" if step in (1, width) else "same" if step == 0 else "varies" if step is None else "apart"
        elif step == 1 and loop.extent > 1:
            marks[loop.id] = "contiguous"
    name = site.statement.accesses[site.slot].array
    return {"text": text, "array": name, "space": site.space, "writes": site.writes, "strides": steps, "marks": marks}


def _note(access: WalkAccess, site: Site, kinds: dict[str, str]) -> str:
    """What would make an access contiguous, where no loop, or not the threads, walk it so."""
    if access["space"] != "global":
        return ""
    several = {x.id: x for x in site.above if x.extent > 1}
    steps = {name: abs(n) for name, n in access["strides"].items() if n and name in several}
    apart = next((name for name, mark in access["marks"].items() if mark == "apart"), "")
    near = next((name for name, n in steps.items() if n == 1), "")
    if steps and not near:
        least = min(steps, key=lambda name: steps[name])
        return (f"no loop walks {access['array']} contiguously (the nearest, {least}, steps over {steps[least]:,} elements): "
                f"a transposed copy of {access['array']} with {least} along its last axis would")
    if apart and near and several[near].role not in FAST:
        bind = "" if kinds[near] == "ordered" else f"bind {near} to the threads, or "
        return (f"neighbouring threads are {steps[apart]:,} elements of {access['array']} apart along {apart}, while {near} is "
                f"contiguous: {bind}transpose {access['array']} on the way through shared memory (stage)")
    return ""
