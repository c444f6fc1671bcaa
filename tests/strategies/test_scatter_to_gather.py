"""Scattered sums gather: the loops that come out, tensor cores where they are products, and what is left alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import explorer as ex
from explorer.frontend.definition import Definition
from explorer.gpu.spec import gpu
from explorer.strategies.auto import auto
from explorer.strategies.default import default
from explorer.strategies.price import price
from explorer.strategies.scatter_to_gather import gathered_sums
from tests.strategies.scattered import PRODUCTS, fold, images, padded_relu, stride_two, strided_and_dilated

SMALL = {"N": 2, "C": 32, "D": 32, "H": 9, "W": 7, "K": 4}
LARGE = {"N": 16, "C": 128, "D": 128, "H": 28, "W": 28, "K": 4}
C, F, H, L, S, T = ex.sizes("C F H L S T")


def sized(program: Definition, sizes: dict[str, int]) -> ex.Schedule:
    return program.schedule(**{name: sizes[name] for name in program.sizes})


def test_each_element_gathers_its_terms() -> None:
    assert str(gathered_sums(padded_relu.schedule(N=2, C=3, D=5, H=4))) == """\
kernel padded_relu
    for n in 0…2
        for d in 0…5
            for o in 0…5
                for o.r in 0…2
                    S0: y[n, d, 2*o + o.r - 1] = 0.0  # where 2*o + o.r >= 1 and 2*o + o.r < 9
                    for c in 0…3
                        for k in 0…2
                            S1: y[n, d, 2*o + o.r - 1] += x[n, c, o - k] * w[c, d, 2*k + o.r]  # where k <= o and o <= k + 3 and \
2*k + o.r < 3 and 2*o + o.r >= 1 and 2*o + o.r < 9
                    S2: z[n, d, 2*o + o.r - 1] = max(y[n, d, 2*o + o.r - 1] + bias[d], 0.0)  # where 2*o + o.r >= 1 and \
2*o + o.r < 9"""


@pytest.mark.parametrize("program", PRODUCTS, ids=lambda p: p.name)
def test_products_reach_tensor_cores_and_are_right(program: Definition) -> None:
    made = auto(sized(program, SMALL))
    assert any(step.name == "tensorize" for step in made.steps)
    assert made.run(time=False).correct


@pytest.mark.parametrize("program", PRODUCTS, ids=lambda p: p.name)
def test_they_cost_a_small_part_of_the_default_schedule(program: Definition) -> None:
    schedule, target = sized(program, LARGE), gpu("H200")
    made = auto(schedule)
    assert any(step.name == "tensorize" for step in made.steps)
    assert price(made.plan, target).total_us < 0.1 * price(default(schedule).plan, target).total_us


def test_sums_of_windows_that_overlap_are_parallel_without_atomics() -> None:
    made = auto(sized(fold, SMALL))
    assert "atomic" not in made.script()
    assert made.run(time=False).correct
    (grid,) = [made.plan.extents[k.id] for k in made.plan.kernels]
    assert np.prod(grid) >= 2 * 32 * (2 * 9 + 2)  # a thread for each element


def test_a_stride_beside_a_dilation_is_left_alone() -> None:
    schedule = strided_and_dilated.schedule(C=3, H=8, K=4)
    assert gathered_sums(schedule) is schedule
    assert auto(schedule).run(time=False).correct


def test_the_steps_are_moves_that_can_be_replayed() -> None:
    made = gathered_sums(sized(stride_two, SMALL))
    again = sized(stride_two, SMALL).replay(made.steps)
    assert again.plan == made.plan
    assert made.judgement.legal
    assert [step.name for step in made.steps][:3] == ["split", "reorder", "skew"]


@pytest.mark.parametrize(("channels", "filters", "height", "width"), [(256, 128, 32, 32), (136, 72, 27, 29)])
def test_persistent_blocks_of_them_are_judged_soon(channels: int, filters: int, height: int, width: int) -> None:
    """Tiles in turn take their place by quotients and remainders of one number, of which isl made minutes.

    In the second one's tiles, 24 pixels of 8 images and 3 blocks of channels, digits are in thirds and in eighths.
    """
    made = auto(images.schedule(N=16, C=channels, D=filters, H=height, W=width))
    assert any(step.name == "persist" for step in made.steps)
    assert made.judgement.legal


@ex.program
def any_stride(x: ex.f32[C, H], w: ex.f32[C, F], y: ex.f32[L]):
    for o in range(L):
        y[o] = 0.0
    for c in range(C):
        for i in range(H):
            for k in range(F):
                if 0 <= S * i + T * k - 2 < L:
                    y[S * i + T * k - 2] += x[c, i] * w[c, k]


def test_a_sum_without_terms_is_no_product() -> None:
    """Every term lies beyond the result: copies of the factors would be read by nobody, behind no barrier."""
    made = auto(any_stride.schedule(C=2, H=2, F=1, L=1, S=3, T=1))
    assert not any(step.name == "stage" for step in made.steps)
    assert made.run(time=False).correct


@settings(max_examples=25, deadline=None)
@given(extent=st.integers(2, 9), taps=st.integers(1, 5), length=st.integers(1, 30), stride=st.integers(1, 4),
       dilation=st.integers(1, 3))
def test_any_stride_dilation_and_length_is_right(extent: int, taps: int, length: int, stride: int, dilation: int) -> None:
    schedule = any_stride.schedule(C=2, H=extent, F=taps, L=length, S=stride, T=dilation)
    made = gathered_sums(schedule)
    overlapping = taps > 1 and (dilation % stride if dilation > stride else stride % dilation or taps * dilation > stride)
    if 1 in (stride, dilation) and overlapping:
        assert made is not schedule
    assert made.judgement.legal
    assert auto(schedule).run(time=False).correct
