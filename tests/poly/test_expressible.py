"""What is legal and still no kernel is an open obligation at the step, not an error of the text."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.errors import IllegalSchedule
from explorer.poly import expressible
from tests.transforms.multiblock import spread

M, N = ex.sizes("M N")


@ex.program
def sums(x: ex.f32[M, N], y: ex.f32[M]):
    for i in range(M):
        y[i] = 0.0
        for k in range(N):
            y[i] += x[i, k]


def only(schedule: ex.Schedule) -> str:
    (finding,) = schedule.obligations
    with pytest.raises(IllegalSchedule):
        _ = schedule.cuda
    return finding.what


def test_lanes_are_combined_in_blocks_of_one_dimension() -> None:
    s = sums.schedule(M=3, N=32).bind("i", "thread.y").bind("k", "lane").collect("y", "shared")
    assert "combines lane in a block of 32×3×1 threads" in only(s)
    assert sums.schedule(M=3, N=32).bind("i", "warp").bind("k", "lane").collect("y", "shared").cuda


def test_a_sum_with_its_error_stays_in_registers() -> None:
    s = sums.schedule(M=3, N=32).bind("i", "block.x").accumulate("y").contract("y_acc").accumulate("y_acc", method="kahan")
    assert s.contract(s.plan.buffers[-1].name, "register").cuda if s.obligations else s.cuda
    spilled = s.contract("y_acc", "global")
    assert "adds with method='kahan' into global memory" in only(spilled)


@pytest.mark.parametrize(("how", "limit", "said"), [("last_block", "MOST_COUNTERS", "counters of finished blocks"),
                                                    ("handoff", "MOST_WORDS", "words")])
def test_counters_and_words_have_limits(how: str, limit: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = spread("rows").collect("y", how).plan
    assert not list(expressible.check_expressible(plan))
    monkeypatch.setattr(expressible, limit, 4)
    (finding,) = expressible.check_expressible(plan)
    assert said in finding.what
    assert finding.hints[0].startswith("join(")


@ex.program
def largest(x: ex.f32[M, N], y: ex.f32[1]):
    y[0] = -ex.inf
    for i in range(M):
        for k in range(N):
            y[0] = max(y[0], x[i, k])


def hosted() -> ex.Schedule:
    return largest.schedule(M=2, N=6).launch("largest", after="S0").bind("i", "launch")


def test_a_loop_of_the_host_is_alone_in_its_kernel() -> None:
    """A combination of all parts was printed into each launch, and read parts that later ones write (chain 730463:38)."""
    s = hosted().rfactor("S1", "i")
    assert only(s) == "the host runs i, but largest.2 holds more than this loop"
    (hint, _) = s.obligations[0].hints
    assert hint == "launch('largest.2', after='i')"
    assert s.launch("largest.2", after="i").run(device="cpu", time=False).correct
    assert not hosted().obligations


def test_what_an_accumulator_leaves_is_no_part_of_each_launch() -> None:
    assert "largest.2 holds more" in only(hosted().accumulate("y"))
    assert "largest.2 holds more" in only(hosted().stage("x", "largest.2"))
