"""All buffers of a loop that can be pipelined are, over both levels; the others stay, with their reasons."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.errors import TransformError
from explorer.strategies import pipelined
from explorer.strategies.contraction import build
from explorer.strategies.contraction.form import product_form
from explorer.strategies.contraction.shapes import Tiling
from tests.hazards.corpus import MATMUL, tiles
from tests.strategies.products import product
from tests.transforms.programs import row_sum


def fragments() -> ex.Schedule:
    """A product on fragments, in one stage of each level."""
    written = product(ex.f16, ex.f32, "n", "n").schedule(M=50, N=40, K=104)
    form = product_form(written, written.plan.kernels[0].id)
    assert form is not None
    return build(written, form, Tiling("warp", 32, 32, 32, 2, 2, 1))


def added(before: ex.Schedule, after: ex.Schedule) -> list[str]:
    return [str(step) for step in after.steps[len(before.steps):]]


def test_both_levels() -> None:
    s = fragments()
    made = pipelined(s, "k", stages=3)
    first, second = added(s, made)
    assert first == "pipeline('k', 3, copies=('x_s', 'y_s'))"
    assert "copies=('x_r', 'y_r'), asynchronous=False, across='k'" in second
    assert made.run(device="cpu", time=False).correct


def test_one_level() -> None:
    s = tiles(M=5, N=6).stage("a_s", "k.i", space="register")
    shared = "pipeline('k', 2, copies=('a_s', 'b_s'))"
    register = "pipeline('k.i', 2, copies=('a_r',), asynchronous=False, across='k')"
    assert added(s, pipelined(s, "k", 2)) == [shared, register]
    assert added(s, pipelined(s, "k", 2, register_stages=1)) == [shared]


def test_a_buffer_that_cannot_is_left() -> None:
    """Copies of two bytes cannot be asynchronous."""
    s = tiles(MATMUL.replace("b: ex.f32", "b: ex.f16"), M=6, N=8, K=16)
    assert added(s, pipelined(s, "k")) == ["pipeline('k', 3, copies=('a_s',))"]


def test_where_nothing_can_be_each_verdict_is_told() -> None:
    s = ex.Schedule.of(row_sum())
    with pytest.raises(TransformError, match="can be pipelined"):
        pipelined(s, next(iter(s.plan.loops)))
    with pytest.raises(TransformError, match="takes a schedule"):
        pipelined("s", "k")  # type: ignore[arg-type]
    t = tiles(M=5, N=6)
    for how in ({"stages": "3"}, {"stages": 1}, {"register_stages": 0}, {"engine": 3}):
        with pytest.raises(TransformError):
            pipelined(t, "k", **how)
