"""A launch that copies factors before a product: with one of their axes moved last, or with their rows padded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from ...ir.plan import Plan
from ...ir.tree import Node
from .._steps import Builder, chain

TILE, THREADS_DOWN = 64, 8
"""Elements of a transposed tile along each of two axes, and threads across it."""
PAIR_BYTES = 4
"""Bytes that a lane of a transposing copy takes at a time."""
LEAST_TILE, BLOCKS = 8, 128
"""Rows of a tile at least, and how many tiles an array is cut into first: what one block does is latency."""
FEW_BLOCKS = 4 * BLOCKS
"""Of all copies of a launch, for each of which a block is worth more than that blocks copy one after another."""
THREADS, EACH = 256, 4
"""Threads of a block that copies rows, and elements of one of its threads."""


@dataclass(frozen=True)
class Laid:
    """How a copy lies in memory.

    Attributes
    ----------
    axes : tuple of int
        The array's axes in the copy's order.
    pad : int
        Unused elements behind each row.
    """

    axes: tuple[int, ...]
    pad: int = 0

    @property
    def moved(self) -> int | None:
        """The axis that comes last and was not; None where all stay in their order."""
        return None if self.axes == tuple(range(len(self.axes))) else self.axes[-1]


def copied_first(b: Builder, kernel: str, wanted: dict[str, Laid]) -> str:
    """Inputs that a kernel alone reads copied in a launch before it; the kernel's new name.

    Parameters
    ----------
    b : Builder
    kernel : str
    wanted : dict of str to Laid
        Array to how its copy lies.

    Raises
    ------
    TransformError, IllegalSchedule
        If an array is not an input that is only read.
    """
    copies = dict[str, str]()
    for name, laid in wanted.items():
        known = {n.id for n in _body(b.plan, kernel)}
        b.do("rearrange", name, laid.axes, pad=laid.pad)
        (copies[name],) = (n.id for n in _body(b.plan, kernel) if n.id not in known)
    kernels = {k.id for k in b.plan.kernels}
    b.do("launch", kernel, after=copies[next(iter(wanted))])  # the first one that was made stands right before the product
    (product,) = (k.id for k in b.plan.kernels if k.id not in kernels)
    tiles = {name: _tiled(b, name, copies[name], laid) for name, laid in wanted.items() if laid.moved is not None}
    tiles = _over_blocks(b, tiles)
    for name in wanted:
        if name in tiles:
            _transposed(b, name, tiles[name])
        else:
            _row_by_row(b, copies[name])
    return product


def _over_blocks(b: Builder, tiles: dict[str, _Tiles]) -> dict[str, _Tiles]:
    """The tiles of all copies of a launch, each with the loops that its blocks run along: up to three, or a single bound one.

    Along three axes each copy has the blocks with the lowest numbers, and a block copies a tile of each, one after another.  One
    axis is better where three would leave most blocks idle, as where one copy has many images and another one many channels.
    """
    grids = [[b.extent(loop) for loop in t.blocks] for t in tiles.values()]
    every = sum(map(prod, grids))
    largest = map(max, zip(*([1] * (3 - len(grid)) + grid for grid in grids), strict=True))  # along z, y and x
    few = every <= FEW_BLOCKS
    if len(tiles) < 2 or not (few or prod(largest) > every):
        return tiles
    for t in tiles.values():
        b.do("coalesce", t.blocks)
    tops = [t.blocks[0] for t in tiles.values()]
    if few:
        tops = [_one_after_the_other(b, tops)] * len(tops)
    for loop in dict.fromkeys(tops):
        b.do("bind", loop, "block.x")
    return {name: replace(t, blocks=(top,)) for (name, t), top in zip(tiles.items(), tops, strict=True)}


def _one_after_the_other(b: Builder, loops: list[str]) -> str:
    """Iterations of their own for each of several copies in one loop, so that none waits for another in its block.

    Before::

        for x in 0…448
            x_a[…] = …
        for f in 0…256
            f_a[…] = …

    After::

        for x in 0…704
            x_a[…] = …     # where x < 448
            f_a[…] = …     # where x >= 448
    """
    here = next(k for k in b.plan.kernels if any(n.id == loops[0] for n in k.body))
    first, *others = sorted(loops, key=[n.id for n in here.body].index)
    for loop in others:
        b.do("shift", loop, b.extent(first)).do("fuse", first, loop)
    return first


def _row_by_row(b: Builder, nest: str) -> None:
    """A copy with its axes in their order: neighbours by neighbouring threads, several elements of each thread in flight."""
    *outer, row = (x.id for x in chain(b.plan.loops[nest]))
    each, lane = b.plan.fresh(f"{row}.u"), b.plan.fresh(f"{row}.t")
    if len(outer) > 1:
        b.do("coalesce", tuple(outer))
    if b.extent(row) > THREADS or not outer:  # parts of a row
        b.do("split", row, THREADS * EACH, inner=each).do("split", each, THREADS, inner=lane)
        if outer:
            b.do("coalesce", (outer[0], row))
    else:  # several rows
        lane = row
        b.do("split", outer[0], 2 * EACH, inner=each)
    b.do("bind", (outer or [row])[0], "block.x").do("bind", lane, "thread.x")
    b.attempt("unroll", each)


@dataclass(frozen=True)
class _Tiles:
    """The loops of a copy in square tiles: over tiles, before, across and along the moved axis; within a tile, and its lanes."""

    blocks: tuple[str, ...]
    inside: tuple[str, ...]
    lanes: str


def _tiled(b: Builder, array: str, nest: str, laid: Laid) -> _Tiles:
    """Divide a copy into square tiles of its last axis, `moved` of the array, and of what follows that axis in the array."""
    loops, moved = dict(zip(laid.axes, (x.id for x in chain(b.plan.loops[nest])), strict=True)), laid.axes[-1]
    size, inside, extents = b.plan.array_of[array].dtype.bytes, list[str](), b.plan.array_of[array].shape
    wide = max(1, PAIR_BYTES // size)
    before = [loops[n] for n in laid.axes if n < moved]
    behind = [loops[n] for n in laid.axes if n > moved]
    room, row, width = TILE, loops[len(extents) - 1], min(TILE, -(-extents[moved] // wide) * wide)
    while room > LEAST_TILE and prod(extents) < BLOCKS * room * width:
        room //= 2
    for loop in (loops[n] for n in reversed(range(moved + 1, len(extents)))):  # as many whole rows as make a tile
        extent = b.extent(loop)
        part = extent if extent <= (room + TILE // 2 if loop == row else room) else max(1, room)
        room //= part
        if part > 1 or loop == row:
            inside.insert(0, b.plan.fresh(f"{loop}.i"))
            b.do("split", loop, part, inner=inside[0])
    lanes = b.plan.fresh(f"{loops[moved]}.i")
    b.do("split", loops[moved], width, inner=lanes)
    b.do("reorder", (*before, loops[moved], *behind, *inside, lanes))
    for group in (before, behind):
        if len(group) > 1:
            b.do("coalesce", tuple(group))
    return _Tiles((*before[:1], loops[moved], behind[0]), tuple(inside), lanes)


def _transposed(b: Builder, array: str, tiles: _Tiles) -> None:
    """Such a copy through shared memory: read and written along memory."""
    blocks, inside, lanes, at = tiles.blocks, list(tiles.inside), tiles.lanes, tiles.blocks[-1]
    if len(blocks) > 1:
        for loop, role in zip(blocks, ("block.z", "block.y", "block.x")[-len(blocks):], strict=True):
            b.do("bind", loop, role)
    size = b.plan.array_of[array].dtype.bytes
    if len(inside) > 1 and max(map(b.extent, inside)) < THREADS_DOWN:  # no loop alone gives all threads their part
        b.do("coalesce", tuple(inside))
        inside = inside[:1]
    wide, longest = max(1, PAIR_BYTES // size), max(reversed(inside), key=b.extent)
    down = longest
    if b.extent(down) > THREADS_DOWN:
        down = b.plan.fresh(f"{longest}.t")
        b.do("split", longest, THREADS_DOWN, inner=down)
    b.do("bind", down, "thread.y")
    pair = b.plan.fresh(f"{lanes}.v")
    if wide > 1 and b.extent(lanes) % wide == 0 and b.extent(lanes) > wide:
        b.do("split", lanes, wide, inner=pair)
    b.do("bind", lanes, "thread.x")
    staged(b, array, at, wide)
    if pair in b.plan.loops:
        staged_again(b, array, lanes)
        if not b.attempt("vectorize", pair):
            b.do("unroll", pair)
    for loop in inside:
        if loop in b.plan.loops and b.plan.loops[loop].role == "seq":
            b.attempt("unroll", loop)


def staged(b: Builder, array: str, at: str, wide: int) -> None:
    """A tile in shared memory, by the widest accesses of a thread that it allows; columns of it lie in different banks."""
    while wide > 1:
        if b.attempt("stage", array, at, vector=wide, pad=wide):
            return
        wide //= 2
    b.do("stage", array, at, pad=1)


def staged_again(b: Builder, array: str, at: str) -> None:
    """What a thread writes side by side is brought together in its registers."""
    copy = next(c.name for c in reversed(b.plan.copies) if c.reads[0].array == array)
    b.attempt("stage", copy, at, space="register")


def _body(plan: Plan, kernel: str) -> tuple[Node, ...]:
    return next(k.body for k in plan.kernels if k.id == kernel)
