"""Lanes of a vector loop: linear indices (row-major with padding, or in panels), strides, alignment, and the lanes that a
condition holds for.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd, prod

from ..ir.expr import ZERO, Expr, Ranges, const, rejoin, var
from ..ir.inequality import free_of_quotient, linear_in
from ..ir.plan import Plan
from ..ir.program import Constraint, Indirect
from ..ir.regroup import extract_sums, without_remainders
from ..ir.scalar import IndexValue, Read, walk
from ..ir.swizzle import cells
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
        index, shape = cells(buffer, view.index, scope)
        size, name = buffer.dtype.bytes, buffer.name
    else:
        array = plan.array_of[access.array]
        index, shape, size, name = access.index, array.stored, array.dtype.bytes, array.name
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
        rest, whole = extract_sums(total, leaf.sums)
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


def contiguous(plan: Plan, leaf: Leaf, slot: int, loop: Loop, scope: Ranges) -> bool:
    """Whether the lanes access neighbouring elements in memory, the first one aligned to all of them."""
    found = linear_index(plan, leaf, slot, loop, scope)
    if found is None or any(name.startswith("[") for name in found[0].variables()):
        return False
    lanes = lanes_of(found[0], loop, scope)
    return steps_of(lanes) == list(range(loop.extent)) and not misaligned(lanes[0], loop.extent)


def uniform(constraint: Constraint, at: Mapping[str, Expr], loop: Loop, scope: Ranges) -> bool:
    """Whether the constraint holds for all values of the loop or for none, by intervals or by the common divisor."""
    expr = constraint.expr.substitute(at, scope)
    low, high = expr.interval(scope)
    if high < 0 or (low >= 0 and not constraint.equality) or (low > 0 and constraint.equality):
        return True
    lanes = lanes_of(expr if constraint.equality else linear_in(free_of_quotient(expr), loop.id), loop, scope)
    steps = steps_of(lanes)
    if steps is None:
        return False
    if constraint.equality:
        return not any(steps)
    divisor = gcd(*(c for _, c in lanes[0].terms)) or 1 << 62  # a constant: only its sign counts
    return len({(lanes[0].const + step) // divisor for step in steps}) == 1


def first_lanes(constraint: Constraint, at: Mapping[str, Expr], loop: Loop, scope: Ranges) -> Expr | None:
    """How many lanes an inequality holds for, where those are the first ones; not clamped to the lanes there are.

    ``e - a * lane >= 0`` holds for the first ``e // a + 1`` lanes.
    """
    found = _regular(constraint, at, loop, scope)
    return found[0] // -found[1] + 1 if found and found[1] < 0 else None


def skipped_lanes(constraint: Constraint, at: Mapping[str, Expr], loop: Loop, scope: Ranges) -> Expr | None:
    """How many lanes stand before those that an inequality holds for, where these are the last ones; not clamped.

    ``e + a * lane >= 0`` holds from lane ``-(e // a)`` on.
    """
    found = _regular(constraint, at, loop, scope)
    return -(found[0] // found[1]) if found and found[1] > 0 else None


def _regular(constraint: Constraint, at: Mapping[str, Expr], loop: Loop, scope: Ranges) -> tuple[Expr, int] | None:
    """An inequality's expression at the first lane, and how much it changes from each lane to the next."""
    if constraint.equality:
        return None
    lanes = lanes_of(linear_in(free_of_quotient(constraint.expr.substitute(at, scope)), loop.id), loop, scope)
    steps = steps_of(lanes)
    if steps is None or len(steps) < 2 or any(s != lane * steps[1] for lane, s in enumerate(steps)):
        return None
    return lanes[0], steps[1]
