"""Groups of channels: a loop that one factor only uses divided is a loop over groups and one within a group."""

from __future__ import annotations

from ...ir.expr import Expr, Quotient
from ...schedule import Schedule
from .._steps import Builder, chain, leaves_of
from .form import ProductForm, product_form
from .outputs import summed_apart


def ready_form(schedule: Schedule, kernel: str) -> tuple[Schedule, ProductForm | None]:
    """The product that a kernel is, and the schedule in which it is one: as it is, its sum or its groups apart, or both."""
    if form := product_form(schedule, kernel):
        return schedule, form
    summed = summed_apart(schedule, kernel)
    for made in (summed, in_groups(schedule, kernel), in_groups(summed, kernel)):
        if made is not schedule and (form := product_form(made, kernel)):
            return made, form
    return schedule, None


def in_groups(schedule: Schedule, kernel: str) -> Schedule:
    """Split the loops around a sum that an index divides by a number, by this number; the same schedule where there is none.

    Before::

        for k in 0…64
            for c in 0…16
                total += x[16*(k // 8) + c] * f[k, c]

    After::

        for k in 0…8
            for k.g in 0…8
                for c in 0…16
                    total += x[16*k + c] * f[8*k + k.g, c]
    """
    b = Builder(schedule, judged=False)
    body = next(k.body for k in b.plan.kernels if k.id == kernel)
    around = {x.id: x for x in chain(body[0])} if len(body) == 1 else {}
    found: dict[str, int] = {}
    for leaf in leaves_of(body[0]) if around else ():
        for access in b.plan.statement_of[leaf.statement].accesses:
            for e in access.index:
                for atom, _ in (e.substitute(leaf.places).terms if isinstance(e, Expr) else ()):
                    if isinstance(atom, Quotient) and len(atom.expr.terms) == 1 and not atom.expr.const:
                        ((name, factor),) = atom.expr.terms
                        if isinstance(name, str) and factor == 1 and name in around and around[name].extent % atom.by == 0:
                            found.setdefault(name, atom.by)
    for name, size in found.items():
        b.do("split", name, size, inner=b.plan.fresh(f"{name}.g"))
    return b.schedule
