"""Partial results: each iteration of some loops of a reduction accumulates on its own, and a last statement joins them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.program import Access, Array, Constraint, Statement
from ..ir.scalar import REDUCTIONS, Literal, Read
from ..ir.tree import Kernel, Node, View
from ._cut import cut_off
from ._domain import around, identity_leaf, with_statements, wrapped
from ._reduction import Side, Updates, separable, side, update_verdict, view_here
from ._uses import with_view, without_unused
from .base import Transform

T = TypeVar("T")


@dataclass(frozen=True)
class Rfactor(Transform):
    """Give each iteration of some loops a partial result of its own (by associativity and commutativity).

    For a reduction ``T[e(d)] op= v(d)`` and loops whose values are ``p(d)``, the sum over all instances of an element
    is the sum over ``p`` of sums over the instances with that ``p``.  A new temporary holds the inner sums; every
    ``(element, p)`` starts as the operation's identity, so parts without instances do no harm.  The start stands
    before the outermost loop that carries the reduction and is not factored, the joining statement after the
    outermost one that is not a factored place.

    The new axes stand behind the others, so that the parts of an element are neighbours; or where `axes` says, as in
    numpy.expand_dims, counted from the end if negative: with ``axes=(0,)`` neighbouring elements stay neighbours within
    a part.

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
    group = "Reductions"
    aliases = ("rfactor_reduction", "split_reduction", "decompose_reduction", "privatize_reduction")
    elsewhere = {"Halide": "rfactor", "TVM": "rfactor", "loopy": "split_reduction_inward"}

    statement: str = field(metadata={"kind": "leaf", "help": "the reduction: its statement, or the array it updates"})
    loop: str | tuple[str, ...] = field(metadata={"kind": "loops", "help": "loops whose iterations accumulate on their own"})
    axes: tuple[int, ...] = field(default=(), metadata={
        "kind": "ints", "help": "where each loop's axis stands in the partial results, as in numpy.expand_dims; else behind all"})

    def check(self, plan: Plan) -> Verdict:
        u = self.updates(plan)
        if isinstance(u, Verdict):
            return u
        count = len(u.statement.target.index) + len(u.factored)
        stands = {n % count for n in self.axes if -count <= n < count}
        if self.axes and not len(stands) == len(self.axes) == len(u.factored):
            return no(f"axes={self.axes!r} does not say where {len(u.factored)} new axes stand among {count}",
                      "one number for each loop, all different",
                      f"the first axis is 0 or {-count}, the last {count - 1} or -1; without axes they stand behind the others")
        return factor_verdict(u)

    def rewrite(self, plan: Plan) -> Plan:
        u = self.updates(plan)
        assert isinstance(u, Updates)
        return factored(u, axes=self._axes(u)).plan

    def _axes(self, u: Updates) -> tuple[int, ...]:
        """Where the axis of each factored loop stands, outermost loop first."""
        names = (self.loop,) if isinstance(self.loop, str) else tuple(self.loop)
        count = len(u.statement.target.index) + len(u.factored)
        stands = dict(zip(names, (n % count for n in self.axes), strict=False))
        return tuple(stands[x.id] for x in u.factored) if self.axes else ()

    def updates(self, plan: Plan) -> Updates | Verdict:
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
                return no(f"{name} does not carry the reduction",
                          f"each of its iterations updates other elements of {u.statement.target.array}{_none(u)}", _listed(u))
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
    if (refusal := separable(u)) is not None:
        return refusal
    start, finish = side(u, "z", early=True), side(u, "c", apart)
    for there in (start, finish):
        if isinstance(there, Verdict):
            return there
    assert isinstance(finish, Side)
    view = u.leaf.view(len(u.statement.reads))
    if view and (apart or view_here(view.index, finish.names, finish.loops) is None):
        return no(f"{u.statement.target.array} already has storage that the joining statement cannot name",
                  f"its cell {', '.join(map(str, view.index))} belongs to loops inside of {u.anchor()}",
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


def factored(u: Updates, apart: bool = False, array: str = "", starts: tuple[str, ...] = (),
             axes: tuple[int, ...] = (), elements: tuple[Constraint, ...] = ()) -> Factored:
    """Take a reduction apart.

    Parameters
    ----------
    u : Updates
    apart : bool
        The joining statement becomes a launch of its own.
    array : str
        Name of the partial results.
    starts : tuple of str
        Statements that start the target's elements: they start the partial results instead, without an identity,
        and the last statement then writes the target.
    axes : tuple of int
        Where the axis of each factored loop, outermost first, stands among those of the partial results; by default behind them.
    elements : tuple of Constraint
        Which of the last statement's dimensions there are, where these are more than those with updates.
    """
    plan, s = u.plan, u.statement
    start, finish = side(u, "z", early=True), side(u, "c", apart)
    assert isinstance(start, Side)
    assert isinstance(finish, Side)
    assert s.update is not None
    target = plan.array_of[s.target.array]
    array = plan.fresh(array or f"{target.name}_p")
    places = axes or tuple(range(len(target.shape), len(target.shape) + len(u.factored)))
    given = target.given + len(u.factored) if target.given >= 0 and not axes else -1

    def joint(element: tuple[T, ...], part: tuple[T, ...]) -> tuple[T, ...]:
        rest, new = iter(element), dict(zip(places, part, strict=True))
        return tuple(new[n] if n in new else next(rest) for n in range(len(element) + len(part)))

    partial = Array(array, target.dtype.wide, joint(target.shape, tuple(x.extent for x in u.factored)), "temporary", given)
    neutral = REDUCTIONS[s.update].identity(target.dtype)  # a wider one would not be one any more where it is stored there
    identity = Literal(float(neutral) if partial.dtype.kind == "float" else neutral, partial.dtype)
    init = Statement(plan.fresh(f"{s.name}_init"), start.dims, start.domain,
                     Access(array, joint(start.index, start.part), "write"), identity, origin="init", line=s.line)
    last = Statement(plan.fresh(f"{s.name}_combine"), finish.dims, elements or finish.domain,
                     Access(target.name, finish.index, "write" if starts else "update"), Read(0),
                     (Access(array, joint(finish.index, finish.part)),), None if starts else s.update, origin="combine",
                     line=s.line)
    inits = () if starts else (init,)

    def retargeted(x: Statement) -> Statement:
        if x.name == s.name:
            return replace(x, target=Access(array, joint(x.target.index, u.part()), "update"))
        return replace(x, target=replace(x.target, array=array)) if x.name in starts else x

    anchor, _ = u.program_anchor
    program = with_statements(plan.program, s.name, inits, (last,))
    before = tuple(wrapped(start.program_loops, identity_leaf(x)) for x in inits)
    program = replace(program, arrays=(*program.arrays, partial), statements=tuple(map(retargeted, program.statements)),
                      body=around(program.body, anchor, before, (wrapped(finish.program_loops, identity_leaf(last)),)))

    names = [x.id for x in u.factored]
    here = replace(with_view(u.leaf, len(s.reads), None), collect=tuple((x, how) for x, how in u.leaf.collect if x not in names))
    ways = () if apart else u.leaf.collect  # in a kernel of its own the parts are a loop, which nobody combines
    there = replace(finish.leaf(last.name), collect=tuple((finish.names[x], how) for x, how in ways if x in names))
    if view := u.leaf.view(len(s.reads)):
        cell = view_here(view.index, finish.names, finish.loops)
        assert cell is not None
        there = with_view(there, 1, View(view.buffer, cell))
    new = replace(plan, program=program).map_leaves(lambda leaf: here if leaf.id == u.leaf.id else leaf)
    nest = finish.nest(there)
    before = tuple(start.nest(start.leaf(x.name)) for x in inits)
    new = new.map_bodies(lambda body: around(around(body, u.anchor(), after=() if apart else (nest,)),
                                             u.anchor(early=True), before))
    return Factored(without_unused(_launched(new, u.anchor(), nest) if apart else new), array, last.name,
                    tuple(finish.names[x] for x in names))


def _launched(plan: Plan, anchor: str, nest: Node) -> Plan:
    """The plan with `nest` as a launch of its own, after everything up to the anchor and before everything else."""
    plan = cut_off(plan, anchor, after=True)
    kernel = plan.kernel_of(anchor)
    assert kernel is not None
    place = plan.kernels.index(kernel) + 1
    joined = Kernel(plan.fresh(f"{kernel.id}.c"), (nest,))
    return replace(plan, kernels=(*plan.kernels[:place], joined, *plan.kernels[place:]))


def _listed(u: Updates) -> str:
    names = ", ".join(x.id for x in u.carrying)
    return f"one of {names}" if names else ""


def _none(u: Updates) -> str:
    return "" if u.carrying else ", and each element is updated once: there are no parts to join"


