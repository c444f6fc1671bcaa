"""Schedules with bulk copies: arrays of one to five dimensions, types, swizzles, ragged edges, pipelines."""

from __future__ import annotations

from collections.abc import Callable

import explorer as ex
from explorer.schedule import Schedule
from tests.frontend.support import body

A, B, C, D, E = ex.sizes("A B C D E")


@ex.program
def line(x: ex.f32[E], y: ex.f32[E]):
    for e in range(E):
        y[e] = 2.0 * x[e] + 1.0


@ex.program
def plane(x: ex.f16[D, E], y: ex.f16[D, E]):
    for d in range(D):
        for e in range(E):
            y[d, e] = x[d, e] + 1.0


@ex.program
def wide_plane(x: ex.f64[D, E], y: ex.f64[D, E]):
    for d in range(D):
        for e in range(E):
            y[d, e] = x[d, e] + 1.0


@ex.program
def bytes_(x: ex.i8[D, E], y: ex.i32[D, E]):
    for d in range(D):
        for e in range(E):
            y[d, e] = x[d, e] + 1


@ex.program
def stencil(x: ex.f32[C, D, E], y: ex.f32[C, D, E]):
    for c in range(C):
        for d in range(D):
            for e in range(E):
                y[c, d, e] = 0.0
                for a in range(3):
                    for b in range(3):
                        if 0 <= d + a - 1 < D and 0 <= c + b - 1 < C:
                            y[c, d, e] += x[c + b - 1, d + a - 1, e]


@ex.program
def images(x: ex.f32[B, C, D, E], y: ex.f32[B, D, E]):
    for b in range(B):
        for d in range(D):
            for e in range(E):
                y[b, d, e] = 0.0
                for c in range(C):
                    y[b, d, e] += x[b, c, d, e]


@ex.program
def five(x: ex.f32[A, B, C, D, E], y: ex.f32[A, B, C, D, E]):
    for a in range(A):
        for b in range(B):
            for c in range(C):
                for d in range(D):
                    for e in range(E):
                        y[a, b, c, d, e] = 3.0 * x[a, b, c, d, e]


@ex.program
def every_other(x: ex.f32[C, D, E], y: ex.f32[C, A, E]):
    for c in range(C):
        for a in range(A):
            for e in range(E):
                y[c, a, e] = x[c, 2 * a + 1, e]


@ex.program
def planes(x: ex.f32[C, D, E], y: ex.f32[C, D, E]):
    for c in range(C):
        for d in range(D):
            for e in range(E):
                y[c, d, e] = x[c, d, e] + 1.0


@ex.program
def product(x: ex.f16[D, C], y: ex.f16[C, E], z: ex.f16[D, E]):
    for i in range(D):
        for j in range(E):
            total = ex.local(ex.f32)
            total = 0.0
            for k in range(C):
                total += x[i, k] * y[k, j]
            z[i, j] = total


def vector(n: int = 300, tile: int = 64, swizzle: int = 0) -> Schedule:
    """One dimension; a block for each tile."""
    s = line.schedule(E=n).split("e", tile).bind("e", "block.x").bind("e.i", "thread.x")
    return s.stage("x", "e", engine="bulk", swizzle=swizzle)


def tiles(definition: ex.Definition = plane, d: int = 37, e: int = 72, tile: tuple[int, int] = (16, 64), swizzle: int = 0,
          threads: int = 16) -> Schedule:
    """Two dimensions, a tile for each block."""
    s = definition.schedule(D=d, E=e).split("d", tile[0]).split("e", tile[1]).reorder("d", "e", "d.i", "e.i")
    s = s.bind("d", "block.y").bind("e", "block.x").bind("d.i", "thread.y").split("e.i", threads, "t")
    return s.bind("t", "thread.x").stage("x", "e", engine="bulk", swizzle=swizzle)


def window(d: int = 20, e: int = 44) -> Schedule:
    """Three dimensions, tiles with a halo: boxes begin before the array."""
    s = stencil.schedule(C=3, D=d, E=e).split("d", 8).split("e", 16).reorder("c", "d", "e", "d.i", "e.i")
    s = s.bind("c", "block.z").bind("d", "block.y").bind("e", "block.x").bind("d.i", "thread.y").bind("e.i", "thread.x")
    return s.stage("x", "e", engine="bulk")


def sums_of_images(tile: int = 16, c: int = 5) -> Schedule:
    """Four dimensions, of which a box has three."""
    s = images.schedule(B=2, C=c, D=9, E=20).split("d", 4).split("e", tile).reorder("b", "d", "e", "d.i", "e.i")
    s = s.bind("b", "block.z").bind("d", "block.y").bind("e", "block.x").bind("d.i", "thread.y").bind("e.i", "thread.x")
    return s.stage("x", "e", engine="bulk")


def five_dimensions() -> Schedule:
    """Five dimensions, boxes of four."""
    s = five.schedule(A=2, B=3, C=5, D=6, E=12).split("c", 2).split("d", 4).split("e", 8)
    s = s.reorder("a", "c", "d", "e", "b", "c.i", "d.i", "e.i").bind("a", "block.z").bind("c", "block.y").bind("d", "block.x")
    return s.bind("e.i", "thread.x").bind("d.i", "thread.y").stage("x", "e", engine="bulk")


def rows_apart(a: int = 10) -> Schedule:
    """Every other row of a plane is one of a box."""
    s = every_other.schedule(C=3, A=a, D=2 * a, E=44).split("a", 4).split("e", 16).reorder("c", "a", "e", "a.i", "e.i")
    s = s.bind("c", "block.z").bind("a", "block.y").bind("e", "block.x").bind("a.i", "thread.y").bind("e.i", "thread.x")
    return s.stage("x", "e", engine="bulk")


def rows_as_one(d: int = 6, e: int = 44) -> Schedule:
    """Boxes begin and end within rows of a plane, which the hardware sees as one row."""
    s = planes.schedule(C=3, D=d, E=e).coalesce(("d", "e")).split("d", 64).bind("c", "block.y").bind("d", "block.x")
    return s.bind("d.i", "thread.x").stage("x", "d", engine="bulk")


def tiled_product(stages: int = 1, c: int = 72, d: int = 20, e: int = 40, tile: tuple[int, int, int] = (8, 32, 16),
                  swizzle: tuple[int, int] = (32, 64), slots: int = 0) -> Schedule:
    """A product in tiles; both factors are copied for each step of the sum, in the body of thread loops."""
    s = product.schedule(D=d, E=e, C=c).split("i", tile[0]).split("j", tile[1]).split("k", tile[2])
    s = s.reorder("i", "j", "i.i", "j.i").bind("i", "block.y").bind("j", "block.x").bind("i.i", "thread.y")
    s = s.contract("total", "register").bind("j.i", "thread.x")
    s = s.stage("x", "k", engine="bulk", swizzle=swizzle[0]).stage("y", "k", engine="bulk", swizzle=swizzle[1])
    return s.pipeline("k", stages, buffers=slots) if stages > 1 else s


def several_tiles(stages: int = 3, steps: int = 5) -> Schedule:
    """One block computes all tiles one after the other, so that groups of one tile follow those of the tile before."""
    s = product.schedule(D=16, E=40, C=16 * steps).split("i", 8).split("j", 32).split("k", 16).reorder("i", "j", "i.i", "j.i")
    s = s.bind("i.i", "thread.y").contract("total", "register").bind("j.i", "thread.x")
    s = s.stage("x", "k", engine="bulk", swizzle=32).stage("y", "k", engine="bulk", swizzle=64)
    return s.pipeline("k", stages) if stages > 1 else s


BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "u8": 1, "i32": 4, "i64": 8}


def moved(dtype: str, rows: int, columns: int, tile: tuple[int, int], swizzle: int, threads: int) -> Schedule:
    """Elements just moved through shared memory, by a definition for this type."""
    through = body("for i in range(M):\n    for j in range(N):\n        y[i, j] = x[i, j]",
                   f"x: ex.{dtype}[M, N], y: ex.{dtype}[M, N]")
    s = through.schedule(M=rows, N=columns).split("i", tile[0]).split("j", tile[1]).reorder("i", "j", "i.i", "j.i")
    s = s.bind("i", "block.y").bind("j", "block.x").bind("i.i", "thread.y").split("j.i", threads, "t").bind("t", "thread.x")
    return s.stage("x", "j", engine="bulk", swizzle=swizzle)


def rows_of(dtype: str, swizzle: int) -> tuple[Schedule, ...]:
    """Rows of just the swizzle's bytes, and four times as many; edges that hang over both ways."""
    size = BYTES[dtype]
    row = (swizzle or 64) // size
    return tuple(moved(dtype, 37, 3 * n + 16 // size, (16, n), swizzle, min(row, 16)) for n in (row, 4 * row))


def padded_rows(columns: int = 69, tile: tuple[int, int] = (16, 64), axes: tuple[int, int] = (0, 1)) -> Schedule:
    """Rows of odd length, of a copy that pads them; what lies behind a row is no part of it."""
    s = plane.schedule(D=37, E=columns).rearrange("x", axes, pad=-(columns, 37)[axes[0]] % 8).launch("plane", after="x_a.0")
    s = s.bind("x_a.0", "block.x").bind("x_a.1", "thread.x").split("d", tile[0]).split("e", tile[1])
    s = s.reorder("d", "e", "d.i", "e.i").bind("d", "block.y").bind("e", "block.x").bind("d.i", "thread.y")
    return s.split("e.i", 16, "t").bind("t", "thread.x").stage("x_a", "e", engine="bulk", loops=("e.i", "t", "d.i")[:0])


SCHEDULES: dict[str, Callable[[], Schedule]] = {
    "vector": vector, "long vector": lambda: vector(700, 512), "one tile": lambda: vector(64),
    "a part of a tile": lambda: vector(4), "tiles": tiles, "swizzled tiles": lambda: tiles(swizzle=128),
    "panels": lambda: tiles(d=9, e=264, tile=(8, 256), swizzle=128),
    "f64": lambda: tiles(wide_plane, tile=(16, 16), swizzle=128),
    "f64 64": lambda: tiles(wide_plane, tile=(16, 8), swizzle=64, threads=8),
    "f64 32": lambda: tiles(wide_plane, tile=(16, 4), swizzle=32, threads=4, e=74),
    "i8": lambda: tiles(bytes_, e=80, tile=(8, 32), swizzle=32),
    "i8 128": lambda: tiles(bytes_, e=272, tile=(8, 128), swizzle=128),
    "halo": window, "images": sums_of_images, "five dimensions": five_dimensions,
    "rows apart": rows_apart, "rows as one": rows_as_one,
    "padded rows": padded_rows, "padded rows of the other axis": lambda: padded_rows(24, (16, 16), (1, 0)),
    "product": tiled_product, "two stages": lambda: tiled_product(2), "three stages": lambda: tiled_product(3),
    "four stages": lambda: tiled_product(4), "few steps": lambda: tiled_product(3, 24), "one step": lambda: tiled_product(2, 16),
    "more slots": lambda: tiled_product(3, 104, slots=6),
    "panels in a pipeline": lambda: tiled_product(3, 72, 10, 40, (8, 32, 32), (64, 32)),
    "tile after tile": several_tiles, "tile after tile, at once": lambda: several_tiles(1)}
