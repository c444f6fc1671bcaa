"""Make one loop of perfectly nested ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod

from ..ir.expr import ZERO, Expr, Ranges, quotient, remainder, var
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import Leaf, Loop, leaves, map_leaves, ranges, retime
from ._nest import enclosing, move_scopes, nest
from .base import Transform, get_loop
from .reorder import perfect_below


@dataclass(frozen=True)
class Coalesce(Transform):
    """Perfectly nested, adjacent loops into one loop over all their iterations, in the same order.

    With extents ``m`` and ``n``: ``f = n*i + j``, ``i = f // n``, ``j = f % n``.  The new loop keeps the name of
    the outermost.  The order of instances does not change, so it is always legal.  Loops that stand side by side
    are joined by ``fuse``.

    Before::

        for i in 0…50
            for j in 0…70
                S(i, j)

    After ``coalesce(('i', 'j'))``::

        for i in 0…3500
            S(i // 70, i % 70)
    """

    name = "coalesce"
    group = "Loops"
    aliases = ("collapse", "flatten", "mult_loops", "join_inames")
    elsewhere = {"Halide": "fuse", "TVM": "fuse", "Exo": "mult_loops", "loopy": "join_inames", "OpenMP": "collapse"}
    beware = ("coalesce makes nested loops one; it is not isl's set simplification, nor contiguous access by a warp "
              "(see sectors).")

    loops: tuple[str, ...] = field(metadata={"kind": "loops", "help": "the loops to join, outermost first"})

    def check(self, plan: Plan) -> Verdict:
        if len(self.loops) < 2:
            return no("coalesce takes at least two loops", hint="list nested loops, outermost first")
        chain = nest(plan, tuple(self.loops))
        if isinstance(chain, Verdict):
            return chain
        ids = tuple(loop.id for loop in chain)
        if missing := [i for i in ids if i not in self.loops]:
            return no(
                f"{self.loops[0]} and {self.loops[-1]} are not adjacent",
                why=f"{', '.join(missing)} stands between them",
                hint=f"coalesce({ids!r}), or reorder first",
            )
        if ids != tuple(self.loops):
            return no(f"the loops are nested as {', '.join(ids)}", hint=f"coalesce({ids!r}), or reorder first")
        if bound := next((loop for loop in chain if loop.role != "seq"), None):
            return no(f"{bound.id} is already {bound.role}", hint=f"coalesce first, or bind('{bound.id}', 'seq')")
        return YES

    def rewrite(self, plan: Plan) -> Plan:
        chain = nest(plan, tuple(self.loops))
        assert not isinstance(chain, Verdict)
        outer, above = chain[0], enclosing(plan, chain[0].id)
        total = prod(loop.extent for loop in chain)
        scope = {**ranges(above), outer.id: (0, max(total, 1) - 1)}
        forward: dict[str, Expr] = {}
        joined, stride = ZERO, 1
        for loop in reversed(chain):
            size = max(loop.extent, 1)
            forward[loop.id] = remainder(quotient(var(outer.id), stride, scope), size, scope) + loop.start
            joined = joined + (var(loop.id) - loop.start) * stride
            stride *= size
        found = {leaf.id: _sums(leaf, chain, scope) for leaf, _ in leaves(chain[-1].body)}
        body = retime(chain[-1].body, forward, {outer.id: joined}, scope)
        body = map_leaves(body, lambda leaf: _remembered(leaf, found[leaf.id]))
        new = plan.replace_node(outer.id, replace(outer, extent=total, start=0, body=body))
        outside = above[-1].id if above else ""
        return move_scopes(new, {**{loop.id: outside for loop in chain}, chain[-1].id: outer.id})

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Verdict):
            return loop
        if len(perfect_below(loop)) < 2:
            return no(f"{loop.id} has no loop perfectly nested in it", hint="fuse joins loops that stand side by side")
        return YES

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Coalesce]:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Loop):
            chain = perfect_below(loop)
            for depth in range(2, min(len(chain), 5) + 1):
                yield cls(tuple(n.id for n in chain[:depth]))


def _sums(leaf: Leaf, chain: tuple[Loop, ...], scope: Ranges) -> tuple[tuple[Expr, Expr], ...]:
    """The sums of a leaf's dimensions that the new loop and its remainders are the values of.

    Every suffix ``l, m, n`` of the loops is one: ``size(m)*size(n)*l + size(n)*m + n`` is the new loop modulo its size.
    """
    when, flat, size = dict(leaf.when), ZERO, 1
    found: list[tuple[Expr, Expr]] = []
    for depth, loop in enumerate(reversed(chain)):
        flat = flat + (when[loop.id] - loop.start) * size
        size *= max(loop.extent, 1)
        if depth and flat.terms and all(isinstance(atom, str) for atom, _ in flat.terms):
            found.append((flat, remainder(var(chain[0].id), size, scope)))
    return tuple(found)


def _remembered(leaf: Leaf, found: tuple[tuple[Expr, Expr], ...]) -> Leaf:
    """The leaf with these sums beside the ones it has."""
    known = {e for e, _ in found}
    return replace(leaf, sums=(*found, *(x for x in leaf.sums if x[0] not in known)))
