"""A launch that copies factors before a product: with one of their axes moved last, or with their rows padded."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ...ir.plan import Plan
from ...ir.tree import Node
from .._steps import Builder, chain

TILE, THREADS_DOWN = 64, 8
"""Elements of a transposed tile along each of two axes, and threads across it."""
PAIR_BYTES = 4
"""Bytes that a lane of a transposing copy takes at a time."""
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
    tiles = {name: _tiled(b, name, copies[name], laid.moved) for name, laid in wanted.items() if laid.moved is not None}
    grids = [[b.extent(loop) if loop else 1 for loop in t.blocks] for t in tiles.values()]
    idle = prod(map(max, zip(*grids, strict=True))) > sum(map(prod, grids)) if grids else False
    for name in wanted:
        if name in tiles:
            _transposed(b, name, tiles[name], one_axis=idle)
        else:
            _row_by_row(b, copies[name])
    return product


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
    """The loops of a copy in square tiles: over tiles, before, across and along the moved axis ("" for none); within a tile."""

    blocks: tuple[str, str, str]
    inside: tuple[str, ...]
    lanes: str


def _tiled(b: Builder, array: str, nest: str, axis: int) -> _Tiles:
    """Divide a copy whose last axis was `axis` of the array into square tiles."""
    *outer, row, moved = (x.id for x in chain(b.plan.loops[nest]))
    size, inside = b.plan.array_of[array].dtype.bytes, list[str]()
    wide, room = max(1, PAIR_BYTES // size), TILE
    for loop in reversed((*outer[axis:], row)):  # as many whole rows as make a tile
        extent = b.extent(loop)
        part = extent if extent <= (room + TILE // 2 if loop == row else room) else max(1, room)
        room //= part
        if part > 1 or loop == row:
            inside.insert(0, b.plan.fresh(f"{loop}.i"))
            b.do("split", loop, part, inner=inside[0])
    lanes = b.plan.fresh(f"{moved}.i")
    b.do("split", moved, min(TILE, -(-b.extent(moved) // wide) * wide), inner=lanes)
    b.do("reorder", (*outer[:axis], moved, *outer[axis:], row, *inside, lanes))
    for group in (outer[:axis], [*outer[axis:], row]):
        if len(group) > 1:
            b.do("coalesce", tuple(group))
    return _Tiles((outer[0] if axis else "", moved, (outer[axis:] or [row])[0]), tuple(inside), lanes)


def _transposed(b: Builder, array: str, tiles: _Tiles, one_axis: bool) -> None:
    """Such a copy through shared memory: read and written along memory.

    Copies of one launch share a grid.  With `one_axis` its blocks lie along one: where along three most of them would do nothing.
    """
    blocks, inside, lanes = tuple(filter(None, tiles.blocks)), list(tiles.inside), tiles.lanes
    if one_axis:
        b.do("coalesce", blocks).do("bind", blocks[0], "block.x")
    else:
        for loop, role in zip(tiles.blocks, ("block.z", "block.y", "block.x"), strict=True):
            if loop:
                b.do("bind", loop, role)
    size = b.plan.array_of[array].dtype.bytes
    wide, down = max(1, PAIR_BYTES // size), inside[-1]
    if b.extent(down) > THREADS_DOWN:
        down = b.plan.fresh(f"{inside[-1]}.t")
        b.do("split", inside[-1], THREADS_DOWN, inner=down)
    b.do("bind", down, "thread.y")
    pair = b.plan.fresh(f"{lanes}.v")
    if wide > 1 and b.extent(lanes) % wide == 0 and b.extent(lanes) > wide:
        b.do("split", lanes, wide, inner=pair)
    b.do("bind", lanes, "thread.x")
    staged(b, array, blocks[0] if one_axis else blocks[-1], wide)
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
