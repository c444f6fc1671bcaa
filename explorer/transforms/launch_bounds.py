"""The move ``launch_bounds``: the least number of blocks of a multiprocessor, which limits a thread's registers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod

from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import Kernel
from .base import Transform, no_kernel

MOST_BLOCKS, MOST_THREADS = 32, 2048
"""Blocks and threads that a multiprocessor holds at most, of any GPU (CUDA C++ Programming Guide, "Technical Specifications per
Compute Capability"); one of a smaller GPU holds what it can."""


@dataclass(frozen=True)
class LaunchBounds(Transform):
    """Say how many blocks of a kernel a multiprocessor should hold: the compiler may then use the registers that this leaves.

    Where nothing is said, ptxas keeps a thread within the registers with which a multiprocessor is full of threads (32 on most
    GPUs), as far as it can by putting loads off until values loaded before them are used: of sixteen loads that are written out
    together, four were in flight (CUDA 13).  A kernel with few blocks, each with much to load, may gain from ``1``: a thread
    takes the registers that it needs, and all its loads are in flight together.  More blocks than the registers allow make it
    spill.  The compiler ignores a number of blocks that a multiprocessor cannot hold, as when the block has grown.  It is the
    second number of ``__launch_bounds__`` (CUDA C++ Programming Guide, "Launch Bounds"), and changes neither the order nor the
    place of anything: always legal.  ``0`` leaves it to the compiler again.

    Before::

        kernel total
            for k.t in 0…256  thread.x
                for k.u in 0…16  unroll
                    y_p += x[256*k.u + k.t]

    After ``launch_bounds('total', 1)``::

        kernel total                                # a multiprocessor holds at least 1 block
            for k.t in 0…256  thread.x
                for k.u in 0…16  unroll
                    y_p += x[256*k.u + k.t]
    """

    name = "launch_bounds"
    group = "Places"
    formerly = ("occupy",)
    aliases = ("min_blocks", "minnctapersm", "maxnreg", "registers")
    elsewhere = {"CUDA": "__launch_bounds__"}

    kernel: str = field(metadata={"kind": "kernel", "help": "the kernel; of several phases of one launch the first"})
    blocks: int = field(metadata={"kind": "int", "min": 0, "max": MOST_BLOCKS,
                                  "help": "blocks that a multiprocessor holds at least; 0 leaves it to the compiler"})

    def check(self, plan: Plan) -> Verdict:
        kernel = _kernel(plan, self.kernel)
        if kernel is None:
            return no(f"there is no kernel {self.kernel!r}", hint=f"one of {', '.join(k.id for k in plan.kernels)}")
        if kernel.join:
            first = next(group[0].id for group in plan.launched if kernel in group)
            return no(f"{kernel.id} runs in the launch of {first}", "the blocks are those of the launch",
                      f"launch_bounds('{first}', {self.blocks})")
        if not 0 <= self.blocks <= MOST_BLOCKS:
            return no(f"a multiprocessor holds 0 to {MOST_BLOCKS} blocks, not {self.blocks}",
                      hint=f"a number from 1 to {MOST_BLOCKS}, or 0 for none that is meant")
        if self.blocks == kernel.resident:
            return no(f"{kernel.id} already asks for {self.blocks or 'no number of blocks'}")
        if kernel.registers:
            return no(f"the threads of {kernel.id} move registers between them", "how many a block has was told with its roles",
                      "specialise with blocks")
        threads = _threads(plan, kernel)
        if self.blocks * threads > MOST_THREADS:
            return no(f"{self.blocks} blocks of {threads} threads are {self.blocks * threads:,} threads",
                      f"a multiprocessor holds at most {MOST_THREADS:,}",
                      f"launch_bounds('{kernel.id}', {MOST_THREADS // threads})")
        return YES

    def rewrite(self, plan: Plan) -> Plan:
        return replace(plan, kernels=tuple(replace(k, resident=self.blocks) if k.id == self.kernel else k for k in plan.kernels))

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        kernel = _kernel(plan, node_id)
        if kernel is None:
            return no_kernel(plan, node_id)
        return cls(node_id, 0 if kernel.resident else 1).check(plan)

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[LaunchBounds]:
        if _kernel(plan, node_id):
            yield from (step for n in (1, 2, 4, 8, 0) if (step := cls(node_id, n)).check(plan))


def _kernel(plan: Plan, name: str) -> Kernel | None:
    return next((k for k in plan.kernels if k.id == name), None)


def _threads(plan: Plan, kernel: Kernel) -> int:
    """Threads of a block of the kernel's launch: along each axis the most of any phase."""
    group = next(g for g in plan.launched if kernel in g)
    return prod(map(max, zip(*(plan.extents[k.id][3:] for k in group), strict=True)))
