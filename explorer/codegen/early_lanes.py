"""Early loads of a vector loop: whole vectors, the elements that all lanes read, and the ends of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from ..ir.expr import Expr
from . import vector
from .access import access_text
from .batch import Batch, Load, Parts, Writer, extents, fits, here, loaded
from .edges import NOWHERE, edge, edges
from .guards import Condition
from .index import to_c
from .lower import Site
from .printer import Lines
from .scalar import literal, narrow


@dataclass(frozen=True)
class Together:
    """A vector loop's loads.

    Attributes
    ----------
    lanes : Lanes
        Its text.
    wide : tuple of Wide
        The vectors that are loaded.
    alike : dict of str to tuple of (Site, int)
        The elements that all lanes read, by their text, with where: (site, slot) of each.
    whole : bool
        Whether these are all that is read.
    """

    lanes: vector.Lanes
    wide: tuple[vector.Wide, ...]
    alike: dict[str, list[tuple[Site, int]]]
    whole: bool

    @classmethod
    def of(cls, w: Writer, batch: Batch) -> Together | None:
        """None where nothing is wide, or too much to keep."""
        assert batch.lanes is not None
        lanes = vector.Lanes(w.low, batch.lanes, batch.sites, w.library, w.aligned, w.asynchronous)
        lanes.ragged = bool(batch.each)
        wide = tuple(v for v in dict.fromkeys(lanes.held.values()) if v.store.space == "global" and not v.written)
        lane, alike, whole = w.low.variable[batch.lanes.id], dict[str, list[tuple[Site, int]]](), True
        for site in batch.sites:
            whole = whole and len(loaded(w, site)) == len(site.statement.reads)
            for slot in loaded(w, site):
                if lanes.held.get((site.leaf.id, slot)) in wide:
                    continue
                if any(lane in e.variables() for e in w.low.index(site, slot) if isinstance(e, Expr)):
                    whole = False
                else:
                    alike.setdefault(access_text(w.low, site, slot), []).append((site, slot))
        nbytes = [v.store.dtype.bytes * batch.lanes.extent for v in wide]
        more = [w.low.store(site.leaf, slot).dtype.bytes for ((site, slot), *_) in alike.values()]
        return cls(lanes, wide, alike, whole) if wide and fits(batch, [*nbytes, *more]) else None


def between(w: Writer, batch: Batch, made: Together, fill: Any) -> Parts | None:
    """Where what each lane asks for itself is to lie between two places: lanes elsewhere become the identity."""
    kept, (site,) = [], batch.sites
    where = edges(w.low, site, batch.each)
    for v in made.wide:
        found = _places(w, batch, site, _slot(made, v))
        if found is None:
            return None
        begin, size = found[0] or Expr(), Expr((), prod(v.store.shape))
        end = size if found[1] is None else found[1]
        if (begin, end) != (Expr(), size) and where != NOWHERE:
            first, last = (v.store.name + (f" + {to_c(e, site.ranges)[0]}" if e != Expr() else "") for e in (begin, end))
            kept.append((v, (first, last)))
    return together(w, batch, made, fill, kept, (), where)


def together(w: Writer, batch: Batch, made: Together, fill: Any, kept: Sequence[tuple[vector.Wide, tuple[str, str]]],
             each: tuple[Condition, ...], where: str = "") -> Parts:
    """Declarations, loads and updates, where lanes are loaded at once; of some vectors the lanes between two places are kept,
    in the iterations where others are loaded.
    """
    lanes, at = made.lanes, here(w, batch)
    declared, loads, taken, inside = [], [], [], list[Condition | None]()
    for v in made.wide:
        kind, packed = lanes.declare(v.store), lanes.packed(v.store)
        name = w.low.taken.take(f"{v.local}_packed") if packed else v.local
        declared.append(f"{packed or kind} {name}{extents(batch)};")
        if packed:
            const = "" if any(v is one for one, _ in kept) else "const "
            taken.append(f"{const}{kind} {v.local} = {name}{at}.lanes();")
        lanes.here[v.local] = "" if packed else at
        other, value = (batch.sites[0].statement.fill if fill is None else fill,
                        lanes.load(v, fill or 0, packed, _beyond(w, batch, made, v)))
        otherwise = lanes.all_lanes(v.store, other)
        if packed:
            otherwise = f"{packed}{{}}" if other == 0 else f"{packed}::of({otherwise})"
        plain = lanes.load(v, fill or 0, packed, NOWHERE)
        inside += [_all_inside(w, batch, made, v)] if plain != value else []
        only = v.guard if v.guard and not w.overrun.fill_is_used(batch.sites[0]) else ""
        value, plain = (f"{v.guard} ? {text} : {otherwise}" if v.guard and not only else text for text in (value, plain))
        loads.append(Load(name + at, value, otherwise, lanes.first, only, plain))
    for text, uses in made.alike.items():
        store = w.low.store(uses[0][0].leaf, uses[0][1])
        name = w.low.taken.take(f"{store.name}_{w.low.variable[batch.loops[-1].id]}")
        declared.append(f"{store.dtype.cuda} {name}{extents(batch)};")
        loads.append(Load(name + at, text, "" if fill is None else narrow(literal(fill, store.dtype), store.dtype)[0]))
        lanes.alike |= {(site.leaf.id, slot): name + at for site, slot in uses}
    taken += [lanes.keep_between(v, places, fill or 0, where) for v, places in kept]
    updates = lanes.text(w.plain, lambda body: body, each)
    prepared = [Lines(tuple(taken), (batch.sites[0].leaf.id,))] if taken else []
    return Parts(declared, loads, [*prepared, *updates], tuple(c for c in inside if c) if all(inside) else ())


def _beyond(w: Writer, batch: Batch, made: Together, v: vector.Wide) -> str:
    """Where a vector may end beyond its array."""
    if not made.lanes.ragged or v.store.array is None:
        return NOWHERE
    return edge(w.low, batch.sites[0], _inside(w, batch, made, v), batch.some)


def _inside(w: Writer, batch: Batch, made: Together, v: vector.Wide) -> Condition:
    """When a vector ends inside of its array."""
    assert batch.lanes is not None
    assert v.store.array is not None
    start = {w.low.variable[batch.lanes.id]: Expr((), batch.lanes.start)}
    offset = vector.flat_offset(w.low, batch.sites[0], _slot(made, v), start)
    return Condition(Expr((), v.store.array.size - batch.lanes.extent) - offset)


def _all_inside(w: Writer, batch: Batch, made: Together, v: vector.Wide) -> Condition | None:
    """When the vectors of all iterations do; None where their order is not known."""
    inside, last = _inside(w, batch, made, v).expr, dict[str, Expr]()
    for x in batch.loops:
        name = w.low.variable[x.id]
        step = inside.coefficient(name)
        last[name] = Expr((), x.start + (x.extent - 1 if step < 0 else 0))
        inside -= Expr(((name, step),)) - last[name] * step
    return None if inside.variables() & set(last) else Condition(inside)


def _slot(made: Together, v: vector.Wide) -> int:
    """A read that a vector is of."""
    return next(slot for (_, slot), held in made.lanes.held.items() if held is v)


def _places(w: Writer, batch: Batch, site: Site, slot: int) -> tuple[Expr | None, Expr | None] | None:
    """Offsets where the lanes that run begin and end; None each where no lane asks, and None where that is not all they ask."""
    assert batch.lanes is not None
    lane = w.low.variable[batch.lanes.id]
    at, ends = vector.flat_offset(w.low, site, slot, {lane: Expr()}), dict[int, Expr]()
    for c in batch.each:
        sign, rest = c.expr.coefficient(lane), c.expr.substitute({lane: Expr()}, site.ranges)
        if sign not in (1, -1) or sign in ends or batch.lanes.start:
            return None
        ends[sign] = at - rest if sign == 1 else at + rest + 1
    return ends.get(1), ends.get(-1)
