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
