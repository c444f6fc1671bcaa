"""Partial results: each iteration of some loops of a reduction accumulates on its own, and a last statement joins them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.program import Access, Array, Statement
from ..ir.scalar import REDUCTIONS, Literal, Read
from ..ir.tree import Kernel, View
from ._cut import cut_off
from ._domain import around, identity_leaf, with_statements, wrapped
from ._reduction import Side, Updates, separable, side, update_verdict, view_here
from ._uses import with_view, without_unused
from .base import Transform


@dataclass(frozen=True)
class Rfactor(Transform):
    """Give each iteration of some loops a partial result of its own (by associativity and commutativity).

    For a reduction ``T[e(d)] op= v(d)`` and loops whose values are ``p(d)``, the sum over all instances of an element
    is the sum over ``p`` of sums over the instances with that ``p``.  A new temporary holds the inner sums; every
    ``(element, p)`` starts as the operation's identity, so parts without instances do no harm.  The start stands
    before, the joining statement after the outermost loop that carries the reduction and is not a factored place.

    Before::

        for i in 0…M                                    # block.x
            total[i] = 0
            for k in 0…4
                for k.i in 0…256                        # thread.x
                    total[i] += x[i, 256*k + k.i]

    After ``rfactor('total', 'k.i')``::

        for i in 0…M                                    # block.x
            total[i] = 0
            for k.i.z in 0…256                          # thread.x
                total_p[i, k.i.z] = 0
            for k in 0…4
                for k.i in 0…256                        # thread.x
                    total_p[i, k.i] += x[i, 256*k + k.i]
            for k.i.c in 0…256                          # thread.x
                total[i] += total_p[i, k.i.c]
    """

    name = "rfactor"
    aliases = ("rfactor_reduction", "split_reduction", "decompose_reduction", "privatize_reduction")

    statement: str = field(metadata={"kind": "leaf", "help": "the reduction: its statement, or the array it updates"})
    loop: str | tuple[str, ...] = field(metadata={"kind": "loops", "help": "loops whose iterations accumulate on their own"})

    def check(self, plan: Plan) -> Verdict:
        u = self._updates(plan)
        return u if isinstance(u, Verdict) else factor_verdict(u)

    def rewrite(self, plan: Plan) -> Plan:
        u = self._updates(plan)
        assert isinstance(u, Updates)
        return factored(u).plan

    def _updates(self, plan: Plan) -> Updates | Verdict:
        u = update_verdict(plan, self.statement)
        if isinstance(u, Verdict):
            return u
        names = (self.loop,) if isinstance(self.loop, str) else tuple(self.loop)
        if not names:
            return no("no loop is named", hint=_listed(u))
        for name in names:
            loop = next((x for x in u.above if x.id == name), None)
            if loop is None:
                return no(f"{name} is not a loop around {u.leaf.id}", hint=_listed(u))
            if u.parallel(loop):
                return no(f"{name} does not carry the reduction", f"each of its iterations updates other elements of {u.statement.target.array}", _listed(u))
        return replace(u, factored=tuple(x for x in u.above if x.id in names))

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Rfactor]:
        u = update_verdict(plan, node_id)
        if isinstance(u, Updates):
            bound = tuple(x.id for x in u.carrying if x.is_place)
            if len(bound) > 1:
                yield cls(node_id, bound)
            yield from (cls(node_id, x.id) for x in u.carrying[:7])

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        u = update_verdict(plan, node_id)
        if isinstance(u, Verdict):
            return u
        return YES if u.carrying else no(f"each element of {u.statement.target.array} is updated once")


def factor_verdict(u: Updates, apart: bool = False) -> Verdict:
    """Whether the partial results can be made."""
    if refusal := separable(u):
        return refusal
    for suffix in ("z", "c"):
        there = side(u, suffix, apart and suffix == "c")
        if isinstance(there, Verdict):
            return there
        view = u.leaf.view(len(u.statement.reads))
        if suffix == "c" and view and (apart or view_here(view.index, there.names, there.loops) is None):
            return no(f"{u.statement.target.array} already has storage that the joining statement cannot name",
                      f"its cell {', '.join(map(str, view.index))} belongs to loops inside of {u.anchor}",
                      f"contract('{u.statement.target.array}', 'global') first, and contract it again after")
    return YES


@dataclass(frozen=True)
class Factored:
    """What taking a reduction apart made: the new plan, and the names of its new things."""

    plan: Plan
    array: str
    combine: str
    loops: tuple[str, ...]
    """The factored loops as they stand around the joining statement."""


def factored(u: Updates, apart: bool = False) -> Factored:
    """Take a reduction apart; with `apart` the joining statement becomes a launch of its own."""
    plan, s = u.plan, u.statement
    start, finish = side(u, "z"), side(u, "c", apart)
    assert isinstance(start, Side)
    assert isinstance(finish, Side)
    target = plan.array_of[s.target.array]
    array = plan.fresh(f"{target.name}_p")
    given = target.given + len(u.factored) if target.given >= 0 else -1
    partial = Array(array, target.dtype.wide, (*target.shape, *(x.extent for x in u.factored)), "temporary", given)
    assert s.update is not None
    neutral = REDUCTIONS[s.update].identity(partial.dtype)
    identity = Literal(float(neutral) if partial.dtype.kind == "float" else neutral, partial.dtype)
    init = Statement(plan.fresh(f"{s.name}_init"), start.dims, start.domain, Access(array, (*start.index, *start.part), "write"),
                     identity, origin="init", line=s.line)
    combine = Statement(plan.fresh(f"{s.name}_combine"), finish.dims, finish.domain, Access(target.name, finish.index, "update"), Read(0),
                        (Access(array, (*finish.index, *finish.part)),), s.update, origin="combine", line=s.line)
    partly = replace(s, target=Access(array, (*s.target.index, *u.part()), "update"))

    anchor, _ = u.program_anchor
    program = with_statements(plan.program, s.name, (init,), (combine,))
    program = replace(
        program, arrays=(*program.arrays, partial),
        statements=tuple(partly if x.name == s.name else x for x in program.statements),
        body=around(program.body, anchor, (wrapped(start.program_loops, identity_leaf(init)),),
                    (wrapped(finish.program_loops, identity_leaf(combine)),)))

    names = [x.id for x in u.factored]
    moved = tuple((finish.names[x], how) for x, how in u.leaf.collect if x in names)
    here = replace(with_view(u.leaf, len(s.reads), None), collect=tuple((x, how) for x, how in u.leaf.collect if x not in names))
    last = replace(finish.leaf(combine.name), collect=moved)
    view = u.leaf.view(len(s.reads))
    if view:
        cell = view_here(view.index, finish.names, finish.loops)
        assert cell is not None
        last = with_view(last, 1, View(view.buffer, cell))
    new = replace(plan, program=program).map_leaves(lambda leaf: here if leaf.id == u.leaf.id else leaf)
    nest = finish.nest(last)
    after = () if apart else (nest,)
    new = new.map_bodies(lambda body: around(body, u.anchor, (start.nest(start.leaf(init.name)),), after))
    if apart:
        new = cut_off(new, u.anchor, after=True)
        kernel = new.kernel_of(u.anchor)
        assert kernel is not None
        joined = Kernel(new.fresh(f"{kernel.id}.c"), (nest,))
        place = new.kernels.index(kernel) + 1
        new = replace(new, kernels=(*new.kernels[:place], joined, *new.kernels[place:]))
    return Factored(without_unused(new), array, combine.name, tuple(finish.names[x] for x in names))


def _listed(u: Updates) -> str:
    names = ", ".join(x.id for x in u.carrying)
    return f"one of {names}" if names else f"each element of {u.statement.target.array} is updated once"


