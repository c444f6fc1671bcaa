"""Change the order of the statements and loops that stand side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import Node, Sync
from ._nest import enclosing
from .base import Transform, siblings
from .distribute import child


@dataclass(frozen=True)
class Sequence(Transform):
    """Run a statement or a loop behind one of its later siblings instead of where it stands.

    The nodes of one body run in order; the node goes behind `after`, the nodes between come before it.  It is legal
    when nothing between uses what the node makes, and the node overwrites nothing that they read: what `order` and
    `flow` judge.

    Before::

        for i in 0…64
            S1(i)
            for k in 0…16
                S2(i, k)

    After ``sequence('S1', after='k')``::

        for i in 0…64
            for k in 0…16
                S2(i, k)
            S1(i)
    """

    name = "sequence"
    group = "Loops"
    aliases = ("reorder_stmts", "sink", "move_after")

    node: str = field(metadata={"kind": "node", "help": "the statement or loop to move"})
    after: str = field(metadata={"kind": "node", "help": "the later sibling it goes behind"})

    def check(self, plan: Plan) -> Verdict:
        places = self._places(plan)
        if isinstance(places, Verdict):
            return places
        body, here, there = places
        if there <= here:
            why = "it is the node itself" if there == here else f"{self.after} already runs before {self.node}"
            return no(f"{self.node} cannot go behind {self.after}", why,
                      f"sequence('{body[there].id}', after='{body[here].id}')" if there < here else "")
        if any(isinstance(n, Sync) for n in body[here : there + 1]):
            return no(f"a wait for asynchronous copies stands between {self.node} and {self.after}",
                      why="the groups it waits for are counted in the order of its body", hint="do this before pipelining")
        return YES

    def rewrite(self, plan: Plan) -> Plan:
        places = self._places(plan)
        assert not isinstance(places, Verdict)
        body, here, there = places
        changed = (*body[:here], *body[here + 1 : there + 1], body[here], *body[there + 1 :])
        above = enclosing(plan, body[here].id)
        if above:
            return plan.replace_node(above[-1].id, replace(above[-1], body=changed))
        return plan.map_bodies(lambda nodes: changed if nodes == body else nodes)

    def _places(self, plan: Plan) -> tuple[tuple[Node, ...], int, int] | Verdict:
        hit = plan.resolve(self.node)
        node = self.node if plan.find(self.node) else hit[0].id if hit else ""
        body = siblings(plan, node)
        if not body:
            return no(f"there is no node {self.node!r}", hint=f"one of {', '.join(sorted(plan.ids))}")
        here = next(i for i, n in enumerate(body) if n.id == node)
        there = child(plan, body, self.after)
        if there is None:
            others = ", ".join(n.id for n in body[here + 1 :])
            return no(f"{self.after!r} does not stand beside {self.node}", hint=f"one of {others}" if others else "")
        return body, here, there

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        body = siblings(plan, node_id)
        if not body or body[-1].id == node_id:
            return no(f"nothing stands behind {node_id} in its body", "sequence moves a node behind a later one of the same body",
                      f"select {body[0].id}, which moves behind {node_id}" if len(body) > 1 else "")
        return YES

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Sequence]:
        body = siblings(plan, node_id)
        here = next((i for i, n in enumerate(body) if n.id == node_id), len(body))
        for node in body[here + 1 :][:4]:
            yield cls(node_id, node.id)
