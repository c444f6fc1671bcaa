"""Plans for an architecture: what it does not have is refused, or written as what it has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from ..errors import ResourceError
from ..ir.instructions import INSTRUCTIONS, Instruction, Wgmma, instruction
from ..ir.plan import Plan
from ..ir.tree import Kernel, Leaf, Loop, Node, Sync
from ..poly.bulk_store import BULK_STORE, IN_BOXES
from ..poly.matrix_move import FIRST_STORES, STORE

COPIES, HOPPER = 80, 90
"""Compute capability, times ten, of the first GPUs with ``cp.async``, and with clusters and bulk copies (PTX ISA, "cp.async",
"cp.async.bulk.tensor"; CUDA C++ Programming Guide, "Thread Block Clusters")."""


@dataclass(frozen=True)
class Lack:
    """An instruction of a plan that an architecture does not have.

    Attributes
    ----------
    what : str
        The instruction, in the plural or with its shape.
    node, loop : str
        What is written with it, and the innermost sequential loop around, if there is one.
    why : str
        Which architectures have it, and which move writes it.
    hint : str
        The nearest that this one has.
    """

    what: str
    node: str
    loop: str
    why: str
    hint: str


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
    ResourceError
        If the architecture has no such tensor instructions, bulk copies or clusters, or moves no registers; each with the nodes
        that are written with it, and what to take instead.
    """
    require_instructions(plan, arch)
    number = _number(arch)
    if number >= COPIES or not any(leaf.mechanism == "async" for leaf, _, _ in plan.leaves):
        return plan

    def without_waits(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        kept = (n for n in nodes if not isinstance(n, Sync))
        return tuple(replace(n, body=without_waits(n.body)) if isinstance(n, Loop) else n for n in kept)

    plain = plan.map_leaves(lambda leaf: replace(leaf, mechanism="plain") if leaf.mechanism == "async" else leaf)
    return plain.map_bodies(without_waits)


def require_instructions(plan: Plan, arch: str) -> None:
    """Refuse a plan with instructions that the architecture does not have.

    Raises
    ------
    ResourceError
        Naming every instruction and the nodes that are written with it; `nodes` has them as data.
    """
    found = [lack for leaf, above, _ in plan.leaves if (lack := _of_leaf(plan, leaf, above, _number(arch), arch))]
    found += [lack for kernel in plan.kernels for lack in _of_kernel(plan, kernel, _number(arch))]
    if not found:
        return
    kinds = dict.fromkeys((x.what, x.why, x.hint) for x in found)
    users = {kind: tuple(dict.fromkeys(x.node for x in found if (x.what, x.why, x.hint) == kind)) for kind in kinds}
    said = [f"no {what}, which {_listed(nodes)} need{'s' * (len(nodes) == 1)}" for (what, _, _), nodes in users.items()]
    loops = dict.fromkeys((x.node, x.loop) for x in found if x.loop)
    raise ResourceError(f"{arch} has {'; '.join(said)}.", where=", ".join(f"{node} in {loop}" for node, loop in loops),
                        why="\n  ".join(dict.fromkeys(why for _, why, _ in kinds)),
                        hint="; ".join(dict.fromkeys(hint for _, _, hint in kinds)) + "; or a GPU that has it",
                        nodes=tuple(dict.fromkeys(x.node for x in found)))


def _number(arch: str) -> int:
    return int("".join(filter(str.isdigit, arch)) or 0)


def _listed(nodes: tuple[str, ...]) -> str:
    return " and ".join(filter(None, (", ".join(nodes[:-1]), nodes[-1])))


def _of_leaf(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], number: int, arch: str) -> Lack | None:
    """What a leaf is, where the architecture has no such instruction."""
    row = instruction(leaf.mechanism)
    loop = next((x.id for x in reversed(above) if x.role == "seq"), "")
    if leaf.mechanism == STORE and number < FIRST_STORES:
        return Lack("stmatrix", leaf.id, loop, f"stmatrix begins with sm_{FIRST_STORES}: store_matrix wrote it",
                    "leave the copy as single stores")
    if leaf.mechanism == BULK_STORE and number < HOPPER:
        return Lack("bulk stores", leaf.id, loop, f"bulk stores (TMA) begin with sm_{HOPPER}: store_bulk wrote them",
                    "let threads store it, without store_bulk")
    if leaf.mechanism in IN_BOXES and number < HOPPER:
        engine = "engine='async'" if number >= COPIES else "engine='thread'"
        why = f"bulk copies (TMA) begin with sm_{HOPPER}: stage(…, engine='bulk') wrote them"
        return Lack("bulk copies", leaf.id, loop, why, f"stage with {engine}")
    if row is None or row.runs_on(number):
        return None
    return Lack(f"{row.shape} for {row.a} into {row.c}", leaf.id, loop, _since(row), _nearest(row, number, arch))


def _since(row: Instruction) -> str:
    """Which architectures have a tensor instruction."""
    if isinstance(row, Wgmma):
        return f"instructions of a warpgroup (wgmma) exist on sm_{row.arch} alone: tensorize wrote them for shared factors"
    return f"{row.shape} for {row.a} into {row.c} (mma.sync) begins with sm_{row.arch}: tensorize wrote it"


def _nearest(row: Instruction, number: int, arch: str) -> str:
    """What to multiply with instead: the largest instruction of a warp for the same types, or none."""
    types = (row.a, row.b, row.c, row.significand)
    alike = [r for r in INSTRUCTIONS.values() if (r.a, r.b, r.c, r.significand) == types]
    if there := [r for r in alike if r.runs_on(number)]:
        best = max(there, key=lambda r: r.m * r.n * r.k)
        return f"tensorize tiles of a warp, {best.m} x {best.n} x {best.k} ({best.shape}), with factors in registers"
    first = min((r.arch for r in alike), default=0)
    known = f", which begin with sm_{first}" if first else ""
    return (f"{arch} has no tensor instruction for {row.a} * {row.b} into {row.c}{known}: leave the product to plain arithmetic, "
            "or take other types")


def _of_kernel(plan: Plan, kernel: Kernel, number: int) -> Iterator[Lack]:
    """Clusters, and registers that move between warpgroups, where the architecture has none."""
    blocks = prod(plan.clusters[kernel.id])
    if blocks > 1 and number < HOPPER:
        yield Lack(f"clusters of {blocks} blocks", kernel.id, "", f"clusters of blocks begin with sm_{HOPPER}",
                   "collect or join by 'last_block', or copy without multicast")
    if kernel.registers and number != HOPPER:
        why = f"setmaxnreg is written for sm_{HOPPER} alone: specialise(registers=…) wrote it"
        yield Lack("registers that move between warpgroups", kernel.id, "", why, "specialise with registers=0")
