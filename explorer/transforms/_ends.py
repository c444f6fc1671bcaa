"""Cut loops whose parts overrun: a dimension of the part, which says to which part an instance belongs.

Of ``for k in 0…10`` and ``for k.2 in 0…15``, two parts of one dimension, the first cannot be divided by 4: its twelve values
would hold instances of the second.  With a dimension ``p`` that is 0 for ``k < 10`` and 1 for the others, and a loop of one
iteration over it around the first part, those values hold nothing.  Which instances there are, what they read and write, and
their order stay the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..ir.expr import Expr, const, var
from ..ir.plan import Plan
from ..ir.program import Constraint, Program, Statement
from ..ir.tree import Leaf, Loop, Node, leaves, ranges
from ._domain import all_dims, bounds, plain


def ended(plan: Plan, loop_id: str) -> Iterator[Plan]:
    """Plans in which no instance of its statements lies beyond a loop's last value; then also none before its first."""
    for last in (True, False):
        loop = plan.loops[loop_id]
        new = _ended(plan, loop, last)
        if new is None:
            return
        plan = new
        yield plan


def _ended(plan: Plan, loop: Loop, last: bool) -> Plan | None:
    """The plan with part dimensions that end a loop's statements at its last (or first) value; None where it has no such end."""
    ends = _ends(plan, loop, last)
    if not ends:
        return None
    name = plan.fresh(f"{loop.id}.part")
    for dim, (bound, own) in ends.items():
        new = _two_parts(plan, loop, dim, bound, own, name)
        if new is None:
            return None
        plan = new
    start = next(own for _, own in ends.values())
    return plan.replace_node(loop.id, Loop(name, 1, (plan.loops[loop.id],), start=start))


def _ends(plan: Plan, loop: Loop, last: bool) -> dict[str, tuple[int, int]] | None:
    """For each dimension that the loop runs through, the first value of the upper part, and which part the loop is in; None where
    a statement's place in the loop is anything else.
    """
    out: dict[str, tuple[int, int]] = {}
    dims: dict[str, str] = {}
    for leaf, _ in leaves((loop,)):
        e = dict(leaf.when)[loop.id]
        forward, backward = plain(e), plain(-e)
        if leaf.statement not in plan.program.statement_of or not (forward or backward):
            return None
        dim, shift = forward or backward or ("", 0)
        first, final = loop.range
        low, high = (first - shift, final - shift) if forward else (-final - shift, -first - shift)
        upper = last == bool(forward)
        end = (high + 1, 0) if upper else (low, 1)
        if out.setdefault(dim, end) != end or dims.setdefault(leaf.statement, dim) != dim:
            return None
    return out if len({own for _, own in out.values()}) == 1 else None


def _two_parts(plan: Plan, loop: Loop, dim: str, bound: int, own: int, name: str) -> Plan | None:
    """The plan in which a dimension says whether `dim` is less than `bound` (0) or not (1), which a loop `name` runs through.

    All leaves in the loop are in the part `own`.  None where the program has no loop over just that dimension, or another leaf
    has instances of both parts.
    """
    program = plan.program
    nest = [(leaf, above) for leaf, above in leaves(program.body) if any(x.id == dim for x in above)]
    if not nest or any(leaf.when or dict(leaf.at).get(dim) != var(dim) for leaf, _ in nest):
        return None
    part = plan.fresh(f"{dim}.p", all_dims(program))
    whole = next(x for x in nest[0][1] if x.id == dim)
    names, inside = {leaf.statement for leaf, _ in nest}, {leaf.id for leaf, _ in leaves((loop,))}
    parts: dict[str, Expr] = {}
    for leaf, above, _ in plan.leaves:
        if leaf.statement in names:
            low, high = dict(leaf.at)[dim].interval(ranges(above))
            if leaf.id not in inside and low < bound <= high:
                return None
            parts[leaf.id] = const(own if leaf.id in inside else int(low >= bound))

    def moved(leaf: Leaf) -> Leaf:
        if leaf.id not in parts:
            return leaf
        when = tuple(sorted((*leaf.when, (name, var(part))))) if leaf.id in inside else leaf.when
        return replace(leaf, at=((part, parts[leaf.id]), *leaf.at), when=when)

    return replace(plan, program=_parted(program, names, dim, part, whole, bound)).map_leaves(moved)


def _parted(program: Program, names: set[str], dim: str, part: str, whole: Loop, bound: int) -> Program:
    """The program with a loop over the two parts around the loop over `dim`."""
    first, last = whole.range
    asked = (*bounds(part, 0, 2), Constraint(var(dim) - first - var(part) * (bound - first)),
             Constraint(-var(dim) + (bound - 1) + var(part) * (last - bound + 1)))

    def redone(s: Statement) -> Statement:
        return replace(s, dims=_before(s.dims, dim, part), domain=(*s.domain, *asked)) if s.name in names else s

    def nested(node: Node) -> Node:
        if isinstance(node, Leaf):
            return replace(node, at=((part, var(part)), *node.at)) if node.statement in names else node
        if not isinstance(node, Loop):
            return node
        new = replace(node, body=tuple(map(nested, node.body)))
        return Loop(part, 2, (new,)) if node.id == dim else new

    return replace(program, statements=tuple(map(redone, program.statements)), body=tuple(map(nested, program.body)))


def _before(dims: tuple[str, ...], dim: str, new: str) -> tuple[str, ...]:
    place = dims.index(dim)
    return (*dims[:place], new, *dims[place:])
