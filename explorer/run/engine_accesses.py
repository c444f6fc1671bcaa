"""Accesses that no thread makes an element at a time: boxes of the copy engine, and tiles that tensor cores read."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod

from ..ir.instructions import Wgmma, instruction
from ..ir.plan import Plan
from ..ir.program import Constraint
from ..ir.tree import Kernel, Loop
from ..poly.bulk import bulk
from ..poly.bulk_store import IN_BOXES, bulk_store
from ..poly.pure_load import Never
from ..poly.sites import Site, launch_extents, sites
from ..poly.traffic import SECTOR_BYTES, AccessFacts
from ..strategies.trips import share_run

COPY_ENGINE, TENSOR_CORES = "copy engine", "tensor cores"
TRIED = 10_000
"""Iterations for which conditions are evaluated."""


def by_engine(plan: Plan) -> dict[tuple[str, int], tuple[str, float, int]]:
    """Of accesses, by leaf and slot: who makes them, how many they are in a run, and the bytes of each."""
    found: dict[tuple[str, int], tuple[str, float, int]] = {}
    for kernel in plan.kernels:
        for site in sites(plan)[kernel.id]:
            if made := _of(plan, kernel, site):
                found[site.leaf.id, site.slot] = made
    return found


def told(access: AccessFacts, by: str, count: float, nbytes: int) -> AccessFacts:
    """The facts of such an access: a box is whole sectors, and a tile is read as its swizzle has it."""
    sectors = -(-nbytes // SECTOR_BYTES) if access.space == "global" else 0
    return replace(access, by=by, requests=count, width_bytes=nbytes, sectors_per_request=float(sectors), minimum=float(sectors),
                   conflicts=float(access.space == "shared"), active=1.0, sampled=False)


def _of(plan: Plan, kernel: Kernel, site: Site) -> tuple[str, float, int] | None:
    leaf, above = site.leaf, site.above
    row = instruction(leaf.mechanism)
    if leaf.mechanism in IN_BOXES:
        found = (bulk if leaf.mechanism == "bulk" else bulk_store)(plan, leaf, above)
        if isinstance(found, Never):
            return None
        inside, by = {x.id for x in found.loops}, COPY_ENGINE
        outside = [x for x in above if x.id not in inside and not x.is_thread]
        elements, when = prod(found.box) // (leaf.multicast[1] if leaf.multicast else 1), found.when
    elif isinstance(row, Wgmma) and site.space == "shared":
        inside, by = {x.id for x in above if x.role == "tensor"}, TENSOR_CORES
        outside = [x for x in above if x.id not in inside]
        used = frozenset[str]().union(*(e.variables() for e in site.cell if e is not None))
        elements, when = prod(x.extent for x in above if x.id in inside & used), ()
    else:
        return None
    blocks = prod(n for n, place in zip(launch_extents(plan, kernel)[:3], site.place[:3], strict=True) if place is None)
    held = plan.buffer_of[site.storage] if site.storage in plan.buffer_of else plan.array_of[site.storage]
    times = prod(x.extent for x in outside) * blocks * share_run(plan, outside) * _share(when, outside)
    return by, times, elements * held.dtype.bytes


def _share(when: tuple[Constraint, ...], loops: list[Loop]) -> float:
    """Of the iterations of some loops, the part in which conditions hold; all, where they are too many to try."""
    named = frozenset[str]().union(*(c.expr.variables() for c in when))
    asked = [x for x in loops if x.id in named]
    if not asked or prod(x.extent for x in asked) > TRIED or not named <= {x.id for x in asked}:
        return 1.0
    ranges = (range(x.start, x.start + x.extent) for x in asked)
    points = [dict(zip((x.id for x in asked), at, strict=True)) for at in product(*ranges)]
    return sum(all(c.holds(point) for c in when) for point in points) / len(points)
