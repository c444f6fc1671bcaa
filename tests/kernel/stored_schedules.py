"""Schedules with bulk stores: tiles that threads write to shared memory and an engine stores, alone or one after the other."""

from __future__ import annotations

from collections.abc import Callable

import explorer as ex
from explorer.schedule import Schedule
from tests.kernel.bulk_schedules import bytes_, every_other, five, line, plane, wide_plane


def apart(s: Schedule, box: tuple[str, ...]) -> Schedule:
    """The store in a nest of its own, its temporary in shared memory."""
    s = s.outline("S0")
    for n, loop in enumerate(reversed(box)):
        s = s.distribute(loop, after="S0" if n == 0 else box[-n])
    return s.contract("y_t", "shared")


def tiles(definition: ex.Definition = plane, d: int = 37, e: int = 72, tile: tuple[int, int] = (16, 64),
          swizzle: int = 0) -> Schedule:
    """Two dimensions, a tile for each block; the last ones are beyond the array in part."""
    s = definition.schedule(D=d, E=e).split("d", tile[0]).split("e", tile[1]).reorder("d", "e", "d.i", "e.i")
    s = apart(s, ("d.i", "e.i")).bind("d", "block.y").bind("e", "block.x").bind("d.i", "thread.y").split("e.i", 16, "t")
    s = s.bind("t", "thread.x")
    return (s.swizzle("y_t", swizzle) if swizzle else s).store_bulk("S0_store")


def in_turn(d: int = 37, e: int = 72) -> Schedule:
    """A block's tiles one after the other, through one array."""
    s = plane.schedule(D=d, E=e).split("d", 16).split("e", 64).reorder("d", "e", "d.i", "e.i")
    s = apart(s, ("d.i", "e.i")).bind("e", "block.x").bind("d.i", "thread.y").split("e.i", 16, "t").bind("t", "thread.x")
    return s.store_bulk("S0_store")


def before_the_array() -> Schedule:
    """Tiles of which the first one begins before the array: a box for each row, and none for those before it."""
    s = plane.schedule(D=37, E=72).shift("d", 3).split("d", 16, aligned=True).split("e", 64).reorder("d", "e", "d.i", "e.i")
    s = apart(s, ("d.i", "e.i")).bind("d", "block.y").bind("e", "block.x").bind("d.i", "thread.y").split("e.i", 16, "t")
    return s.bind("t", "thread.x").store_bulk("S0_store")


def panels(swizzle: int = 128) -> Schedule:
    """Rows longer than those of the swizzle: a store for each panel."""
    s = plane.schedule(D=40, E=256).split("d", 16).split("e", 128).reorder("d", "e", "d.i", "e.i")
    s = apart(s, ("d.i", "e.i")).bind("d", "block.y").bind("e", "block.x").bind("d.i", "thread.y").split("e.i", 16, "t")
    s = s.bind("t", "thread.x").swizzle("y_t", swizzle).split("e.i.2", swizzle // 2, "p").reorder("e.i.2", "d.i.2", "p")
    return s.store_bulk("S0_store")


def vector(n: int = 300, tile: int = 64) -> Schedule:
    """One dimension."""
    s = line.schedule(E=n).split("e", tile)
    return apart(s, ("e.i",)).bind("e", "block.x").bind("e.i", "thread.x").store_bulk("S0_store")


def dimensions() -> Schedule:
    """Five of them, two of one block's tile."""
    s = five.schedule(A=2, B=3, C=2, D=6, E=8)
    s = apart(s, ("d", "e")).bind("a", "block.z").bind("b", "block.y").bind("c", "block.x").bind("d", "thread.y")
    return s.bind("e", "thread.x").store_bulk("S0_store")


def by_one_thread() -> Schedule:
    """A block of one thread, with no barrier anywhere."""
    s = plane.schedule(D=10, E=32).split("d", 4)
    return apart(s, ("d.i", "e")).store_bulk("S0_store")


SCHEDULES: dict[str, Callable[[], Schedule]] = {
    "vector": vector,
    "ragged tiles": tiles,
    "swizzled": lambda: tiles(swizzle=128),
    "half swizzled": lambda: tiles(tile=(16, 32), swizzle=64),
    "doubles": lambda: tiles(wide_plane, 20, 24, (8, 16)),
    "integers": lambda: tiles(bytes_, 20, 40, (8, 32)),
    "panels": panels,
    "in turn": in_turn,
    "before the array": before_the_array,
    "five dimensions": dimensions,
    "one thread": by_one_thread,
    "rows apart": lambda: _strided(),
}


def _strided() -> Schedule:
    s = every_other.schedule(C=3, D=9, A=4, E=16)
    return apart(s, ("a", "e")).bind("c", "block.x").bind("a", "thread.y").bind("e", "thread.x").store_bulk("S0_store")
