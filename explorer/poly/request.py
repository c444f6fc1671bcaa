"""One request of a warp, lane by lane, and the elements that a block or thread touches with one access.

The same rules as in :mod:`.traffic` (32-byte sectors; 32 banks of 4-byte words; wide accesses to shared memory in half or
quarter warps), for one request that a person picked rather than the mean over all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from ..ir.expr import Expr
from ..ir.plan import Plan
from ..ir.program import Constraint
from ..ir.tree import WARP_SIZE, Kernel, Loop
from .sites import Site, launch_extents, sites
from .traffic import BANKS, SECTOR_BYTES, WORD_BYTES, _active, _address, _placed, _storage, _stride

POINTS = 1 << 16
"""Iterations that a footprint follows at most, of loops that are tied together."""


@dataclass(frozen=True)
class Lane:
    """What one lane asks for: bytes ``[first, first + width)`` of its array in memory, beginning with the element `index`."""

    lane: int
    thread: int
    first: int
    width: int
    index: tuple[int, ...]


@dataclass(frozen=True)
class Request:
    """One request of a warp.

    Attributes
    ----------
    lanes : tuple of Lane
        Those that take part.
    element_bytes : int
    served : tuple of tuple of int
        Groups of lane numbers that are served together (one group, except for wide accesses to shared memory).
    """

    lanes: tuple[Lane, ...]
    element_bytes: int
    served: tuple[tuple[int, ...], ...]

    @property
    def sectors(self) -> tuple[int, ...]:
        """Numbers of the 32-byte sectors touched, counted from the array's first byte."""
        return tuple(
            sorted(
                {b // SECTOR_BYTES for x in self.lanes for b in (x.first, x.first + x.width - 1)}
                | {s for x in self.lanes for s in range(x.first // SECTOR_BYTES, (x.first + x.width - 1) // SECTOR_BYTES + 1)}
            )
        )

    @property
    def fewest(self) -> int:
        """Sectors that the distinct bytes would fill."""
        covered = {b for x in self.lanes for b in range(x.first, x.first + x.width)}
        return -(-len(covered) // SECTOR_BYTES)

    def words(self, group: int) -> dict[int, tuple[int, ...]]:
        """Bank to the different 4-byte words that one group asks it for."""
        asked: dict[int, set[int]] = {}
        for x in self.lanes:
            if x.lane in self.served[group]:
                for word in range(x.first // WORD_BYTES, (x.first + x.width - 1) // WORD_BYTES + 1):
                    asked.setdefault(word % BANKS, set()).add(word)
        return {bank: tuple(sorted(words)) for bank, words in sorted(asked.items())}

    def passes(self, group: int) -> int:
        """Passes over the banks that one group takes: the most words that one bank is asked for."""
        return max((len(words) for words in self.words(group).values()), default=0)


def find_site(plan: Plan, leaf: str, slot: int) -> tuple[Site, Kernel]:
    """The access of a leaf, and its kernel."""
    return next((site, k) for k in plan.kernels for site in sites(plan)[k.id] if site.leaf.id == leaf and site.slot == slot)


def free_loops(site: Site) -> tuple[Loop, ...]:
    """Loops whose values pick a request of a warp: all but threads and a joined vector loop."""
    return tuple(x for x in site.above if not x.is_thread and x.role != "vector")


def warp_request(plan: Plan, leaf: str, slot: int, warp: int, at: Mapping[str, int]) -> Request:
    """The request that one warp makes.

    Parameters
    ----------
    plan : Plan
    leaf : str
    slot : int
    warp : int
        Number of the warp in its block.
    at : mapping of str to int
        Values of the loops that are not spread over threads; missing ones are at their start.
    """
    site, kernel = find_site(plan, leaf, slot)
    shape, size = _storage(plan, site)
    block, split = plan.extents[kernel.id][3:], launch_extents(plan, kernel)[4] > 1
    vector = next((x for x in site.above if x.role == "vector"), None)
    step = _stride(site, shape, vector)
    width = size * (vector.extent if vector is not None and step == 1 else 1)
    thread = (warp * WARP_SIZE + np.arange(WARP_SIZE))[None, :]
    x, y, z = thread % block[0], thread // block[0] % block[1], thread // (block[0] * block[1])
    values: dict[str, np.ndarray] = {
        "@3": x // WARP_SIZE if split else x,
        "@4": x % WARP_SIZE if split else x * 0,
        "@5": y,
        "@6": z,
        "@": thread < prod(block),
    }
    role = {"thread.x": x, "thread.y": y, "thread.z": z, "warp": x // WARP_SIZE, "lane": x % WARP_SIZE}
    for loop in site.above:
        if loop.is_thread:
            values[loop.id] = role[loop.role]
            values["@"] = values["@"] & (role[loop.role] >= loop.start) & (role[loop.role] < loop.start + loop.extent)
        else:
            values[loop.id] = np.full_like(thread, at.get(loop.id, loop.start))
    active = _active(site, values)[0]
    number = _address(site, values, shape)[0]
    first = (_address(site, values, shape, _placed(plan, site)) * size)[0]
    lanes = tuple(
        Lane(i, int(thread[0, i]), int(first[i]), width, tuple(map(int, np.unravel_index(int(number[i]), shape or (1,)))))
        for i in range(WARP_SIZE)
        if active[i]
    )
    together = WARP_SIZE if site.space == "global" or width <= WORD_BYTES else max(WARP_SIZE * WORD_BYTES // width, 1)
    groups = tuple(tuple(range(i, i + together)) for i in range(0, WARP_SIZE, together))
    return Request(lanes, size, groups)


@dataclass(frozen=True, eq=False)
class Part:
    """Index values on dimensions that no loop ties to the other dimensions, and how often each occurs."""

    dims: tuple[int, ...]
    index: np.ndarray
    times: np.ndarray


@dataclass(frozen=True, eq=False)
class Footprint:
    """The elements that some iterations touch: all combinations of one entry from each part.

    Attributes
    ----------
    shape : tuple of int
        Extents of the array or buffer.
    element_bytes : int
    parts : tuple of Part
    factor : int
        Touches of an element are this times the product of its entries' times.
    cut : tuple of (str, int)
        Loops of which only the first so many iterations were followed; empty where the counts are exact.
    """

    shape: tuple[int, ...]
    element_bytes: int
    parts: tuple[Part, ...]
    factor: int
    cut: tuple[tuple[str, int], ...]

    @property
    def elements(self) -> int:
        """Different elements."""
        return prod(len(p.index) for p in self.parts) if self.factor else 0

    @property
    def touches(self) -> int:
        """Accesses to them."""
        return self.factor * prod(int(p.times.sum()) for p in self.parts)

    def at(self, fixed: Mapping[int, int]) -> Footprint:
        """The elements with these values on some dimensions."""
        parts = []
        for p in self.parts:
            kept = np.ones(len(p.index), bool)
            for column, d in enumerate(p.dims):
                kept &= p.index[:, column] == fixed[d] if d in fixed else True
            parts.append(Part(p.dims, p.index[kept], p.times[kept]))
        return Footprint(self.shape, self.element_bytes, tuple(parts), self.factor, self.cut)

    def span(self, dim: int) -> tuple[int, int]:
        """Smallest and largest index on a dimension."""
        values = next(p.index[:, p.dims.index(dim)] for p in self.parts if dim in p.dims)
        return int(values.min()), int(values.max())

    def binned(
        self, axes: tuple[int, ...], origin: tuple[int, ...], cell: tuple[int, ...], size: tuple[int, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Touches and different elements in cells of several indices each, along one or two dimensions."""
        touches, distinct = np.full(size, float(self.factor)), np.ones(size)
        for p in self.parts:
            own = [(i, p.dims.index(d)) for i, d in enumerate(axes) if d in p.dims]
            where = tuple((p.index[:, column] - origin[i]) // cell[i] for i, column in own)
            shape = tuple(size[i] if any(i == j for j, _ in own) else 1 for i in range(len(axes)))
            flat = np.ravel_multi_index(where, tuple(size[i] for i, _ in own)) if own else np.zeros(len(p.index), np.int64)
            touches = touches * np.bincount(flat, p.times, prod(shape)).reshape(shape)
            distinct = distinct * np.bincount(flat, minlength=prod(shape)).reshape(shape)
        return touches, distinct


def touched(plan: Plan, leaf: str, slot: int, fixed: Mapping[str, int]) -> Footprint:
    """The elements that an access touches while some loops are held at a value and all others run.

    Loops on which different dimensions depend are walked apart, and those that nothing depends on are multiplied.
    """
    site, _ = find_site(plan, leaf, slot)
    shape, size = _storage(plan, site)
    cells = [e for e in site.cell if e is not None]
    at = dict(site.leaf.at)
    guards = list(site.guards) + [
        Constraint(c.expr.substitute(at), c.equality) for c in (() if site.writes else site.statement.inside)
    ]
    loops = {x.id: x for x in site.above if x.id not in fixed}
    values = {x.id: fixed.get(x.id, x.start) for x in site.above}
    if not all(g.holds(values) for g in guards if not g.expr.variables() & loops.keys()):
        return Footprint(shape or (1,), size, (), 0, ())
    parts, factor, cut = [], 1, []
    for group in _groups(set(loops), [e.variables() for e in cells], [g.expr.variables() for g in guards]):
        run = [loops[name] for name in loops if name in group]
        dims = tuple(d for d, e in enumerate(cells) if e.variables() & group)
        held = [g for g in guards if g.expr.variables() & group]
        if not dims and not held:
            factor *= prod(x.extent for x in run)
            continue
        part, short = _walk(site, run, fixed, dims, cells, held, shape)
        cut += short
        if dims:
            parts.append(part)
        else:
            factor *= int(part.times.sum())
    alone = [d for d, e in enumerate(cells) if not e.variables() & loops.keys()]
    parts += [Part((d,), np.asarray([[cells[d].evaluate(values)]]), np.ones(1, np.int64)) for d in alone]
    return Footprint(
        shape or (1,), size, tuple(parts) or (Part((0,), np.zeros((1, 1), np.int64), np.ones(1, np.int64)),), factor, tuple(cut)
    )


def _groups(names: set[str], *ties: list[frozenset[str]]) -> list[frozenset[str]]:
    """Loops that an index or a guard ties together."""
    groups = [frozenset({n}) for n in sorted(names)]
    for tie in (t for several in ties for t in several):
        joined = [g for g in groups if g & tie]
        groups = [g for g in groups if g not in joined] + ([frozenset().union(*joined)] if joined else [])
    return groups


def _walk(site: Site, run: list[Loop], fixed: Mapping[str, int], dims: tuple[int, ...], cells: list[Expr], held: list[Constraint],
          shape: tuple[int, ...]) -> tuple[Part, list[tuple[str, int]]]:
    """The index values on `dims` over the iterations of some loops, as many of them as are followed at most."""
    extents = {x.id: x.extent for x in run}
    while prod(extents.values()) > POINTS:
        largest = max(extents, key=lambda name: extents[name])
        extents[largest] = max(extents[largest] // 2, 1)
    axes = np.meshgrid(*(np.arange(x.start, x.start + extents[x.id]) for x in run), indexing="ij")
    values: dict[str, np.ndarray | int] = {x.id: fixed.get(x.id, x.start) for x in site.above}
    values |= {x.id: a.reshape(-1) for x, a in zip(run, axes, strict=True)}
    runs = np.ones(prod(extents.values()), bool)
    for c in held:
        value = np.asarray(c.expr.evaluate(values))
        runs &= value == 0 if c.equality else value >= 0
    index = [np.broadcast_to(np.asarray(cells[d].evaluate(values)), runs.shape)[runs] for d in dims]
    box = tuple(shape[d] for d in dims)
    number = np.ravel_multi_index(tuple(index), box) if dims else np.zeros(int(runs.sum()), np.int64)
    counts = np.bincount(number) if len(number) and prod(box) <= 1 << 20 else None
    kept, times = (np.nonzero(counts)[0], counts[counts > 0]) if counts is not None else np.unique(number, return_counts=True)
    columns = np.stack(np.unravel_index(kept, box), axis=1) if dims else np.zeros((len(kept), 0), np.int64)
    return Part(dims, columns, times), [(x.id, extents[x.id]) for x in run if extents[x.id] < x.extent]
