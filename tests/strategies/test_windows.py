"""Sums over windows: recognised from accesses, several results a thread, proved and right at ragged sizes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import explorer as ex
from benchmarks import product_programs
from benchmarks.product_cases import CONVS, CONVS_GROUPED, CONVS_LAST
from explorer.errors import ScheduleError
from explorer.gpu.spec import gpu
from explorer.kernel.emit import emit
from explorer.run.nvrtc.compiler import compile_module
from explorer.strategies.auto import auto
from explorer.strategies.windows import Shape, priced, ready_windows, windows
from explorer.strategies.windows.form import WindowForm, window_form

B, C, L, R, Q = ex.sizes("B C L R Q")
H200 = gpu("H200")


@ex.program
def line(x: ex.f32[B, C, L], f: ex.f32[C, R], y: ex.f32[B, C, Q]):
    for b in range(B):
        for c in range(C):
            for q in range(Q):
                total = ex.local(ex.f32)
                total = 0.0
                for r in range(R):
                    total += f[c, r] * x[b, c, q + 2 * r]
                y[b, c, q] = total


def written(program: Any, stride: int = 1, **sizes: int) -> ex.Schedule:
    p, q = ((sizes[n] + 2 * sizes["A"] - sizes[f]) // stride + 1 for n, f in (("H", "R"), ("W", "S")))
    return program.schedule(**{"P": p, "Q": q, "T": stride} | sizes)


def form_of(schedule: ex.Schedule) -> WindowForm:
    _, form = ready_windows(schedule, schedule.plan.kernels[0].id)
    assert form is not None
    return form


FIRST, LAST = product_programs.depthwise, product_programs.depthwise_nhwc
ODD = {"B": 2, "C": 3, "H": 9, "W": 7, "R": 3, "S": 3, "A": 1}
EVEN = {"B": 1, "C": 16, "H": 6, "W": 8, "R": 3, "S": 3, "A": 1}
GROUPS = {"B": 1, "C": 8, "D": 4, "K": 8, "E": 4, "H": 6, "W": 7, "R": 3, "S": 3, "A": 1}


@pytest.mark.parametrize(("program", "stride", "sizes", "shape"), [
    (FIRST, 1, ODD, Shape("h", 4, 1, ("r",))),
    (FIRST, 2, ODD, Shape("h", 2, 1, ("s", "r"))),
    (FIRST, 1, EVEN, Shape("h", 4, 4, ("s", "r"))),
    (FIRST, 2, {**EVEN, "W": 12, "R": 5, "S": 2}, Shape("h", 2, 2, ("s", "r"))),
    (FIRST, 1, ODD, Shape("w", 4, 1, ("s",))),
    (LAST, 1, EVEN, Shape("w", 4, 8, ("s",))),
    (LAST, 2, {**EVEN, "A": 2, "S": 5}, Shape("h", 3, 4, ("r",))),
    (LAST, 1, ODD, Shape("w", 2, 1, ("r", "s"))),
    (product_programs.conv, 1, GROUPS, Shape("h", 4, 1, ("s", "r"))),
    (product_programs.conv_nhwc, 1, GROUPS, Shape("w", 4, 1, ("s", "d"))),
    (product_programs.conv_nhwc, 2, {**GROUPS, "D": 2, "E": 2}, Shape("w", 2, 1, ("s", "d"), last=True)),
])
def test_every_shape_is_right(program: Any, stride: int, sizes: dict[str, int], shape: Shape) -> None:
    made = windows(written(program, stride, **sizes), shape=shape)
    assert made.judgement.emittable
    assert "register x_r" in str(made)
    assert "where" not in next(text for text in made.cuda.splitlines() if "// S1" in text)
    assert made.run(device="cpu", time=False).correct


def test_a_line_with_holes_in_its_filter() -> None:
    schedule = line.schedule(B=2, C=5, L=41, R=3, Q=37)
    form = form_of(schedule)
    assert form.slot == 1  # the data may be the second factor
    assert form.slides == (("q", "r", 1, 2),)
    made = windows(schedule, shape=Shape("q", 4, 1, ("r",)))
    assert "register x_r: f32[8]" in str(made)
    assert made.judgement.emittable
    assert made.run(device="cpu", time=False).correct


def test_what_is_recognised() -> None:
    form = form_of(written(FIRST, **EVEN))
    assert form.slides == (("h", "r", 1, 1), ("w", "s", 1, 1))
    assert (form.data, form.weights, form.vector, form.result_vector) == ("x", "f", 1, 8)
    assert form_of(written(LAST, **EVEN)).vector == 8
    grouped = form_of(written(product_programs.conv_nhwc, **GROUPS))
    assert (grouped.sharing, grouped.run, grouped.run_vector) == (("k.g",), "d", 4)
    assert grouped.weights_last == (1, 2, 3, 0)


@pytest.mark.parametrize("sizes", [{"D": 8, "E": 8}, {"D": 8, "E": 16, "K": 16}])
def test_filters_that_share_much_are_products(sizes: dict[str, int]) -> None:
    schedule = written(product_programs.conv, **{**GROUPS, "C": 8} | sizes)
    form = window_form(schedule, schedule.plan.kernels[0].id)
    assert (form is None) == (sizes["E"] > 8)


def test_a_filter_without_neighbours_has_no_window() -> None:
    schedule = written(product_programs.conv_nhwc, **{**GROUPS, "R": 1, "S": 1, "A": 0})
    assert windows(schedule) is schedule


def test_a_shape_that_leaves_no_threads_is_refused() -> None:
    with pytest.raises(ScheduleError, match="one result"):
        windows(written(FIRST, **ODD), shape=Shape("h", 1, 1, ("r",)))


def test_neighbours_share_loads_and_the_model_knows() -> None:
    form = form_of(written(FIRST, B=16, C=144, H=56, W=56, R=3, S=3, A=1))
    by_shape = dict(priced(form, H200))
    one, eight = (by_shape[Shape("h", n, 1, ("r",))] for n in (2, 8))
    assert eight < 0.7 * one
    (best, _), *_ = priced(form, H200)
    assert best.tile * best.vector >= 8
    (small, _), *_ = priced(form_of(written(FIRST, B=1, C=144, H=56, W=56, R=3, S=3, A=1)), H200)
    assert small.tile * small.vector < best.tile * best.vector  # few images: more threads


@pytest.mark.parametrize("name", ["mbv2-dw-56", "mbv2-dw-112-nhwc", "mbv2-b1-dw-56", "rx50-128-56", "rx50-256-28-nhwc"])
def test_auto_takes_it(name: str) -> None:
    (case,) = (c for c in (*CONVS, *CONVS_LAST, *CONVS_GROUPED) if c.name == name)
    schedule = auto(getattr(product_programs, case.program).schedule(**case.sizes), "H200")
    assert "register x_r" in str(schedule)
    assert all(not k.spill_store_bytes for k in compile_module(emit(schedule.plan), "sm_90").kernels.values())


def test_many_channels_of_a_group_are_left_to_tensor_instructions() -> None:
    sizes = {"B": 32, "H": 14, "W": 14, "C": 512, "D": 16, "K": 512, "E": 16, "R": 3, "S": 3, "A": 1}
    schedule = auto(written(product_programs.conv_nhwc, **sizes), "H200")
    assert "mma_m" in schedule.cuda


def test_each_choice_is_offered_with_its_time() -> None:
    from explorer.strategies.kernel_choices import spread_choices

    schedule = written(FIRST, B=4, C=32, H=28, W=28, R=3, S=3, A=1)
    found = spread_choices(schedule, "depthwise", H200)
    assert found[0].label.startswith("windows, ")
    assert found[0].rank_us is not None
    assert found[1](schedule).judgement.emittable
    assert replace(found[0]).kernel == "depthwise"


def test_few_results_have_a_thread_each() -> None:
    schedule = written(FIRST, **ODD)
    assert windows(schedule) is schedule
    assert "register x_r" not in str(auto(schedule, "H200"))
