"""Reductions over blocks at sizes that fill a GPU, joined in every way: for repeated runs, the sanitizer and timing."""

from __future__ import annotations

from collections.abc import Iterator

from explorer import f32, sizes
from explorer.frontend.definition import program
from explorer.schedule import Schedule

M, N = sizes("M N")
PARTS = "cluster parts"
"""Parts in the shared memory of one block of a cluster; ``cluster`` alone updates the elements by one value of each cluster."""
HOWS = ("atomic", "kernel", "last_block", "handoff", "grid", "cluster", PARTS)
DETERMINISTIC = HOWS[1:]


@program
def total(x: f32[N], y: f32[1]):
    y[0] = 0.0
    for k in range(N):
        y[0] += x[k]


@program
def rows(x: f32[M, N], y: f32[M]):
    for i in range(M):
        y[i] = 0.0
    for i in range(M):
        for k in range(N):
            y[i] += x[i, k]


@program
def columns(x: f32[N, M], y: f32[M]):
    for j in range(M):
        y[j] = 0.0
    for j in range(M):
        for k in range(N):
            y[j] += x[k, j]


def _whole(n: int, parts: int, threads: int) -> int:
    """Iterations of a part, a multiple of the threads that share them."""
    return -(-n // (parts * threads)) * threads


def total_spread(n: int, blocks: int, threads: int = 256) -> Schedule:
    """One element, updated by all threads of all blocks."""
    s = total.schedule(N=n).launch("total", after="S0")
    return s.split("k", _whole(n, blocks, threads)).bind("k", "block.x").bind("k.i", "thread.x", count=threads)


def rows_spread(m: int, n: int, parts: int, threads: int = 256) -> Schedule:
    """One element for each row, a few blocks to a row."""
    s = rows.schedule(M=m, N=n).launch("rows", after="i").bind("i", "block.x").bind("i_2", "block.x")
    return s.split("k", _whole(n, parts, threads)).bind("k", "block.y").bind("k.i", "thread.x", count=threads)


def columns_spread(m: int, n: int, parts: int, x: int = 32, y: int = 8) -> Schedule:
    """Tiles of columns, a few blocks of rows to a tile."""
    s = columns.schedule(M=m, N=n).launch("columns", after="j").bind("j", "block.x").split("j_2", x)
    s = s.bind("j_2", "block.x").bind("j_2.i", "thread.x").split("k", _whole(n, parts, y)).bind("k", "block.y")
    return s.bind("k.i", "thread.y", count=y)


def joined(s: Schedule, how: str) -> Schedule:
    """The updates combined over blocks, and over threads."""
    if how == PARTS:
        s = s.collect("y", "handoff")
        kernel = s.plan.kernels[-1].id
        return s.join(kernel, "launch").join(kernel, "cluster")
    joined = ("last_block", "handoff", "grid", "cluster")
    return s.collect("y", how) if how in joined else s.collect("y", "shuffle").collect("y", how)


def schedules(small: bool = False) -> Iterator[tuple[str, str, Schedule]]:
    """Name, way and schedule; `small` for the sanitizer.

    A cluster has 8 blocks at most, 16 on an H200, so it gets fewer parts.
    """
    for how in HOWS:
        few = how in ("cluster", PARTS)
        blocks = 16 if how == PARTS else 8 if few else 32 if small else 264
        yield "total", how, joined(total_spread(20_001 if small else 1 << 22, blocks), how)
        yield "rows", how, joined(rows_spread(5 if small else 37, 1_003 if small else 100_003, 4 if small or few else 16), how)
        yield "columns", how, joined(columns_spread(70 if small else 1_000, 90 if small else 20_001, 6 if few else 7), how)
