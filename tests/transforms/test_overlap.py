"""Products in flight: where they are legal, what is refused with which instances, and that they are right as late as can be."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import explorer as ex
from explorer.errors import IllegalSchedule, TransformError
from explorer.ir.tree import Sync, walk
from explorer.kernel.emit import emit
from explorer.poly.groups import PRODUCTS
from explorer.poly.products import check_products
from explorer.run.nvrtc.compiler import compile_module
from explorer.strategies.contraction.form import product_form
from explorer.strategies.contraction.moves import build
from explorer.strategies.contraction.shapes import Tiling
from tests.strategies.products import product


def tiled(stages: int = 3, rows: int = 64, right: str = "n", accumulator: ex.DType = ex.f32, **sizes: int) -> ex.Schedule:
    """A product of a warpgroup for each 64 rows, its factors brought by bulk copies, each product waited for at once."""
    program = product(ex.f16, accumulator, "n", right).schedule(**{"M": 72, "N": 40, "K": 328, **sizes})
    form = product_form(program, program.plan.kernels[0].id)
    assert form is not None
    made = build(program, form, Tiling("warpgroup", rows, 64, 64, rows // 64, 1, stages))
    return program.replay([step for step in made.steps if step.name != "overlap"])


@pytest.mark.parametrize(("stages", "rows", "right"), [(2, 64, "n"), (3, 64, "t"), (3, 128, "n"), (4, 128, "t")])
def test_a_pipeline_has_room_for_one_step_in_flight(stages: int, rows: int, right: str) -> None:
    s = tiled(stages, rows, right).overlap("k")
    assert s.judgement.emittable
    text = s.cuda[s.cuda.index('extern "C"'):]
    issued, waited, met, copied, closed, left = (text.index(x, text.index("k.wait")) for x in (
        "wgmma_m64n64_f16_f16_f32_async<4>(s, ", "wgmma_wait<1>(s)", "__syncthreads()", "bulk_copy_2d", "mbarrier_arrive",
        "wgmma_wait<0>(s)"))
    assert issued < waited < met < copied < closed < left
    assert s.run(device="cpu", time=False).correct
    (kernel,) = compile_module(emit(s.plan), "sm_90").kernels.values()
    assert not kernel.spill_store_bytes


def test_two_steps_in_flight_need_one_slot_more() -> None:
    with pytest.raises(IllegalSchedule) as refused:
        tiled(3).overlap("k", steps=2)
    assert "x_s[0, 0, 3, 0, 0] may write x_s[0, 0, 0] while S1[0, 0, 0] is in flight" in str(refused.value)
    assert "try: overlap('k') instead" in str(refused.value)
    written = tiled(3)
    roomy = [step if step.name != "pipeline" else replace(step, buffers=4) for step in written.steps]
    s = product(ex.f16, ex.f32, "n", "n").schedule(M=72, N=40, K=328).replay(roomy).overlap("k", steps=2)
    assert s.run(device="cpu", time=False).correct


def test_none_in_flight_is_a_wait_in_every_step() -> None:
    s = tiled().overlap("k", steps=0)
    assert [n.pending for n in walk(s.plan.kernels[0].body) if isinstance(n, Sync) and n.kind == PRODUCTS.wait] == [0]
    assert s.run(device="cpu", time=False).correct


@pytest.mark.parametrize("name", ["k.products", "k.done"])
def test_no_wait_can_be_left_out(name: str) -> None:
    """Without the one copies overwrite what products still read; without the other the sums are used too early."""
    s = tiled().overlap("k")
    found = check_products(s.plan.replace_node(name))
    assert found
    assert {f.kind for f in found} == ({"anti"} if name == "k.products" else {"flow"})
    assert all("in flight" in f.what for f in found)


def test_a_sum_that_begins_anew_waits_for_the_last_one() -> None:
    """The accumulator of the next tile is the same registers."""
    s = tiled(M=136).bind("i", "seq").overlap("k")
    assert s.judgement.emittable
    (finding, *_) = (f for f in check_products(s.plan.replace_node("k.done")) if f.kind == "output")
    assert str(finding.sink).startswith("S0")
    assert s.run(device="cpu", time=False).correct


def test_what_it_refuses() -> None:
    s = tiled()
    with pytest.raises(TransformError, match="no product of a warpgroup"):
        s.overlap("k.pro")
    with pytest.raises(TransformError, match="in flight already"):
        s.overlap("k").overlap("k")
    with pytest.raises(TransformError, match=re.escape("adds into f16, which is packed")):
        tiled(accumulator=ex.f16).overlap("k")


def test_plain_copies_that_run_ahead_stay_before_the_product() -> None:
    """Threads that write a slot of products in flight are refused; the witness is a write."""
    steps = [replace(step, engine="thread", vector=8) if step.name == "stage" else
             replace(step, asynchronous=False) if step.name == "pipeline" else step for step in tiled().steps]
    plain = product(ex.f16, ex.f32, "n", "n").schedule(M=72, N=40, K=328).replay(steps)
    with pytest.raises(IllegalSchedule, match="while S1"):
        plain.overlap("k")
    assert plain.overlap("k", steps=0).run(device="cpu", time=False).correct


def test_a_loop_without_stages_is_told_to_have_some() -> None:
    """The next tile would be written while products in flight read this one: the proposal is a call, and it helps."""
    s = tiled(1)
    with pytest.raises(IllegalSchedule) as refused:
        s.overlap("k")
    assert "try: pipeline('k', 3) first" in str(refused.value)
    assert s.pipeline("k", 3).overlap("k").judgement.emittable
    with pytest.raises(IllegalSchedule) as fewer:
        s.pipeline("k", 3, buffers=2)
    assert "pipeline('k', 3) instead" in str(fewer.value)
