"""Overwritten values: whether a third access writes a reader's cell between its last writer and the reader.

A question about three accesses, so the largest that *flow* asks.  What follows from the equalities between loops, or between
their digits, rules out most ways in which the third could come between; isl is asked about the rest.  Most steps leave most
triples as they were: answers are kept by what is asked, not by who asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, reduce

import islpy as isl

from ..ir.expr import Expr, const, var
from ..ir.tree import ranges
from .deduce import Facts, combined, deduce
from .dependence import are_peers
from .events import either, equal_in, instances, relation, same_cell, same_replica, witness
from .feasible import feasible
from .last_writer import Link, loop_ranges
from .linear import Case, Cases, Condition, Tuple, build_set, differ, equal
from .matched import holds_on_pairs
from .radix import by_digits, what_is_left_by_digits
from .relations import instance
from .sites import Site


@lru_cache(maxsize=4096)
def _touching(c: Site, b: Site) -> tuple[Case, Facts | None]:
    """What is equal when two accesses use one cell of one replica, the first on side ``c``; None: they never do."""
    same = tuple(equal(e, "c", f, "b") for e, f in (*same_cell(c, b), *same_replica(c, b)))
    return same, deduce(same, loop_ranges(c, "c") | loop_ranges(b, "b"))


@lru_cache(maxsize=4096)
def _cell_of(a: Site, b: Site) -> Case:
    """What is equal where a writer's cell is that which the reader uses, in the same replica."""
    return tuple(equal(e, "a", f, "b") for e, f in (*same_replica(a, b), *same_cell(a, b)))


Points = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


@lru_cache(maxsize=4096)
def overwritten(by: Link, c: Site, early: Cases, late: Cases, supplied: tuple[Link, ...], same_leaf: bool,
                 copied: Case = ()) -> Points | None:
    """The smallest (supplier, other, reader) in which `c`, itself no supplier, writes the reader's cell between the two.

    Parameters
    ----------
    by : Link
        Last writer on side ``a``, reader on side ``b``; all of its pairs use one cell of one replica.
    c : Site
        The other write.
    early, late : tuple of cases
        It runs before the reader; it does not run before the supplier.
    supplied : tuple of Link
        What it supplies to the reader itself.
    same_leaf : bool
        Whether it is in the reader's leaf; then an equal time in another thread counts as before.
    copied : tuple of Condition
        Where it writes the value again that the reader wants; empty where it never does.
    """
    a, b = by.writer, by.reader
    same, facts = _touching(c, b)
    if facts is None or not late:
        return None
    if same_leaf and not c.leaf.collect:
        level = equal_in((z.id for z in c.above if not z.is_place and z.extent > 1), "c", "b")
        places = [var(name) for name in sorted(z.id for z in c.above if z.is_place and z.extent > 1)]
        early = (*early, *((*level, *case) for v in places for case in differ(v, "c", v, "b")))
    harmless = [tuple(_on_side_c(q) for q in x.same) for x in supplied if x.exact]
    alike = [_peer_cells(c, b)] if b.writes and c.writes and are_peers(b.statement, c.statement) else [copied] if copied else []
    harmless += alike
    between = _Between((a.names("a"), b.names("b"), c.names("c")), tuple((loop_ranges(a, "a") | loop_ranges(b, "b")).items()),
                       tuple(loop_ranges(c, "c").items()), (*a.conditions("a"), *b.conditions("b"), *c.conditions("c")),
                       (*by.same, *_cell_of(a, b)), same, early, late, tuple(harmless))
    kept = _kept(between)
    if not kept:
        return None
    cases = tuple(dict.fromkeys(case for case, _ in kept))
    inside = (*b.conditions("b"), *c.conditions("c"), *same)
    strangers = reduce(isl.Map.union, (relation(c, b, (*inside, *case), ("c", "b")) for case in cases))
    for x in supplied:
        strangers = strangers.subtract(x.pairs.set_tuple_name(isl.dim_type.in_, "C"))
    for again in alike:
        strangers = strangers.subtract(relation(c, b, again, ("c", "b")))
    return _first_triple(by, c, strangers, either(a, c, tuple(dict.fromkeys(x for _, x in kept)), ("a", "c")))


@dataclass(frozen=True)
class _Between:
    """What is asked of three accesses, by value: tuples, ranges, instances, equalities, cases, and what is harmless."""

    tuples: tuple[Tuple, Tuple, Tuple]
    ranges: tuple[tuple[str, tuple[int, int]], ...]
    within: tuple[tuple[str, tuple[int, int]], ...]
    instances: Case
    link: Case
    same: Case
    early: Cases
    late: Cases
    harmless: Cases


@lru_cache(maxsize=1 << 14)
def _kept(q: _Between) -> tuple[tuple[Case, Case], ...]:
    """Cases of early and late in which there may be a triple that does harm."""
    linked, within = deduce(q.link, dict(q.ranges)), dict(q.within)
    together = linked and linked.given(q.same, within)
    kept: list[tuple[Case, Case]] = []
    for case in q.early:
        given = together.given(case) if together else None
        if given and not any(all(map(given.holds, known)) for known in q.harmless):
            kept += [(case, x) for x in q.late if not _excluded(given, x, q.harmless)]
    spoken = (*q.link, *q.same, *(c for pair in kept for case in pair for c in case), *(c for case in q.harmless for c in case))
    if linked and kept and (digits := by_digits(spoken, linked.ranges | within)):
        closer = digits.given((*q.link, *q.same))
        kept = [(case, x) for case, x in kept if closer and not _excluded(closer, (*case, *x), q.harmless)]
    if together:
        kept = [(case, x) for case, x in kept if not _excluded_by_digits(together.given(case), x, q.harmless)]
    ours = tuple((name, r) for name, r in (*q.ranges, *q.within) if name[:2] != "a:")
    kept = [(case, x) for case, x in kept if not any(_holds_by_points((*q.same, *case), ours, known) for known in q.harmless)]
    return tuple((case, x) for case, x in kept if feasible(q.tuples, (*q.instances, *q.link, *q.same, *case, *x)))


def _excluded(facts: Facts, case: Case, harmless: Cases) -> bool:
    """Whether a case surely has no triple, or only harmless ones."""
    given = facts.given(case)
    return given is None or any(all(map(given.holds, known)) for known in harmless)


def _excluded_by_digits(facts: Facts | None, case: Case, harmless: Cases) -> bool:
    """The same, where equalities that are left are taken digit by digit."""
    given = facts.given(case) if facts else None
    left = what_is_left_by_digits(given, (*case, *(c for known in harmless for c in known))) if given else None
    return left is None or any(all(map(left.holds, known)) for known in harmless)


@lru_cache(maxsize=4096)
def _holds_by_points(same: Case, ranges: tuple[tuple[str, tuple[int, int]], ...], wanted: Case) -> bool:
    """Whether conditions on the reader and the other access hold for all of their points for which others do."""
    facts = deduce(same, dict(ranges))
    if facts is None:
        return True
    asked = ((facts.reduced(combined(c)), c.equality) for c in wanted if not facts.holds(c))
    return all(holds_on_pairs(facts.pending, e, equality, facts.ranges) for e, equality in asked)


def _on_side_c(condition: Condition) -> Condition:
    parts = tuple((e, "c" if side == "a" else side, k) for e, side, k in condition.parts)
    return Condition(parts, condition.const, condition.equality)


def _peer_cells(c: Site, b: Site) -> Case:
    """Two updates of one element by one operation."""
    ours, theirs = c.leaf.places, b.leaf.places
    index = zip(c.statement.target.index, b.statement.target.index, strict=True)
    return tuple(equal(e.substitute(ours, ranges(c.above)), "c", f.substitute(theirs, ranges(b.above)), "b")
                 for e, f in index if isinstance(e, Expr) and isinstance(f, Expr))


def _first_triple(by: Link, c: Site, strangers: isl.Map, order: isl.Map) -> Points | None:
    """The smallest (supplier, other, reader) of ``by``, ``{ C -> B }`` and ``{ A -> C }``; None if there is none."""
    a, b = by.writer, by.reader
    both = by.pairs.reverse().range_product(strangers.reverse()).intersect_range(order.wrap())
    if both.is_empty():
        return None
    first, last = witness(both.range_factor_domain().reverse(), a, b)
    here = instances(b, "b", False).intersect_range(_point(b, last)).domain()
    there = instances(a, "a", False).intersect_range(_point(a, first)).domain()
    pinned = both.intersect_domain(here).intersect_range(order.intersect_domain(there).wrap())
    middle, _ = witness(pinned.range_factor_range().reverse().set_tuple_name(isl.dim_type.in_, "A"), c, b)
    return first, middle, last


def _point(site: Site, point: tuple[int, ...]) -> isl.Set:
    of = instance(site.statement)
    return build_set(of, [equal(var(d), "d", const(v), "d") for d, v in zip(of.variables, point, strict=True)])
