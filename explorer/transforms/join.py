"""The move ``join``: a kernel becomes a phase of the launch before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod

from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import Kernel, Loop, walk
from .base import Transform, no_kernel
from .bind import THREADS_PER_BLOCK

HOWS = ("last_block", "handoff", "cluster", "grid", "launch")
FORMERLY = {"ticket": "last_block", "signal": "handoff"}
"""Words that the version before had, in calls and saved files, and what they are now."""


@dataclass(frozen=True)
class Join(Transform):
    """Run a kernel in the launch of the kernel before it, which saves a launch.

    ``last_block``: each block increments a counter when it has finished; the last block to finish runs the kernel (the CUDA
    sample threadFenceReduction).  If the kernel itself is spread over a block axis, each coordinate along it has a counter of
    its own: the kernel may then use results of blocks with the same coordinate only.  No block waits.  The counters are 0 again
    after each launch.

    ``handoff``: the block with the highest number runs the kernel.  Each other block hands its values over in words of 64 bits,
    a value and its flag in one store, and that block polls each word until the flag is set.  There is no fence and no atomic
    operation, so this is the fastest way on a GPU.  The values must be of a temporary array, have at most four bytes each, and
    be written once.

    ``cluster`` (sm_90 and newer): the blocks whose results one block uses form a cluster, of at most 8 blocks, 16 on some GPUs.
    They write their results to that block's shared memory if these fit, and it runs the kernel behind the cluster's barrier.
    Nothing passes through global memory then.

    ``grid``: all blocks wait at a barrier of the grid (a cooperative launch), then all run the kernel, which may use anything
    written before.  All blocks of the grid have to be resident on the GPU at once.

    ``launch`` makes it a launch of its own again.

    Before::

        kernel total
            for k in 0…16                           # block.x
                total_p[k] = …
        kernel total.c
            for k.c in 0…16                         # thread.x
                y[0] += total_p[k.c]                # k.c combined by shuffle

    After ``join('total.c', 'last_block')``::

        kernel total
            for k in 0…16                           # block.x
                total_p[k] = …
        kernel total.c                              # in the same launch, by the block that finishes last (last_block)
            for k.c in 0…16                         # thread.x
                y[0] += total_p[k.c]                # k.c combined by shuffle
    """

    name = "join"
    group = "Places"
    aliases = ("last_block", "grid_sync", "cooperative", "persistent_kernel", "stitch")
    beware = ("join runs a kernel in the launch before it: in the last block, in a block that waits for the others' values, or "
              "behind the barrier of a cluster or of the grid; loopy's join_inames is coalesce.")

    kernel: str = field(metadata={"kind": "kernel", "help": "the kernel that joins the launch before it"})
    how: str = field(metadata={"kind": "choice", "choices": HOWS, "formerly": FORMERLY,
                               "help": "last_block: the last to finish; handoff, cluster: one waits for parts; grid: all wait"})

    def check(self, plan: Plan) -> Verdict:
        kernel = next((k for k in plan.kernels if k.id == self.kernel), None)
        if kernel is None:
            return no(f"there is no kernel {self.kernel!r}", hint=f"one of {', '.join(k.id for k in plan.kernels)}")
        if self.how not in HOWS:
            return no(f"there is no way {self.how!r} to join a launch", hint=f"one of {', '.join(HOWS)}")
        if kernel is plan.kernels[0]:
            return no(f"{kernel.id} is the first kernel", "no launch stands before it")
        if (kernel.join or "launch") == self.how:
            return no(f"{kernel.id} already is a launch of its own" if self.how == "launch" else
                      f"{kernel.id} already joins by {self.how}")
        new = self.rewrite(plan)
        group = next(g for g in new.launched if any(k.id == kernel.id for k in g))
        return _fits(new, group)

    def rewrite(self, plan: Plan) -> Plan:
        how = "" if self.how == "launch" else self.how
        return replace(plan, kernels=tuple(replace(k, join=how) if k.id == self.kernel else k for k in plan.kernels))

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        if node_id not in [k.id for k in plan.kernels]:
            return no_kernel(plan, node_id)
        return YES if node_id != plan.kernels[0].id else no(
            f"{node_id} is the first kernel", "join puts a kernel into the launch before it, and none stands there",
            f"launch('{node_id}', after='…') first; or launch parts a kernel in two, of which the second can be joined")

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Join]:
        if node_id in [k.id for k in plan.kernels]:
            yield from (step for how in HOWS if (step := cls(node_id, how)).check(plan))


def _fits(plan: Plan, group: tuple[Kernel, ...]) -> Verdict:
    """Whether the phases of a launch can share its blocks."""
    if len(group) == 1:
        return YES
    for kernel in group:
        if hosted := next((n.id for n in walk(kernel.body) if isinstance(n, Loop) and n.role == "launch"), ""):
            return no(f"the host runs {hosted} of {kernel.id}, each iteration as a launch of its own",
                      hint=f"bind('{hosted}', 'seq') first")
    threads = plan.extents[group[0].id][3:]
    if prod(threads) > THREADS_PER_BLOCK:
        return no(f"a block of the launch would have {' x '.join(map(str, threads))} = {prod(threads)} threads",
                  f"it has as many as the widest of {', '.join(k.id for k in group)} along each axis, "
                  f"and a block has at most {THREADS_PER_BLOCK}",
                  "bind the loops of one kernel to the thread axes of the other")
    return YES
