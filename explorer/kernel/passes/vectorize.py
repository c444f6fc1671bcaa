"""Vector loops: one wide load or store for each access that is contiguous in the lane, scalars for the rest.

Before::

    vector v: y[4*i + v] = x[4*i + v] * a[v];

After::

    const vec<float, 4> x_v = load x[4*i …];  vec<float, 4> y_v;
    unrolled v: y_v[v] = x_v[v] * a[v];
    store y[4*i …] = y_v;

The lanes run in order, as the loop says.  Wide loads stand before the lanes and wide stores after them, where no lane can tell:
of an array that the body writes, every lane only uses its own element.  Where that or the alignment is not certain, every lane is
on its own.  Lanes that write do so one by one where some of them do not run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ...ir.expr import Expr, var
from ...ir.inequality import linear_in
from ...ir.program import Constraint
from ...ir.tree import ranges as loop_ranges
from ...poly.lanes import first_lanes, linear_index, uniform
from ..accesses import copied_slot, inside_conditions, is_move, ref
from ..boundary_iterations import NOWHERE
from ..conditions import NEVER, Condition, condition, conjunction
from ..lanes import WORD, is_wide, partial
from ..lower import Context
from ..nodes import AnyOf, Declare, Do, For, Get, Held, If, Load, Local, Node, Number, Operand, Put, Ref
from ..sites import Lowered, Site, Store
from ..traverse import map_bodies, with_ids
from .scalar_lanes import lane_statements


def vectorize(body: tuple[Node, ...], context: Context) -> tuple[Node, ...]:
    """The body with the lanes of vector loops written."""
    out: list[Node] = []
    for node in body:
        if isinstance(node, For) and node.role == "vector":
            out += with_ids(_vector_loop(node, context), node.ids[1:])
        else:
            out.append(map_bodies(node, lambda inner: vectorize(inner, context)))
    return tuple(out)


def _vector_loop(loop: For, context: Context) -> list[Node]:
    read = lane_statements(loop)
    assert read is not None, "scalar_lanes has been here"
    statements, (guards, *_) = read[0], (*read[1], ())
    if not statements:
        return []
    each: tuple[Condition, ...] = ()
    if any(loop.var in c.variables() for c in guards):
        apart = partial(context.low, statements[0].site, loop.loop)
        assert apart is not None
        guards, each = apart.some, apart.each
    nodes = Lanes(context.low, loop, statements).nodes(each)
    return [If(guards, tuple(nodes))] if guards else nodes


@dataclass(frozen=True)
class Wide:
    """All lanes of an access: the first one's place, the local that holds them, and what it is for.

    With a `guard`, the lanes are loaded where it holds and are `fill` elsewhere.
    """

    first: Ref
    local: Local
    loaded: bool
    written: bool
    guard: tuple[Condition, ...] = ()
    fill: Number = 0

    @property
    def store(self) -> Store:
        """Where it is in memory."""
        return self.first.store


class Lanes:
    """The lanes of one vector loop.

    Parameters
    ----------
    low : Lowered
    loop : For
    statements : sequence of Do
        Its statements, which share their conditions.
    ragged : bool
        Whether lanes may be loaded in vain, so that a vector may end beyond its array.

    Attributes
    ----------
    early : dict of (str, int) to Held
        What stands for an access (leaf and slot) that is loaded already and the same in all lanes.
    here : dict of Local to Held
        Local vectors that are loaded already.
    """

    def __init__(self, low: Lowered, loop: For, statements: Sequence[Do], ragged: bool = False) -> None:
        self.low, self.loop, self.lane, self.ragged = low, loop, loop.var, ragged
        self.statements, self.sites = statements, [s.site for s in statements]
        self.first = {loop.var: Expr((), loop.start)}
        self.early: dict[tuple[str, int], Held] = {}
        self.here: dict[Local, Held] = {}

    @cached_property
    def held(self) -> dict[tuple[str, int], Wide]:
        """The accesses (leaf and slot) that a local vector stands for while the lanes run.

        An array that the body only reads may have several, one for each contiguous access.  One that it writes has a
        single one if all its accesses are the same contiguous one, and no copy reads it under conditions of its own: then a
        lane only ever meets its own element.
        """
        uses: dict[str, list[tuple[Site, int]]] = {}
        for site in self.sites:
            for slot in range(len(site.statement.accesses)):
                uses.setdefault(self.low.store(site.leaf, slot).name, []).append((site, slot))
        out: dict[tuple[str, int], Wide] = {}
        for users in uses.values():
            written = any(slot == len(site.statement.reads) for site, slot in users)
            if written and len({tuple(self.low.index(site, slot)) for site, slot in users}) > 1:
                continue
            wide = [(s, n) for s, n in users if self._may_hold(s, n)]
            if written and len(wide) < len(users):
                continue
            by_place: dict[tuple[Ref, tuple[Condition, ...]], Wide] = {}
            places: dict[tuple[str, int], tuple[Ref, tuple[Condition, ...]]] = {}
            for site, slot in wide:
                read = slot < len(site.statement.reads)
                place = self.first_lane(site, slot), inside_conditions(site, self.first) if read else ()
                places[site.leaf.id, slot] = place
                if place not in by_place:
                    store = place[0].store
                    local = Local(self.low.taken.take(f"{store.name}_{self.lane}"), store.dtype, lanes=self.loop.extent)
                    loaded = read or site.statement.update is not None
                    by_place[place] = Wide(place[0], local, loaded, written, place[1], site.statement.fill)
            if not written or len(by_place) == 1:  # what is written and then read is one vector, or none
                out |= {use: by_place[place] for use, place in places.items()}
        return out

    def _may_hold(self, site: Site, slot: int) -> bool:
        """Whether the access is contiguous and happens in all lanes or in none."""
        if not is_wide(self.low, site, slot, self.loop.loop):
            return False
        return slot == len(site.statement.reads) or not site.statement.inside or self._same_for_all_lanes(site)

    def _same_for_all_lanes(self, site: Site) -> bool:
        """Whether `inside`, of a plain copy, is the same for all lanes, and not known to fail."""
        inside = inside_conditions(site)
        return is_move(self.low, site) and inside != (NEVER,) and all(self.lane not in c.variables() for c in inside)

    def first_lane(self, site: Site, slot: int) -> Ref:
        """What all lanes access, by the first one."""
        return ref(self.low, site, slot, self.first, self.loop.extent)

    def load(self, w: Wide, outside: Number = 0, edge: AnyOf | None = None) -> Get:
        """The lanes, where they are loaded; as far as there are any, where the vector may end beyond the array (`edge`)."""
        array = w.store.array
        if not self.ragged or not array or array.size % self.loop.extent == 0 or edge == NOWHERE:
            return Get(w.first)
        return Get(w.first, within=True, edge=edge, outside=outside)

    # -- the nodes ----------------------------------------------------------------------------------------------

    def nodes(self, each: tuple[Condition, ...] = ()) -> list[Node]:
        """The loads, lanes and stores, to be put under one guard; lanes have conditions of `each` of them beside it."""
        if each and any(w.written or not _in_vain(w) for w in self.held.values()):
            whole, alone = self.written((), self.held), self.written(each, {})
            return [If(self._all(each), tuple(whole), tuple(alone), settled=True)]
        self.ragged = bool(each)
        if len(self.statements) == 1 and (moved := self.move(self.statements[0])):
            return [moved]
        if len(self.statements) == 1 and not each and (inside := self._all_inside(self.sites[0])):
            (copy,), site = self.statements, self.sites[0]
            whole = replace(copy, site=replace(site, statement=replace(site.statement, inside=())), inside=())
            return [If(inside, tuple(Lanes(self.low, self.loop, [whole]).nodes()), tuple(self.written((), {})), settled=True)]
        return self.written(each, self.held)

    def written(self, each: tuple[Condition, ...], held: Mapping[tuple[str, int], Wide]) -> list[Node]:
        """Wide loads, the lanes one after the other, each under its own conditions, and wide stores."""
        ids, site = (self.loop.loop.id, *(s.leaf.id for s in self.sites)), self.sites[0]
        vectors = list(dict.fromkeys(held.values()))
        loads: list[Node] = [self._declaration(w, ids) for w in vectors if w.local not in self.here]
        stores: list[Node] = [Put(w.first, self.here.get(w.local, Held(w.local)), site, ids) for w in vectors if w.written]
        body: list[Node] = [self._one(statement, held) for statement in self.statements]
        if each:
            body = [If(each, tuple(body), settled=True)]
        registers = [n for n in self.loop.body if isinstance(n, Declare)]
        lanes = replace(self.loop, body=(*registers, *body), role="unroll", settled=True)
        return [*loads, lanes, *stores]

    def _declaration(self, w: Wide, ids: tuple[str, ...]) -> Node:
        if not w.loaded:
            return Declare(w.local, ids)
        got = self.load(w)
        got = replace(got, when=(w.guard,), otherwise=w.fill) if w.guard else got
        return Load(Held(w.local), got, self.sites[0], "mutable" if w.written else "const", ids)

    def _one(self, statement: Do, held: Mapping[tuple[str, int], Wide]) -> Do:
        """One statement in one lane."""
        site, target = statement.site, len(statement.site.statement.reads)

        def element(slot: int) -> Operand:
            if loaded := self.early.get((site.leaf.id, slot)):
                return loaded
            if wide := held.get((site.leaf.id, slot)):
                return replace(self.here.get(wide.local, Held(wide.local)), lane=var(self.lane) - self.loop.start)
            return ref(self.low, site, slot)

        whole = any((w := held.get((site.leaf.id, slot))) and w.guard for slot in range(target))
        reads = tuple(element(slot) for slot in range(target))
        return replace(statement, target=element(target), operands=reads, inside=() if whole else statement.inside)

    def _all(self, each: Sequence[Condition]) -> tuple[Condition, ...]:
        """When all lanes run: the last one that comes under its condition does."""
        first, last = (Expr((), n) for n in (self.loop.start, self.loop.start + self.loop.extent - 1))
        around = self.sites[0].around
        return tuple(Condition(c.expr.substitute({self.lane: last if c.expr.coefficient(self.lane) < 0 else first}, around))
                     for c in each)

    def _all_inside(self, site: Site) -> tuple[Condition, ...]:
        """When all lanes of a copy lie inside, where some may and others not; empty else, or if it is not linear in them."""
        inside = inside_conditions(site)
        moving = [c for c in inside if self.lane in c.variables()]
        each = conjunction(condition(linear_in(c.expr, self.lane), False, site.ranges) for c in moving)
        plain = all(self.lane not in (c.expr - Expr(((self.lane, c.expr.coefficient(self.lane)),))).variables() for c in each)
        if not moving or not plain or any(c.equality for c in moving) or not is_move(self.low, site):
            return ()
        return conjunction([*(c for c in inside if c not in moving), *self._all(each)])

    # -- copies -------------------------------------------------------------------------------------------------

    def move(self, statement: Do) -> Put | None:
        """A contiguous copy of all lanes: one load and one store; None if it is not that."""
        low, site = self.low, statement.site
        target = len(site.statement.reads)
        if not is_move(low, site) or not is_wide(low, site, target, self.loop.loop):
            return None
        source = copied_slot(site)
        if not is_wide(low, site, source, self.loop.loop):
            return None
        parts = self._parts(site, source, statement.inside)
        if parts is None:
            return None
        inside, within, count = parts
        ids, fill = (site.leaf.id, self.loop.loop.id), site.statement.fill
        if inside == (NEVER,):
            return Put(self.first_lane(site, target), fill, site, ids)
        first = self.first_lane(site, source)
        asked = bool(inside or within or count is not None)  # else a compiler chooses between the lanes one by one
        got = Get(first, asked and is_packed(first), within, count, outside=fill)
        got = replace(got, when=(inside,), otherwise=fill) if inside else got
        return Put(self.first_lane(site, target), got, site, ids)

    def _parts(self, site: Site, source: int,
               known: tuple[Condition, ...]) -> tuple[tuple[Condition, ...], bool, Expr | None] | None:
        """A copy's `inside` as what all lanes ask together; whether the array's end, or a count of lanes, bounds the rest."""
        low, leaf, loop = self.low, site.leaf, self.loop.loop
        at, scope, store = dict(leaf.at), loop_ranges(site.loops), low.store(site.leaf, source)
        flat = linear_index(low.plan, leaf, source, loop, scope) if store.array else None
        left = store.array.size - flat[0].substitute({loop.id: Expr()}, scope) if store.array and flat else None

        def asked(*constraints: Constraint, lane: dict[str, Expr] | None = None) -> tuple[Condition, ...]:
            return inside_conditions(replace(site, statement=replace(site.statement, inside=constraints)), lane)

        inside_of = site.statement.inside if known else ()
        moving = [c for c in inside_of if any(self.lane in e.variables() for e in asked(c))]
        apart = {c: first_lanes(c, at, loop, scope) for c in moving}
        apart = {c: e for c, e in apart.items() if (e is not None and e == left) or not uniform(c, at, loop, scope)}
        inside = asked(*(c for c in inside_of if c not in apart), lane=self.first)
        counts = [e for e in apart.values() if e is not None]
        if loop.start or len(counts) < len(apart) or len(counts) > 1:
            return None
        if not counts or inside == (NEVER,):
            return inside, False, None
        if counts[0] == left:
            return inside, True, None
        count = low.in_c(counts[0], site.loops).simplify(site.ranges)
        some = conjunction([*inside, condition(count - 1, False, site.ranges)])  # else there may be no such cell
        return some, False, count


def is_packed(first: Ref) -> bool:
    """Whether a word holds several lanes of a vector, and the vector whole words."""
    return first.store.dtype.bytes < WORD <= first.store.dtype.bytes * first.lanes


def _in_vain(w: Wide) -> bool:
    """Whether lanes that do not run may be loaded: nothing writes what they hold."""
    return w.store.array is not None and w.store.array.role == "in"
