"""Staged copies of a plan: who reads them, what fills them, and where they keep an element."""

from __future__ import annotations

from ..ir.expr import Expr
from ..ir.plan import Plan
from ..ir.tree import Leaf
from ._uses import Use, uses


def readers(plan: Plan, array: str) -> tuple[Use, ...]:
    """The reads of an array; for a staged copy, the reads that go through it."""
    if array in plan.program.array_of:
        return tuple(u for u in uses(plan, array) if not u.writes)
    return tuple(Use(leaf, above, kernel, plan.statement_of[leaf.statement], slot) for leaf, above, kernel in plan.leaves
                 for slot, v in leaf.views if v.buffer == array and slot < len(plan.statement_of[leaf.statement].reads))


def read_below(plan: Plan, array: str) -> str:
    """Where an array is read, as a hint."""
    found = dict.fromkeys(u.above[-1].id for u in readers(plan, array) if u.above)
    return f"it is read below {', '.join(found)}" if found else ""


def copy_into(plan: Plan, buffer: str) -> str:
    """The copy statement that fills a buffer, or empty."""
    found = filling(plan, buffer)
    return found.statement if found else ""


def filling(plan: Plan, buffer: str) -> Leaf | None:
    """The last leaf that fills the buffer: behind a pipeline's prologue, whose slots are written without a remainder."""
    copies = {c.name for c in plan.copies}
    found = [leaf for leaf, _, _ in plan.leaves if leaf.statement in copies and (v := leaf.view(1)) and v.buffer == buffer]
    return found[-1] if found else None


def cell_of(plan: Plan, buffer: str, element: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The cell in which a copy keeps a logical element: its box coordinates, behind the slot of a pipelined buffer."""
    leaf = filling(plan, buffer)
    assert leaf is not None
    view = leaf.view(1)
    assert view is not None
    rank = plan.array_of[leaf.statement].given
    values = dict(zip(plan.statement_of[leaf.statement].dims, element, strict=True))
    slots = [e.substitute(dict(leaf.when)).substitute(values) for e in view.index[: len(view.index) - rank]]
    held, cell, box = (t[len(t) - rank:] for t in (view.element, view.index, element))
    return (*slots, *(box[n] for n in _stored_order(held, cell)))


def _stored_order(element: tuple[Expr, ...], cell: tuple[Expr, ...]) -> list[int]:
    """The permutation of a box's axes in which a copy is stored (`stage` with `axes`).

    None where the cell's expressions are not the coordinates in another order, as behind moves that write cells anew; whether
    each read then finds its element is for the judge to say.
    """
    left = dict(enumerate(element))
    order = list[int]()
    for e in cell:
        if (found := next((n for n, other in left.items() if other == e), None)) is None:
            return list(range(len(element)))
        order.append(found)
        del left[found]
    return order
