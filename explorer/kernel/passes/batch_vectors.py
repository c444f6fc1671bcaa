"""Batched loads of a vector loop: whole vectors, the elements that all lanes read, and the ends of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from ...ir.expr import Expr
from ..accesses import ref
from ..boundary_iterations import NOWHERE, edge, edges
from ..conditions import Condition
from ..lanes import WORD, flat_offset
from ..nodes import AnyOf, Get, Held, Load, Local, Mask, Node, Ref
from ..sites import Site
from .batch import Batch, Early, Parts
from .vectorize import Lanes, Wide


@dataclass(frozen=True)
class Together:
    """A vector loop's loads.

    Attributes
    ----------
    lanes : Lanes
    wide : tuple of Wide
        The vectors that are loaded.
    same_for_all : dict of Ref to list of (Site, int)
        The elements that all lanes read, with where: (site, slot) of each.
    whole : bool
        Whether these are all that is read.
    """

    lanes: Lanes
    wide: tuple[Wide, ...]
    same_for_all: dict[Ref, list[tuple[Site, int]]]
    whole: bool

    @classmethod
    def of(cls, batch: Batch) -> Together | None:
        """None where nothing is wide, or too much to keep."""
        low = batch.context.low
        assert batch.lanes is not None
        lanes = Lanes(low, batch.lanes, batch.statements, ragged=bool(batch.each))
        wide = tuple(v for v in dict.fromkeys(lanes.held.values()) if v.store.space == "global" and not v.written)
        same_for_all: dict[Ref, list[tuple[Site, int]]] = {}
        whole = True
        for site in batch.sites:
            slots = batch.loaded(site)
            whole = whole and len(slots) == len(site.statement.reads)
            for slot in slots:
                if lanes.held.get((site.leaf.id, slot)) in wide:
                    continue
                if any(batch.lanes.var in e.variables() for e in low.index(site, slot) if isinstance(e, Expr)):
                    whole = False
                else:
                    same_for_all.setdefault(ref(low, site, slot), []).append((site, slot))
        nbytes = [v.store.dtype.bytes * batch.lanes.extent for v in wide]
        more = [place.store.dtype.bytes for place in same_for_all]
        return cls(lanes, wide, same_for_all, whole) if wide and batch.fits([*nbytes, *more]) else None


def between(batch: Batch, made: Together, fill: Any) -> Parts | None:
    """Where what each lane asks for itself is to lie between two places: lanes elsewhere become the identity."""
    kept: list[tuple[Wide, Expr, Expr]] = []
    (site,) = batch.sites
    where = edges(batch.context.low, site, batch.each)
    for v in made.wide:
        found = _places(batch, site, _slot(made, v))
        if found is None:
            return None
        begin, size = found[0] or Expr(), Expr((), prod(v.store.shape))
        end = size if found[1] is None else found[1]
        if (begin, end) != (Expr(), size) and where != NOWHERE:
            kept.append((v, begin, end))
    return together(batch, made, fill, kept, (), where)


def together(batch: Batch, made: Together, fill: Any, kept: Sequence[tuple[Wide, Expr, Expr]], each: tuple[Condition, ...],
             where: AnyOf | None = None) -> Parts:
    """Locals, loads and updates, where lanes are loaded at once; of some vectors the lanes between two places are kept, in the
    iterations where others are loaded.
    """
    context, lanes, site = batch.context, made.lanes, batch.sites[0]
    ids, other = (site.leaf.id,), fill if fill is not None else site.statement.fill
    declared: list[Local] = []
    loads: list[Early] = []
    taken: list[Node] = []
    inside: list[Condition | None] = []
    for v in made.wide:
        packed = v.store.dtype.bytes < WORD <= v.store.dtype.bytes * v.local.lanes
        local = replace(v.local, shape=batch.shape, packed=packed)
        if packed:
            local = replace(local, name=context.low.taken.take(f"{v.local.name}_packed"))
            kind = "mutable" if any(v is one for one, _, _ in kept) else "const"
            taken.append(Load(Held(v.local), Held(local, batch.here), site, kind, ids))
        declared.append(local)
        lanes.here[v.local] = Held(v.local) if packed else Held(local, batch.here)
        value = replace(lanes.load(v, fill or 0, _beyond(batch, made, v)), packed=packed)
        plain = replace(lanes.load(v, fill or 0, NOWHERE), packed=packed)
        inside += [_all_inside(batch, made, v)] if plain != value else []
        only = v.guard if v.guard and not context.redundant.fill_is_used(site) else ()
        if v.guard and not only:
            value, plain = (replace(got, when=(v.guard,), otherwise=other) for got in (value, plain))
        loads.append(Early(Held(local, batch.here), value, plain, other, only))
    for place, uses in made.same_for_all.items():
        name = context.low.taken.take(f"{place.store.name}_{batch.loops[-1].var}")
        local = Held(Local(name, place.store.dtype, batch.shape), batch.here)
        declared.append(local.local)
        loads.append(Early(local, Get(place), Get(place), fill if fill is not None else 0))
        lanes.early |= {(s.leaf.id, slot): local for s, slot in uses}
    taken += [Mask(lanes.here[v.local], v.first, begin, end, fill or 0, where, site, ids) for v, begin, end in kept]
    updates = lanes.nodes(each)
    return Parts(declared, loads, [*taken, *updates], tuple(c for c in inside if c) if all(inside) else ())


def _beyond(batch: Batch, made: Together, v: Wide) -> AnyOf | None:
    """Where a vector may end beyond its array."""
    if not made.lanes.ragged or v.store.array is None:
        return NOWHERE
    return edge(batch.context.low, batch.sites[0], _inside(batch, made, v), batch.some)


def _inside(batch: Batch, made: Together, v: Wide) -> Condition:
    """When a vector ends inside of its array."""
    assert batch.lanes is not None
    assert v.store.array is not None
    start = {batch.lanes.var: Expr((), batch.lanes.start)}
    offset = flat_offset(batch.context.low, batch.sites[0], _slot(made, v), start)
    return Condition(Expr((), v.store.array.size - batch.lanes.extent) - offset)


def _all_inside(batch: Batch, made: Together, v: Wide) -> Condition | None:
    """When the vectors of all iterations do; None where their order is not known."""
    inside, last = _inside(batch, made, v).expr, dict[str, Expr]()
    for x in batch.loops:
        step = inside.coefficient(x.var)
        last[x.var] = Expr((), x.start + (x.extent - 1 if step < 0 else 0))
        inside -= Expr(((x.var, step),)) - last[x.var] * step
    return None if inside.variables() & set(last) else Condition(inside)


def _slot(made: Together, v: Wide) -> int:
    """A read that a vector is of."""
    return next(slot for (_, slot), held in made.lanes.held.items() if held is v)


def _places(batch: Batch, site: Site, slot: int) -> tuple[Expr | None, Expr | None] | None:
    """Offsets where the lanes that run begin and end; None each where no lane asks, and None where that is not all they ask."""
    assert batch.lanes is not None
    lane = batch.lanes.var
    at, ends = flat_offset(batch.context.low, site, slot, {lane: Expr()}), dict[int, Expr]()
    for c in batch.each:
        sign, rest = c.expr.coefficient(lane), c.expr.substitute({lane: Expr()}, site.ranges)
        if sign not in (1, -1) or sign in ends or batch.lanes.start:
            return None
        ends[sign] = at - rest if sign == 1 else at + rest + 1
    return ends.get(1), ends.get(-1)
