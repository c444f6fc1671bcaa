"""Let the blocks of a cluster bring a box to each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import BLOCK_ROLES, PORTABLE_CLUSTER, Leaf, leaves
from ..poly.multicast import cannot_share
from .base import Transform, no_leaf


@dataclass(frozen=True)
class Multicast(Transform):
    """Share a bulk copy among neighbouring blocks: each brings a part of the box, and the engine writes it to all of them.

    Blocks of a product in one row of tiles read the same rows of the left factor, those in one column the same columns of the
    right one.  Each would fetch its box from the second-level cache.  Here `count` neighbours along an axis of the grid are a
    cluster; each block copies one part of the box, and the engine writes every part to all blocks of the cluster: a box passes
    the cache's wires once for the cluster, and not once for each block.

    The copy is one of a producer's (`specialise`): a slot is written when the consumers of all blocks of the cluster have
    released it.  The box may not depend on which of the neighbours a block is, which is judged exactly; the grid is a multiple
    of `count` along the axis, and the first dimension of the box, too.  Copies may be shared along different axes.  With a count
    of 1 each block copies for itself again.

    Before::

        for j in 0…16  block.x
            for k in 0…64
                acquire 3
                A_s: bulk A_s[…] = A[…, 64*k + …]
                B_s: bulk B_s[…] = B[64*k + …, 128*j + …]

    After ``multicast('A_s', 'block.x', 2)``::

        for j in 0…16  block.x
            for k in 0…64
                acquire 3                           # the consumers of both blocks have released the slot
                A_s: bulk A_s[…] = A[…, 64*k + …]   # 2 neighbours along block.x bring a half each, for both
                B_s: bulk B_s[…] = B[64*k + …, 128*j + …]

    References
    ----------
    NVIDIA, PTX ISA, ``cp.async.bulk.tensor`` (multicast, sm_90 and newer); CUDA C++ Programming Guide, "Thread Block Clusters".
    """

    name = "multicast"
    group = "Hardware"
    aliases = ("tma_multicast", "cluster_multicast", "share_copy")
    beware = "multicast shares a bulk copy among blocks of a cluster; values of threads are given to others by shuffle."

    copy: str = field(metadata={"kind": "leaf", "help": "the bulk copy that neighbours share"})
    axis: str = field(metadata={"kind": "choice", "choices": BLOCK_ROLES, "help": "the axis of the grid along which they are"})
    count: int = field(default=2, metadata={"kind": "int", "min": 1, "max": PORTABLE_CLUSTER,
                                         "help": "neighbours that share it; 1: each block copies for itself again"})

    def check(self, plan: Plan) -> Verdict:
        found = _copy(plan, self.copy)
        if isinstance(found, Verdict):
            return found
        if self.axis not in BLOCK_ROLES:
            return no(f"{self.axis} is no axis of the grid", hint=f"one of {', '.join(BLOCK_ROLES)}")
        if self.count < 1:
            return no(f"{self.count} is no number of neighbours", "a cluster has two blocks at least", "count=2 or more")
        if self.count == 1:
            if found.multicast and found.multicast[0] != self.axis:
                other = found.multicast[0]
                return no(f"{found.id} is shared along {other}, and not along {self.axis}",
                          hint=f"multicast({found.id!r}, {other!r}, 1)")
            return YES if found.multicast else no(f"{found.id} is not shared", "each block copies its own box", "count=2 or more")
        if found.multicast == (self.axis, self.count):
            return no(f"{found.id} is shared so already", hint="count=1 ends that")
        new = self.rewrite(plan)
        hit, kernel = new.find(found.id), new.kernel_of(found.id)
        assert hit is not None
        assert kernel is not None
        leaf, above = hit
        assert isinstance(leaf, Leaf)
        if bad := cannot_share(new, leaf, above, kernel):
            return no(bad.what, bad.why, bad.hint)
        return YES

    def rewrite(self, plan: Plan) -> Plan:
        leaf = _copy(plan, self.copy)
        assert isinstance(leaf, Leaf)
        return plan.replace_node(leaf.id, replace(leaf, multicast=(self.axis, self.count) if self.count > 1 else None))

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Multicast]:
        if isinstance(_copy(plan, node_id), Leaf):
            yield from (step for axis in BLOCK_ROLES for count in (2, 4) if (step := cls(node_id, axis, count)).check(plan))

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        found = _copy(plan, node_id)
        if isinstance(found, Verdict):
            return found
        kernel = plan.kernel_of(found.id)
        assert kernel is not None
        return YES if kernel.has_roles else no(f"{kernel.id} has no producer", hint="specialise('…', 2) first")


def _copy(plan: Plan, name: str) -> Leaf | Verdict:
    """The bulk copy with this name."""
    made = {leaf.id: leaf for k in plan.kernels for leaf, _ in leaves(k.body) if leaf.mechanism == "bulk"}
    if name in made:
        return made[name]
    if plan.find(name) is None:
        return no_leaf(plan, name)
    return no(f"{name} is no bulk copy", "only the copy engine writes to several blocks at once",
              f"one of {', '.join(made)}" if made else "stage with engine='bulk' first")
