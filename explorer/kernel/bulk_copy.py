"""Bulk copies in the kernel IR: tensor maps, mbarriers, and the first thread that asks for copies.

What a leaf moves was decided when it was judged (:mod:`~explorer.poly.bulk`); the text follows, or there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Protocol

from ..errors import ScheduleError
from ..ir.expr import Expr, quotient, remainder, var
from ..ir.plan import Plan
from ..ir.tree import BLOCK_ROLES, WARP_SIZE, Kernel, Leaf, Loop, Sync, leaves, walk
from ..poly.arrivals import copies_in_bulk, mbarriers, release_mbarriers
from ..poly.bulk import Bulk, bulk
from ..poly.bulk_store import BULK_STORE, IN_BOXES, bulk_store
from ..poly.filled import counted as groups_of
from ..poly.groups import RELEASES, closed_before, closed_in, path_to
from ..poly.multicast import is_shared, parts_of
from ..poly.pure_load import Never
from .conditions import NEVER, Condition, condition, conjunction
from .names import Names
from .nodes import (
    Acquire,
    Arrive,
    Await,
    AwaitTurn,
    Barrier,
    Begin,
    BulkCopy,
    Commit,
    Drain,
    If,
    Mates,
    Mbarriers,
    Node,
    PassTurn,
    Ref,
    Release,
    TensorMap,
    Wait,
)
from .sites import Lowered, Site, Store, implied

Key = tuple[object, ...]
"""An array and how the hardware sees it, a box with its steps, and a swizzle."""


@dataclass
class Launched:
    """What the bulk copies of a launch share: a tensor map for each array, box and swizzle, and each kernel's mbarriers.

    Those on which consumers release slots are apart, one arrival for each of their warps.

    Parameters
    ----------
    lows : sequence of Lowered
        The kernels of the launch.
    """

    lows: Sequence[Lowered]
    maps: dict[Key, TensorMap] = field(init=False, default_factory=dict[Key, TensorMap])
    mbarriers: dict[str, Mbarriers] = field(init=False, default_factory=dict[str, Mbarriers])
    released: dict[str, Mbarriers] = field(init=False, default_factory=dict[str, Mbarriers])

    def __post_init__(self) -> None:
        taken = Names()
        taken.taken |= {name for low in self.lows for name in low.taken.taken}
        for low in self.lows:
            for leaf, above in leaves(low.kernel.body):
                if leaf.mechanism in IN_BOXES and all(x.extent > 0 for x in above):  # else it needs no map
                    self._map(leaf, moved(low.plan, leaf, above), low.stores, taken)
        for low in self.lows:
            if copies_in_bulk(low.kernel):
                self.mbarriers[low.kernel.id] = Mbarriers(taken.take("arrived"), mbarriers(low.plan, low.kernel))
            if low.kernel.has_roles:
                self.released[low.kernel.id] = Mbarriers(taken.take("released"), release_mbarriers(low.kernel),
                                                         prod(low.block) // WARP_SIZE, shared_by(low))
        for low in self.lows:
            low.taken.taken |= taken.taken

    def _map(self, leaf: Leaf, found: Bulk, stores: Mapping[tuple[str, str], Store], taken: Names) -> None:
        key = _key(leaf, found)
        if key not in self.maps:
            store = stores["array", found.array]
            self.maps[key] = TensorMap(taken.take(f"{store.name}_map"), store, found.axes, _part(leaf, found), found.steps,
                                       found.swizzle)

    def map(self, leaf: Leaf, found: Bulk) -> TensorMap:
        """The tensor map of a copy."""
        return self.maps[_key(leaf, found)]


def _key(leaf: Leaf, found: Bulk) -> Key:
    return found.array, found.axes, _part(leaf, found), found.steps, found.swizzle


def _part(leaf: Leaf, found: Bulk) -> tuple[int, ...]:
    """The box that one block asks for."""
    parts = parts_of(leaf, found)
    return parts.of(found.box) if parts else found.box


def shared_by(low: Lowered) -> int:
    """Blocks that write to each other's shared memory."""
    return prod(low.plan.clusters[low.kernel.id]) if is_shared(low.kernel, low.plan) else 1


def moved(plan: Plan, leaf: Leaf, above: tuple[Loop, ...]) -> Bulk:
    """What one bulk copy, or store, of the leaf moves.

    Raises
    ------
    ScheduleError
        If it cannot be one: the plan was not judged.
    """
    found = (bulk_store if leaf.mechanism == BULK_STORE else bulk)(plan, leaf, above)
    if isinstance(found, Never):
        raise ScheduleError(f"{leaf.id} is to copy in bulk and cannot: {found.what}", why=found.why, hint=found.hint)
    return found


class Known(Protocol):
    """What the lowering knows of a kernel (:class:`~explorer.kernel.lower.Context`)."""

    @property
    def low(self) -> Lowered: ...  # noqa: D102
    @property
    def sites(self) -> Mapping[str, Site]: ...  # noqa: D102
    @property
    def bulk(self) -> Launched: ...  # noqa: D102


def first_thread(low: Lowered) -> tuple[Condition, ...]:
    """Which thread asks for bulk copies and arrives: the first of the block."""
    names = (low.role_name[role] for role in ("thread.x", "thread.y", "thread.z") if low.role_extents[role] > 1)
    return tuple(Condition(var(name), True) for name in names)


def by_first(low: Lowered, node: Node, when: Iterable[Condition] = ()) -> Node:
    """The node, run by that thread alone where these conditions hold."""
    conditions = (*first_thread(low), *when)
    return If(conditions, (node,)) if conditions else node


def begin(c: Known) -> tuple[Node, ...]:
    """The mbarriers of a kernel, made ready before anybody uses them."""
    low, counted = c.low, c.bulk.mbarriers.get(c.low.kernel.id)
    if counted is None:
        return ()
    made = [counted, *filter(None, [c.bulk.released.get(low.kernel.id)])]
    shared = shared_by(low) > 1
    met = (Barrier(cluster="begin" * shared),) if shared or first_thread(low) else ()
    return *(by_first(low, Begin(m)) for m in made), *met


def end(c: Known) -> tuple[Node, ...]:
    """No block ends while others write to its shared memory, or arrive at its mbarriers.

    What they write its consumers wait for.  For their arrivals the producer waits, where their number is known; a loop that ends
    early in some blocks leaves that to a barrier of the cluster.
    """
    low = c.low
    if shared_by(low) == 1:
        return ()
    if (releases := every_release(low.kernel)) is None:
        return (Barrier(cluster="end", comment="the others of the cluster may still write here"),)
    return (drain(low, c.bulk.released[low.kernel.id], releases),)


def drain(low: Lowered, released: Mbarriers, releases: int) -> Node:
    """The first thread's wait for all releases, apart from what else it does: the producer's last."""
    node = by_first(low, Drain(released, releases))
    return replace(node, settled=True) if isinstance(node, If) else node


def every_release(kernel: Kernel) -> int | None:
    """How many slots the consumers of a block release in all; None where that differs between blocks."""
    trimmed = any(isinstance(n, Loop) and n.trimmed and closed_in(n.body, RELEASES) for n in walk(kernel.body))
    return None if trimmed else closed_in(kernel.body, RELEASES)


@dataclass(frozen=True)
class Box:
    """The box that a nest of loops is, in C variables: its leaf, how it is moved, when, and where it begins on both sides."""

    leaf: Leaf
    site: Site
    found: Bulk
    when: tuple[Condition, ...]
    first: tuple[Expr, ...]
    cell: tuple[Expr, ...]


def box_of(c: Known, outer: Loop, above: tuple[Loop, ...]) -> Box | None:
    """The box, or None where it is never moved."""
    low, around = c.low, [*above, outer]
    while isinstance(inner := around[-1].body[0], Loop):
        around.append(inner)
    assert isinstance(inner, Leaf)
    site, found = c.sites[inner.id], moved(low.plan, inner, tuple(around))
    when = _when(low, site, found)
    first, cell = (tuple(low.in_c(e, site.loops).simplify(site.ranges) for e in index) for index in (found.first, found.cell))
    return None if when is None else Box(inner, site, found, when, first, cell)


def copy(c: Known, outer: Loop, above: tuple[Loop, ...]) -> tuple[Node, ...]:
    """The bulk copy that a nest of loops over a box is."""
    low, box = c.low, box_of(c, outer, above)
    if box is None:
        return ()
    inner, site, found = box.leaf, box.site, box.found
    counted = c.bulk.mbarriers[low.kernel.id]
    group = low.in_c(groups_of(low.plan, low.kernel).group_of(inner.id), site.loops)
    to = Ref(low.store(inner, len(site.statement.reads)), box.cell)
    ids = (inner.id, *(x.id for x in found.loops), *(x.id for x in above if not low.is_counter(x)))
    node = BulkCopy(site, c.bulk.map(inner, found), box.first, to, found.loops, counted,
                    remainder(group, counted.count, site.ranges), ids, _mates(low, inner, found))
    return (by_first(low, node, box.when),)


def _mates(low: Lowered, leaf: Leaf, found: Bulk) -> Mates | None:
    """Who brings the parts of a box, if several blocks do."""
    if (parts := parts_of(leaf, found)) is None:
        return None
    name = low.role_name[BLOCK_ROLES[parts.axis]]
    place = remainder(var(name), parts.count, {name: (0, low.grid[parts.axis] - 1)})
    return Mates(parts.count, parts.dimension, place, prod(low.plan.clusters[low.kernel.id][: parts.axis]))


def _when(low: Lowered, site: Site, found: Bulk) -> tuple[Condition, ...] | None:
    """When the copy is made, beside which thread makes it; None for never."""
    conditions: list[Condition | None] = []
    ends = [c for i, x in enumerate(site.loops) for c in low.end(x, site.loops[:i])]
    for x in site.loops:
        if x.is_block:
            launch = {low.variable[x.id]: (0, low.role_extents[x.role] - 1)}
            v = var(low.variable[x.id])
            conditions += [condition(v - x.start, False, launch), condition(-v + (x.start + x.extent - 1), False, launch)]
    for c in found.when:
        e = low.in_c(c.expr, site.loops)
        if e.interval(site.ranges)[1] < 0:
            return None
        asked = condition(e, c.equality, site.ranges)
        conditions.append(None if asked and any(implied(asked, end, site.ranges) for end in ends) else asked)
    return conjunction(conditions)


def synchronisation(c: Known, node: Sync, above: tuple[Loop, ...]) -> tuple[Node, ...]:
    """A commit or a wait of the schedule: for the copies of each thread, for bulk copies, or for both.

    A group of no bulk copies is none for the mbarriers (:mod:`~explorer.poly.filled`).
    """
    low, counted = c.low, c.bulk.mbarriers.get(c.low.kernel.id)
    if node.kind in ("acquire", "release"):
        return (_of_slots(low, node, above, c.bulk.released[low.kernel.id]),)
    if node.kind in ("turn", "pass"):
        return ((AwaitTurn if node.kind == "turn" else PassTurn)(low.block[1], node.pending > 0, (node.id,)),)
    own = any(leaf.mechanism == "async" for leaf, _ in leaves(low.kernel.body))
    out: list[Node] = []
    if own or counted is None:
        out.append(Commit((node.id,)) if node.kind == "commit" else Wait(node.pending, (node.id,)))
    groups = groups_of(low.plan, low.kernel)
    if counted is not None and (node.kind == "commit" or groups.asked(node)):
        ranges = low.ranges(above)
        group = low.in_c(groups.group_of(node.id) if node.kind == "commit" else groups.awaited(node), above)
        slot = remainder(group, counted.count, ranges)
        if node.kind == "commit":
            when = conjunction([condition(low.in_c(e, above), False, ranges) for e in groups.closes(node.id)])
            out += () if when == (NEVER,) else (by_first(low, Arrive(counted, slot, (node.id,)), when),)
        else:
            out.append(Await(counted, slot, remainder(quotient(group, counted.count, ranges), 2, ranges), (node.id,)))
    return tuple(out)


def _of_slots(low: Lowered, node: Sync, above: tuple[Loop, ...], released: Mbarriers) -> Node:
    """A release by consumers, or the producer's wait for one; before the first releases there is nothing to wait for.

    Phases of an mbarrier that has just been made ready look as if the one before them were complete.
    """
    ranges, n = low.ranges(above), released.count
    number = low.in_c(closed_before(path_to(low.kernel, node.id), RELEASES), above)
    if node.kind == "release":
        return Release(released, remainder(number, n, ranges), (node.id,))
    wanted = number - (node.pending + 1) + 2 * n  # so that it is not negative
    return by_first(low, Acquire(released, remainder(wanted, n, ranges), remainder(quotient(wanted, n, ranges), 2, ranges),
                                 (node.id,)))
