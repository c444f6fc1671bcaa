"""Permute the loops of a perfect nest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import Loop, Node
from ._nest import enclosing, move_scopes, nest
from .base import Transform, get_loop


@dataclass(frozen=True)
class Reorder(Transform):
    """Put loops of one perfect nest in the order given, outermost first.

    The listed loops take the positions that they hold now; loops between them that are not listed stay where they
    are.  The instances are the same; instance ``x`` runs before ``y`` when it does so in the permuted
    lexicographic order.  Swapping two loops is ``interchange``.

    Before::

        for i in 0…64
            for j in 0…64
                for k in 0…64
                    S(i, j, k)

    After ``reorder(('k', 'i', 'j'))``::

        for k in 0…64
            for i in 0…64
                for j in 0…64
                    S(i, j, k)
    """

    name = "reorder"
    group = "Loops"
    aliases = ("permute", "reorder_loops", "prioritize_loops")
    elsewhere = {"Halide": "reorder", "TVM": "reorder", "Exo": "reorder_loops", "loopy": "prioritize_loops"}

    loops: tuple[str, ...] = field(metadata={"kind": "loops", "help": "the loops in their new order, outermost first"})

    def check(self, plan: Plan) -> Verdict:
        if len(self.loops) < 2:
            return no("reorder takes at least two loops", hint="list them in the order wanted, outermost first")
        chain = nest(plan, tuple(self.loops))
        if isinstance(chain, Verdict):
            return chain
        order = permuted(chain, tuple(self.loops))
        if order == chain:
            return no(f"{', '.join(self.loops)} are already in this order")
        if late := next((b for a, b in pairwise(order) if b.role == "launch" and a.role != "launch"), None):
            return no(f"{late.id} is run by the host and must stay outermost", hint=f"bind('{late.id}', 'seq') first")
        if vector := next((loop for loop in order[:-1] if loop.role == "vector"), None):
            return no(
                f"{vector.id} is a vector loop and must stay innermost",
                why="the lanes of a vector access are consecutive iterations with nothing between them",
                hint=f"bind('{vector.id}', 'seq') makes it an ordinary loop again",
            )
        return YES

    def rewrite(self, plan: Plan) -> Plan:
        chain = nest(plan, tuple(self.loops))
        assert not isinstance(chain, Verdict)
        return reordered(plan, chain, permuted(chain, tuple(self.loops)))

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Verdict):
            return loop
        if len(perfect_below(loop)) < 2:
            return no(f"{loop.id} has no loop perfectly nested in it", hint="select the outermost loop of a perfect nest")
        if len(chain := perfect_below(loop)) == 2:
            a, b = (x.id for x in chain)
            return no(f"{a} and {b} are the only loops of their nest", "two loops have one other order",
                      f"interchange('{a}', '{b}')")
        return YES

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Reorder]:
        loop = get_loop(plan, node_id)
        below = [n.id for n in perfect_below(loop)] if isinstance(loop, Loop) else []
        for depth in range(2, min(len(below), 6)):
            yield cls((*below[1 : depth + 1], below[0]))
            yield cls((below[depth], *below[:depth]))


def perfect_below(loop: Loop) -> list[Loop]:
    """The loop and the loops that are perfectly nested in it, outermost first."""
    chain = [loop]
    while len(chain[-1].body) == 1 and isinstance(chain[-1].body[0], Loop):
        chain.append(chain[-1].body[0])
    return chain


def permuted(chain: tuple[Loop, ...], order: tuple[str, ...]) -> tuple[Loop, ...]:
    """The chain with its loops named in `order` taking, in that order, the places that they hold."""
    named = {loop.id: loop for loop in chain}
    new = iter(order)
    return tuple(named[next(new)] if loop.id in order else loop for loop in chain)


def reordered(plan: Plan, old: tuple[Loop, ...], new: tuple[Loop, ...]) -> Plan:
    """The plan with a perfect nest in another order.

    A buffer in the body of one of the loops stays at its depth if the same loops are around it as before, and
    moves outside of the nest otherwise: a longer life is always correct.
    """
    body: tuple[Node, ...] = old[-1].body
    for loop in reversed(new):
        body = (replace(loop, body=body),)
    above = enclosing(plan, old[0].id)
    outside = above[-1].id if above else ""
    scopes = {
        a.id: b.id if {x.id for x in old[: d + 1]} == {x.id for x in new[: d + 1]} else outside
        for d, (a, b) in enumerate(zip(old, new, strict=True))
    }
    return move_scopes(plan.replace_node(old[0].id, *body), scopes)
