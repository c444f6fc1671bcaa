"""Footprints: every cell inside its buffer, every staged element really in the copy, and the element that was wanted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from ..ir.expr import Expr, const
from ..ir.finding import Finding
from ..ir.plan import Buffer, Plan
from ..ir.program import Constraint, Statement
from ..ir.tree import ranges
from . import enumerated
from .decide import OPEN, Maybe, Question, decide
from .events import Event
from .flow_text import cell_text, element, instance
from .isl import smallest
from .linear import at_least, at_most, build_set, holds
from .plan_facts import plan_copy
from .sites import Site


def check_footprints(plan: Plan, everything: tuple[Event, ...]) -> tuple[Finding, ...]:
    """Cells outside their buffer, and copies that do not hold what is read from them."""
    return tuple(f for e in everything for f in _site_findings(plan, e.site))


def _site_findings(plan: Plan, site: Site) -> Iterator[Finding]:
    view = site.leaf.view(site.slot)
    if view is None:
        return
    if (at := decide(_Broken(site, _inside(site, plan.buffer_of[view.buffer])))) is not None:
        point = site.instance(at)
        verb = "writes" if site.writes else "reads"
        shape = list(plan.buffer_of[view.buffer].shape)
        yield _one(site, point, f"{instance(site, point)} {verb} {cell_text(site, point)}, outside the buffer's shape {shape}",
                   "make the buffer as large as the footprint: stage or contract again after changing the loops")
    if site.writes or not view.element:
        return
    if not (copy := plan_copy(plan, view.buffer)):
        if (at := decide(_Broken(site, (NEVER,)))) is not None:
            point = site.instance(at)
            yield _one(site, point, f"{instance(site, point)} reads {cell_text(site, point)}, and no copy fills {view.buffer}",
                       "stage again after changing the loops")
        return
    supplier = plan.statement_of[copy]
    if (at := decide(_Broken(site, _copied(site, supplier)))) is not None:
        point = site.instance(at)
        what = f"{instance(site, point)} reads an element that {copy} never copies"
        yield _one(site, point, what, "stage again, at an outer loop")
        return
    chain = _sources(plan, supplier, site.statement.accesses[site.slot].array)
    if (at := decide(_Broken(site, _wanted(site, chain)))) is not None:
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
def _inside(site: Site, buffer: Buffer) -> tuple[Constraint, ...]:
    """That the cell lies inside its buffer."""
    known = [(e, extent) for e, extent in zip(site.cell, buffer.shape, strict=True) if e is not None]
    return tuple(c for e, extent in known for c in (Constraint(e), Constraint(const(extent - 1) - e)))


@lru_cache(maxsize=4096)
def _copied(site: Site, copy: Statement) -> tuple[Constraint, ...]:
    """That the view names an element in the copy's domain."""
    return _over_loops(site, copy.domain, _element_of(site, copy))


def _sources(plan: Plan, copy: Statement, wanted: str) -> tuple[Statement, ...]:
    """The copy, the copy it reads from in turn, …, down to the one that reads the array that is wanted."""
    chain, copies = [copy], {c.name: c for c in plan.copies}
    if wanted == copy.target.array:
        return (copy,)
    while (source := chain[-1].reads[0].array) != wanted and source in copies:
        chain.append(copies[source])
    return tuple(chain)


@lru_cache(maxsize=4096)
def _wanted(site: Site, chain: tuple[Statement, ...]) -> tuple[Constraint, ...]:
    """That the copy holds the element that the access wants, and not its fill."""
    scope = ranges(site.above)
    held = _element_of(site, chain[0])
    use = site.statement.accesses[site.slot]
    direct = use.array == chain[0].target.array  # a copy of a copy: the fill is copied along
    wanted = () if direct else _over_loops(site, chain[0].inside, held)
    for copy, source in pairwise(chain):
        at = (e.substitute(held, scope) if isinstance(e, Expr) else Expr() for e in copy.reads[0].index)
        held = dict(zip(source.dims, at, strict=True))
        wanted += _over_loops(site, source.inside, held)
    at = dict(site.leaf.at)
    theirs_all = chain[0].target.index if direct else chain[-1].reads[0].index
    for theirs, ours in zip(theirs_all, use.index, strict=True):
        if isinstance(theirs, Expr) and isinstance(ours, Expr):
            difference = theirs.substitute(held, scope) - ours.substitute(at, scope)
            wanted += (Constraint(difference.simplify(scope), True),)
        elif isinstance(theirs, Expr):
            wanted += (NEVER,)
    return wanted


def _element_of(site: Site, copy: Statement) -> dict[str, Expr]:
    view = site.leaf.view(site.slot)
    assert view is not None
    return dict(zip(copy.dims, view.element, strict=True))


NEVER = Constraint(const(-1))


def _over_loops(site: Site, constraints: tuple[Constraint, ...], at: dict[str, Expr]) -> tuple[Constraint, ...]:
    """Constraints of a domain over the site's loops, the dimensions at these values."""
    scope = ranges(site.above)
    return tuple(Constraint(c.expr.substitute(at, scope), c.equality) for c in constraints)


@dataclass(frozen=True)
class _Broken(Question["tuple[int, ...] | None"]):
    """The smallest loop values of an access's instances at which one of these constraints on them does not hold, or None."""

    site: Site
    wanted: tuple[Constraint, ...]

    @property
    def _happens(self) -> tuple[Constraint, ...]:
        """Where a read happens."""
        return () if self.site.writes else _over_loops(self.site, self.site.statement.inside, dict(self.site.leaf.at))

    def by_intervals(self) -> Maybe[tuple[int, ...] | None]:
        if any(x.extent < 1 for x in self.site.above):  # it never runs, and `ranges` has one iteration of such a loop
            return None
        scope = ranges(self.site.above)
        known = ((c.equality, *c.expr.interval(scope)) for c in self.wanted)
        return None if all(low == high == 0 if equality else low >= 0 for equality, low, high in known) else OPEN

    def by_points(self) -> Maybe[tuple[int, ...] | None]:
        scope = ranges(self.site.above)
        few = enumerated.size(scope) < enumerated.FEWEST
        return enumerated.first_broken(scope, (*self.site.guards, *self._happens), self.wanted) if few else OPEN

    def by_isl(self) -> tuple[int, ...] | None:
        inside = (*self.site.conditions("a"), *(holds(c, "a") for c in self._happens))
        broken = (bad for c in self.wanted for bad in (at_most(c.expr, "a", -1), at_least(c.expr, "a", 1))[: 1 + c.equality])
        found = (build_set(self.site.loops("a"), [*inside, bad]) for bad in broken)
        return min((smallest(s) for s in found if not s.is_empty()), default=None)
