"""Where a loop ends for each block: the last iteration in which some statement below it does anything.

A loop is a box, and what its statements leave out of it stands in their domains.  A *trimmed* loop stops behind the last
iteration that any of them has, whatever the threads and the loops inside: an expression of the loops around that all threads of
a block share, so that barriers, commits and waits below it stay the same for all of them.  Iterations that are left out are the
last ones: those that run have the groups, slots and phases that they had.  Whether a loop may end there is decided in
:mod:`~explorer.poly.early_end`.
"""

from __future__ import annotations

from collections.abc import Collection

from ..ir.expr import Expr, Quotient, Ranges, const, quotient, var
from ..ir.plan import Plan
from ..ir.program import Program
from ..ir.tree import Loop, leaves, ranges
from .dependence import analyse
from .relations import domain


def last_iteration(plan: Plan, loop_id: str, without: Collection[str] = ()) -> Expr | str:
    """The last value of a loop at which something below it runs, over the loops around it that a block shares.

    Parameters
    ----------
    plan : Plan
    loop_id : str
    without : collection of str
        Statements that do not count.

    Returns
    -------
    Expr or str
        Never less than the last such value, and the same for all threads; or why there is none, as a sentence.
    """
    found, around = bounds_below(plan, loop_id, without), _around(plan, loop_id)
    if not found:
        return f"nothing runs in {loop_id}"
    if whole := next((name for name, bounds in found.items() if not bounds), ""):
        return f"{whole} may run in the last iteration of {loop_id} in every block"
    fitting = [e for bounds in found.values() for e in bounds
               if all(any(_below(own, e, around) for own in other) for other in found.values())]
    if not fitting:
        ends = " and ".join(dict.fromkeys(str(bounds[0]) for bounds in found.values()))
        return f"the statements in {loop_id} end at {ends}, of which none is always the last"
    return next(e for e in fitting if all(_below(e, other, around) or not _below(other, e, around) for other in fitting))


def _around(plan: Plan, loop_id: str) -> Ranges:
    hit = plan.find(loop_id)
    assert hit is not None
    return ranges(hit[1])


def bounds_below(plan: Plan, loop_id: str, without: Collection[str] = ()) -> dict[str, tuple[Expr, ...]]:
    """What bounds a loop's value at each leaf below it, over the loops around that a block shares; nothing: it has the box."""
    hit = plan.find(loop_id)
    assert hit is not None
    loop = hit[0]
    assert isinstance(loop, Loop)
    kept, around = {x.id for x in hit[1] if not x.is_thread}, ranges(hit[1])
    found = dict[str, tuple[Expr, ...]]()
    for leaf, inside in leaves((loop,)):
        if leaf.statement not in without:
            scope, at = {**around, **ranges(inside)}, dict(leaf.at)
            domain = (c.expr.substitute(at, scope) for c in plan.statement_of[leaf.statement].domain if not c.equality)
            found[leaf.id] = tuple(e for c in domain if (e := _bound(c, loop.id, kept, scope, around)) is not None)
    return found


def still_read(program: Program, fewer: Program) -> str:
    """What reads a value that a program with smaller domains does not write any more, as a sentence; empty if nothing does."""
    both = zip(program.statements, fewer.statements, strict=True)
    gone = {s.name: domain(s).subtract(domain(new)) for s, new in both if s != new}
    for name in gone:
        target = program.array_of[program.statement_of[name].target.array]
        if target.role != "temporary":
            return f"{name} writes {target.name}, a result"
    for f in analyse(program).flow:
        if f.source in gone:
            readers = f.relation.intersect_domain(gone[f.source]).range()
            if not (readers.subtract(gone[f.sink]) if f.sink in gone else readers).is_empty():
                return f"{f.sink} reads what {f.source} writes there"
    return ""


def _bound(c: Expr, name: str, kept: set[str], scope: Ranges, around: Ranges) -> Expr | None:
    """What ``c >= 0`` says a loop's value is at most, for any value of what is not kept; None where it says nothing."""
    factor = c.coefficient(name)
    rest = c - var(name) * factor
    if factor >= 0 or name in rest.variables():
        return None
    most = quotient(_highest(rest, kept, scope), -factor, around).simplify(around)
    return most if most.variables() else None


def _highest(e: Expr, kept: set[str], scope: Ranges, sign: int = 1) -> Expr:
    """The largest value (with sign -1: the smallest) over all variables that are not kept."""
    out = const(e.const)
    for atom, factor in e.terms:
        term = Expr(((atom, factor),))
        if term.variables() <= kept:
            out += term
        elif isinstance(atom, Quotient):
            out += quotient(_highest(atom.expr, kept, scope, sign if factor > 0 else -sign), atom.by) * factor
        else:
            out += const(term.interval(scope)[sign > 0])
    return out


def _below(e: Expr, f: Expr, known: Ranges) -> bool:
    return (f - e).interval(known)[0] >= 0
