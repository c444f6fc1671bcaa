"""Pure loads from global to shared memory: what every asynchronous copy has to be, whichever engine makes it."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.dtype import DType
from ..ir.plan import Plan
from ..ir.scalar import Read
from ..ir.tree import Leaf


@dataclass(frozen=True)
class Never:
    """Why a leaf cannot be an asynchronous copy, and what would help."""

    what: str
    why: str
    hint: str = ""


def not_loaded(plan: Plan, leaf: Leaf) -> Never | None:
    """Why a leaf does not move elements of global memory unchanged, or zeros, to shared memory; None where it does."""
    statement = plan.statement_of[leaf.statement]
    target = leaf.view(len(statement.reads))
    source = leaf.view(statement.value.slot) if isinstance(statement.value, Read) else None
    to = plan.buffer_of[target.buffer].space if target else "global"
    come = plan.buffer_of[source.buffer].space if source else "global"
    if (come, to) != ("global", "shared"):
        end = {"register": " to registers", "global": " to global memory"}.get(to, "")
        return Never(f"{leaf.statement} copies from {come} memory{end}", "an asynchronous copy goes from global to shared memory")
    impure = Never(f"{leaf.statement} is not a pure load", "an asynchronous copy moves bytes unchanged, or zeros")
    if not statement.reads:
        return impure
    kernel = plan.kernel_of(leaf.id)
    handed = source is not None or plan.array_of[statement.reads[0].array].role == "temporary"
    if handed and kernel is not None and kernel.join in ("handoff", "cluster"):
        return Never(f"{leaf.statement} copies what another block hands over", "that does not lie in global memory as it is",
                     f"join('{kernel.id}', 'grid')")
    if not isinstance(statement.value, Read) or statement.update or leaf.collect:
        return impure
    size, comes = (dtype_of(plan, leaf, slot) for slot in (len(statement.reads), statement.value.slot))
    if size.name != comes.name or (statement.inside and statement.fill != 0):
        return impure
    return None


def dtype_of(plan: Plan, leaf: Leaf, slot: int) -> DType:
    """The type of an element that an access of a leaf really uses."""
    view, access = leaf.view(slot), plan.statement_of[leaf.statement].accesses[slot]
    return plan.buffer_of[view.buffer].dtype if view else plan.array_of[access.array].dtype
