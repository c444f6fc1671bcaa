"""Let the two factors of a product trade places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import Leaf
from ..poly.tensor import is_product
from .base import Transform, no_leaf


@dataclass(frozen=True)
class Commute(Transform):
    """Write ``b * a`` for ``a * b`` in a sum of products: the same value, bit by bit.

    A tensor instruction takes the rows of its tile from the first factor and the columns from the second one, and a lane holds
    neighbours along a row.  So which factor stands first says along which axis results lie side by side: with ``c[i, j]``
    stored along ``i``, the factor that has ``i`` should be the second one.

    Before::

        for k in 0…K
            total += x[k, i] * f[j, k]

    After ``commute('S1')``::

        for k in 0…K
            total += f[j, k] * x[k, i]
    """

    name = "commute"
    group = "Arithmetic"
    aliases = ("commute_expr", "exchange_factors")
    elsewhere = {"Exo": "commute_expr"}

    leaf: str = field(metadata={"kind": "leaf", "help": "the update that multiplies and adds"})

    def check(self, plan: Plan) -> Verdict:
        hit = plan.resolve(self.leaf)
        if hit is None:
            return no_leaf(plan, self.leaf)
        statement = plan.statement_of[hit[0].statement]
        if not is_product(statement):
            return no(f"{hit[0].id} is no sum of products of two elements", why="only factors of a product trade places")
        for leaf, _, _ in plan.leaves:
            if leaf.statement == statement.name and leaf.mechanism != "plain":
                return no(f"{leaf.id} is {leaf.mechanism} already", why="an instruction has its factors in one order",
                          hint="commute before tensorize")
        return YES

    def rewrite(self, plan: Plan) -> Plan:
        hit = plan.resolve(self.leaf)
        assert hit is not None
        old = plan.statement_of[hit[0].statement]
        new = replace(old, reads=(old.reads[1], old.reads[0]))
        program = replace(plan.program, statements=tuple(new if s is old else s for s in plan.program.statements))

        def swapped(leaf: Leaf) -> Leaf:
            if leaf.statement != old.name:
                return leaf
            views = ((1 - slot if slot < 2 else slot, view) for slot, view in leaf.views)
            return replace(leaf, views=tuple(sorted(views, key=lambda v: v[0])))

        return replace(plan, program=program).map_leaves(swapped)

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Commute]:
        hit = plan.resolve(node_id)
        if hit is not None and hit[0].id == node_id:
            yield cls(node_id)

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        return cls(node_id).check(plan) if plan.resolve(node_id) else no_leaf(plan, node_id)
