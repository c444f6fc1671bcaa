"""Bulk stores: what one tensor copy of the hardware (TMA) writes from shared memory to an array, or why a leaf cannot be one.

One thread asks for a box (PTX ISA, ``cp.async.bulk.tensor``, from ``shared::cta`` to ``global``); the engine reads it while the
threads go on, and leaves out what lies beyond the array.  Nobody may write the box in shared memory before the engine has read
it: the thread that asked waits for that before it meets the others again (``cp.async.bulk.wait_group.read``).  What it has
written is seen by the launches behind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ..ir.plan import Plan
from ..ir.scalar import Read
from ..ir.tree import Leaf, Loop
from .bulk import OTHERWISE, Bulk, boxed
from .pure_load import Never, dtype_of
from .relations import access

BULK_STORE = "bulk_store"
"""The mechanism of such a leaf."""
IN_BOXES = ("bulk", BULK_STORE)
"""Mechanisms by which one thread asks for a whole box."""
BY_THREADS = "let threads store it"


def bulk_store(plan: Plan, leaf: Leaf, above: tuple[Loop, ...]) -> Bulk | Never:
    """The bulk store that the leaf is, or why it cannot be one, whatever the leaf says of itself.

    Parameters
    ----------
    plan : Plan
    leaf : Leaf
    above : tuple of Loop
        The loops around it, outermost first.
    """
    if refusal := _not_stored(plan, leaf) or _used(plan, leaf):
        return refusal
    statement = plan.statement_of[leaf.statement]
    assert isinstance(statement.value, Read)
    view = leaf.view(statement.value.slot)
    assert view is not None
    if not statement.target.affine:
        return Never(f"{leaf.statement} writes {statement.target.array} at a data-dependent element",
                     "a bulk store writes a box", BY_THREADS)
    if several := next((x.id for x in above if x.is_thread and (x.extent > 1 or x.start)), ""):
        return Never(f"several threads of {several} make {leaf.statement}", "one thread of a block makes a bulk store",
                     f"distribute {several}, and bind({several!r}, 'seq')")
    found = boxed(plan, leaf, above, statement.target, view)
    if isinstance(found, Never):
        return replace(found, hint=_said_of_stores(found.hint, view.buffer))
    if max(found.steps) > 1:
        return Never(f"the elements of the box are {' x '.join(map(str, found.steps))} apart in {found.array}",
                     "a bulk store writes neighbours", BY_THREADS)
    return found


def broken_stores(plan: Plan) -> Iterator[tuple[Leaf, Never]]:
    """The leaves that say that they are bulk stores and are none: a step that makes one is not taken."""
    for leaf, above, _ in plan.leaves:
        if leaf.mechanism == BULK_STORE and isinstance(why := bulk_store(plan, leaf, above), Never):
            yield leaf, why


def stored_in_bulk(plan: Plan) -> frozenset[str]:
    """The shared arrays that bulk stores read."""
    return frozenset(v.buffer for leaf, _, _ in plan.leaves if leaf.mechanism == BULK_STORE for _, v in leaf.views)


def _said_of_stores(hint: str, buffer: str) -> str:
    """What to try where a copy would be staged otherwise: the tile of a store is none that `stage` makes."""
    for said, of_stores in ((OTHERWISE, BY_THREADS), ("stage with engine='bulk' again", "split the loops over the box"),
                            ("stage with fill=True, and tile sizes that divide the box",
                             f"tile sizes that divide what is stored; or {BY_THREADS}"),
                            ("stage with swizzle=0", f"contract again, without swizzle; or {BY_THREADS}")):
        hint = hint.replace(said, of_stores)
    return re.sub(r"stage with swizzle=(\d+)", rf"swizzle({buffer!r}, \1), or split rows into panels, a store for each", hint)


def _not_stored(plan: Plan, leaf: Leaf) -> Never | None:
    """Why a leaf does not move elements of shared memory unchanged to global memory; None where it does."""
    statement = plan.statement_of[leaf.statement]
    impure = Never(f"{leaf.statement} is not a pure store", "a bulk store moves bytes unchanged",
                   "outline it, and contract its temporary to shared memory")
    if not isinstance(statement.value, Read) or statement.update or statement.inside or leaf.collect:
        return impure
    source, target = leaf.view(statement.value.slot), leaf.view(len(statement.reads))
    come = plan.buffer_of[source.buffer].space if source else "global"
    to = plan.buffer_of[target.buffer].space if target else "global"
    if (come, to) != ("shared", "global"):
        return Never(f"{leaf.statement} copies from {come} to {to} memory", "a bulk store goes from shared to global memory",
                     "outline it, and contract its temporary to shared memory" if to == "global" else "")
    same = dtype_of(plan, leaf, statement.value.slot).name == dtype_of(plan, leaf, len(statement.reads)).name
    return None if same else impure


def _used(plan: Plan, leaf: Leaf) -> Never | None:
    """Who else uses the array in the launch: it is written at nobody knows which moment; or how else its source is filled."""
    own = plan.statement_of[leaf.statement]
    name, kernel = own.target.array, plan.kernel_of(leaf.id)
    if not access(own, len(own.reads), plan.array_of[name]).is_injective():
        return Never(f"{leaf.statement} writes elements of {name} more than once", "bulk stores have no order among each other",
                     BY_THREADS)
    together = {k.id for group in plan.launched if kernel in group for k in group}
    source = next(v.buffer for _, v in leaf.views)
    for other, _, k in plan.leaves:
        statement = plan.statement_of[other.statement]
        for slot, use in enumerate(statement.accesses):
            view = other.view(slot)
            if k.id in together and view is None and use.array == name and other.id != leaf.id:
                return Never(f"{other.id} uses {name} in the launch in which {leaf.statement} stores it",
                             "what a bulk store writes is seen by the launches behind", BY_THREADS)
            if view is not None and view.buffer == source and other.mechanism == "bulk":
                return Never(f"bulk copies fill {source}, which {leaf.statement} stores",
                             "a bulk store sends what threads have computed", BY_THREADS)
    return None
