"""What each access of a kernel costs in memory transactions: sectors of global memory, banks of shared memory.

A warp's request to global memory moves whole 32-byte sectors; the fewest are those its bytes fill (CUDA C++ Best
Practices Guide, "Coalesced Access to Global Memory").  Shared memory has 32 banks of 4-byte words: a request takes as
many passes as the largest number of different words that one bank is asked for; 8-byte accesses are served by half
warps and 16-byte accesses by quarter warps (CUDA C++ Programming Guide, "Shared Memory").  Indices are evaluated with
NumPy for the 32 lanes of every warp and iteration, or of a fixed sample of them when there are many.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from ..ir.plan import Buffer, Plan
from ..ir.swizzle import UNIT, offset, swizzled
from ..ir.tree import WARP_SIZE, Loop
from .sites import Site, launch_extents, sites

SECTOR_BYTES = 32
BANKS = 32
WORD_BYTES = 4
SAMPLES = 256
"""Requests that are evaluated at most for one access."""


@dataclass(frozen=True)
class AccessFacts:
    """What one access of one leaf asks of memory in one run of its kernel.

    Attributes
    ----------
    leaf : str
    slot : int
    array : str
        The program's array; `storage` is the buffer or array that is really used.
    storage : str
    space : str
        ``"global"`` or ``"shared"``; also ``"cluster"`` in :class:`~explorer.run.facts.Facts`.
    writes : bool
    width_bytes : int
        Bytes that one thread moves in a request (more than an element under a vector loop).
    requests : float
        Requests by warps with at least one active thread (for an update, one for the read and the write together).
    sectors_per_request, minimum : float
        Mean number of 32-byte sectors touched, and of those that the bytes would fill (global memory).
    conflicts : float
        Mean passes over the banks per group of threads, 1 without conflicts (shared memory; 0 for global).
    active : float
        Mean share of a warp's threads that take part.
    sampled : bool
        Whether the figures come from a sample of the requests.
    by : str
        ``"copy engine"`` or ``"tensor cores"`` in :class:`~explorer.run.facts.Facts`, where no thread makes it: a request is then
        a box or a tile.
    """

    leaf: str
    slot: int
    array: str
    storage: str
    space: str
    writes: bool
    width_bytes: int
    requests: float
    sectors_per_request: float
    minimum: float
    conflicts: float
    active: float
    sampled: bool
    by: str = ""

    @property
    def bytes(self) -> float:
        """Bytes requested from global memory in whole sectors (before any cache); 0 for shared memory."""
        return self.requests * self.sectors_per_request * SECTOR_BYTES

    @property
    def efficiency(self) -> float:
        """Fewest sectors over touched sectors, or 1 over the passes: 1.0 is the best."""
        if self.space == "shared":
            return 1 / self.conflicts if self.conflicts else 1.0
        return self.minimum / self.sectors_per_request if self.sectors_per_request else 1.0


def traffic(plan: Plan, kernel: str = "", leaf: str = "") -> tuple[AccessFacts, ...]:
    """Facts about every access to global and shared memory.

    Parameters
    ----------
    plan : Plan
    kernel, leaf : str
        Only this kernel, only this leaf (all by default).

    Returns
    -------
    tuple of AccessFacts
        In order of the text.
    """
    out = []
    for k in plan.kernels:
        if kernel and k.id != kernel:
            continue
        for site in sites(plan)[k.id]:
            if site.space != "register" and (not leaf or site.leaf.id == leaf):
                shape, size = _storage(plan, site)
                out.append(_facts(site, shape, size, _placed(plan, site), launch_extents(plan, k), plan.extents[k.id][3:]))
    return tuple(out)


def bank_passes(plan: Plan, buffer: str) -> tuple[float, float]:
    """Passes over the banks that all accesses of a shared buffer take together, and the fewest that their widths allow."""
    passes = fewest = 0.0
    for leaf, _, kernel in plan.leaves:
        if any(view.buffer == buffer for _, view in leaf.views):
            for a in traffic(plan, kernel.id, leaf.id):
                view = leaf.view(a.slot)
                if a.space == "shared" and view is not None and view.buffer == buffer:
                    groups = a.requests * max(1, a.width_bytes // WORD_BYTES)
                    passes, fewest = passes + groups * a.conflicts, fewest + groups
    return passes, fewest


def _storage(plan: Plan, site: Site) -> tuple[tuple[int, ...], int]:
    """Extents in memory (padding included) and bytes of an element."""
    if site.storage in plan.buffer_of and site.leaf.view(site.slot):
        buffer = plan.buffer_of[site.storage]
        return buffer.padded_shape, buffer.dtype.bytes
    array = plan.array_of[site.storage]
    return array.stored, array.dtype.bytes


def _placed(plan: Plan, site: Site) -> Buffer | None:
    """The buffer, where its elements lie in panels or swizzled."""
    buffer = plan.buffer_of[site.storage] if site.leaf.view(site.slot) else None
    return buffer if buffer and buffer.is_placed else None


@lru_cache(maxsize=4096)
def _facts(site: Site, shape: tuple[int, ...], size: int, placed: Buffer | None, launch: tuple[int, ...],
           block: tuple[int, int, int]) -> AccessFacts:
    vector = next((x for x in site.above if x.role == "vector"), None)
    step = _stride(site, shape, vector)
    joined = vector is not None and step in (0, 1) and not (placed and step and size * vector.extent > UNIT)
    lanes = vector.extent if vector is not None and joined else 1
    width = size * (lanes if step == 1 else 1)
    values, weight, total = _points(site, vector if joined else None, launch, block)
    active = _active(site, values)
    address = _address(site, values, shape, placed) * size
    if vector is not None and joined:
        touched = address[..., None] + np.arange(width)[None, None, :: min(size, WORD_BYTES)]
    else:
        touched = address[..., None] + np.arange(0, size, min(size, WORD_BYTES))[None, None, :]
    busy = np.asarray(active.any(axis=1))
    count = len(active)
    array = site.statement.accesses[site.slot].array
    sectors = minimum = conflicts = 0.0
    if busy.any() and site.space == "global":
        sectors, minimum = _sectors(touched[busy], active[busy], size)
    elif busy.any():
        conflicts = _passes(touched[busy], active[busy], width)
    requests = float(busy.sum()) * weight
    share = float(active[busy].mean()) if busy.any() else 0.0
    return AccessFacts(site.leaf.id, site.slot, array, site.storage, site.space, site.writes, width, requests, sectors, minimum,
                       conflicts, share, count < total)


def _stride(site: Site, shape: tuple[int, ...], vector: Loop | None) -> int:
    """Elements between neighbouring iterations of the vector loop."""
    if vector is None:
        return 0
    weights = [prod(shape[i + 1:]) for i in range(len(shape))]
    return sum(w * e.coefficient(vector.id) for w, e in zip(weights, site.cell, strict=True) if e is not None)


def _points(site: Site, joined: Loop | None, launch: tuple[int, ...],
            block: tuple[int, int, int]) -> tuple[dict[str, np.ndarray], float, int]:
    """Loop values for requests × 32 lanes, the weight of each request, and how many requests there are.

    Coordinates of the threads are added as ``@3`` … ``@6``, and as ``@`` whether the thread exists in the leaf's loops.
    """
    free = [x for x in site.above if not x.is_thread and x is not joined]
    threads = prod(block)
    warps = -(-threads // WARP_SIZE)
    blocks = [n for n, p in zip(launch[:3], site.place[:3], strict=True) if p is None]
    total = prod(x.extent for x in free) * warps
    every = total <= SAMPLES
    picks = np.arange(total) if every else np.random.default_rng(0).integers(0, total, SAMPLES)
    values: dict[str, np.ndarray] = {}
    rest, warp = np.divmod(picks, warps)
    for loop in reversed(free):
        rest, at = np.divmod(rest, loop.extent)
        values[loop.id] = np.broadcast_to((at + loop.start)[:, None], (len(picks), WARP_SIZE))
    if joined is not None:
        values[joined.id] = np.full((len(picks), WARP_SIZE), joined.start)
    thread = warp[:, None] * WARP_SIZE + np.arange(WARP_SIZE)[None, :]
    x, y, z = thread % block[0], thread // block[0] % block[1], thread // (block[0] * block[1])
    split = launch[4] > 1
    values |= {"@3": x // WARP_SIZE if split else x, "@4": x % WARP_SIZE if split else x * 0, "@5": y, "@6": z}
    values["@"] = thread < threads
    role = {"thread.x": x, "thread.y": y, "thread.z": z, "warp": x // WARP_SIZE, "lane": x % WARP_SIZE}
    for loop in site.above:
        if loop.is_thread:
            values[loop.id] = role[loop.role]
            values["@"] = values["@"] & (role[loop.role] >= loop.start) & (role[loop.role] < loop.start + loop.extent)
    return values, prod(blocks) * (1.0 if every else total / len(picks)), total


def _active(site: Site, values: dict[str, np.ndarray]) -> np.ndarray:
    """Which lanes take part: the threads that run the leaf, in the domain, where the read happens."""
    out = values["@"].copy()
    for axis in range(3, 7):
        if (place := site.place[axis]) is not None:
            out &= place.evaluate(values) == values[f"@{axis}"]
    at = {d: np.broadcast_to(e.evaluate(values), out.shape) for d, e in site.leaf.at}
    held = site.statement.domain if site.writes else (*site.statement.domain, *site.statement.inside)
    for c in held:
        value = c.expr.evaluate(at)
        out &= (value == 0) if c.equality else (value >= 0)
    return out


def _address(site: Site, values: dict[str, np.ndarray], shape: tuple[int, ...], placed: Buffer | None = None) -> np.ndarray:
    """Number of the element in memory: row-major, or as it is `placed`; a data-dependent index is drawn at random."""
    if placed:
        place = offset(placed, [e for e in site.cell if e is not None], {}).evaluate(values)
        return np.broadcast_to(swizzled(place, placed.swizzle, placed.dtype.bytes), values["@"].shape)
    random = np.random.default_rng(1)
    total = np.zeros(values["@"].shape, np.int64)
    for e, extent in zip(site.cell, shape, strict=True):
        index = random.integers(0, max(extent, 1), total.shape) if e is None else e.evaluate(values)
        total = total * extent + index
    return total


def _sectors(touched: np.ndarray, active: np.ndarray, size: int) -> tuple[float, float]:
    """Mean number of sectors of the requests, and of the sectors that their distinct bytes fill."""
    pieces = np.where(active[..., None], touched, -1).reshape(len(touched), -1)
    unit = min(size, WORD_BYTES)
    sectors = _distinct(np.where(pieces < 0, -1, pieces // SECTOR_BYTES))
    filled = np.ceil(_distinct(pieces) * unit / SECTOR_BYTES)
    return float(sectors.mean()), float(filled.mean())


def _distinct(rows: np.ndarray) -> np.ndarray:
    """Distinct values in each row, not counting -1."""
    return _new(np.sort(rows, axis=1)).sum(axis=1)


def _new(ordered: np.ndarray) -> np.ndarray:
    """Where a sorted row has its first of a value, -1 apart."""
    new = np.ones_like(ordered, dtype=bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return new & (ordered >= 0)


def _passes(touched: np.ndarray, active: np.ndarray, width: int) -> float:
    """Mean passes over the banks for each group of threads that is served together."""
    threads = WARP_SIZE if width <= WORD_BYTES else max(WARP_SIZE * WORD_BYTES // width, 1)
    words = np.where(active[..., None], touched // WORD_BYTES, -1)
    groups = words.reshape(-1, threads * words.shape[2])
    groups = groups[(groups >= 0).any(axis=1)]
    row, column = np.nonzero(_new(ordered := np.sort(groups, axis=1)))
    degree = np.bincount(row * BANKS + ordered[row, column] % BANKS, minlength=len(groups) * BANKS).reshape(-1, BANKS)
    return float(degree.max(axis=1).mean())
