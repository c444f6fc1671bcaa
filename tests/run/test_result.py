"""Runs, badges and comparisons say what was done, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.gpu.roofline import roofline
from explorer.gpu.spec import default_gpu
from explorer.ir.dtype import DTYPES
from explorer.run.result import Comparison, Evidence, Run
from explorer.run.timing import Samples, Timing
from explorer.run.verify.outputs import Check, Tolerance

EXACT = Tolerance(DTYPES["f32"], 1, 0.0, 0.0, False)
GOOD = Check("y", 8, 8, 0, 0.0, 0.0, EXACT, "a test")
BAD = replace(GOOD, wrong=1, index=(3,), got=1.0, expected=2.0)


def timing(*samples: float, overhead: float = 0.0) -> Timing:
    return Timing.of(Samples(samples, l2="cold", overhead_us=overhead))


def run(**fields) -> Run:
    return Run(**{"program": "copy", "device": "H200", "sizes": (("N", 8),), "checks": (GOOD,), **fields})


def test_no_tick_is_earned_by_doing_nothing() -> None:
    assert [t.earned for t in Evidence().ticks] == [False] * 5
    assert "✓" not in str(Evidence())


@pytest.mark.parametrize(("fields", "name"), [
    ({"proved": True}, "proved"), ({"orders": 2, "emulated": ("N=7",)}, "emulated"), ({"compiled": ("sm_90",)}, "compiled"),
    ({"gpu": "H200"}, "GPU-checked"), ({"timed": "H200"}, "timed")])  # fmt: skip
def test_each_tick_is_earned_alone(fields: dict, name: str) -> None:
    assert [t.name for t in Evidence(**fields).ticks if t.earned] == [name]
    refuted = Evidence(**fields, refuted=(name,))
    assert [t.earned for t in refuted.ticks] == [False] * 5
    assert f"✗ {name} (failed)" in str(refuted)


def test_details_name_orders_and_sizes() -> None:
    text = str(Evidence(orders=3, emulated=("these sizes", "N=7")))
    assert "emulated (3 thread orders, poisoned outputs and shared memory, at these sizes; N=7)" in text


def test_a_tick_that_was_earned_at_these_sizes_alone_says_so() -> None:
    assert "shared memory, only at these sizes" in str(Evidence(orders=2, emulated=("these sizes",)))


def test_a_share_says_what_it_leaves_out() -> None:
    stored = replace(GOOD, exact=0, tolerance=replace(GOOD.tolerance, per_cell=True))
    assert "of the tolerance beyond the rounding of the store; tolerance" in str(stored)
    assert "leave out the rounding of the store" in run(checks=(stored,))._repr_html_()
    assert "of the store" not in str(GOOD)


def test_an_error_that_is_the_rounding_of_the_store_alone_is_called_that() -> None:
    half = Tolerance(DTYPES["f16"], 519, 2.0**-11, 0.0011, True)
    stored = replace(GOOD, max_error=2.0, tolerance=half, inputs="small integers")
    assert stored.sharpness == "y equal after the rounding of the store (largest error 2)"
    assert "largest error 2, all of it the rounding of the store; tolerance" in str(stored)
    assert "on small integers: y equal after the rounding of the store" in str(run(exact=(stored,)))
    picture = run(checks=(GOOD, stored))._repr_html_()
    assert "2, all of it the rounding of the store" in picture
    partly = replace(stored, exact=3)
    assert partly.sharpness == "y 3 of 8 cells bit for bit, equal after the rounding of the store (largest error 2)"


def test_an_error_beyond_the_rounding_of_the_store_gives_its_share() -> None:
    half = Tolerance(DTYPES["f16"], 519, 2.0**-11, 0.0011, True)
    beyond = replace(GOOD, max_error=0.02, worst=0.05, tolerance=half)
    assert beyond.sharpness == "y largest error 0.02, 0.05 of the tolerance beyond the rounding of the store"
    assert replace(beyond, max_error=0.0, worst=0.0).sharpness == "y largest error 0"
    unbounded = replace(beyond, worst=0.0, tolerance=replace(half, unbounded=2))
    assert "equal" not in unbounded.sharpness, "nothing is known of two cells"
    assert not replace(beyond, worst=0.0, tolerance=replace(half, per_cell=False)).only_stored


def test_correct_needs_every_check() -> None:
    assert run().correct is True
    assert run()
    assert run(checks=(GOOD, BAD)).correct is False
    assert run(checks=()).correct is None
    assert not run(checks=())
    assert run(ragged=(("N=7", (BAD,)),)).correct is False
    assert run(faults=("at N=7: out of bounds",)).correct is False


def test_text_says_wrong_cell_sizes_and_notes() -> None:
    text = str(run(checks=(BAD,), notes=("not timed",), faults=("at N=7: race",)))
    assert text.startswith("copy(N=8) on H200: WRONG")
    assert "first y[3] = 1, expected 2" in text
    assert "fault at N=7: race" in text
    assert "note: not timed" in text
    assert "not checked" in str(run(checks=()))
    assert "WRONG" in run(checks=(BAD,))._repr_html_()


def test_share_subtracts_the_empty_launch() -> None:
    floor = roofline(default_gpu(), 10**8, 0)
    r = run(timings={"cold": timing(*[floor.floor_us * 2 + 2.7] * 8, overhead=2.7)}, roofline=floor, bytes=10**8)
    assert r.share == pytest.approx(0.5)
    assert "50% of the floor" in str(r)
    assert run().share is None


def test_comparison_says_when_it_is_noise() -> None:
    slow, fast = (run(timings={"cold": timing(*[base + k / 10 for k in range(10)])}) for base in (20.0, 10.0))
    c = slow.compare(fast)
    assert c.ratio == pytest.approx(20.45 / 10.45)
    assert not c.noise
    assert "faster" in str(c)
    assert "smaller than noise" in str(slow.compare(slow))
    assert "WRONG" in str(Comparison.of(slow, replace(fast, checks=(BAD,))))


def test_runs_that_do_not_compare_are_refused() -> None:
    timed = run(timings={"cold": timing(1.0)})
    with pytest.raises(ValueError, match="no timing in common"):
        Comparison.of(timed, run())
    with pytest.raises(ValueError, match="on H200, the other on cpu"):
        Comparison.of(timed, replace(timed, device="cpu"))
