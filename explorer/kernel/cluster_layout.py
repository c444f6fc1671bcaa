"""Parts that the blocks of a cluster leave in the shared memory of the block that joins them: which arrays, and where in it.

An array of parts lies in global memory as the plan says.  Where a kernel joins the blocks of a cluster, each cluster has cells
of its own, so its part of the array fits the shared memory of one block: an element's place there is its offset without what the
cluster's own coordinates add, and without the elements of other clusters between one part and the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from ..ir.expr import Expr, rejoin
from ..ir.plan import Plan
from ..ir.regroup import extract_sums
from ..ir.tree import BLOCK_ROLES, Kernel, Leaf, Loop, ranges
from .index import linear

MOST_BYTES = 32 << 10
"""Shared memory that the parts of one array may take; larger ones stay in global memory."""

Key = tuple[str, str]


@dataclass(frozen=True)
class Slots:
    """Where the elements of an array of parts lie in shared memory.

    Attributes
    ----------
    size : int
        Elements for one cluster.
    at : mapping of (str, int) to Expr
        For each access, as a leaf and its slot, the place over the loops' variables.
    writers : frozenset of str
        The leaves that write parts.
    """

    size: int
    at: dict[tuple[str, int], Expr]
    writers: frozenset[str]


@dataclass(frozen=True)
class _Use:
    """An access: its leaf and slot, whether it writes, and its offset.

    The coefficients of the coordinates of the whole cluster, by role; of those of its blocks; of all loops but the former.
    """

    leaf: Leaf
    slot: int
    writes: bool
    own: dict[str, int]
    parts: tuple[int, ...]
    inside: tuple[tuple[int, Loop], ...]


def slots_of(plan: Plan, kernels: Sequence[Kernel]) -> dict[Key, Slots]:
    """The arrays that a launch hands over in shared memory, as ``("array" or "buffer", name)``.

    Parameters
    ----------
    plan : Plan
    kernels : sequence of Kernel
        The phases of one launch.
    """
    if len(kernels) != 2 or kernels[1].join != "cluster" or prod(plan.clusters[kernels[1].id]) == 1:
        return {}
    before, kernel = kernels
    taken: dict[Key, list[tuple[Leaf, tuple[Loop, ...], Kernel, int]]] = {}
    for leaf, above, owner in plan.leaves:
        for slot, access in enumerate(plan.statement_of[leaf.statement].accesses):
            view = leaf.view(slot)
            taken.setdefault(("buffer", view.buffer) if view else ("array", access.array), []).append((leaf, above, owner, slot))
    out: dict[Key, Slots] = {}
    for key, uses in taken.items():
        if _is_handed(plan, key, uses, before, kernel):
            found = [_use(plan, leaf, above, slot, kernel) for leaf, above, _, slot in uses]
            slots = _slots([u for u in found if u is not None], _strides(plan, key)) if None not in found else None
            if slots and slots.size * _itemsize(plan, key) <= MOST_BYTES:
                out[key] = slots
    return out


def _is_handed(plan: Plan, key: Key, uses: Sequence[tuple[Leaf, tuple[Loop, ...], Kernel, int]], before: Kernel,
               kernel: Kernel) -> bool:
    """Whether a temporary of global memory is written by the first phase, plainly, and read by the second, and nothing else."""
    kind, name = key
    if plan.buffer_of[name].space != "global" if kind == "buffer" else plan.array_of[name].role != "temporary":
        return False
    for leaf, _, owner, slot in uses:
        statement = plan.statement_of[leaf.statement]
        writes = slot == len(statement.reads)
        if owner not in (before, kernel) or writes != (owner is before):
            return False
        if writes and (statement.update or leaf.collect or leaf.mechanism != "plain"):
            return False
    return len({owner.id for _, _, owner, _ in uses}) == 2


def _itemsize(plan: Plan, key: Key) -> int:
    kind, name = key
    return (plan.buffer_of[name] if kind == "buffer" else plan.array_of[name]).dtype.bytes


def _strides(plan: Plan, key: Key) -> set[int]:
    """Elements from one index to the next, for each axis."""
    kind, name = key
    shape = plan.buffer_of[name].padded_shape if kind == "buffer" else plan.array_of[name].stored
    return {prod(shape[n + 1 :]) for n in range(len(shape))}


def _use(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], slot: int, kernel: Kernel) -> _Use | None:
    """An access whose offset is a sum of loops from 0 with positive factors; None if it is not."""
    statement, loops = plan.statement_of[leaf.statement], {x.id: x for x in above}
    offset = _offset(plan, leaf, above, slot)
    if offset is None or offset.const or any(c <= 0 or loops.get(str(v)) is None or loops[str(v)].start for v, c in offset.terms):
        return None
    terms = [(c, x) for v, c in offset.terms if (x := loops[str(v)]).extent > 1]
    own = {BLOCK_ROLES[axis] for axis in plan.joined_axes(kernel)}
    return _Use(leaf, slot, slot == len(statement.reads), {x.role: c for c, x in terms if x.role in own},
                tuple(c for c, x in terms if x.is_block and x.role not in own),
                tuple((c, x) for c, x in terms if x.role not in own))


def _offset(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], slot: int) -> Expr | None:
    """Row-major offset of an access over the loops' variables."""
    view, access = leaf.view(slot), plan.statement_of[leaf.statement].accesses[slot]
    if view:
        return linear(view.index, plan.buffer_of[view.buffer].padded_shape)
    index = [e for e in access.index if isinstance(e, Expr)]
    if len(index) != len(access.index):
        return None
    rest, whole = extract_sums(linear(index, plan.array_of[access.array].stored), leaf.sums)
    return rejoin(rest.substitute(dict(leaf.at), ranges(above)) + whole)


def _slots(uses: Sequence[_Use], strides: set[int]) -> Slots | None:
    """Places for the elements of one cluster; None if they are not found for all accesses alike.

    From one part to the next there are as many elements as an axis of the array has behind it.  Where what stands beside the
    parts in an offset is less than that, parts move together; else offsets stay as they are, without the cluster's own
    coordinates.  Either way an element has one place, whichever loops come to it.
    """
    gaps = {max(u.parts, default=0) for u in uses if u.writes}
    if len(gaps) != 1 or any(u.own != uses[0].own for u in uses):
        return None
    gap = gaps.pop()
    if gap not in strides:
        return None
    beside = 1 + max(sum(c * (x.extent - 1) for c, x in u.inside if c % gap) for u in uses)
    if beside > gap:  # a loop walks parts and more
        gap = beside = 1
    size = beside * (1 + max(sum(c // gap * (x.extent - 1) for c, x in u.inside if c % gap == 0) for u in uses))
    at = {(u.leaf.id, u.slot): Expr(tuple(_packed(u, gap, beside))) for u in uses}
    return Slots(size, at, frozenset(u.leaf.id for u in uses if u.writes))


def _packed(use: _Use, gap: int, beside: int) -> Iterator[tuple[str, int]]:
    for c, x in use.inside:
        yield x.id, c // gap * beside if c % gap == 0 else c
