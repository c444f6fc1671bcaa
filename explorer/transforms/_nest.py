"""Helpers that several loop transformations share: perfect nests, fresh copies of subtrees, and overrunning boxes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise

from ..ir.expr import Expr, Ranges, var
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Buffer, Plan
from ..ir.tree import Kernel, Leaf, Loop, Node, leaves, map_leaves, ranges, retime, walk
from ..poly.relations import extremes
from ._domain import dim_ranges
from .base import get_loop


def names_of(nodes: Iterable[Node]) -> str:
    """Ids as a person lists them: ``a``, ``a and b``, ``a, b and c``."""
    ids = [n.id for n in nodes]
    return ids[0] if len(ids) == 1 else f"{', '.join(ids[:-1])} and {ids[-1]}" if ids else "nothing"


def enclosing(plan: Plan, node_id: str) -> tuple[Loop, ...]:
    """The loops around a node, outermost first."""
    hit = plan.find(node_id)
    assert hit is not None
    return hit[1]


def body_of(plan: Plan, node_id: str) -> tuple[tuple[Node, ...], Loop | Kernel]:
    """The body that holds a node, and the loop or kernel whose body it is."""
    above = enclosing(plan, node_id)
    holder = above[-1] if above else plan.kernel_of(node_id)
    assert holder is not None
    return holder.body, holder


def nest(plan: Plan, names: tuple[str, ...]) -> tuple[Loop, ...] | Verdict:
    """All loops from the outermost to the innermost named one, if they are perfectly nested; else why they are not."""
    if len(set(names)) < len(names):
        return no(f"a loop is named twice in {', '.join(names)}")
    found = [get_loop(plan, name) for name in names]
    for loop in found:
        if isinstance(loop, Verdict):
            return loop
    paths = sorted(((*enclosing(plan, n), plan.loops[n]) for n in names), key=len)
    deepest = paths[-1]
    for path in paths[:-1]:
        if path[-1] not in deepest:
            return no(
                f"{path[-1].id} and {deepest[-1].id} are not nested",
                why=f"neither of them contains the other: {path[-1].id} does not enclose {deepest[-1].id}",
                hint=f"fuse('{path[-1].id}', '{deepest[-1].id}') instead joins loops that stand side by side",
            )
    chain = deepest[len(paths[0]) - 1 :]
    for outer, inner in pairwise(chain):
        if len(outer.body) > 1:
            return no(
                f"{chain[0].id} and {chain[-1].id} are not perfectly nested",
                why=f"{outer.id} also holds {names_of(n for n in outer.body if n.id != inner.id)} beside {inner.id}",
                hint=_separation(outer, inner),
            )
    return chain


def _separation(outer: Loop, inner: Loop) -> str:
    """The distribute calls that leave `inner` alone in `outer`."""
    place = [n.id for n in outer.body].index(inner.id)
    before = [f"distribute('{outer.id}', after='{outer.body[place - 1].id}')"] if place else []
    after = [f"distribute('{outer.id}', after='{inner.id}')"] if place + 1 < len(outer.body) else []
    return " and ".join(after + before) + f" first: then {inner.id} is alone in its loop"


def remap(plan: Plan, loop_id: str, old: Expr, new: Expr, start: int, extent: int, role: str = "") -> Plan:
    """Give a loop another variable of the same name.

    `old` is the old value over the new variables, `new` the new value over the old ones; `start` and `extent` are
    the new box, `role` the new role if it changes.
    """
    loop, above = plan.loops[loop_id], enclosing(plan, loop_id)
    changed = replace(loop, start=start, extent=extent, role=role or loop.role)
    body = retime(loop.body, {loop_id: old}, {loop_id: new}, {**ranges(above), loop_id: changed.range})
    return plan.replace_node(loop_id, replace(changed, body=body))


def from_zero(plan: Plan, loop_id: str) -> Plan:
    """The plan in which this loop starts at 0."""
    loop = plan.loops[loop_id]
    v = var(loop_id)
    return plan if loop.start == 0 else remap(plan, loop_id, v + loop.start, v - loop.start, 0, loop.extent)


def with_role(plan: Plan, loop_id: str, role: str) -> Plan:
    """The plan in which this loop has another role; combinations of updates that need the old one are dropped."""
    keep = {"block": ("atomic", "cluster"), "thread": ("atomic", "shuffle", "shared"), "warp": ("atomic", "shuffle", "shared"),
            "lane": ("atomic", "shuffle", "shared")}.get(role.split(".")[0], ())

    def change(leaf: Leaf) -> Leaf:
        return replace(leaf, collect=tuple((name, how) for name, how in leaf.collect if name != loop_id or how in keep))

    return plan.replace_node(loop_id, replace(plan.loops[loop_id], role=role)).map_leaves(change)


def move_scopes(plan: Plan, scopes: Mapping[str, str]) -> Plan:
    """Buffers that lived in the body of a loop that is a key live in that of its value."""
    return replace(plan, buffers=tuple(replace(b, scope=scopes.get(b.scope, b.scope)) for b in plan.buffers))


def rename_collect(nodes: tuple[Node, ...], names: Mapping[str, str]) -> tuple[Node, ...]:
    """Replace the loop names in `Leaf.collect` below."""
    return map_leaves(nodes, lambda leaf: replace(leaf, collect=tuple((names.get(n, n), how) for n, how in leaf.collect)))


def numbered(plan: Plan, name: str, taken: set[str]) -> str:
    """The id of a copy: ``k.2`` for ``k``, ``k.3`` for ``k.2``, the first that is free; it is added to `taken`."""
    stem, _, number = name.rpartition(".")
    stem, count = (stem, int(number)) if stem and number.isdecimal() else (name, 1)
    used = plan.ids | plan.statement_of.keys() | plan.array_of.keys() | plan.buffer_of.keys() | taken
    while (new := f"{stem}.{count + 1}") in used:
        count += 1
    taken.add(new)
    return new


def copied(plan: Plan, node: Node, above: tuple[Loop, ...]) -> tuple[Node, tuple[Buffer, ...]]:
    """A second instance of a subtree with ids of its own (same statements), and of the buffers that live inside it."""
    taken: set[str] = set()
    names = {n.id: numbered(plan, n.id, taken) for n in walk((node,))}
    inside = {n.id for n in walk((node,)) if isinstance(n, Loop)}
    private = {b.name: replace(b, name=numbered(plan, b.name, taken), scope=names[b.scope])
               for b in plan.buffers if b.scope in inside}

    def renamed(n: Node) -> Node:
        if isinstance(n, Loop):
            return replace(n, id=names[n.id], body=tuple(map(renamed, n.body)))
        return replace(n, id=names[n.id])

    def stored(leaf: Leaf) -> Leaf:
        views = tuple((s, replace(v, buffer=private[v.buffer].name) if v.buffer in private else v) for s, v in leaf.views)
        return replace(leaf, views=views)

    values: Mapping[str, Expr] = {old: var(names[old]) for old in inside}

    def moved(n: Node, scope: Ranges) -> Node:
        """Each leaf below has `when` entries for exactly the loops around it."""
        if isinstance(n, Loop):
            return replace(n, body=tuple(moved(child, {**scope, n.id: n.range}) for child in n.body))
        if not isinstance(n, Leaf):
            return n
        mine = [old for old in inside if names[old] in scope]
        (leaf,) = retime((n,), values, {names[old]: var(old) for old in mine}, scope)
        assert isinstance(leaf, Leaf)
        return stored(leaf)

    (new,) = rename_collect((moved(renamed(node), ranges(above)),), names)
    return new, tuple(private.values())


def empty_beyond(plan: Plan, loop: Loop, low: int, high: int, only: tuple[Node, ...] | None = None) -> Verdict:
    """Whether a loop may also take the values ``low … high``: no instance may lie beyond its present box.

    The values beyond the box run nothing if some constraint of each statement's domain fails there, by intervals;
    a loop that is one part of a dimension (the inner loop of a split, one half of a cut) runs into its neighbour.
    """
    first, last = loop.range
    above = enclosing(plan, loop.id)
    for leaf, inner in leaves(only if only is not None else loop.body):
        scope = {**ranges(above), **ranges(inner)}
        for beyond in ((low, first - 1), (last + 1, high)):
            if beyond[0] > beyond[1] or _empty(plan, leaf, {**scope, loop.id: beyond}):
                continue
            return no(
                f"{loop.id} would run beyond its {loop.extent} iterations into others of {leaf.statement}",
                why=f"{loop.id} is one part of a dimension of {leaf.statement}: "
                f"for {loop.id} in {beyond[0]}…{beyond[1] + 1} the domain of {leaf.statement} is not empty",
                hint=f"a factor that divides {loop.extent}, or do this before the dimension is split or cut",
            )
    return YES


def occupied(plan: Plan, loop: Loop, value: Mapping[str, int], start: int, extent: int) -> tuple[int, int]:
    """Start and extent of the values in a box that anything below a loop has: conditions may leave its ends empty.

    Parameters
    ----------
    plan : Plan
    loop : Loop
    value : mapping of str to int
        The value in question, as a sum of loops with these factors.
    start, extent : int
        The box; what it stays where nothing runs, or where that is not decided in time.
    """
    low, high = start + extent, start - 1
    for leaf, _ in leaves((loop,)):
        when, statement = dict(leaf.when), plan.statement_of[leaf.statement]
        e = sum((when[name] * by for name, by in value.items()), Expr())
        rectangular = all(len(c.expr.variables()) < 2 for c in statement.domain)
        found = e.interval(dim_ranges(statement)) if rectangular else extremes(statement, e)
        if found is None:
            return start, extent
        low, high = min(low, found[0]), max(high, found[1])
    return (low, high - low + 1) if start <= low <= high < start + extent else (start, extent)


def _empty(plan: Plan, leaf: Leaf, scope: Ranges) -> bool:
    at = dict(leaf.at)
    for constraint in plan.statement_of[leaf.statement].domain:
        low, high = constraint.expr.substitute(at, scope).interval(scope)
        if high < 0 or (constraint.equality and low > 0):
            return True
    return False
