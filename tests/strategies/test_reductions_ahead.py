"""What finishes a result besides its sum is asked for before the sum."""

from __future__ import annotations

import pytest

import explorer as ex
from benchmarks.reduction_program import reduction
from explorer.schedule import Schedule
from explorer.strategies.auto import auto
from explorer.strategies.reductions import Shape, reduce
from explorer.transforms.stage import Stage

from .stitched import run_all

M, N = ex.sizes("M N")


@ex.program
def columns(x: ex.f16[M, N], s: ex.f16[N], b: ex.f32[N], y: ex.f16[N]):
    for k in range(N):
        total = ex.local(ex.f32)
        total = 0.0
        for i in range(M):
            total += x[i, k]
        y[k] = total * s[k] + b[k]


@ex.program
def rows(x: ex.f32[M, N], s: ex.f32[M], b: ex.f32[M], y: ex.f32[M]):
    for i in range(M):
        total = ex.local(ex.f32)
        total = 0.0
        for k in range(N):
            total += x[i, k]
        y[i] = total * s[i] + b[i] * s[i]


@ex.program
def first_too(x: ex.f32[M, N], s: ex.f32[M], y: ex.f32[M], z: ex.f32[M]):
    for i in range(M):
        total = ex.local(ex.f32)
        total = 0.0
        for k in range(N):
            total += x[i, k]
        y[i] = total - x[i, 0] + s[i]
        z[i] = total * s[i]


@ex.program
def far_apart(x: ex.f32[M, N], s: ex.f32[M, N], y: ex.f32[M]):
    for i in range(M):
        total = ex.local(ex.f32)
        total = 0.0
        for k in range(N):
            total += x[i, k]
        y[i] = total + s[i, 0] + s[i, 3] + s[i, N - 1]


def ahead(schedule: Schedule) -> list[tuple[str, int]]:
    """Arrays that are staged at the start, with the elements of an access."""
    return [(step.array, step.vector) for step in schedule.steps if isinstance(step, Stage) and step.early]


@pytest.mark.parametrize("program", [columns, rows])
def test_factor_and_offset_are_asked_for_before_the_sum(program: ex.Definition) -> None:
    made = auto(program.schedule(M=512, N=1213))
    assert ahead(made) == [("s", 1), ("b", 1)]
    text = made.cuda[made.cuda.index('extern "C"'):]
    assert max(text.index("s["), text.index("b[")) < text.index("block_reduce")
    assert text.count(" s[") == text.count(" b[") == 1


def test_neighbouring_results_of_a_thread_are_one_access_as_long_as_there_is_room() -> None:
    wide = reduce(columns.schedule(M=512, N=8192), shape=Shape(8, 64, 8, 8, 1))
    assert ahead(wide) == [("s", 8)]  # 4 words; 8 more are too many
    half = reduce(columns.schedule(M=512, N=8192), shape=Shape(8, 64, 4, 8, 1))
    assert ahead(half) == [("s", 4), ("b", 4)]


def test_a_thread_that_has_a_sum_to_itself_asks_for_nothing_ahead() -> None:
    assert ahead(reduce(rows.schedule(M=1000, N=13), shape=Shape(128, 1, 1, 13, 1, flat=True))) == []
    assert ahead(reduce(reduction((512, 1213), (0,), "f32", "sum"))) == []


def test_an_array_is_asked_for_once_and_not_where_the_sum_reads_it() -> None:
    assert ahead(reduce(first_too.schedule(M=20, N=101), shape=Shape(32, 4, 1, 4, 1))) == [("s", 1)]


def test_what_lies_too_far_apart_for_registers_is_left() -> None:
    shape = Shape(32, 4, 1, 4, 1)
    assert ahead(reduce(far_apart.schedule(M=20, N=101), shape=shape)) == []
    assert ahead(reduce(far_apart.schedule(M=20, N=7), shape=shape)) == [("s", 1)]


def test_what_is_asked_for_ahead_is_right() -> None:
    shapes = (Shape(8, 16, 8, 4, 1), Shape(16, 8, 4, 4, 1), Shape(16, 8, 1, 4, 1))
    made = [reduce(columns.schedule(M=50, N=200), shape=s) for s in shapes] + [auto(columns.schedule(M=50, N=201))]
    made += [auto(rows.schedule(M=33, N=n)) for n in (64, 413)]
    made.append(reduce(first_too.schedule(M=20, N=101), shape=Shape(32, 4, 1, 4, 1)))
    assert all(map(ahead, made))
    run_all(made)
