"""Vector loops: one wide load or store per access that is contiguous in the lane, scalars for the rest.

The lanes run in order, as the loop says.  Wide loads stand before the lanes and wide stores after them, where no lane can
tell: of an array that the body writes, every lane only uses its own element.  Where that or the alignment is not
certain, every lane is on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd

from ..ir.expr import Expr
from ..ir.inequality import linear_in
from ..ir.regroup import without_remainders
from ..ir.tree import Loop
from . import async_copy
from .access import access_text, inside_conditions, is_move, reader
from .edges import NOWHERE
from .guards import NEVER, Condition, condition, conjunction, guard_text
from .index import linear
from .lower import Lowered, Site, Store
from .printer import Block, Lines, Out
from .scalar import literal, narrow
from .shorten import shortened

SIZES, WORD = (2, 4, 8, 16), 4
"""Bytes of one load or store of a thread (PTX ISA, "ld": up to .v4.b32), and of a register."""


@dataclass(frozen=True)
class Wide:
    """All lanes of an access: its storage, the lvalue of the first lane, the local that holds them, and what it is for.

    With a `guard`, the lanes are loaded where it holds and are `fill` elsewhere.
    """

    store: Store
    first: str
    local: str
    loaded: bool
    written: bool
    guard: str = ""
    fill: str = ""


def is_wide(low: Lowered, site: Site, slot: int, loop: Loop) -> bool:
    """Whether the access is contiguous in the lane and its first element is aligned to all lanes together."""
    store, index, lane = low.store(site.leaf, slot), low.index(site, slot), low.variable[loop.id]
    affine = [e for e in index if isinstance(e, Expr)]
    nbytes = loop.extent * store.dtype.bytes
    if store.space == "register" or store.handed or len(affine) != len(index) or not index:
        return False
    if nbytes not in SIZES or loop.extent < 2:
        return False
    flat = flat_offset(low, site, slot)
    first = flat.substitute({lane: Expr((), loop.start)}, site.ranges)
    if flat - first != Expr(((lane, 1),), -loop.start):
        return False
    first = without_remainders(first)
    return gcd(first.const, *(c for _, c in first.terms)) % loop.extent == 0


def flat_offset(low: Lowered, site: Site, slot: int, lane: Mapping[str, Expr] | None = None) -> Expr:
    """Row-major offset of an access whose index is affine."""
    flat = low.offset(site, slot, lane)
    if flat is not None:
        return flat
    return linear([e for e in low.index(site, slot, lane) if isinstance(e, Expr)], low.store(site.leaf, slot).shape)


@dataclass(frozen=True)
class Partial:
    """The conditions of a leaf that holds for some lanes of a vector and not for others.

    Attributes
    ----------
    some : tuple of Condition
        What holds if some lane runs.
    each : tuple of Condition
        What else each lane asks for itself.
    """

    some: tuple[Condition, ...]
    each: tuple[Condition, ...]


def partial(low: Lowered, site: Site, loop: Loop) -> Partial | None:
    """The conditions apart; None where a condition on the lane is not linear in it."""
    lane, last = low.variable[loop.id], loop.start + loop.extent - 1
    hidden = tuple(c for c in site.conditions if lane in c.variables())
    if any(c.equality for c in hidden):
        return None
    asked = conjunction(condition(linear_in(c.expr, lane), False, site.ranges) for c in hidden)
    each = tuple(c for c in asked if lane in c.variables())
    if any(lane in (c.expr - Expr(((lane, c.expr.coefficient(lane)),))).variables() for c in each):
        return None
    best = ((c.expr, Expr((), last if c.expr.coefficient(lane) > 0 else loop.start)) for c in each)
    some = conjunction([*(c for c in site.conditions if c not in hidden), *(c for c in asked if c not in each),
                        *(condition(e.substitute({lane: value}, site.ranges), False, site.ranges) for e, value in best)])
    return Partial(some, each)


class Lanes:
    """The text of one vector loop.

    Parameters
    ----------
    low : Lowered
    loop : Loop
    sites : sequence of Site
        Its leaves, which share their guards.
    library : set of str
        Parts of the device library in use; added to.
    aligned : set of str
        Shared arrays that need 16-byte alignment; added to.
    asynchronous : bool
        Whether the target has cp.async.
    """

    def __init__(self, low: Lowered, loop: Loop, sites: Sequence[Site], library: set[str], aligned: set[str],
                 asynchronous: bool) -> None:
        self.low, self.loop, self.sites, self.library, self.aligned = low, loop, sites, library, aligned
        self.asynchronous = asynchronous
        self.lane = low.variable[loop.id]
        self.first = {self.lane: Expr((), loop.start)}
        self.ragged = False
        self.here: dict[str, str] = {}
        """Local vectors that are loaded already, and their subscripts here (:mod:`~explorer.codegen.early`)."""
        self.alike: dict[tuple[str, int], str] = {}
        """What stands for an access (leaf and slot) that is loaded already and the same in all lanes."""

    @cached_property
    def held(self) -> dict[tuple[str, int], Wide]:
        """The accesses (leaf and slot) that a local vector stands for while the lanes run.

        An array that the body only reads may have several, one for each contiguous access.  One that it writes has a
        single one if all its accesses are the same contiguous one: then a lane only ever meets its own element.
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
            wide = [(s, n) for s, n in users if self.may_hold(s, n)]
            if written and len(wide) < len(users):
                continue
            by_place: dict[tuple[str, ...], Wide] = {}
            for site, slot in wide:
                read = slot < len(site.statement.reads)
                first, inside = self.first_lane(site, slot), inside_conditions(site, self.first) if read else ()
                guard = guard_text(inside, site.around, enclosed=True)
                if (first, guard) not in by_place:
                    store = self.low.store(site.leaf, slot)
                    local = self.low.taken.take(f"{store.name}_{self.lane}")
                    fill = self.filling(site, store) if inside else ""
                    loaded = read or site.statement.update is not None
                    by_place[first, guard] = Wide(store, first, local, loaded, written, guard, fill)
                out[site.leaf.id, slot] = by_place[first, guard]
        return out

    def may_hold(self, site: Site, slot: int) -> bool:
        """Whether the access is contiguous and happens in all lanes or in none."""
        if not is_wide(self.low, site, slot, self.loop):
            return False
        return slot == len(site.statement.reads) or not site.statement.inside or self.together(site)

    def together(self, site: Site) -> bool:
        """Whether `inside`, of a plain copy, is the same for all lanes, and not known to fail."""
        inside = inside_conditions(site)
        return is_move(self.low, site) and inside != (NEVER,) and all(self.lane not in c.variables() for c in inside)

    def filling(self, site: Site, store: Store) -> str:
        """All lanes as they are outside of `inside`."""
        return self.all_lanes(store, site.statement.fill)

    def all_lanes(self, store: Store, value: float | int | bool) -> str:
        """The same value in all lanes."""
        if value == 0:
            return self.declare(store) + "{}"
        self.library.add("vector")
        return f"all_lanes<{store.dtype.cuda}, {self.loop.extent}>({narrow(literal(value, store.dtype), store.dtype)[0]})"

    def text(self, plain: Callable[..., list[str]], prepared: Callable[[Sequence[Out]], Sequence[Out]],
             each: tuple[Condition, ...] = ()) -> list[Out]:
        """The pieces, to be put under one guard; `plain` writes a statement, `prepared` declares what a lane needs.

        With conditions of `each` lane, a lane may be loaded in vain, and the vector may end beyond the array.  Lanes that write
        do so one by one where some of them do not run.
        """
        if each and any(w.written for w in self.held.values()):
            whole, alone = self._lanes(plain, prepared, (), self.held), self._lanes(plain, prepared, each, {})
            return [Block(f"if ({guard_text(self._all(each), self.sites[0].around)})", tuple(whole), otherwise=tuple(alone))]
        self.ragged = bool(each)
        if len(self.sites) == 1 and (moved := self.move(self.sites[0])):
            moved[-1] += f", {self.loop.id}"
            ids = (self.loop.id, *(site.leaf.id for site in self.sites))
            return [Lines(tuple(shortened(self.low, self.sites[0], moved, self.first)), ids)]
        return self._lanes(plain, prepared, each, self.held)

    def _lanes(self, plain: Callable[..., list[str]], prepared: Callable[[Sequence[Out]], Sequence[Out]],
               each: tuple[Condition, ...], held: Mapping[tuple[str, int], Wide]) -> list[Out]:
        """Wide loads, the lanes one after the other, each under its own conditions, and wide stores."""
        ids = (self.loop.id, *(site.leaf.id for site in self.sites))
        vectors = list(dict.fromkeys(held.values()))
        declared = [Lines((self.declaration(w),), ids) for w in vectors if w.local not in self.here]
        stored = [Lines((f"*({self.declare(w.store)}*)&{w.first} = {w.local};",), ids) for w in vectors if w.written]
        body = [self.lane_text(site, held, plain) for site in self.sites]
        if each:
            body = [Block(f"if ({guard_text(each, self.sites[0].around)})", tuple(body))]
        header = f"for (int {self.lane} = {self.loop.start}; {self.lane} < {self.loop.start + self.loop.extent}; ++{self.lane})"
        lanes = Block(header, tuple(prepared(body)), (self.loop.id,), ("#pragma unroll",), self.loop.id)
        return [*declared, lanes, *stored]

    def _all(self, each: Sequence[Condition]) -> tuple[Condition, ...]:
        """When all lanes run: the last one that comes under its condition does."""
        first, last = (Expr((), n) for n in (self.loop.start, self.loop.start + self.loop.extent - 1))
        around = self.sites[0].around
        return tuple(Condition(c.expr.substitute({self.lane: last if c.expr.coefficient(self.lane) < 0 else first}, around))
                     for c in each)

    def declaration(self, w: Wide) -> str:
        """``const vec<float, 4> x_v = …``, or without a value where the lanes write first."""
        kind, value = f"{'' if w.written else 'const '}{self.declare(w.store)} {w.local}", self.load(w)
        return f"{kind} = {f'{w.guard} ? {value} : {w.fill}' if w.guard else value};" if w.loaded else f"{kind};"

    def load(self, w: Wide, outside: float | int | bool = 0, kind: str = "", beyond: str = "") -> str:
        """The lanes, where they are loaded; as far as there are any, where the vector may end `beyond` the array."""
        kind = kind or self.declare(w.store)
        whole = f"*(const {kind}*)&{w.first}"
        if not self.ragged or not w.store.array or w.store.array.size % self.loop.extent == 0 or beyond == NOWHERE:
            return whole
        within = self.within(w.store, w.first, outside, kind)
        return f"({beyond} ? {within} : {whole})" if beyond else within

    def within(self, store: Store, first: str, outside: float | int | bool, kind: str = "") -> str:
        """The lanes as far as there are any in the array."""
        assert store.array is not None
        self.library.add("vector_within")
        places = f"&{first}, {store.name} + {store.array.size}, {narrow(literal(outside, store.dtype), store.dtype)[0]}"
        return f"load_within<{kind or self.declare(store)}, {self.loop.extent}>({places})"

    def keep_between(self, w: Wide, places: tuple[str, str], outside: float | int | bool, where: str) -> str:
        """Lanes that do not lie between two places become what is said."""
        self.library.add("vector_within")
        other = narrow(literal(outside, w.store.dtype), w.store.dtype)[0]
        text = f"keep_between({w.local}{self.here.get(w.local, '')}, &{w.first}, {', '.join(places)}, {other});"
        return f"if ({where}) {text}" if where else text

    def packed(self, store: Store) -> str:
        """The type of all lanes as they lie in memory, where that is another; "" else."""
        self.library.add("vector")
        small = store.dtype.bytes < WORD <= store.dtype.bytes * self.loop.extent
        return f"packed<{store.dtype.cuda}, {self.loop.extent}>" if small else ""

    def first_lane(self, site: Site, slot: int) -> str:
        """The lvalue that the first lane accesses."""
        store = self.low.store(site.leaf, slot)
        if store.space == "shared":
            self.aligned.add(store.name)
        return access_text(self.low, site, slot, lane=self.first)

    def declare(self, store: Store) -> str:
        """The type of all lanes of an element."""
        self.library.add("vector")
        return f"vec<{store.dtype.cuda}, {self.loop.extent}>"

    def fetch(self, store: Store, first: str) -> str:
        """All lanes, loaded at once."""
        return f"*(const {self.declare(store)}*)&{first}"

    def lane_text(self, site: Site, held: Mapping[tuple[str, int], Wide], plain: Callable[..., list[str]]) -> Out:
        """One leaf in one lane."""
        low, target = self.low, len(site.statement.reads)

        def element(slot: int) -> str:
            if loaded := self.alike.get((site.leaf.id, slot)):
                return loaded
            if wide := held.get((site.leaf.id, slot)):
                return f"{wide.local}{self.here.get(wide.local, '')}.at[{self.offset()}]"
            return access_text(low, site, slot, reader(low, site, element))

        whole = any((w := held.get((site.leaf.id, slot))) and w.guard for slot in range(target))
        lane = replace(site, statement=replace(site.statement, inside=())) if whole else site
        return Lines(tuple(plain(lane, element, element(target))), (site.leaf.id,))

    def offset(self) -> str:
        """The lane's number."""
        return self.lane if not self.loop.start else f"{self.lane} - {self.loop.start}"

    def move(self, site: Site) -> list[str]:
        """A contiguous copy of all lanes: one load, one store, or one asynchronous copy; empty if it is not that."""
        low, target = self.low, len(site.statement.reads)
        if not is_move(low, site) or not is_wide(low, site, target, self.loop):
            return []
        source = site.statement.value.slot  # type: ignore[union-attr]
        if not is_wide(low, site, source, self.loop):
            return []
        store = low.store(site.leaf, target)
        to, source_text = self.first_lane(site, target), self.first_lane(site, source)
        if site.leaf.mechanism == "async" and self.asynchronous and async_copy.possible(low, site, self.loop.extent):
            return async_copy.lines(low, site, self.loop.extent, self.library, self.first)
        value = self.fetch(low.store(site.leaf, source), source_text)
        inside, fill = inside_conditions(site, self.first), self.filling(site, store)
        if inside == (NEVER,):
            value = fill
        elif any(self.lane in c.variables() for c in inside_conditions(site)):
            value = self.within(low.store(site.leaf, source), source_text, site.statement.fill)
        elif inside:
            value = f"{guard_text(inside, site.around, enclosed=True)} ? {value} : {fill}"
        return [f"*({self.declare(store)}*)&{to} = {value};  // {site.leaf.id}"]
