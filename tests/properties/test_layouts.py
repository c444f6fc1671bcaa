"""Cells of temporaries: reads that turn the order of writes, copies of copies; values that outlive an iteration."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.errors import IllegalSchedule
from explorer.ir.expr import var
from explorer.ir.tree import Leaf
from explorer.poly.judge import judge
from explorer.schedule import Schedule
from explorer.transforms._uses import with_view
from explorer.transforms.contract import Contract

from .programs import define
from .test_copies import Case, run
from .witness import doubt

TURNED = """@ex.program
def f(x: ex.f32[M, N], y: ex.f32[M, N]):
    t = ex.local(ex.f32, M, N)
    for a in range(M):
        for b in range(N):
            t[a, b] = x[a, b] + 1.0
    for c in range(M):
        for d in range(N):
            y[c, d] = t[{}]
"""
SIZES = (("M", 4), ("N", 6))


@pytest.mark.parametrize("index", ["M - 1 - c, N - 1 - d", "c, N - 1 - d", "(c + 1) % M, d", "c, (d + 4) % N", "c, (d + 4) // 3"])
def test_registers_are_found_again_where_reads_turn_the_order_of_writes(index: str) -> None:
    text = TURNED.format(index)
    run(Case("read directly", text, lambda s: s.contract("t"), SIZES),
        Case("through a copy of a copy", text, lambda s: s.stage("t", "d", space="register").stage("t", "c", space="register")
             .contract("t"), SIZES))


def test_cells_of_reads_in_order_stay_those_of_the_loops() -> None:
    plan = define(TURNED.format("c, d"), "turned.py").schedule(M=4, N=6).split("b", 3).split("d", 3).contract("t").plan
    assert plan.buffer_of["t"].shape == (4, 2, 3)


def test_a_wrong_cell_behind_a_copy_of_a_copy_is_seen_by_the_enumeration() -> None:
    s = define(TURNED.format("M - 1 - c, N - 1 - d"), "turned.py").schedule(M=4, N=6)
    plan = s.stage("t", "d", space="register").stage("t", "c", space="register").contract("t").plan

    def unturned(leaf: Leaf) -> Leaf:
        view = leaf.view(0)
        turned = leaf.statement == "t_r_2" and view and view.buffer == "t"
        return with_view(leaf, 0, replace(view, index=(var("c"), *view.index[1:]))) if turned and view else leaf

    wrong = plan.map_leaves(unturned)
    assert wrong != plan
    refusals = judge(wrong).refusals
    assert [f.question for f in refusals] == ["flow"]
    assert [doubt(wrong, f) for f in refusals] == [""]


WINDOW = """@ex.program
def f(x: ex.f32[N + 2], y: ex.f32[N]):
    t = ex.local(ex.f32, N + 2)
    for a in range(N + 2):
        t[a] = x[a] + 1.0
    for i in range(N):
        y[i] = t[i] + t[i + 1] + t[i + 2]
"""


@pytest.mark.parametrize("space", ["shared", "register"])
def test_a_value_that_outlives_an_iteration_is_said_to_with_the_scope_that_helps(space: str) -> None:
    def shifted(s: Schedule) -> Schedule:
        return s.shift("i", 2).fuse("a", "i")

    with pytest.raises(IllegalSchedule) as refused:
        shifted(define(WINDOW, "window.py").schedule(N=9)).contract("t", space)
    said = str(refused.value)
    assert "t lives for one iteration of a" in said
    assert str(Contract("t", space, at="f")) in said
    run(Case(space, WINDOW, lambda s: shifted(s).contract("t", space, at="f"), (("N", 9),)))


ROWS = """@ex.program
def f(x: ex.f32[M, N], y: ex.f32[M - 2, N]):
    t = ex.local(ex.f32, M, N)
    for a in range(M):
        for b in range(N):
            t[a, b] = x[a, b] + 1.0
    for i in range(M - 2):
        for j in range(N):
            y[i, j] = t[i, j] + t[i + 1, N - 1 - j] + t[i + 2, j]
"""


def test_a_window_keeps_the_cells_that_live_at_one_time() -> None:
    def ring(s: Schedule, space: str) -> Schedule:
        return s.shift("i", 2).fuse("a", "i").contract("t", space, at="f", fold=True)

    def threads(s: Schedule) -> Schedule:
        return ring(s.bind("b", "thread.x").bind("j", "thread.x"), "shared")

    s = define(WINDOW, "window.py").schedule(N=9)
    assert [ring(s, space).plan.buffer_of["t"].shape for space in ("shared", "register")] == [(3,), (3,)]
    rows = define(ROWS, "rows.py").schedule(M=9, N=6)
    assert ring(rows, "shared").plan.buffer_of["t"].shape == (3, 6)
    assert threads(rows).plan.buffer_of["t"].shape == (3, 6)
    run(*(Case(space, WINDOW, lambda s, space=space: ring(s, space), (("N", 9),)) for space in ("shared", "register")),
        Case("rows", ROWS, lambda s: ring(s, "shared"), (("M", 9), ("N", 6))),
        Case("threads", ROWS, threads, (("M", 9), ("N", 6))))


def test_what_lives_all_at_once_is_not_folded() -> None:
    s = define(TURNED.format("M - 1 - c, d"), "turned.py").schedule(M=4, N=6)
    assert s.contract("t", fold=True).plan.buffer_of["t"].shape == (4, 6)
