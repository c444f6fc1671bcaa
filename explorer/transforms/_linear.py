"""Linear (row-major, padded) indices over loop variables: strides along a loop, and alignment."""

from __future__ import annotations

from math import prod

from ..ir.expr import ZERO, Expr, Ranges, const, rejoin, var
from ..ir.plan import Plan
from ..ir.program import Indirect
from ..ir.regroup import gather, without_remainders
from ..ir.scalar import IndexValue, Read, walk
from ..ir.tree import Leaf, Loop


def lanes_of(expr: Expr, loop: Loop, scope: Ranges) -> list[Expr]:
    """The expression at each value of the loop."""
    return [expr.substitute({loop.id: const(lane)}, scope) for lane in range(loop.extent)]


def steps_of(lanes: list[Expr]) -> list[int] | None:
    """How far each lane's value is from the first lane's, or None if that varies."""
    steps = [lane - lanes[0] for lane in lanes]
    return [s.const for s in steps] if all(s.is_constant for s in steps) else None


def linear_index(plan: Plan, leaf: Leaf, slot: int, loop: Loop, scope: Ranges) -> tuple[Expr, int, str] | None:
    """Linear index, bytes of an element and name of the storage of an access; None for a register.

    A data-dependent index that is the same for all lanes is an unknown multiple of its stride.
    """
    statement = plan.statement_of[leaf.statement]
    access, view, at = statement.accesses[slot], leaf.view(slot), leaf.places
    if view:
        buffer = plan.buffer_of[view.buffer]
        if buffer.space == "register":
            return None
        index, shape, size, name = view.index, buffer.padded_shape, buffer.dtype.bytes, buffer.name
    else:
        array = plan.array_of[access.array]
        index, shape, size, name = access.index, array.shape, array.dtype.bytes, array.name
    total, unknown = ZERO, ZERO
    for place, e in enumerate(index):
        stride = prod(shape[place + 1 :])
        if isinstance(e, Indirect):
            e = var(f"[{place}]") + (var(f"[{place}]{loop.id}") if _varies(plan, leaf, e, loop, scope) else ZERO)
            unknown = unknown + e * stride
        else:
            total = total + e * stride
    if view:
        total = rejoin(total, scope)
    else:
        rest, whole = gather(total, leaf.sums)
        total = rejoin(rest.substitute(at, scope) + whole)
    once = {name: const(low) for name, (low, high) in scope.items() if low == high}
    return total.substitute(once, scope) + unknown, size, name


def _varies(plan: Plan, leaf: Leaf, index: Indirect, loop: Loop, scope: Ranges) -> bool:
    """Whether a data-dependent index may differ between lanes."""
    at = dict(leaf.at)
    for node in walk(index.value):
        if isinstance(node, IndexValue) and loop.id in node.expr.substitute(at, scope).variables():
            return True
        if isinstance(node, Read):
            linear = linear_index(plan, leaf, node.slot, loop, scope)
            if linear is None or steps_of(lanes_of(linear[0], loop, scope)) != [0] * loop.extent:
                return True
    return False


def misaligned(base: Expr, width: int) -> str:
    """The first term of a linear index that the width does not divide, as text."""
    base = without_remainders(base)
    for atom, c in base.terms:
        if c % width:
            return str(Expr(((atom, c),)))
    return f"the constant {base.const}" if base.const % width else ""
