"""The roles of the loops around a statement, parallel, reduced or ordered, and the stride of each access along them."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd, prod
from random import Random

from ...ir.expr import ZERO, Expr
from ...ir.plan import Plan
from ...ir.swizzle import cells
from ...ir.text import access_text
from ...ir.tree import WARP_SIZE, Leaf, Loop
from ...poly.sites import Site, sites
from ...transforms._reduction import updates
from ..protocol_walks import Walk, WalkAccess

FAST = ("thread.x", "lane")
"""Roles whose neighbouring iterations are neighbouring lanes of a warp."""
SAMPLES = 60
"""Iterations at which the strides of several indices in one are held against the addresses."""
Steps = tuple[tuple[int, int], ...]
"""(elements from one to the next, how many) of each index that a loop is, the innermost first."""


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


def steps(plan: Plan, site: Site) -> dict[str, Steps]:
    """How each loop walks the memory of an access: its stride; of several indices in one (`coalesce`) the stride of each.

    Pairs of elements in memory from one iteration to the next, and how many such iterations, the innermost index first: ``b`` in
    ``x[b // 32, a, b % 32]`` with 8 values of ``a`` and 96 of ``b`` takes 32 steps of 1 element, and 3 of 256.  Nothing where
    that is not how it walks: where it shares a quotient with another loop, or the element is read from memory.  Of a swizzled
    array: before its units change places.
    """
    index = [e for e in site.cell if e is not None]
    if len(index) < len(site.cell):
        return {loop.id: () for loop in site.above}
    if site.leaf.view(site.slot):
        index, shape = cells(plan.buffer_of[site.storage], index, {x.id: x.range for x in site.above})
    else:
        shape = plan.array_of[site.storage].shape
    place = sum((e * prod(shape[axis + 1:]) for axis, e in enumerate(index)), start=ZERO)
    inside = {name for atom, _ in place.terms if not isinstance(atom, str) for name in atom.expr.variables()}
    return {loop.id: _several(place, loop, site.above) if loop.id in inside else ((place.coefficient(loop.id), loop.extent),)
            for loop in site.above}


def _several(place: Expr, loop: Loop, above: tuple[Loop, ...]) -> Steps:
    """The strides of the indices that a loop has in one; nothing where it is not so in all of some samples."""
    start = {x.id: x.start for x in above}

    def along(n: int, at: Mapping[str, int]) -> int:
        return int(place.evaluate({**at, loop.id: loop.start + n}) - place.evaluate({**at, loop.id: loop.start}))

    found: list[tuple[int, int]] = []
    run, stride = 1, along(1, start)
    for length in sorted(n for n in _periods(place, loop.id) if 1 < n < loop.extent):
        if length % run == 0 and (next_stride := along(length, start)) != stride * (length // run):
            found.append((stride, length // run))
            run, stride = length, next_stride
    found.append((stride, -(-loop.extent // run)))
    random = Random(0)
    for _ in range(SAMPLES):
        n, left, total = random.randrange(loop.extent), 0, 0
        at = {x.id: x.start + random.randrange(max(x.extent, 1)) for x in above}
        left = n
        for step, count in found[:-1]:
            left, digit = divmod(left, count)
            total += step * digit
        if along(n, at) != total + found[-1][0] * left:
            return ()
    return tuple(found)


def _periods(expr: Expr, loop: str) -> set[int]:
    """Iterations of a loop after which a quotient or a remainder in an index may change how it walks."""
    out: set[int] = set()
    for atom, _ in expr.terms:
        if not isinstance(atom, str) and loop in atom.expr.variables():
            inner = _periods(atom.expr, loop) | {1}
            each = abs(atom.expr.coefficient(loop)) or 1
            out |= inner | {n * atom.by // gcd(n * atom.by, each) for n in inner}
    return out


def strides(plan: Plan, site: Site) -> dict[str, int | None]:
    """Elements in memory from one iteration of each loop to the next; None where it is not always the same."""
    return {loop: found[0][0] if len(found) == 1 else None for loop, found in steps(plan, site).items()}


def _access(plan: Plan, text: str, site: Site) -> WalkAccess:
    found = steps(plan, site)
    vector = next((x for x in site.above if x.role == "vector"), None)
    width = vector.extent if vector and found[vector.id][:1] == ((1, vector.extent),) else 1
    marks = {x.id: mark for x in site.above if x.extent > 1 and (mark := _mark(x, found[x.id], width, site.space))}
    name = site.statement.accesses[site.slot].array
    return {"text": text, "array": name, "space": site.space, "writes": site.writes,
            "strides": {loop: each[0][0] if len(each) == 1 else None for loop, each in found.items()},
            "indices": {loop: list(each) for loop, each in found.items() if len(each) > 1}, "marks": marks}


def _mark(loop: Loop, found: Steps, width: int, space: str) -> str:
    """What the stride of a loop's innermost index means; of one that is bound to neighbouring lanes, for all of a warp."""
    stride, count = found[0] if found else (None, 0)
    if loop.role not in FAST or space != "global":
        return "contiguous" if stride == 1 else ""
    if stride is not None and stride not in (0, 1, width):
        return "apart"
    if stride is None or (len(found) > 1 and count % WARP_SIZE):
        return "varies"
    return "same" if stride == 0 else "coalesced"


def _note(access: WalkAccess, site: Site, kinds: dict[str, str]) -> str:
    """What would make an access contiguous, where no loop, or not the threads, walk it so."""
    if access["space"] != "global":
        return ""
    several = {x.id: x for x in site.above if x.extent > 1}
    known = {name: n if n is not None else access["indices"].get(name, [(0, 0)])[0][0] for name, n in access["strides"].items()}
    steps = {name: abs(n) for name, n in known.items() if n and name in several}
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
