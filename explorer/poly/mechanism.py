"""How a leaf moves its elements: the one place where it is decided what an asynchronous copy is.

A leaf says that its copy is asynchronous (:attr:`~explorer.ir.tree.Leaf.mechanism`).  The questions judge it as that, and the
text must be that: a plain copy has written when it is done and has read by then, an asynchronous one when its group has landed.
So the judgement refuses a leaf that says so and cannot be, and the text of one that can is written from the same answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..ir.expr import Expr
from ..ir.plan import Plan
from ..ir.program import Constraint, Indirect, Statement
from ..ir.tree import Leaf, Loop, ranges
from .bulk import Bulk, bulk
from .lanes import contiguous, first_lanes, skipped_lanes, uniform
from .pure_load import Never, dtype_of, not_loaded

ASYNCHRONOUS = ("async", "bulk")
"""Mechanisms whose write is visible after the wait for its group: ``cp.async``, and bulk tensor copies."""
ASYNC_BYTES = (4, 8, 16)
"""Bytes that one ``cp.async`` moves (PTX ISA)."""


@dataclass(frozen=True)
class Moved:
    """What one ``cp.async`` of a leaf moves.

    Attributes
    ----------
    lanes : int
        Elements: those of the vector loop around the leaf, or one.
    nbytes : int
    together : tuple of Constraint
        Where the source is read and not zeros written, as far as it is so for all lanes or for none.
    begins, ends : tuple of Expr
        Lanes before one of `begins`, and those from one of `ends` on, are zeros and not read; over the loops' variables.
    """

    lanes: int
    nbytes: int
    together: tuple[Constraint, ...] = ()
    begins: tuple[Expr, ...] = ()
    ends: tuple[Expr, ...] = ()


def asynchronous(plan: Plan, leaf: Leaf, above: tuple[Loop, ...]) -> Moved | Never:
    """What one ``cp.async`` of the leaf moves, or why it cannot be one, whatever the leaf says of itself.

    Parameters
    ----------
    plan : Plan
    leaf : Leaf
    above : tuple of Loop
        The loops around it, outermost first.
    """
    statement = plan.statement_of[leaf.statement]
    if refusal := not_loaded(plan, leaf):
        return refusal
    wide = _wide(plan, leaf, above, statement)
    if wide is not None and wide.nbytes in ASYNC_BYTES:
        return wide
    size = dtype_of(plan, leaf, len(statement.reads)).bytes
    narrow = Moved(1, size, statement.inside)
    if narrow.nbytes in ASYNC_BYTES:
        return narrow
    fitting = " or ".join(str(n // size) for n in ASYNC_BYTES if n >= size)
    nbytes = wide.nbytes if wide else narrow.nbytes
    return Never(f"{leaf.statement} moves {nbytes} bytes of {statement.reads[0].array} at once",
                 "an asynchronous copy moves 4, 8 or 16 bytes", f"stage with vector={fitting}")


def moved_by(plan: Plan, leaf: Leaf, above: tuple[Loop, ...]) -> Moved | Bulk | Never:
    """What one copy of a leaf with one of the :data:`ASYNCHRONOUS` mechanisms moves, or why it cannot be one."""
    return (bulk if leaf.mechanism == "bulk" else asynchronous)(plan, leaf, above)


def settled(plan: Plan, leaf_ids: frozenset[str]) -> Plan:
    """The plan with those of the leaves copying plainly that cannot be a ``cp.async`` as they are now."""
    lost = {leaf.id for leaf, above, _ in plan.leaves if leaf.id in leaf_ids and leaf.mechanism == "async"
            and isinstance(asynchronous(plan, leaf, above), Never)}
    return plan.map_leaves(lambda leaf: replace(leaf, mechanism="plain") if leaf.id in lost else leaf) if lost else plan


def broken_boxes(plan: Plan) -> Iterator[tuple[Leaf, Never]]:
    """The leaves that say that they are bulk copies and are none: a step that makes one is not taken."""
    for leaf, above, _ in plan.leaves:
        if leaf.mechanism == "bulk" and isinstance(why := bulk(plan, leaf, above), Never):
            yield leaf, why


def misjudged(plan: Plan) -> Iterator[tuple[Leaf, Never]]:
    """The leaves that say that they copy asynchronously and cannot, of those that run at all."""
    for leaf, above, _ in plan.leaves:
        if leaf.mechanism not in ASYNCHRONOUS or not isinstance(why := moved_by(plan, leaf, above), Never):
            continue
        scope, at = ranges(above), dict(leaf.at)
        if all(c.expr.substitute(at, scope).interval(scope)[1] >= 0 for c in plan.statement_of[leaf.statement].domain):
            yield leaf, why


def _wide(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], statement: Statement) -> Moved | None:
    """All lanes of the vector loop around the leaf as one copy; None where they are not that."""
    loop = plan.loops[above[-1].id] if above else None
    if loop is None or loop.role != "vector" or loop.start or loop.extent < 2 or [n.id for n in loop.body] != [leaf.id]:
        return None
    scope, at = ranges(above), dict(leaf.at)
    slots = (len(statement.reads), statement.value.slot)  # type: ignore[union-attr]
    indirect = any(isinstance(e, Indirect) for slot in slots for e in statement.accesses[slot].index)
    if indirect or not all(contiguous(plan, leaf, slot, loop, scope) for slot in slots):
        return None
    if not all(uniform(c, at, loop, scope) for c in statement.domain):
        return None
    together = tuple(c for c in statement.inside if uniform(c, at, loop, scope))
    apart = [c for c in statement.inside if c not in together]
    ends = [e for c in apart if (e := first_lanes(c, at, loop, scope)) is not None]
    begins = [e for c in apart if (e := skipped_lanes(c, at, loop, scope)) is not None]
    if len(begins) + len(ends) < len(apart):
        return None
    nbytes = loop.extent * dtype_of(plan, leaf, slots[0]).bytes
    return Moved(loop.extent, nbytes, together, tuple(begins), tuple(ends))
