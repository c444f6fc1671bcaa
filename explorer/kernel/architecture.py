"""Plans for an architecture: what it does not have is refused, or written as what it has."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ..errors import ResourceError, ScheduleError
from ..ir.instructions import INSTRUCTIONS, Wgmma, instruction
from ..ir.plan import Plan
from ..ir.tree import Kernel, Leaf, Loop, Node, Sync
from ..poly.bulk_store import BULK_STORE, IN_BOXES
from ..poly.matrix_move import FIRST_STORES, STORE

COPIES, HOPPER = 80, 90
"""Compute capability, times ten, of the first GPUs with ``cp.async``, and with clusters and bulk copies (PTX ISA, "cp.async",
"cp.async.bulk.tensor"; CUDA C++ Programming Guide, "Thread Block Clusters")."""


def for_arch(plan: Plan, arch: str) -> Plan:
    """The plan as a GPU of this architecture runs it: with plain copies and no waits where it has no others.

    Barriers are then asked for of this plan, not of the other.

    Parameters
    ----------
    plan : Plan
    arch : str
        ``"sm_80"``.

    Raises
    ------
    ResourceError, ScheduleError
        If the architecture has no such tensor instructions, bulk copies or clusters, or moves no registers.
    """
    number = int("".join(filter(str.isdigit, arch)) or 0)
    for leaf, _, _ in plan.leaves:
        _require_instruction(leaf, arch, number)
    for kernel in plan.kernels:
        _require_kernel(plan, kernel, arch, number)
    if number >= COPIES or not any(leaf.mechanism == "async" for leaf, _, _ in plan.leaves):
        return plan

    def without_waits(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        kept = (n for n in nodes if not isinstance(n, Sync))
        return tuple(replace(n, body=without_waits(n.body)) if isinstance(n, Loop) else n for n in kept)

    plain = plan.map_leaves(lambda leaf: replace(leaf, mechanism="plain") if leaf.mechanism == "async" else leaf)
    return plain.map_bodies(without_waits)


def _require_instruction(leaf: Leaf, arch: str, number: int) -> None:
    """Refuse what a leaf is, where the architecture has no such instruction."""
    row = instruction(leaf.mechanism)
    if leaf.mechanism == STORE and number < FIRST_STORES:
        raise ResourceError(f"{arch} has no stmatrix, which {leaf.id} is.",
                            why=f"the first architecture that has it is sm_{FIRST_STORES}",
                            hint="leave the copy as single stores, or choose a newer GPU")
    if leaf.mechanism in IN_BOXES and number < HOPPER:
        raise ResourceError(f"{arch} has no bulk copies, which {leaf.id} is.",
                            why=f"the first architecture that has them is sm_{HOPPER}",
                            hint=("let threads store it" if leaf.mechanism == BULK_STORE else "stage with engine='async'")
                            + ", or a newer GPU")
    if row is None or row.runs_on(number):
        return
    what = f"{arch} has no {row.shape} for {row.a} into {row.c}, which {leaf.id} is."
    if isinstance(row, Wgmma):
        raise ResourceError(what, why="instructions of a warpgroup exist on sm_90 alone (wgmma)",
                            hint="tensorize tiles of a warp, such as 16 x 8 x 16, with factors in registers")
    same = [r.shape for r in INSTRUCTIONS.values() if (r.a, r.b, r.c) == (row.a, row.b, row.c) and r.arch <= number]
    raise ResourceError(what, why=f"the first architecture that has it is sm_{row.arch}",
                        hint=f"tiles of {same[0]}" if same else "another type, or a newer GPU")


def _require_kernel(plan: Plan, kernel: Kernel, arch: str, number: int) -> None:
    """Refuse clusters, and registers that move between warpgroups, where the architecture has none."""
    blocks = prod(plan.clusters[kernel.id])
    if blocks > 1 and number < HOPPER:
        raise ScheduleError(f"{kernel.id} needs clusters of {blocks} blocks, which {arch} does not have",
                            why="clusters and distributed shared memory begin with sm_90",
                            hint="collect or join by 'last_block', or choose another GPU")
    if kernel.registers and number != HOPPER:
        raise ResourceError(f"{arch} moves no registers between warpgroups, as {kernel.id} does.",
                            why=f"setmaxnreg is written for sm_{HOPPER} alone", hint="specialise with registers=0")
