"""The memory figure: sectors or banks of one warp's request, and the elements that a block accesses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir.instructions import Wgmma, instruction
from ...ir.plan import Plan, block_extents
from ...ir.text import access_text
from ...ir.tree import WARP_SIZE, Loop
from ...poly.bulk_store import IN_BOXES
from ...poly.request import Request, find_site, free_loops, touched, warp_request
from ...poly.sites import Site, sites
from ...poly.traffic import AccessFacts, traffic
from ...run.engine_accesses import COPY_ENGINE, TENSOR_CORES
from ...schedule import Schedule
from .asked import Asked, Look

COLUMNS, ROWS = 48, 32
"""Cells of a footprint's map at most."""


@dataclass(frozen=True)
class WarpAccess:
    """One request of a warp through one access.

    Attributes
    ----------
    leaf, array, text : str
        The leaf, the array or buffer really used, and the access as it stands in the loops.
    space : str
        ``"global"`` or ``"shared"``.
    writes : bool
    request : Request
    group : int
        Which of the groups of lanes that are served together is shown.
    warp : int
    at : tuple of (str, int)
        Values of the loops at this request.
    facts : AccessFacts
        The means over all requests.
    shape : tuple of int
        Of the array, in elements (padding included).
    """

    leaf: str
    array: str
    text: str
    space: str
    writes: bool
    request: Request
    group: int
    warp: int
    at: tuple[tuple[str, int], ...]
    facts: AccessFacts
    shape: tuple[int, ...]


@dataclass(frozen=True)
class TileAccess:
    """The elements of an array that one block (or thread, or iteration) touches, as a map of cells.

    Attributes
    ----------
    leaf, array, text : str
    scope : str
        In words: ``"one block"``.
    shape : tuple of int
    axes : tuple of int
        The array dimensions shown down and across; `others` are the values of the rest.
    others : tuple of (int, int)
    origin, cell : tuple of int
        First row and column shown, and elements in one cell down and across.
    counts : tuple of tuple of float or None
        Mean touches of the touched elements of a cell; None where none is touched.
    elements, touches, bytes : int
        Different elements, accesses to them, and their bytes.
    cut : tuple of (str, int)
        Loops that were followed for their first iterations only.
    engine : str
        ``"copy engine"`` where that moves them, a box at a time; ``"tensor cores"`` where these read them; else threads do.
    """

    leaf: str
    array: str
    text: str
    scope: str
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    others: tuple[tuple[int, int], ...]
    origin: tuple[int, int]
    cell: tuple[int, int]
    counts: tuple[tuple[float | None, ...], ...]
    elements: int
    touches: int
    bytes: int
    cut: tuple[tuple[str, int], ...]
    engine: str = ""


def memory(schedule: Schedule, asked: Asked, look: Look) -> WarpAccess | TileAccess | str:
    """The access that is asked for, from one of two sides, or a sentence."""
    plan = schedule.plan
    offered = accesses(plan)
    if not offered:
        return "Every access of this schedule is to registers: nothing moves to or from memory."
    labels = {
        key: f"{'writes' if s.writes else 'reads'} {access_text(plan, s.leaf, s.slot)} ({s.leaf.id}, {s.space})"
        for key, s in offered.items()
    }
    key = asked.one_of("access", "access", labels, _focus(plan, offered, look))
    site, views = offered[key], {"warp": "one request of a warp", "tile": "elements touched"}
    if engine_of(site):  # no warp makes a request
        del views["warp"]
    view = asked.one_of("view", "show", views, next(iter(views)))
    return _tile(plan, site, asked) if view == "tile" else _warp(plan, site, asked)


def accesses(plan: Plan) -> dict[str, Site]:
    """Every access to global and shared memory with affine indices, by ``leaf:slot``."""
    return {f"{s.leaf.id}:{s.slot}": s for k in plan.kernels for s in sites(plan)[k.id]
            if s.space != "register" and all(e is not None for e in s.cell)}


def engine_of(site: Site) -> str:
    """Whose engine makes an access: one thread asks for a box, or the threads of a warpgroup for a product; "" for threads."""
    if site.leaf.mechanism in IN_BOXES:
        return COPY_ENGINE
    return TENSOR_CORES if isinstance(instruction(site.leaf.mechanism), Wgmma) and site.space == "shared" else ""


def _focus(plan: Plan, offered: dict[str, Site], look: Look) -> str:
    """The access to open on: of those to the selected array or buffer, of the selected leaf or under the selected loop (or of
    all), the one that wastes most in the whole run, be it sectors or passes over the banks; of equal ones the deepest.
    """
    def touches(s: Site) -> bool:
        return look.node in (s.storage, s.statement.accesses[s.slot].array)

    def near(s: Site) -> bool:
        return look.node in (s.leaf.id, s.leaf.statement) or any(x.id == look.node for x in s.above)

    named = {k: s for k, s in offered.items() if look.node and touches(s)}
    close = named or {k: s for k, s in offered.items() if look.node and near(s)} or offered
    wasted = {(f.leaf, f.slot): _waste(f) for leaf in {s.leaf.id for s in close.values()} for f in traffic(plan, "", leaf)}

    def rank(key: str) -> tuple[float, int, bool, bool]:
        s = close[key]
        return round(wasted.get((s.leaf.id, s.slot), 0.0)), len(s.above), s.space == "global", not s.writes

    return max(close, key=rank)


def _waste(facts: AccessFacts) -> float:
    """Sectors, or passes over the banks, beyond the fewest."""
    cost, least = (facts.conflicts, 1.0) if facts.space == "shared" else (facts.sectors_per_request, facts.minimum)
    return facts.requests * max(cost - least, 0.0)


def _warp(plan: Plan, site: Site, asked: Asked) -> WarpAccess | str:
    _, kernel = find_site(plan, site.leaf.id, site.slot)
    warps = -(-int(np.prod(block_extents(kernel))) // WARP_SIZE)
    warp = asked.number("warp", "warp", 0, warps - 1, 0)
    used = {v for e in site.cell if e is not None for v in e.variables()} | {v for c in site.guards for v in c.expr.variables()}
    loops = [x for x in free_loops(site) if x.extent > 1 and x.id in used]
    start = _first_active(plan, site, warp)
    at = {x.id: asked.number(f"at.{x.id}", f"{x.id} =", x.start, x.start + x.extent - 1, start.get(x.id, x.start)) for x in loops}
    request = warp_request(plan, site.leaf.id, site.slot, warp, at)
    group = asked.number("group", "lanes served together: group", 0, len(request.served) - 1, 0)
    facts = next(f for f in traffic(plan, kernel.id, site.leaf.id) if f.slot == site.slot)
    shape = plan.buffer_of[site.storage].padded_shape if site.leaf.view(site.slot) else plan.array_of[site.storage].shape
    if not request.lanes:
        where = ", ".join(f"{k} = {v}" for k, v in at.items())
        return f"No lane of warp {warp} runs {site.leaf.id}" + (f" at {where}." if where else ".")
    return WarpAccess(
        site.leaf.id,
        site.storage,
        access_text(plan, site.leaf, site.slot),
        site.space,
        site.writes,
        request,
        group,
        warp,
        tuple(at.items()),
        facts,
        shape,
    )


def _first_active(plan: Plan, site: Site, warp: int) -> dict[str, int]:
    """Loop values at which some lane runs: the starts, or else the ends of one loop."""
    starts: dict[str, int] = {}
    for loop in (None, *reversed(free_loops(site))):
        at = {**starts, loop.id: loop.start + loop.extent - 1} if loop else starts
        if warp_request(plan, site.leaf.id, site.slot, warp, at).lanes:
            return at
    return starts


def _tile(plan: Plan, site: Site, asked: Asked) -> TileAccess | str:
    scopes = _scopes(site)
    words = asked.one_of("scope", "touched by", tuple(scopes), next(iter(scopes)))
    fixed = {x.id: x.start for x in scopes[words]}
    found = touched(plan, site.leaf.id, site.slot, fixed)
    if not found.elements:
        return f"{words[0].upper()}{words[1:]} touches nothing: the first one runs no instance of {site.leaf.id}."
    rank = len(found.shape)
    axes = (rank - 2, rank - 1) if rank > 1 else (0,)
    others = {d: found.span(d)[0] for d in range(rank) if d not in axes}
    slice_ = found.at(others)
    bins = [_bins(*slice_.span(d), found.shape[d], most) for d, most in zip(axes, (ROWS, COLUMNS)[-len(axes):], strict=True)]
    first, cell, size = zip(*bins, strict=True)
    touches, distinct = slice_.binned(axes, first, cell, size)
    mean = (touches / np.maximum(distinct, 1)).reshape(-1, size[-1]).tolist()
    there = distinct.reshape(-1, size[-1]).tolist()
    counts = tuple(tuple(round(t, 2) if n else None for t, n in zip(*row, strict=True)) for row in zip(mean, there, strict=True))
    return TileAccess(
        site.leaf.id,
        site.storage,
        access_text(plan, site.leaf, site.slot),
        words,
        found.shape,
        axes,
        tuple(others.items()),
        (first[0] if rank > 1 else 0, first[-1]),
        (cell[0] if rank > 1 else 1, cell[-1]),
        counts,
        found.elements,
        found.touches,
        found.elements * found.element_bytes,
        found.cut,
        engine_of(site),
    )


def _bins(low: int, high: int, extent: int, most: int) -> tuple[int, int, int]:
    """First index, elements in a cell, and number of cells that hold all values and a margin."""
    cell = -(-(high - low + 1) // (most - 2))
    first = max(low - cell, 0)
    return first, cell, -(-(min(high + cell, extent - 1) - first + 1) // cell)


def _scopes(site: Site) -> dict[str, tuple[Loop, ...]]:
    """Who touches, in words, and the loops that this holds at their first value."""
    blocks = tuple(x for x in site.above if x.is_block or x.role == "launch")
    threads = tuple(x for x in site.above if x.is_thread)
    out: dict[str, tuple[Loop, ...]] = {}
    if engine := engine_of(site):
        out["one box" if engine == COPY_ENGINE else "one instruction"] = tuple(x for x in site.above if x.role != "tensor")
    out |= {"one block" if blocks else "the whole kernel": blocks}
    times = [x for x in site.above if x.role in ("seq", "unroll") and x.extent > 1]
    for i, x in enumerate(times[:3]):
        out[f"one block, one iteration of {x.id}" if blocks else f"one iteration of {x.id}"] = (*blocks, *times[: i + 1])
    if threads and not engine:
        out["one thread"] = (*blocks, *threads)
    return out
