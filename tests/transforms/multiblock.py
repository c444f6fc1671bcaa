"""Reductions over blocks in every shape, for tests of what joins their parts."""

from __future__ import annotations

from collections.abc import Iterator

from explorer.schedule import Schedule
from tests.properties.programs import define

TOTAL = """@ex.program
def total(x: ex.f32[N], y: ex.f32[1]):
    y[0] = 0.0
    for k in range(N):
        y[0] += x[k]
"""
ROWS = """@ex.program
def rows(x: ex.f32[M, N], y: ex.f32[M]):
    for i in range(M):
        y[i] = 0.0
    for i in range(M):
        for k in range(N):
            y[i] += x[i, k]
"""
COLUMNS = """@ex.program
def columns(x: ex.f32[N, M], y: ex.f32[M]):
    for j in range(M):
        y[j] = 0.0
    for j in range(M):
        for k in range(N):
            y[j] += x[k, j]
"""
SHARES = """@ex.program
def shares(x: ex.f32[N], y: ex.f32[N]):
    total = ex.local(ex.f32, 1)
    total[0] = 0.0
    for k in range(N):
        total[0] += x[k]
    for i in range(N):
        y[i] = x[i] / total[0]
"""
PEAKS = ROWS.replace("y[i] = 0.0", "y[i] = -ex.inf").replace("y[i] += x[i, k]", "y[i] = max(y[i], x[i, k])")


def start(text: str, **sizes: int) -> Schedule:
    """The program as written, the start of its elements in a launch of its own."""
    s = define(text, "multiblock.py").schedule(**sizes)
    return s.launch(s.plan.kernels[0].id, after=s.plan.kernels[0].body[0].id)


def spread(name: str) -> Schedule:
    """Updates of one element in several blocks, open for `collect`."""
    if name == "total":
        return start(TOTAL, N=250).split("k", 16).bind("k", "block.x").split("k.i", 2).bind("k.i", "thread.x")
    if name == "total, one thread":
        return start(TOTAL, N=200).split("k", 16).bind("k", "block.x")
    if name == "total, two block axes":
        s = start(TOTAL, N=250).split("k", 32).split("k.i", 8)
        return s.bind("k", "block.x").bind("k.i", "block.y").bind("k.i.i", "thread.x")
    if name == "total, many blocks":
        return start(TOTAL, N=250).split("k", 4).bind("k", "block.x").bind("k.i", "thread.x")
    if name in ("rows", "peaks"):
        s = start(ROWS if name == "rows" else PEAKS, M=7, N=100).bind("i_2", "block.x").split("k", 32).bind("k", "block.y")
        return s.split("k.i", 16, inner="t").bind("t", "thread.x")
    if name == "rows, two to a block":
        s = start(ROWS, M=7, N=100).split("i_2", 2).bind("i_2", "block.x").bind("i_2.i", "thread.y")
        return s.split("k", 32).bind("k", "block.y").split("k.i", 16, inner="t").bind("t", "thread.x")
    if name == "columns":
        s = start(COLUMNS, M=40, N=50).split("j_2", 16).bind("j_2", "block.x").bind("j_2.i", "thread.x")
        return s.split("k", 8).bind("k", "block.y").split("k.i", 4, inner="t").bind("t", "thread.y")
    assert name == "columns, one row of threads"
    s = start(COLUMNS, M=40, N=50).split("j_2", 16).bind("j_2", "block.x").bind("j_2.i", "thread.x")
    return s.split("k", 8).bind("k", "block.y")


NAMES = ("total", "total, one thread", "total, two block axes", "total, many blocks", "rows", "peaks", "rows, two to a block",
         "columns", "columns, one row of threads")


def every(*hows: str) -> Iterator[tuple[str, Schedule]]:
    """Each shape joined in each way."""
    for name in NAMES:
        for how in hows:
            yield f"{name}, {how}", spread(name).collect("y", how)


def apart(s: Schedule) -> tuple[Schedule, str]:
    """Parts in registers until each is written once, and the launch that joins them."""
    made = s.collect("y", "handoff")
    name = made.plan.kernels[-1].id
    return made.join(name, "launch"), name
