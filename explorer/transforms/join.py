"""Let a kernel run in the launch of the kernel before it: behind a ticket, or behind a barrier of the grid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod

from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import Kernel, Loop, walk
from .base import Transform
from .bind import THREADS_PER_BLOCK

HOWS = ("ticket", "signal", "cluster", "grid", "launch")


@dataclass(frozen=True)
class Join(Transform):
    """Run a kernel in the launch of the kernel before it, which saves a launch.

    ``ticket``: each block of the launch takes a ticket when it is done; the one that takes the last ticket goes on with the
    kernel.  Along block axes that the kernel is spread over, each coordinate has tickets of its own, so it may use what the
    blocks with its own coordinates left, and nothing of others.  No block waits, and the counters reset themselves.

    ``signal``: the same, but it is always the block with the highest number that goes on: it takes what it needs of the others
    from words that hold a value and the mark that it is there, and waits for each.  Nobody fences, counts or goes on last, so it
    is the fastest on a GPU; what the others hand over has to be temporary, of four bytes at most, and written once.

    ``cluster`` (sm_90 and newer): the same, but the blocks whose parts one block takes are a cluster, at most 8 of them, 16 on
    some GPUs.  They write their parts to that block's shared memory, where they fit it, and it goes on behind the cluster's
    barrier: nothing passes through global memory.

    ``grid``: all blocks wait for each other (a cooperative launch), then all go on with the kernel, whatever it uses.  All
    blocks of the grid have to be resident on the GPU at once.

    ``launch`` makes it a launch of its own again.

    Before::

        kernel total
            for k in 0…16                           # block.x
                total_p[k] = …
        kernel total.c
            for k.c in 0…16                         # thread.x
                y[0] += total_p[k.c]                # k.c combined by shuffle

    After ``join('total.c', 'ticket')``::

        kernel total
            for k in 0…16                           # block.x
                total_p[k] = …
        kernel total.c                              # in the same launch, by the block that finishes last (ticket)
            for k.c in 0…16                         # thread.x
                y[0] += total_p[k.c]                # k.c combined by shuffle
    """

    name = "join"
    group = "Places"
    aliases = ("last_block", "grid_sync", "cooperative", "persistent_kernel", "stitch")
    beware = ("join lets a kernel run in the launch before it, behind a ticket, signals, the barrier of a cluster or "
              "of the grid; loopy's join_inames is coalesce.")

    kernel: str = field(metadata={"kind": "kernel", "help": "the kernel that joins the launch before it"})
    how: str = field(metadata={"kind": "choice", "choices": HOWS,
                               "help": "ticket: the last block goes on; signal, cluster: one waits for parts; grid: all wait"})

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
            return no(f"{node_id} is not a kernel")
        return YES if node_id != plan.kernels[0].id else no(f"{node_id} is the first kernel", "no launch stands before it")

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
