"""Where a copy stands, and the commit and the wait that an asynchronous one needs if nothing runs it ahead."""

from __future__ import annotations

from dataclasses import replace

from ..ir.plan import Plan
from ..ir.tree import Leaf, Loop, Node, Sync, leaves
from ..poly.groups import PRODUCTS
from ..poly.mechanism import ASYNCHRONOUS


def inserted(plan: Plan, path: tuple[Loop, ...], at: str, used: set[str], nest: Node, early: bool) -> Plan:
    """The plan with a copy before the first node of the loop's (or without a loop the kernel's) body that reads it.

    With `early`: before the first node that is not itself a copy, if that comes before.  An asynchronous copy is committed and
    waited for right behind; if such a commit and wait stand there already, it joins their group.
    """
    copies = {c.name for c in plan.copies}
    (copy, _), = leaves((nest,))
    behind: tuple[Node, ...] = ()
    if copy.mechanism in ASYNCHRONOUS:
        behind = (Sync(plan.fresh(f"{copy.id}.commit"), "commit"), Sync(plan.fresh(f"{copy.id}.wait"), "wait"))

    def before(body: tuple[Node, ...]) -> tuple[Node, ...]:
        stops = used | {leaf.id for leaf, _ in leaves(body) if early and leaf.statement not in copies}
        first = next(n for n, node in enumerate(body) if any(leaf.id in stops for leaf, _ in leaves((node,))))
        if behind and lands_at_once(body[:first]):
            return (*body[: first - 2], nest, *body[first - 2:])
        return (*body[:first], nest, *behind, *body[first:])

    if path:
        loop = plan.loops[path[-1].id]
        return plan.replace_node(loop.id, replace(loop, body=before(loop.body)))
    return replace(plan, kernels=tuple(replace(k, body=before(k.body)) if k.id == at else k for k in plan.kernels))


def lands_at_once(body: tuple[Node, ...]) -> bool:
    """Whether the nodes end with asynchronous copies that are closed and waited for."""
    last = body[-2:]
    kinds = [(n.kind, n.pending) for n in last if isinstance(n, Sync)]
    return kinds == [("commit", 0), ("wait", 0)] and len(body) > 2 and bool(_asynchronous(body[-3]))


def without_landings(body: tuple[Node, ...], ahead: tuple[Node, ...]) -> tuple[Node, ...]:
    """A body without the copies that will run ahead, and without its commits and waits if they are for those alone."""
    rest = tuple(n for n in body if n not in ahead)
    if any(_asynchronous(n) for n in rest):
        return rest
    return tuple(n for n in rest if not isinstance(n, Sync) or n.kind == PRODUCTS.wait)


def _asynchronous(node: Node) -> tuple[Leaf, ...]:
    return tuple(leaf for leaf, _ in leaves((node,)) if leaf.mechanism in ASYNCHRONOUS)
