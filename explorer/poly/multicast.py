"""Multicast: blocks of a cluster that need the same box bring a part of it each, to the shared memory of all of them.

Neighbours along an axis of the grid, so many that they are a cluster along it, copy one box: part ``n`` of it, of equal parts
along its first dimension, is asked for by the ``n``-th of them, and the engine writes it to the same place of every neighbour's
shared memory (PTX ISA, ``cp.async.bulk.tensor``, ``.multicast::cluster``).  Each block counts the whole box on its own mbarrier.

In the plan every block makes the whole copy.  That this is what happens needs of the neighbours that

- they copy the same elements to the same cells, in the same iterations, under the same conditions;
- the slot of each of them is free when any of them writes it.  So consumers release a slot to the producers of all blocks of the
  cluster, and a producer waits for the consumers of all.  Since all blocks run the same groups, a release has one number in all
  of them, and what :mod:`~explorer.poly.roles` proves of a block's own slots holds for its neighbours' too: nobody releases a
  group that this block's producer has not brought its part of, so no phase is taken for another, and nobody waits for ever;
- all of them are there: the grid is a multiple of the cluster, and a block ends when the others have released all of its slots.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, product
from math import prod

from ..ir.expr import Expr, var
from ..ir.finding import Finding
from ..ir.plan import Plan
from ..ir.tree import BLOCK_ROLES, PORTABLE_CLUSTER, Kernel, Leaf, Loop, ranges
from .bulk import ALIGNMENT, Bulk, bulk
from .early_end import end_of
from .flow_text import instance
from .pure_load import Never
from .sites import Site, sites

KIND = "multicast"
"""Of findings: two neighbours that do not copy the same box."""
LOOKED_AT = 4096
"""Pairs of neighbours, in iterations of the loops around, among which one with different boxes is looked for."""


@dataclass(frozen=True)
class Parts:
    """How neighbours divide a box.

    Attributes
    ----------
    axis : int
        Of the grid.
    count : int
        Neighbours, and parts.
    dimension : int
        Of the box, along which a part follows the other: the first one with more than one element.
    """

    axis: int
    count: int
    dimension: int

    def of(self, box: tuple[int, ...]) -> tuple[int, ...]:
        """The elements of one part, along each dimension."""
        return tuple(n // self.count if d == self.dimension else n for d, n in enumerate(box))


def parts_of(leaf: Leaf, found: Bulk) -> Parts | None:
    """How the neighbours of a multicast divide its box; None for a copy that each block makes for itself."""
    if leaf.multicast is None:
        return None
    role, count = leaf.multicast
    return Parts(BLOCK_ROLES.index(role), count, next((d for d, n in enumerate(found.box) if n > 1), 0))


def is_shared(kernel: Kernel, plan: Plan) -> bool:
    """Whether blocks of a kernel write to each other's shared memory."""
    return any(leaf.multicast for leaf, _, k in plan.leaves if k.id == kernel.id)


def check_multicast(plan: Plan) -> tuple[Finding, ...]:
    """Whether each multicast brings to every block what this block would copy.

    Parameters
    ----------
    plan : Plan
        A plan that passes *cover*, *order* and *flow*, slots included.

    Returns
    -------
    tuple of Finding
        One for each leaf: the rule that it breaks, or two neighbours with different boxes.
    """
    found: list[Finding] = []
    for leaf, above, kernel in plan.leaves:
        if leaf.multicast:
            why = cannot_share(plan, leaf, above, kernel)
            found += [_rule(leaf, why)] if why else [*_differ(plan, leaf, above, kernel)]
    return tuple(found)


def _rule(leaf: Leaf, why: Never) -> Finding:
    return Finding("flow", f"{leaf.id} cannot be shared by blocks of a cluster: {why.what}", why.why, kind=KIND, nodes=(leaf.id,),
                   hints=(why.hint,) if why.hint else ())


def cannot_share(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], kernel: Kernel) -> Never | None:
    """What keeps a leaf from being a multicast, beside what its neighbours copy; None where nothing does."""
    assert leaf.multicast is not None
    role, count = leaf.multicast
    if role not in BLOCK_ROLES:
        return Never(f"{role} is no axis of the grid", "neighbours are blocks", f"one of {', '.join(BLOCK_ROLES)}")
    if leaf.mechanism != "bulk":
        return Never(f"{leaf.id} is no bulk copy", "only the copy engine writes to several blocks at once",
                     "stage with engine='bulk'")
    if not kernel.has_roles:
        return Never(f"{kernel.id} has no producer", "a slot is free when the consumers of all blocks have released it",
                     f"specialise first, or multicast({leaf.id!r}, {role!r}, 1)")
    grid = plan.extents[kernel.id][:3]
    if refusal := _cluster(plan, kernel, role, count, grid):
        return refusal
    axis = BLOCK_ROLES.index(role)
    for x in above:
        if x.role == role and (x.start or x.extent != grid[axis]):
            return Never(f"{x.id} is in {x.extent} of the {grid[axis]} blocks along {role}", "each block brings a part")
        last = end_of(plan, kernel, x) if x.trimmed else ""
        if isinstance(last, Expr) and any(_depends(last, y, count, above) for y in above if y.role == role):
            return Never(f"{x.id} ends earlier in some blocks along {role} than in others",
                         "each block brings a part in every iteration", "another axis, or a loop that is not trimmed")
    found = bulk(plan, leaf, above)
    return Never(found.what, found.why, found.hint) if isinstance(found, Never) else _divided(plan, leaf, found)


def _cluster(plan: Plan, kernel: Kernel, role: str, count: int, grid: tuple[int, ...]) -> Never | None:
    """What keeps so many neighbours along an axis from being blocks of a cluster."""
    axis = BLOCK_ROLES.index(role)
    mine = [(leaf, above) for leaf, above, k in plan.leaves if k.id == kernel.id]
    if count < 2:
        return Never(f"{count} is no number of neighbours", "a cluster has two blocks at least", "count=2 or more")
    if grid[axis] % count:
        return Never(f"the grid has {grid[axis]} blocks along {role}, which {count} does not divide",
                     "a cluster is whole", "another count, or count=1, which ends the sharing")
    if any("cluster" in dict(leaf.collect).values() for leaf, _ in mine):
        return Never(f"{kernel.id} combines results over clusters, too", "a launch has one kind of clusters", "collect otherwise")
    for leaf, _ in mine:
        if leaf.multicast and leaf.multicast[0] == role and leaf.multicast[1] != count:
            return Never(f"{leaf.id} is shared by {leaf.multicast[1]} blocks along {role}", "a launch has one kind of clusters",
                         f"multicast({leaf.id!r}, {role!r}, 1) first, which ends that")
    blocks = prod(plan.clusters[kernel.id])
    if blocks > PORTABLE_CLUSTER:
        return Never(f"a cluster would have {blocks} blocks", f"it has at most {PORTABLE_CLUSTER} on every GPU with clusters",
                     "fewer along one axis")
    return None


def _divided(plan: Plan, leaf: Leaf, found: Bulk) -> Never | None:
    """What keeps a box from being divided among neighbours."""
    parts = parts_of(leaf, found)
    assert parts is not None
    n, whole = found.box[parts.dimension], prod(found.box) * plan.array_of[found.array].dtype.bytes
    shown = " x ".join(map(str, found.box))
    if n % parts.count:
        return Never(f"the box of {shown} elements is not divided into {parts.count} by its {n} rows",
                     "each neighbour brings as many", "another count, or tiles with a multiple of that")
    if parts.dimension == len(found.box) - 1 or whole // parts.count % ALIGNMENT:
        return Never(f"the box of {shown} elements has parts of {whole // parts.count} bytes",
                     f"{ALIGNMENT} bytes have to divide their place, and rows stay whole", "another count, or larger tiles")
    return None


def _differ(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], kernel: Kernel) -> Iterator[Finding]:
    """Two neighbours that do not copy the same box to the same place, in the same iterations."""
    found = bulk(plan, leaf, above)
    assert leaf.multicast is not None
    assert not isinstance(found, Never)
    role, count = leaf.multicast
    along = [x for x in above if x.role == role]
    held = (*found.first, *found.cell, *(c.expr for c in found.when))
    if not any(_depends(e, x, count, above) for x in along for e in held):
        return
    site = next(s for s in sites(plan)[kernel.id] if s.leaf.id == leaf.id and s.writes)
    for first, second in islice(_pairs(site, along, count, frozenset[str]().union(*(e.variables() for e in held))), LOOKED_AT):
        if any(e.evaluate(first) != e.evaluate(second) for e in held):
            yield _finding(site, found, first, second)
            return
    yield Finding("flow", f"it could not be decided whether {count} neighbours along {role} copy the same box in {leaf.id}",
                  f"its place depends on {', '.join(x.id for x in along)}", kind=KIND, nodes=(leaf.id,))


def _depends(e: Expr, loop: Loop, count: int, above: tuple[Loop, ...]) -> bool:
    """Whether an expression may differ between neighbours, so many of whom are a cluster along a loop over blocks."""
    scope = {**ranges(above), "the cluster": (0, loop.extent // count - 1), "the neighbour": (0, count - 1)}
    place = var("the cluster") * count + var("the neighbour")
    return "the neighbour" in e.substitute({loop.id: place}, scope).simplify(scope).variables()


def _pairs(site: Site, along: list[Loop], count: int,
           used: frozenset[str]) -> Iterator[tuple[dict[str, int], dict[str, int]]]:
    """Iterations of two neighbours, alike in all loops but those over blocks; of the others those run on which it depends."""
    others = [x for x in site.above if x.id in used and x not in along and x.role != "tensor"]
    for values in product(*(range(x.start, x.start + x.extent) for x in others)):
        base = {x.id: x.start for x in site.above} | dict(zip((x.id for x in others), values, strict=True))
        for n in range(min(x.extent for x in along)):
            first = n - n % count
            if n > first:
                yield base | {x.id: first for x in along}, base | {x.id: n for x in along}


def _finding(site: Site, found: Bulk, first: dict[str, int], second: dict[str, int]) -> Finding:
    points = [site.instance(tuple(values[x.id] for x in site.above)) for values in (first, second)]
    source, sink = (instance(site, p) for p in points)
    at = [f"{found.array}[{', '.join(str(e.evaluate(values)) for e in found.first)}]" for values in (first, second)]
    assert site.leaf.multicast is not None
    role, count = site.leaf.multicast
    loop = next(x.id for x in site.above if x.role == role)
    why = (f"{role} {first[loop]} and {second[loop]} are blocks of one cluster: in one {source} begins at {at[0]}, in the other "
           f"{sink} at {at[1]}")
    return Finding("flow", f"{count} neighbours along {role} do not copy the same box in {site.leaf.id}", why, found.array, (),
                   KIND, source, sink, (site.leaf.id,), hints=("an axis of the grid on which the box does not depend",))


__all__ = ["KIND", "Parts", "cannot_share", "check_multicast", "is_shared", "parts_of"]
