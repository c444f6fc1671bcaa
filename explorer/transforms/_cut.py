"""Divide a kernel at a node: what runs before it, or after it, becomes a launch of its own."""

from __future__ import annotations

from dataclasses import replace

from ..ir.expr import Ranges, var
from ..ir.plan import Plan
from ..ir.tree import Kernel, Leaf, Loop, Node, find, leaves, retime
from ._nest import move_scopes, numbered, rename_collect


def cut_off(plan: Plan, node_id: str, after: bool, keep_rest: bool = False) -> Plan:
    """The plan in which everything of the node's kernel that runs after (or before) it is a launch of its own.

    The loops around the node are distributed: the part that holds the node keeps its names (with `keep_rest`: the
    other part does), the other gets copies of them (``i.2``).  Nothing happens where a part would hold no statement.
    """
    kernel = plan.kernel_of(node_id)
    hit = plan.find(node_id)
    assert kernel is not None
    assert hit is not None
    path = [x.id for x in hit[1]]
    kept, rest = _divide(kernel.body, [*path, node_id], after)
    if not any(True for _ in leaves(rest)):
        return plan
    if keep_rest:
        kept, rest, after = rest, kept, not after
    taken: set[str] = set()
    names = {loop: numbered(plan, loop, taken) for loop in path if find(rest, loop) and find(kept, loop)}
    rest = rename_collect(tuple(rename_loops(n, names, {}) for n in rest), names)
    main, other = replace(kernel, body=kept), Kernel(numbered(plan, kernel.id, taken), rest)
    launches: list[Kernel] = []
    for k in plan.kernels:
        launches += [k] if k is not kernel else [main, other] if after else [other, main]
    new = replace(plan, kernels=tuple(launches))
    return _rescoped(new, names, other.id)


def _divide(nodes: tuple[Node, ...], path: list[str], after: bool) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """(the part with the node, the part that runs after it, or before it)."""
    place = next(i for i, n in enumerate(nodes) if n.id == path[0])
    node, early, late = nodes[place], nodes[:place], nodes[place + 1 :]
    inner: tuple[Node, ...] = ()
    if len(path) > 1:
        assert isinstance(node, Loop)
        kept, rest = _divide(node.body, path[1:], after)
        inner = (replace(node, body=rest),) if any(True for _ in leaves(rest)) else ()
        node = replace(node, body=kept)
    return ((*early, node), (*inner, *late)) if after else ((node, *late), (*early, *inner))


def rename_loops(node: Node, names: dict[str, str], scope: Ranges) -> Node:
    """A subtree with other names for some of its loops, or of the loops around it (whose new ranges `scope` holds)."""
    if isinstance(node, Loop):
        new = names.get(node.id, node.id)
        inside = {**scope, new: node.range}
        return replace(node, id=new, body=tuple(rename_loops(n, names, inside) for n in node.body))
    if not isinstance(node, Leaf):
        return node
    mine = {old: new for old, new in names.items() if new in scope}
    (leaf,) = retime((node,), {old: var(new) for old, new in mine.items()}, {new: var(old) for old, new in mine.items()}, scope)
    return leaf


def _rescoped(plan: Plan, names: dict[str, str], other: str) -> Plan:
    """Buffers that only the cut-off part uses live in its copies of the loops."""
    here = {v.buffer for leaf, _, k in plan.leaves if k.id != other for _, v in leaf.views}
    stay = {b.name for b in plan.buffers if b.name in here}
    moved = move_scopes(plan, names)
    by_name = plan.buffer_of
    return replace(plan, buffers=tuple(by_name[b.name] if b.name in stay else b for b in moved.buffers))
