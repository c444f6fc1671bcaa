"""Dependences that a loop carries: from one of its iterations to another."""

from __future__ import annotations

from ..ir.memo import per_program
from ..ir.plan import Plan
from ..ir.tree import Loop, leaves
from .deduce import over
from .dependence_hull import dimension_facts
from .isl import alone
from .plan_facts import facts
from .relations import idle


@per_program(512)
@alone
def may_carry(plan: Plan, outer: str, inner: str) -> bool:
    """Whether an ordered dependence between statements of `inner` may lead from one iteration of `outer`, around it, to another.

    No, where the equalities of each dependence say that both run in one iteration; else yes, without a question to isl.
    """
    loop = plan.loops[inner]
    assert isinstance(loop, Loop)
    below = [leaf for leaf, _ in leaves((loop,))]
    for d in facts(plan).ordered:
        known = dimension_facts(d, idle(plan.statement_of[d.source]), idle(plan.statement_of[d.sink]))
        for a in below if known else ():
            for b in below if a.statement == d.source else ():
                if b.statement == d.sink and known and not known.zero(
                        over(dict(a.when)[outer], "a") - over(dict(b.when)[outer], "b")):
                    return True
    return False
