"""Last writers: a write and a read of the value it wrote, as a relation between the loops of the two leaves.

Where the flow is a plain equality of indices, so is the relation: loops of the two leaves that are one function of
equal dimensions are equal (question *cover* makes `Leaf.when` the inverse of `Leaf.at`).  What else follows from these
equalities is known without isl (:mod:`~explorer.poly.deduce`), and isl is given them instead of floors of dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import islpy as isl

from ..errors import Undecided
from ..ir.expr import Expr, var
from ..ir.tree import ranges
from .decide import OPEN, Maybe, Question
from .deduce import Facts, combined, deduce, marked, over
from .dependence import Flow
from .dependence_hull import SOON, are_all, dimension_facts, elements, equalities
from .events import instances, relation
from .isl import budget
from .linear import Case, Condition, equal
from .matched import holds_on_pairs
from .radix import by_digits, what_is_left_by_digits
from .relations import bare
from .sites import Run, Site


@dataclass(frozen=True, eq=False)
class Linked:
    """The pairs of instances of a link: the same whatever cells the two access, and wherever they run.

    Attributes
    ----------
    writer, reader : Site
        Of those that have these pairs, the ones that were asked about first: their loops and instances are those of all.
    flow : Flow or None
        The value flow that says so; None: the reader's view names an element of the writer's copy.
    same : tuple of Condition
        Equalities that hold on every pair, the writer's loops on side ``a``, the reader's on side ``b``.
    exact : bool
        Whether together with the instances of both leaves they are known to be the relation; it is a part of theirs else.
    facts : Facts
        What follows from them.
    """

    writer: Site
    reader: Site
    flow: Flow | None
    same: Case
    exact: bool
    facts: Facts

    @cached_property
    def pairs(self) -> isl.Map:
        """``{ A[writer's loops] -> B[reader's loops] }``."""
        a, b = self.writer, self.reader
        if self.exact or self.flow is None:
            return self.alike
        return instances(a, "a").apply_range(self.flow.relation).apply_range(instances(b, "b").reverse())

    @cached_property
    def alike(self) -> isl.Map:
        """All pairs on which the equalities hold: :attr:`pairs`, and others where these are not all."""
        a, b = self.writer, self.reader
        return relation(a, b, (*a.conditions("a"), *b.conditions("b"), *self.same))

    def digits(self, asked: Case) -> Facts | None:
        """What the equalities say of digits, for conditions that are asked about; None where none speaks of digits."""
        return _by_digits(self.same, asked, tuple((loop_ranges(self.writer, "a") | loop_ranges(self.reader, "b")).items()))


@dataclass(frozen=True, eq=False)
class Link:
    """A write that supplies a read; both are accesses of leaves.

    Attributes
    ----------
    writer, reader : Site
    of : Linked
        Their pairs of instances.
    """

    writer: Site
    reader: Site
    of: Linked

    @property
    def same(self) -> Case:
        """Equalities that hold on every pair."""
        return self.of.same

    @property
    def exact(self) -> bool:
        """Whether they are known to be the relation."""
        return self.of.exact

    @property
    def facts(self) -> Facts:
        """What follows from them."""
        return self.of.facts

    @property
    def pairs(self) -> isl.Map:
        """``{ A[writer's loops] -> B[reader's loops] }``."""
        return self.of.pairs


@lru_cache(maxsize=4096)
def _by_digits(same: Case, asked: Case, ranges: tuple[tuple[str, tuple[int, int]], ...]) -> Facts | None:
    found = by_digits((*same, *asked), dict(ranges))
    return found and found.given(same)


@dataclass(frozen=True)
class Always(Question[bool]):
    """Whether conditions hold on every pair of a link."""

    link: Linked
    conditions: Case

    def by_intervals(self) -> Maybe[bool]:
        """By what the equalities of the link say, of its loops or of their digits."""
        open_ = tuple(c for c in self.conditions if not self.link.facts.holds(c))
        if not open_ or ((digits := self.link.digits(open_)) is not None and all(map(digits.holds, open_))):
            return True
        left = what_is_left_by_digits(self.link.facts, open_)
        return left is None or all(map(left.holds, open_)) or OPEN

    def by_points(self) -> Maybe[bool]:
        """By all points of either side that agree in what the equalities of the link leave open."""
        facts = self.link.facts
        return all(holds_on_pairs(facts.pending, facts.reduced(combined(c)), c.equality, facts.ranges)
                   for c in self.conditions if not facts.holds(c)) or OPEN

    def by_isl(self) -> bool:
        """By what is alike, and where that has too many, by the pairs of the link."""
        wanted = relation(self.link.writer, self.link.reader, self.conditions)
        return self.link.alike.is_subset(wanted) or (not self.link.exact and self.link.pairs.is_subset(wanted))


@dataclass(frozen=True)
class Never(Question[bool]):
    """Whether no pair of a link satisfies a case."""

    link: Linked
    case: Case

    def by_intervals(self) -> Maybe[bool]:
        """By what the equalities of the link say, of its loops or of their digits."""
        if self.link.facts.refutes(self.case):
            return True
        if (digits := self.link.digits(self.case)) is not None and digits.refutes(self.case):
            return True
        left = what_is_left_by_digits(self.link.facts, self.case)
        return left is None or left.refutes(self.case) or OPEN

    def by_isl(self) -> bool:
        """By what is alike, and where that has too many, by the pairs of the link."""
        case = relation(self.link.writer, self.link.reader, self.case)
        return self.link.alike.is_disjoint(case) or (not self.link.exact and self.link.pairs.is_disjoint(case))


@lru_cache(maxsize=4096)
def link(flow: Flow | None, writer: Site, reader: Site) -> Link | None:
    """The link of a write and a read by a flow (None: by the reader's view); None if no instances are linked."""
    view = reader.leaf.view(reader.slot) if flow is None else None
    found = _linked(_Asked(flow, writer.run, reader.run, view.element if view else (), writer, reader))
    return found and Link(writer, reader, found)


@dataclass(frozen=True)
class _Asked:
    """What the pairs of a link depend on, and two sites that have it."""

    flow: Flow | None
    writer_run: Run
    reader_run: Run
    element: tuple[Expr, ...]
    writer: Site = field(compare=False)
    reader: Site = field(compare=False)


@lru_cache(maxsize=4096)
def _linked(q: _Asked) -> Linked | None:
    writer, reader = q.writer, q.reader
    same, exact = _viewed(writer, reader) if q.flow is None else _pulled_back(q.flow, writer, reader)
    facts = deduce(same, loop_ranges(writer, "a") | loop_ranges(reader, "b"))
    if facts is None:
        return None
    found = Linked(writer, reader, q.flow, same, exact, facts)
    return None if _is_empty(found) else found


def _is_empty(found: Linked) -> bool:
    """Whether a link has no pairs; where isl cannot tell soon, it has some, so that they are asked about."""
    if found.alike.is_empty():
        return True
    if found.exact or found.flow is None:
        return False
    try:
        with budget(SOON):
            return found.pairs.is_empty()
    except Undecided:
        return False


def loop_ranges(site: Site, side: str) -> dict[str, tuple[int, int]]:
    """Ranges of the loops of an access, marked by a side."""
    return marked(ranges(tuple(sorted(site.above, key=lambda x: x.id))), side)


def _viewed(writer: Site, reader: Site) -> tuple[Case, bool]:
    """The copy's loops at the element that the reader's view names."""
    view, at = reader.leaf.view(reader.slot), dict(writer.leaf.at)
    assert view is not None
    same = tuple(equal(at[d], "a", e, "b") for d, e in zip(writer.statement.dims, view.element, strict=True))
    own, scope = dict(reader.leaf.at), ranges(reader.above)
    inside = (Condition(((c.expr.substitute(own, scope), "b", 1),), 0, c.equality) for c in reader.statement.inside)
    return (*same, *inside), True  # a copy of a copy reads nothing beyond the edge


def _pulled_back(flow: Flow, writer: Site, reader: Site) -> tuple[Case, bool]:
    """The flow's equalities between dimensions, as equalities between loops."""
    source, sink = bare(writer.statement), bare(reader.statement)
    alike = (*equalities(flow, source, sink), *elements(flow, source, sink))
    dims = dimension_facts(flow, source, sink)
    if dims is None:
        return (), False
    theirs: dict[Expr, str] = {}
    for loop, e in reader.leaf.when:
        theirs.setdefault(dims.reduced(over(e, "b")), loop)
    loops: list[Condition] = []
    for loop, e in writer.leaf.when:
        if other := theirs.get(dims.reduced(over(e, "a"))):
            loops.append(equal(var(loop), "a", var(other), "b"))
    facts = deduce(tuple(loops), loop_ranges(writer, "a") | loop_ranges(reader, "b"))
    if facts is None:
        return tuple(loops), False
    at = {"a": (writer.leaf.places, ranges(writer.above)), "b": (reader.leaf.places, ranges(reader.above))}
    rest = [Condition(tuple((e.substitute(*at[side]), side, k) for e, side, k in c.parts), c.const, True) for c in alike]
    return (*loops, *(c for c in rest if not facts.holds(c))), are_all(flow, source, sink)
