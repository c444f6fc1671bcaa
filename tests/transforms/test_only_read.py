"""Contract keeps the box of the cells that are read; what would be written elsewhere is not written."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from explorer.ir.text import loops_text
from explorer.schedule import Schedule
from tests.oracle import run_order
from tests.properties.programs import define
from tests.properties.trial import Trial

FEW = """@ex.program
def few(x: ex.f32[N], y: ex.f32[3]):
    t = ex.local(ex.f32, N)
    for a in range(N):
        t[a] = 2 * x[a]
    for i in range(3):
        y[i] = t[2 - i] + 1
"""
ROWS = """@ex.program
def rows(x: ex.f32[M, N, K], y: ex.f32[M, 4]):
    t = ex.local(ex.f32, (M, N))
    for i in range(M):
        for a in range(N):
            t[i, a] = 0
            for k in range(K):
                t[i, a] += x[i, a, k]
        for j in range(4):
            y[i, j] = t[i, 2*j + 5]
"""
CHAIN = """@ex.program
def carried(x: ex.f32[N], y: ex.f32[2]):
    t = ex.local(ex.f32, N)
    t[0] = x[0]
    for a in range(1, N):
        t[a] = t[a - 1] + x[a]
    for i in range(2):
        y[i] = t[i + 4]
"""


def few(n: int = 16) -> Schedule:
    return define(FEW, "few.py").schedule(N=n)


def rows() -> Schedule:
    return define(ROWS, "rows.py").schedule(M=3, N=19, K=10)


def computes(s: Schedule) -> None:
    """The text gives what NumPy gives for the program as the user wrote it."""
    trial = Trial(shrinks=0)
    trial.conclude("read", s)
    trial.flush()
    assert not trial.tally.found, "\n".join(map(str, trial.tally.found))
    assert trial.tally.pairs


@pytest.mark.parametrize(("make", "shape"), [
    (lambda: few().contract("t"), (3,)),
    (lambda: few().contract("t", "shared", pad=1), (3,)),
    (lambda: few().cut("a", 8).contract("t"), (3,)),
    (lambda: few(17).split("a", 4).unroll("a.i").contract("t"), (3,)),
    (lambda: few(17).split("a", 8).bind("a.i", "thread.x").bind("i", "thread.x").contract("t", "shared"), (3,)),
    (lambda: few().contract("t").contract("t", "shared"), (3,)),
    (lambda: rows().bind("i", "block.x").contract("t"), (7,)),
    (lambda: rows().contract("t", at="rows"), (3, 7)),
    (lambda: rows().bind("i", "block.x").bind("k", "thread.x").collect("t", "shuffle").contract("t", "shared"), (7,)),
    (lambda: rows().bind("i", "block.x").bind("a", "thread.y").bind("k", "thread.x").collect("t", "shared")
     .bind("j", "thread.x").contract("t", "shared"), (7,)),
    (lambda: define(CHAIN, "carried.py").schedule(N=24).contract("t"), (23,)),
])
def test_cells_that_nothing_reads_are_not_kept(make: Callable[[], Schedule], shape: tuple[int, ...]) -> None:
    s = make()
    assert s.plan.buffer_of["t"].shape == shape
    computes(s)


def test_what_lies_beside_is_not_written() -> None:
    s = few().contract("t")
    assert "where a < 3" in loops_text(s.plan)
    assert [point for *_, name, point in run_order(s.plan) if name == "S0"] == [(0,), (1,), (2,)]


def test_all_cells_stay_where_all_are_read() -> None:
    s = few(3).contract("t")
    assert s.plan.buffer_of["t"].shape == (3,)
    assert s.plan.program == few(3).plan.program


def test_in_global_memory_again_only_what_is_read_is_written() -> None:
    s = few().contract("t").contract("t", "global")
    assert not s.plan.buffers
    computes(s)
