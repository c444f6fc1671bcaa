"""Two dimensions for one: the loops that are digits of a dimension get a dimension of their own, which bounds them.

A loop that is one digit of a dimension, as the inner one of a split, may not run beyond its iterations: what lies there are
other instances.  With ``k = 12*k.q + k.r`` and ``0 <= k.r < 12`` as a condition of the statement there are none, and the loop
over ``k.r`` is divided like any other.  Which instances there are, what they read and write, and their order stay the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..ir.expr import Expr, Quotient, Ranges, Remainder, quotient, remainder, var
from ..ir.finding import Verdict
from ..ir.plan import Plan
from ..ir.program import Access, Constraint, Indirect, Statement
from ..ir.scalar import IndexValue, Scalar, rebuild
from ..ir.tree import Leaf, Loop, Node, leaves, ranges
from ._domain import all_dims, bounds, dim_ranges, plain, renamed
from ._ends import ended

Digit = tuple[str, int, int]
"""A dimension, what is added to it, and the modulus whose remainder holds the digit."""


def roomy(plan: Plan, loop: Loop, fits: Callable[[Plan, Loop], Verdict]) -> Plan | Verdict:
    """The plan in which a loop may run as far as it has to: as it is, with two dimensions for those that it is a digit of, or
    with one more that ends a part of a loop that was cut; else why it may not.
    """
    refusal = fits(plan, loop)
    if refusal:
        return plan
    again = divided(plan, loop) or plan
    return next((new for new in (again, *ended(again, loop.id)) if fits(new, new.loops[loop.id])), refusal)


def divided(plan: Plan, loop: Loop) -> Plan | None:
    """The plan in which the dimensions that a loop is a digit of are two; None where it is none, or of several."""
    found = {digit_of(dict(leaf.when)[loop.id]) for leaf, _ in leaves((loop,)) if leaf.statement in plan.program.statement_of}
    for digit in found:
        if digit is None:
            return None
    if len({digit[0] for digit in found if digit}) < len(found):
        return None
    for digit in found:
        assert digit is not None
        new = _two_dims(plan, *digit)
        if new is None:
            return None
        plan = new
    return plan if found else None


def digit_of(e: Expr) -> Digit | None:
    """The dimension that a loop's value is a digit of; None for any other value."""
    if len(e.terms) != 1 or e.terms[0][1] != 1 or isinstance(e.terms[0][0], str):
        return None
    atom = e.terms[0][0]
    if isinstance(atom, Remainder):
        inner, by = atom.expr, atom.by
        if (d := plain(inner)) is not None:
            return (*d, by)
        single = inner.terms[0][0] if len(inner.terms) == 1 and inner.terms[0][1] == 1 and not inner.const else ""
        return (*d, by * single.by) if isinstance(single, Quotient) and (d := plain(single.expr)) is not None else None
    inner = atom.expr
    single = inner.terms[0][0] if len(inner.terms) == 1 and inner.terms[0][1] == 1 and not inner.const else ""
    return (*d, single.by) if isinstance(single, Remainder) and (d := plain(single.expr)) is not None else None


def _two_dims(plan: Plan, dim: str, plus: int, by: int) -> Plan | None:
    """The plan in which ``dim = by*q + r - plus`` everywhere; None where the program has no loop over just that dimension."""
    program = plan.program
    own = [(leaf, above) for leaf, above in leaves(program.body) if any(x.id == dim for x in above)]
    if not own or any(leaf.when or dict(leaf.at).get(dim) != var(dim) for leaf, _ in own):
        return None
    taken = all_dims(program)
    q, r = plan.fresh(f"{dim}.q", taken), plan.fresh(f"{dim}.r", taken)
    old = {dim: var(q) * by + var(r) - plus}
    names = {leaf.statement for leaf, _ in own}
    loop = next(x for x in own[0][1] if x.id == dim)
    inside = (*bounds(q, *_blocks(loop, plus, by)), *bounds(r, 0, by))
    statements = tuple(_redone(s, dim, (q, r), old, inside) if s.name in names else s for s in program.statements)
    new = replace(program, statements=statements, body=tuple(_nested(n, dim, plus, by, (q, r)) for n in program.body))

    def moved(leaf: Leaf, scope: Ranges, known: Ranges) -> Leaf:
        at: list[tuple[str, Expr]] = []
        for d, e in leaf.at:
            at += [(q, quotient(e + plus, by, scope)), (r, remainder(e + plus, by, scope))] if d == dim else [(d, e)]
        when = tuple((x, e.substitute(old, known)) for x, e in leaf.when)
        return replace(leaf, at=tuple(at), when=when, sums=tuple((e.substitute(old, known), v) for e, v in leaf.sums))

    known = {leaf.id: (ranges(above), dim_ranges(new.statement_of[leaf.statement]))
             for leaf, above, _ in plan.leaves if leaf.statement in names}
    return replace(plan, program=new).map_leaves(lambda leaf: moved(leaf, *known[leaf.id]) if leaf.id in known else leaf)


def _blocks(loop: Loop, plus: int, by: int) -> tuple[int, int]:
    """The first quotient of a program's loop, and how many there are."""
    first, last = (loop.start + plus) // by, (loop.start + plus + loop.extent - 1) // by
    return first, last - first + 1 if loop.extent else 0


def _redone(s: Statement, dim: str, new: tuple[str, str], old: dict[str, Expr], inside: tuple[Constraint, ...]) -> Statement:
    """A statement over the two dimensions."""
    dims = tuple(x for d in s.dims for x in (new if d == dim else (d,)))
    domain = (*renamed(s.domain, old), *inside)
    return replace(s, dims=dims, domain=domain, inside=renamed(s.inside, old), value=_value(s.value, old),
                   target=_access(s.target, old), reads=tuple(_access(a, old) for a in s.reads))


def _access(access: Access, old: dict[str, Expr]) -> Access:
    return replace(access, index=tuple(Indirect(_value(e.value, old)) if isinstance(e, Indirect) else e.substitute(old)
                                       for e in access.index))


def _value(value: Scalar, old: dict[str, Expr]) -> Scalar:
    return rebuild(value, lambda node: IndexValue(node.expr.substitute(old)) if isinstance(node, IndexValue) else None)


def _nested(node: Node, dim: str, plus: int, by: int, new: tuple[str, str]) -> Node:
    """A node of the program with two loops for the one over the dimension: the order stays."""
    if isinstance(node, Leaf):
        at = tuple(x for d, e in node.at for x in (tuple((n, var(n)) for n in new) if d == dim else ((d, e),)))
        return replace(node, at=at)
    if not isinstance(node, Loop):
        return node
    body = tuple(_nested(n, dim, plus, by, new) for n in node.body)
    if node.id != dim:
        return replace(node, body=body)
    first, count = _blocks(node, plus, by)
    return replace(node, id=new[0], start=first, extent=count, body=(Loop(new[1], by, body),))
