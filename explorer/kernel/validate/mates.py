"""Bulk copies for all blocks of a cluster: parts as the plan says, and no block's shared memory is written too early or late.

In the plan each block copies the whole box; what neighbours bring of it is judged there (:mod:`~explorer.poly.multicast`).  The
parts of the text have to be those, and all blocks of the cluster have to have made their mbarriers ready before the first copy: a
barrier of the cluster begins the kernel.  No block may end while others write to its shared memory, for which its consumers wait,
or arrive at its mbarriers: its producer waits for all of their releases, or another barrier of the cluster ends the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from ...ir.expr import const, remainder, var
from ...ir.finding import Finding
from ...ir.tree import BLOCK_ROLES
from ...poly.multicast import is_shared, parts_of
from ..bulk_copy import drain, every_release, moved, shared_by
from ..nodes import Barrier, Begin, BulkCopy, Drain, Node, Release
from ..sites import Lowered
from ..traverse import walk
from .leaves import finding


def check_mates(low: Lowered, body: Sequence[Node]) -> Iterator[Finding]:
    """A finding for every copy whose parts are not the plan's, and for barriers and arrivals that leave a block out."""
    kernel, blocks = low.kernel, shared_by(low)
    for node in walk(tuple(body)):
        if isinstance(node, BulkCopy) and (why := _otherwise(low, node)):
            yield finding("flow", node.site.leaf.id, why, None)
        if isinstance(node, Release) and node.mbarriers.blocks != blocks:
            yield finding("flow", next(iter(node.ids), kernel.id), "releases a slot to other blocks than those that write it",
                          None)
    met = [(n, node.cluster) for n, node in enumerate(body) if isinstance(node, Barrier) and node.cluster]
    inside = sum(isinstance(n, Barrier) and n.cluster != "" for n in walk(tuple(body)))
    drains = [n for n in walk(tuple(body)) if isinstance(n, Drain)]
    if not is_shared(kernel, low.plan):
        if inside or drains:
            yield finding("flow", kernel.id, "waits for the blocks of a cluster, and has none", None)
        return
    first = next((n for n, node in enumerate(body) if not all(isinstance(x, Begin) for x in _inner(node))), len(body))
    over = [] if drains else [(len(body) - 1, "end")]
    drained = not drains or (len(drains) == 1 and _is_last(low, body, drains[0]))
    if met != [(first, "begin"), *over] or inside != len(met) or not drained or first == len(body) - 1:
        yield finding("race", kernel.id, "copies for other blocks of the cluster that may not have begun, or have ended", None)


def _is_last(low: Lowered, body: Sequence[Node], n: Drain) -> bool:
    """Whether the kernel ends with the producer's wait for all releases."""
    released = {n.mbarriers for n in walk(tuple(body)) if isinstance(n, Release)}
    releases = every_release(low.kernel)
    return releases is not None and released == {n.mbarriers} and body[-1] == drain(low, n.mbarriers, releases)


def _inner(node: Node) -> list[Node]:
    """What a node does, without its conditions."""
    return [x for x in walk((node,)) if not hasattr(x, "body")]


def _otherwise(low: Lowered, node: BulkCopy) -> str:
    """What a copy's parts are otherwise than in the plan; empty where they are the same."""
    leaf, mates = node.site.leaf, node.mates
    hit = low.plan.find(leaf.id)
    assert hit is not None
    found = moved(low.plan, leaf, hit[1])
    parts = parts_of(leaf, found)
    if node.box != found.box or (mates is None) != (parts is None):
        return "copies another box than the schedule, or for other blocks"
    if mates is None or parts is None:
        return ""
    axis = BLOCK_ROLES[parts.axis]
    ranges = {low.role_name[axis]: (0, low.grid[parts.axis] - 1)}
    place = remainder(var(low.role_name[axis]), parts.count, ranges)
    ranks = prod(low.plan.clusters[low.kernel.id][: parts.axis])
    same = (mates.place - place).simplify(ranges) == const(0)
    return "" if same and (mates.count, mates.dimension, mates.apart) == (parts.count, parts.dimension, ranks) else (
        "brings another part of the box than its neighbours leave to it")
