"""Vector loops: one wide load or store per access that is contiguous in the lane, scalars for the rest.

The lanes run in order, as the loop says.  Wide loads stand before the lanes and wide stores after them, which changes
nothing unless the body reads what it writes; then, and where alignment is not certain, every lane is on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd

from ..ir.expr import Expr
from ..ir.tree import Loop
from . import async_copy
from .access import access_text, inside_conditions, is_move
from .guards import NEVER, guard_text
from .index import linear
from .lower import Lowered, Site, Store
from .printer import Block, Lines, Out
from .scalar import PRIMARY, Text, literal, narrow, widen

SIZES = (2, 4, 8, 16)
"""Bytes of one load or store of a thread (PTX ISA, "ld": up to .v4.b32)."""


@dataclass(frozen=True)
class Wide:
    """An access taken all lanes at once: its storage, the lvalue of the first lane, and the local that holds it."""

    store: Store
    first: str
    local: str


def is_wide(low: Lowered, site: Site, slot: int, loop: Loop) -> bool:
    """Whether the access is contiguous in the lane and its first element is aligned to all lanes together."""
    store, index, lane = low.store(site.leaf, slot), low.index(site, slot), low.variable[loop.id]
    affine = [e for e in index if isinstance(e, Expr)]
    nbytes = loop.extent * store.dtype.bytes
    if store.space == "register" or len(affine) != len(index) or not index or nbytes not in SIZES or loop.extent < 2:
        return False
    flat = linear(affine, store.shape).simplify(site.ranges)
    first = flat.substitute({lane: Expr((), loop.start)}, site.ranges)
    if flat - first != Expr(((lane, 1),), -loop.start):
        return False
    return gcd(first.const, *(c for _, c in first.terms)) % loop.extent == 0


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

    def free(self) -> bool:
        """Whether wide loads may stand before and wide stores after the lanes: nothing written is read elsewhere."""
        written: set[str] = set()
        for site in self.sites:
            target = self.low.store(site.leaf, len(site.statement.reads))
            if target.space != "register":
                if target.name in written:
                    return False
                written.add(target.name)
        for site in self.sites:
            target = self.low.index(site, len(site.statement.reads))
            own = self.low.store(site.leaf, len(site.statement.reads)).name
            for slot in range(len(site.statement.reads)):
                name = self.low.store(site.leaf, slot).name
                if name in written and not (name == own and self.low.index(site, slot) == target):
                    return False
        return True

    def text(self, plain: Callable[..., list[str]]) -> list[Out]:
        """The pieces, to be put under one guard."""
        if len(self.sites) == 1 and (moved := self.move(self.sites[0])):
            return [Lines(tuple(moved), (self.sites[0].leaf.id, self.loop.id))]
        loads: list[Out] = []
        stores: list[Out] = []
        body: list[Out] = []
        free = self.free()
        known: dict[str, Wide] = {}
        for site in self.sites:
            wide = {}
            for slot in range(len(site.statement.reads)):
                if free and is_wide(self.low, site, slot, self.loop) and not site.statement.inside:
                    wide[slot] = self.load(site, slot, known, loads)
            body.append(self.lane_text(site, wide, free, loads, stores, plain))
        header = f"for (int {self.lane} = {self.loop.start}; {self.lane} < {self.loop.start + self.loop.extent}; ++{self.lane})"
        lanes = Block(header, tuple(body), (self.loop.id,), ("#pragma unroll",), self.loop.id)
        return [*loads, lanes, *stores]

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

    def load(self, site: Site, slot: int, known: dict[str, Wide], loads: list[Out]) -> Wide:
        """The wide load of one read; equal ones are loaded once."""
        store, first = self.low.store(site.leaf, slot), self.first_lane(site, slot)
        if first not in known:
            local = self.low.taken.take(f"{store.name}_{self.lane}")
            known[first] = Wide(store, first, local)
            text = f"const {self.declare(store)} {local} = {self.fetch(store, first)};"
            loads.append(Lines((text,), (site.leaf.id, self.loop.id)))
        return known[first]

    def lane_text(self, site: Site, wide: dict[int, Wide], free: bool, loads: list[Out], stores: list[Out],
                  plain: Callable[..., list[str]]) -> Out:
        """One leaf in one lane."""
        low, target = self.low, len(site.statement.reads)

        def read(slot: int) -> Text:
            store = low.store(site.leaf, slot)
            text = f"{wide[slot].local}.at[{self.offset()}]" if slot in wide else access_text(low, site, slot, read)
            return widen((text, PRIMARY), store.dtype)

        name = None
        if free and is_wide(low, site, target, self.loop):
            store, first = low.store(site.leaf, target), self.first_lane(site, target)
            local = low.taken.take(f"{store.name}_{self.lane}")
            start = f" = {self.fetch(store, first)}" if site.statement.update else ""
            loads.append(Lines((f"{self.declare(store)} {local}{start};",), (site.leaf.id, self.loop.id)))
            stores.append(Lines((f"*({self.declare(store)}*)&{first} = {local};",), (site.leaf.id, self.loop.id)))
            name = f"{local}.at[{self.offset()}]"
        return Lines(tuple(plain(site, read if wide else None, name)), (site.leaf.id,))

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
        inside = inside_conditions(site, self.first)
        one = narrow(literal(site.statement.fill, store.dtype), store.dtype)[0]
        fill = self.declare(store) + ("{}" if site.statement.fill == 0 else f"{{{{{', '.join([one] * self.loop.extent)}}}}}")
        if inside == (NEVER,):
            value = fill
        elif inside:
            value = f"{guard_text(inside, site.around, enclosed=True)} ? {value} : {fill}"
        return [f"*({self.declare(store)}*)&{to} = {value};  // {site.leaf.id}"]
