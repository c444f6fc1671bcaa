"""The fourth question, flow: with the storage really used, does each read still get the value it got in the program?

A cell is (replica, buffer, physical index): one replica per thread for registers, per block for shared memory, one
for global memory; registers and shared memory end with a launch.  For a supplier W and a reader R of a value:

- *visibility*: W writes the cell that R reads, in R's replica, earlier;
- *no clobber*: no other write of that cell, not itself a supplier of R, runs after W and before R (an asynchronous
  copy counts from its issue on; an equal time in another thread counts as between);
- *footprint*: every cell lies inside its buffer, and a copy holds the very element that its consumer wants.

All three are emptiness questions on relations between loop variables, one per pair or triple of accesses; answers
are kept per triple.  Compare Feautrier, "Dataflow analysis of array and scalar references" (IJPP 1991): this is his
exact value flow, asked of physical cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import islpy as isl

from ..ir.finding import Finding
from ..ir.plan import Plan
from ..ir.tree import Loop
from .dependence import Flow
from .flow_text import clobbered, hidden, lost
from .footprint import check_footprints
from .isl import conjunction, read_map, text
from .plan_facts import facts, plan_copy
from .relations import dim_names, space
from .sites import Site, launch_extents, sites


@dataclass(frozen=True)
class Event:
    """An access with its position: number of its launch, and number of its leaf in the plan's text."""

    site: Site
    launch: int
    number: int


@dataclass(frozen=True, eq=False)
class Supplier:
    """A write that a read gets its value from; `relation` is ``{ A[writer's loops] -> B[reader's loops] }``."""

    writer: Event
    reader: Event
    relation: isl.Map


def check_flow(plan: Plan) -> tuple[Finding, ...]:
    """Whether every read that goes through a buffer still gets its value.

    Parameters
    ----------
    plan : Plan
        A plan that passes *cover*.

    Returns
    -------
    tuple of Finding
        Empty when every value arrives; otherwise one finding with a minimal witness for each pair of leaves.
    """
    if not plan.buffers:
        return ()
    if (found := (*_kept_outputs(plan), *check_footprints(plan))):
        return found
    events = _events(plan)
    out: list[Finding] = []
    for reader in events:
        if not reader.site.reads:
            continue
        suppliers = list(_suppliers(plan, events, reader))
        if not any(_uses_view(e) for s in suppliers for e in (s.writer, s.reader)):
            continue
        finding = next((f for s in suppliers if (f := _visible(plan, s))), None) or _clobber(plan, events, suppliers, reader)
        if finding:
            out.append(finding)
    return tuple(out)


def _uses_view(event: Event) -> bool:
    return event.site.leaf.view(event.site.slot) is not None


def _kept_outputs(plan: Plan) -> Iterator[Finding]:
    """Results that a view would keep in a buffer instead of the array."""
    for site in (s for group in sites(plan).values() for s in group):
        name = site.statement.target.array
        if site.writes and site.leaf.view(site.slot) and plan.array_of[name].role in ("out", "inout"):
            yield Finding("flow", f"{site.leaf.id} would leave its result in {site.storage} instead of {name}",
                          array=name, nodes=(site.leaf.id,), lines=(site.statement.line,) if site.statement.line else (),
                          hints=("write the buffer back with a statement of its own",))


def _events(plan: Plan) -> tuple[Event, ...]:
    number = {leaf.id: i for i, (leaf, _, _) in enumerate(plan.leaves)}
    by_kernel = sites(plan)
    return tuple(Event(s, i, number[s.leaf.id]) for i, k in enumerate(plan.kernels) for s in by_kernel[k.id])


# -- who supplies whom -------------------------------------------------------------------------------------------


def _suppliers(plan: Plan, events: tuple[Event, ...], reader: Event) -> Iterator[Supplier]:
    """The suppliers of one read: the copy that its view names, or the program's value flow."""
    site = reader.site
    view = site.leaf.view(site.slot)
    writers = [e for e in events if e.site.writes]
    if view and view.element and not site.writes and (copy := plan_copy(plan, view.buffer)):
        for w in writers:
            if w.site.statement.name == copy:
                yield Supplier(w, reader, copy_supply(w.site, site))
        return
    for flow in facts(plan).flow:
        if (flow.sink, flow.slot) == (site.statement.name, site.slot) and flow.array == site.statement.accesses[site.slot].array:
            for w in writers:
                if w.site.statement.name == flow.source and not (relation := _pull_back(flow, w.site, site)).is_empty():
                    yield Supplier(w, reader, relation)


@lru_cache(maxsize=4096)
def copy_supply(writer: Site, reader: Site) -> isl.Map:
    """``{ A[…] -> B[…] }``: the copy's loops at the element that the reader's view names."""
    view = reader.leaf.view(reader.slot)
    assert view is not None
    x, y, at = writer.names("a"), reader.names("b"), dict(writer.leaf.at)
    same = [f"{text(at[d], x)} = {text(e, y)}" for d, e in zip(writer.statement.dims, view.element, strict=True)]
    return _map(writer, reader, [*writer.conditions("a"), *reader.conditions("b"), *same])


@lru_cache(maxsize=4096)
def _pull_back(flow: Flow, writer: Site, reader: Site) -> isl.Map:
    """The program's flow between loop variables."""
    return _instances(writer, "a").apply_range(flow.relation).apply_range(_instances(reader, "b").reverse())


@lru_cache(maxsize=4096)
def _instances(site: Site, prefix: str) -> isl.Map:
    """``{ A[loops] -> S[dims] }`` on the instances that the leaf runs."""
    names, at = site.names(prefix), dict(site.leaf.at)
    dims = ", ".join(text(at[d], names) for d in site.statement.dims)
    vector = ", ".join(names.values())
    return read_map(f"{{ {prefix.upper()}[{vector}] -> {site.statement.name}[{dims}]{conjunction(list(site.conditions(prefix)))} }}")


def _map(first: Site, second: Site, conditions: list[str]) -> isl.Map:
    left, right = ", ".join(first.names("a").values()), ", ".join(second.names("b").values())
    return read_map(f"{{ A[{left}] -> B[{right}]{conjunction(conditions)} }}")


# -- visibility --------------------------------------------------------------------------------------------------


def _visible(plan: Plan, s: Supplier) -> Finding | None:
    a, b = s.writer.site, s.reader.site
    if a.storage != b.storage:
        return lost(plan, a, b, witness(s.relation, a, b), "storage")
    if a.space != "global" and s.writer.launch != s.reader.launch:
        return lost(plan, a, b, witness(s.relation, a, b), "launch")
    extents = launch_extents(plan.kernels[s.reader.launch])
    for axis in {"register": range(7), "shared": range(3), "global": range(0)}[a.space]:
        if extents[axis] > 1 and b.place[axis] is None and a.place[axis] is not None:
            return hidden(plan, a, b, witness(s.relation, a, b))
    late = not_before(s.reader, s.writer)
    wrong = _failures(s.relation, a, b, late)
    if wrong is None:
        return None
    reason, pairs = wrong
    return (hidden if reason == "place" else lost)(plan, a, b, witness(pairs, a, b), *(() if reason == "place" else (reason,)))


@lru_cache(maxsize=4096)
def _failures(relation: isl.Map, a: Site, b: Site, late: tuple[str, ...]) -> tuple[str, isl.Map] | None:
    """The first way in which some pair fails, with all pairs that fail so."""
    x, y = a.names("a"), b.names("b")
    cells = [_unequal(text(e, x), text(f, y)) for e, f in zip(a.cell, b.cell, strict=True) if e is not None and f is not None]
    axes = {"register": range(7), "shared": range(3), "global": range(0)}[a.space]
    places = [_unequal(text(p, x), text(q, y)) for p, q in ((a.place[i], b.place[i]) for i in axes)
              if p is not None and q is not None and not (p == q and p.is_constant)]
    if a.space != "global":
        places += [_unequal(x[loop.id], y[loop.id]) for loop in common_loops(a, b) if loop.role == "launch"]
    for reason, alternatives in (("cell", cells), ("place", places), ("time", list(late))):
        if alternatives:
            pairs = relation.intersect(_map(a, b, [f"({' or '.join(alternatives)})"]))
            if not pairs.is_empty():
                return reason, pairs
    return None


def _unequal(left: str, right: str) -> str:
    return f"{left} != {right}"


# -- clobbering --------------------------------------------------------------------------------------------------


def _clobber(plan: Plan, events: tuple[Event, ...], suppliers: list[Supplier], reader: Event) -> Finding | None:
    """The first other write of the cell between a supplier and the reader."""
    for other in events:
        if not other.site.writes or other.site.storage != reader.site.storage:
            continue
        if other.site.space != "global" and other.launch != reader.launch:
            continue
        supplied = [s.relation for s in suppliers if s.writer == other]
        strangers = _strangers(other, reader, tuple(supplied))
        if strangers is None:
            continue
        for s in suppliers:
            triple = _between(s, other, strangers)
            if triple is not None:
                return clobbered(plan, s.writer.site, other.site, reader.site, *triple)
    return None


@lru_cache(maxsize=4096)
def _strangers(other: Event, reader: Event, supplied: tuple[isl.Map, ...]) -> isl.Map | None:
    """``{ A[other] -> B[reader] }``: writes of the reader's cell before it that are no suppliers; None if there are none."""
    c, b = other.site, reader.site
    x, y = c.names("a"), b.names("b")
    same = [f"{text(e, x)} = {text(f, y)}" for e, f in zip(c.cell, b.cell, strict=True) if e is not None and f is not None]
    axes = {"register": range(7), "shared": range(3), "global": range(0)}[c.space]
    same += [f"{text(p, x)} = {text(q, y)}" for p, q in ((c.place[i], b.place[i]) for i in axes)
             if p is not None and q is not None and not (p == q and p.is_constant)]
    if c.space != "global":
        same += [f"{x[loop.id]} = {y[loop.id]}" for loop in common_loops(c, b) if loop.role == "launch"]
    touching = _map(c, b, [*c.conditions("a"), *b.conditions("b"), *same])
    for relation in supplied:
        touching = touching.subtract(relation)
    if c.statement.update and b.statement.name == c.statement.name and b.slot == c.slot:
        touching = touching.subtract(_instances(c, "a").apply_range(_peers(c)).apply_range(_instances(b, "b").reverse()))
    if touching.is_empty():
        return None
    earlier = not_before(reader, other)
    early = _map(c, b, [f"({' or '.join(before(other, reader))})"]) if before(other, reader) else None
    if c.leaf.id == b.leaf.id:
        apart = [_unequal(x[loop.id], y[loop.id]) for loop in c.above if loop.is_place and loop.extent > 1]
        level = [f"{x[loop.id]} = {y[loop.id]}" for loop in c.above if not loop.is_place]
        if apart and not c.leaf.collect:
            same_time = _map(c, b, [*level, f"({' or '.join(apart)})"])
            early = same_time if early is None else early.union(same_time)
    del earlier
    if early is None:
        return None
    touching = touching.intersect(early)
    return None if touching.is_empty() else touching


def _peers(site: Site) -> isl.Map:
    """``{ S[d] -> S[e] }``: updates of one element."""
    names = dim_names(site.statement)
    left = space(site.statement)
    other = {d: f"e{i}" for i, d in enumerate(site.statement.dims)}
    same = [f"{text(e, names)} = {text(e, other)}" for e in site.statement.target.index]  # type: ignore[arg-type]
    return read_map(f"{{ {left} -> {site.statement.name}[{', '.join(other.values())}]{conjunction(same)} }}")


def _between(s: Supplier, other: Event, strangers: isl.Map) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
    """The smallest (supplier, other, reader) with the other write not before the supplier; None if there is none."""
    if not (after := not_before(other, s.writer)):
        return None
    a, c, b = s.writer.site, other.site, s.reader.site
    x, z = a.names("a"), c.names("c")
    renamed = [f"({' or '.join(after)})"]
    late = read_map(f"{{ A[{', '.join(x.values())}] -> C[{', '.join(z.values())}]{conjunction(renamed)} }}")
    both = s.relation.reverse().range_product(strangers.set_tuple_name(isl.dim_type.in_, "C").reverse())
    both = both.intersect_range(late.wrap())
    if both.is_empty():
        return None
    pairs = both.range_factor_domain().reverse()
    first, last = witness(pairs, a, b)
    pinned = both.intersect_domain(_at(b, "b", last)).range_factor_range().reverse()
    middle, _ = witness(pinned.set_tuple_name(isl.dim_type.in_, "A"), c, b)
    return first, middle, last


def _at(site: Site, prefix: str, point: tuple[int, ...]) -> isl.Set:
    """The loop values of one instance."""
    names = {d: str(v) for d, v in zip(site.statement.dims, point, strict=True)}
    when = dict(site.leaf.when)
    values = ", ".join(text(when[loop.id], names) for loop in site.above)
    return isl.Set(f"{{ {prefix.upper()}[{values}] }}")


# -- time --------------------------------------------------------------------------------------------------------


def common_loops(a: Site, b: Site) -> tuple[Loop, ...]:
    """Time loops around both accesses."""
    shared = []
    for x, y in zip(a.above, b.above, strict=False):
        if x.id != y.id:
            break
        shared.append(x)
    return tuple(x for x in shared if not x.is_place)


def before(first: Event, second: Event) -> tuple[str, ...]:
    """Alternatives in which `first` (variables a…) runs strictly before `second` (variables b…)."""
    return _lex(first, second, "a", "b", False)


def not_before(first: Event, second: Event) -> tuple[str, ...]:
    """Alternatives in which `first` does not run before `second`.

    The variables of a reader are b…, of a supplier a…, of any other write c….
    """
    return ()
