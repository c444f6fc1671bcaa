"""The fourth question, flow: with the storage really used, does each read still get the value it got in the program?

A cell is (replica, buffer, physical index): one replica per thread for registers, per block for shared memory, one
for global memory; registers and shared memory end with a launch.  For a supplier W and a reader R of a value:

- *visibility*: W writes the cell that R reads, in R's replica, earlier;
- *no clobber*: no other write of that cell, not itself a supplier of R, runs after W and before R (an asynchronous
  copy counts from its issue on; an equal time in another thread counts as between);
- *footprint* (footprint.py): every cell lies inside its buffer, and a copy holds the element that its consumer wants.

All are emptiness questions on relations between loop variables, one for each pair or triple of accesses, and answers
are kept for each.  It is the exact value flow of Feautrier, "Dataflow analysis of array and scalar references" (IJPP
1991), asked of physical cells under the new order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, reduce

import islpy as isl

from ..ir.expr import Expr, const, var
from ..ir.finding import Finding
from ..ir.plan import Plan
from .dependence import Flow
from .events import Event, earlier, either, events, instances, relation, same_cell, same_replica, same_time, witness
from .flow_text import clobbered, hidden, kept, lost, undecided
from .footprint import check_footprints
from .isl import Undecided, budget
from .linear import Cases, build_map, build_set, differ, equal
from .plan_facts import facts, plan_copy
from .relations import instance
from .sites import Site, launch_extents
from .strays import check_strays

BUDGET = 20_000_000
"""Operations of isl for the suppliers and clobbers of one read (some seconds); beyond, the plan is refused as undecided."""


@dataclass(frozen=True, eq=False)
class Supplier:
    """A write that a read gets its value from; `pairs` is ``{ A[writer's loops] -> B[reader's loops] }``."""

    writer: Event
    reader: Event
    pairs: isl.Map


def check_flow(plan: Plan) -> tuple[Finding, ...]:
    """Whether every read that goes through a buffer still gets its value.

    Parameters
    ----------
    plan : Plan
        A plan that passes *cover*.

    Returns
    -------
    tuple of Finding
        Empty when every value arrives; otherwise findings with a minimal witness, at most one for each read access.
    """
    if not plan.buffers:
        return ()
    everything = events(plan)
    if found := (*_kept_outputs(plan, everything), *check_footprints(plan, everything), *check_strays(plan)):
        return found
    out = []
    flows = facts(plan).flow
    for reader in everything:
        if not reader.site.reads:
            continue
        try:
            with budget(BUDGET):
                finding = _check_read(plan, everything, flows, reader)
        except Undecided:
            finding = undecided(reader.site)
        if finding:
            out.append(finding)
    return tuple(out)


def _check_read(plan: Plan, everything: tuple[Event, ...], flows: tuple[Flow, ...], reader: Event) -> Finding | None:
    suppliers = tuple(_suppliers(plan, everything, flows, reader))
    if not any(e.site.leaf.view(e.site.slot) for s in suppliers for e in (s.writer, s.reader)):
        return None
    for s in suppliers:
        if finding := _visible(plan, s):
            return finding
    return _clobber(plan, everything, suppliers, reader)


def _kept_outputs(plan: Plan, everything: tuple[Event, ...]) -> Iterator[Finding]:
    """Results that a view would keep in a buffer instead of the array."""
    for site in (e.site for e in everything):
        if site.writes and site.leaf.view(site.slot) and plan.array_of[site.statement.target.array].role in ("out", "inout"):
            yield kept(site)


# -- who supplies whom -------------------------------------------------------------------------------------------


def _suppliers(plan: Plan, everything: tuple[Event, ...], flows: tuple[Flow, ...], reader: Event) -> Iterator[Supplier]:
    """The suppliers of one read: the copy that its view names, or the program's value flow."""
    site = reader.site
    view = site.leaf.view(site.slot)
    if view and view.element and not site.writes and (copy := plan_copy(plan, view.buffer)):
        for w in everything:
            if w.site.writes and w.site.statement.name == copy and not (pairs := copy_supply(w.site, site)).is_empty():
                yield Supplier(w, reader, pairs)
        return
    array = site.statement.accesses[site.slot].array
    for flow in flows:
        if (flow.sink, flow.slot, flow.array) != (site.statement.name, site.slot, array):
            continue
        writers = [w for w in everything if w.site.writes and w.site.statement.name == flow.source]
        found = [(w, _pull_back(flow, w.site, site)) for w in writers]
        yield from (Supplier(w, reader, pairs) for w, pairs in found if not pairs.is_empty())


@lru_cache(maxsize=4096)
def copy_supply(writer: Site, reader: Site) -> isl.Map:
    """``{ A[…] -> B[…] }``: the copy's loops at the element that the reader's view names."""
    view = reader.leaf.view(reader.slot)
    assert view is not None
    at = dict(writer.leaf.at)
    same = [equal(at[d], "a", e, "b") for d, e in zip(writer.statement.dims, view.element, strict=True)]
    return relation(writer, reader, [*writer.conditions("a"), *reader.conditions("b"), *same])


@lru_cache(maxsize=4096)
def _pull_back(flow: Flow, writer: Site, reader: Site) -> isl.Map:
    """The program's flow between loop variables."""
    return instances(writer, "a").apply_range(flow.relation).apply_range(instances(reader, "b").reverse())


# -- visibility --------------------------------------------------------------------------------------------------


def _visible(plan: Plan, s: Supplier) -> Finding | None:
    a, b = s.writer.site, s.reader.site
    if a.cells != b.cells:
        return lost(plan, a, b, *witness(s.pairs, a, b), "storage")
    if a.space != "global":
        if s.writer.launch != s.reader.launch:
            return lost(plan, a, b, *witness(s.pairs, a, b), "launch")
        extents = launch_extents(plan.kernels[s.reader.launch])
        axes = range(7) if a.space == "register" else range(3)
        if any(extents[i] > 1 and b.place[i] is None and a.place[i] is not None for i in axes):
            return hidden(plan, a, b, *witness(s.pairs, a, b))
    wrong = _failure(s)
    if wrong is None:
        return None
    reason, first, last = wrong
    return hidden(plan, a, b, first, last) if reason == "place" else lost(plan, a, b, first, last, reason)


Failure = tuple[str, tuple[int, ...], tuple[int, ...]]


def _failure(s: Supplier) -> Failure | None:
    return _pair_failure(s.pairs, s.writer.site, s.reader.site, _late(s.writer, s.reader, "a", "b"))


def _late(first: Event, second: Event, p: str, q: str) -> Cases:
    """Cases in which `first` does not run before `second`."""
    return (*earlier(second, first, q, p), *same_time(first, second, p, q))


@lru_cache(maxsize=4096)
def _pair_failure(pairs: isl.Map, a: Site, b: Site, late: Cases) -> Failure | None:
    """The first way in which some pair fails, with the smallest pair that fails so."""
    for reason, alike in (("place", same_replica(a, b)), ("cell", same_cell(a, b))):
        if pairs.is_subset(relation(a, b, [equal(e, "a", f, "b") for e, f in alike])):
            continue
        cases = tuple(case for e, f in alike for case in differ(e, "a", f, "b"))
        return reason, *witness(pairs.intersect(either(a, b, cases)), a, b)
    if all(pairs.is_disjoint(relation(a, b, case)) for case in late):
        return None
    return "time", *witness(pairs.intersect(either(a, b, late)), a, b)


# -- clobbering --------------------------------------------------------------------------------------------------


def _clobber(plan: Plan, everything: tuple[Event, ...], suppliers: tuple[Supplier, ...], reader: Event) -> Finding | None:
    """The first other write of the cell between a supplier and the reader."""
    for other in everything:
        c = other.site
        if not c.writes or c.cells != reader.site.cells or (c.space != "global" and other.launch != reader.launch):
            continue
        supplied = tuple(s.pairs for s in suppliers if s.writer == other)
        early = earlier(other, reader, "a", "b")
        strangers = _strangers(c, reader.site, early, supplied, c.leaf.id == reader.site.leaf.id)
        if strangers is None:
            continue
        for s in suppliers:
            if (late := _late(other, s.writer, "c", "a")) and (points := _between(s, c, strangers, late)):
                return clobbered(plan, s.writer.site, c, reader.site, *points)
    return None


@lru_cache(maxsize=4096)
def _strangers(c: Site, b: Site, early: Cases, supplied: tuple[isl.Map, ...], same_leaf: bool) -> isl.Map | None:
    """``{ A[c's loops] -> B[b's loops] }``: writes of the reader's cell before it that supply nothing; None without any."""
    cases = early
    if same_leaf and not c.leaf.collect:
        level = [equal(var(z.id), "a", var(z.id), "b") for z in c.above if not z.is_place and z.extent > 1]
        places = [var(z.id) for z in c.above if z.is_place and z.extent > 1]
        cases = (*cases, *((*level, *case) for v in places for case in differ(v, "a", v, "b")))
    same = [equal(e, "a", f, "b") for e, f in (*same_cell(c, b), *same_replica(c, b))]
    touching = relation(c, b, [*c.conditions("a"), *b.conditions("b"), *same])
    found = [] if touching.is_empty() else [touching.intersect(relation(c, b, case)) for case in cases]
    found = [m for m in found if not m.is_empty()]
    if not found:
        return None
    touching = reduce(isl.Map.union, found)
    for pairs in supplied:
        touching = touching.subtract(pairs)
    if c.statement.update and b.statement.name == c.statement.name and b.slot == c.slot:
        touching = touching.subtract(instances(c, "a").apply_range(_peers(c)).apply_range(instances(b, "b").reverse()))
    return None if touching.is_empty() else touching


@lru_cache(maxsize=1024)
def _peers(site: Site) -> isl.Map:
    """``{ S[d] -> S[e] }``: updates of one element."""
    same = [equal(e, "a", e, "b") for e in site.statement.target.index if isinstance(e, Expr)]
    return build_map(instance(site.statement, "a"), instance(site.statement, "b"), same)


Points = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def _between(s: Supplier, c: Site, strangers: isl.Map, late: Cases) -> Points | None:
    return _triple(s.pairs, s.writer.site, s.reader.site, c, strangers, late)


@lru_cache(maxsize=4096)
def _triple(pairs: isl.Map, a: Site, b: Site, c: Site, strangers: isl.Map, late: Cases) -> Points | None:
    """The smallest (supplier, other, reader) whose other write is not before the supplier; None if there is none."""
    order = either(a, c, late, ("a", "c"))
    both = pairs.reverse().range_product(strangers.reverse().set_tuple_name(isl.dim_type.out, "C"))
    both = both.intersect_range(order.wrap())
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
