"""Footprints: every cell inside its buffer, every staged element really in the copy, and the element that was wanted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise

from ..ir.expr import Expr, Ranges
from ..ir.finding import Finding
from ..ir.plan import Buffer, Plan
from ..ir.program import Constraint, Statement
from ..ir.tree import ranges
from .events import Event
from .flow_text import cell_text, element, instance
from .isl import smallest
from .linear import Case, Condition, at_least, at_most, build_set
from .plan_facts import plan_copy
from .sites import Site


def check_footprints(plan: Plan, everything: tuple[Event, ...]) -> tuple[Finding, ...]:
    """Cells outside their buffer, and copies that do not hold what is read from them."""
    return tuple(f for e in everything for f in _site_findings(plan, e.site))


def _site_findings(plan: Plan, site: Site) -> Iterator[Finding]:
    view = site.leaf.view(site.slot)
    if view is None:
        return
    if (at := _outside(site, plan.buffer_of[view.buffer])) is not None:
        point = site.instance(at)
        verb = "writes" if site.writes else "reads"
        shape = list(plan.buffer_of[view.buffer].shape)
        yield _one(site, point, f"{instance(site, point)} {verb} {cell_text(site, point)}, outside the buffer's shape {shape}",
                   "make the buffer as large as the footprint: stage or contract again after changing the loops")
    copy = plan_copy(plan, view.buffer)
    if not copy or site.writes or not view.element:
        return
    supplier = plan.statement_of[copy]
    if (at := _not_copied(site, supplier)) is not None:
        point = site.instance(at)
        what = f"{instance(site, point)} reads an element that {copy} never copies"
        yield _one(site, point, what, "stage again, at an outer loop")
    elif (at := _other_element(site, _sources(plan, supplier, site.statement.accesses[site.slot].array))) is not None:
        point = site.instance(at)
        name = site.statement.reads[site.slot].array
        wanted = f"{name}[{', '.join(map(str, element(site, point)))}]"
        what = f"{instance(site, point)} wants {wanted}, but {cell_text(site, point)} holds something else"
        yield _one(site, point, what, "stage again after changing the loops")


def _one(site: Site, point: tuple[int, ...], what: str, hint: str) -> Finding:
    lines = (site.statement.line,) if site.statement.line else ()
    return Finding("flow", what, array=site.statement.accesses[site.slot].array, element=element(site, point),
                   sink=instance(site, point), nodes=(site.leaf.id,), lines=lines, hints=(hint,))


@lru_cache(maxsize=4096)
def _outside(site: Site, buffer: Buffer) -> tuple[int, ...] | None:
    """Loop values at which the cell is outside the buffer."""
    scope = ranges(site.above)
    bad: list[Condition] = []
    for e, extent in zip(site.cell, buffer.shape, strict=True):
        if e is None:
            continue
        low, high = e.interval(scope)
        bad += [at_most(e, "a", -1)] if low < 0 else []
        bad += [at_least(e, "a", extent)] if high >= extent else []
    return _first(site, bad)


@lru_cache(maxsize=4096)
def _not_copied(site: Site, copy: Statement) -> tuple[int, ...] | None:
    """Loop values at which the view names an element outside the copy's domain."""
    return _first(site, _violations(site, copy, copy.domain))


def _sources(plan: Plan, copy: Statement, wanted: str) -> tuple[Statement, ...]:
    """The copy, the copy it reads from in turn, …, down to the one that reads the array that is wanted."""
    chain, copies = [copy], {c.name: c for c in plan.copies}
    if wanted == copy.target.array:
        return (copy,)
    while (source := chain[-1].reads[0].array) != wanted and source in copies:
        chain.append(copies[source])
    return tuple(chain)


@lru_cache(maxsize=4096)
def _other_element(site: Site, chain: tuple[Statement, ...]) -> tuple[int, ...] | None:
    """Loop values at which the copy holds another element than the access wants, or its fill."""
    scope = ranges(site.above)
    held = _element_of(site, chain[0])
    use = site.statement.accesses[site.slot]
    direct = use.array == chain[0].target.array  # a copy of a copy: the fill is copied along
    bad = [] if direct else _violations(site, chain[0], chain[0].inside)
    for copy, source in pairwise(chain):
        at = (e.substitute(held, scope) if isinstance(e, Expr) else Expr() for e in copy.reads[0].index)
        held = dict(zip(source.dims, at, strict=True))
        bad += _broken(source.inside, held, scope)
    at = dict(site.leaf.at)
    theirs_all = chain[0].target.index if direct else chain[-1].reads[0].index
    for theirs, ours in zip(theirs_all, use.index, strict=True):
        if not isinstance(theirs, Expr):
            continue
        left = theirs.substitute(held, scope)
        if not isinstance(ours, Expr):
            bad.append(ALWAYS)
            continue
        difference = (left - ours.substitute(at, scope)).simplify(scope)
        if difference != Expr():
            bad += _nonzero(difference)
    return _first(site, bad)


def _element_of(site: Site, copy: Statement) -> dict[str, Expr]:
    view = site.leaf.view(site.slot)
    assert view is not None
    return dict(zip(copy.dims, view.element, strict=True))


ALWAYS = Condition(())


def _nonzero(e: Expr) -> list[Condition]:
    return [at_most(e, "a", -1), at_least(e, "a", 1)]


def _violations(site: Site, copy: Statement, constraints: tuple[Constraint, ...]) -> list[Condition]:
    return _broken(constraints, _element_of(site, copy), ranges(site.above))


def _broken(constraints: tuple[Constraint, ...], held: Mapping[str, Expr], scope: Ranges) -> list[Condition]:
    """Conditions, one of which holds wherever a constraint does not; those that intervals prove are left out."""
    bad: list[Condition] = []
    for c in constraints:
        e = c.expr.substitute(held, scope)
        low, high = e.interval(scope)
        if c.equality and (low, high) != (0, 0):
            bad += _nonzero(e)
        elif not c.equality and low < 0:
            bad.append(at_most(e, "a", -1))
    return bad


def _first(site: Site, bad: list[Condition]) -> tuple[int, ...] | None:
    """The smallest loop values of the leaf's instances where one of the conditions holds."""
    if not bad:
        return None
    inside: Case = site.conditions("a")
    if site.statement.inside and not site.writes:
        at, scope = dict(site.leaf.at), ranges(site.above)
        inside += tuple(Condition(((c.expr.substitute(at, scope), "a", 1),), 0, c.equality) for c in site.statement.inside)
    found = (build_set(site.loops("a"), [*inside, c]) for c in bad)
    return min((smallest(s) for s in found if not s.is_empty()), default=None)
