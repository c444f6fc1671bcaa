"""Unroll: a role, nothing else."""

from __future__ import annotations

from explorer.ir.plan import initial
from explorer.ir.text import loops_text
from explorer.transforms.bind import Bind
from explorer.transforms.split import Split
from explorer.transforms.unroll import Unroll
from explorer.transforms.vectorize import Vectorize
from tests.oracle import check_plan, run_order
from tests.transforms.nests import copy, copy_2d, matmul, plan, refusal, seidel


def test_the_order_does_not_change() -> None:
    unrolled = plan(matmul(), Unroll("k"))
    check_plan(unrolled)
    assert run_order(unrolled) == run_order(initial(matmul()))
    assert unrolled.loops["k"].role == "unroll"


def test_tree(golden) -> None:
    golden(loops_text(plan(matmul(), Split("k", 2), Unroll("k.i"))))


def test_refusals() -> None:
    assert refusal(plan(copy(), Unroll("i")), Unroll("i")).what == "i is already unrolled"
    assert refusal(plan(copy(), Bind("i", "thread.x")), Unroll("i")).why == "its iterations run in different places"
    assert refusal(plan(seidel(), Bind("t", "launch")), Unroll("t")).why == "the host runs it"
    wide = plan(copy_2d(), Split("j", 4), Vectorize("j.i"))
    assert refusal(wide, Unroll("j.i")).why == "its iterations are the lanes of one access"
    assert "S1 is a statement" in refusal(initial(matmul()), Unroll("S1")).what


def test_candidates_are_short_loops() -> None:
    assert list(Unroll.candidates(initial(copy(64)), "i")) == [Unroll("i")]
    assert list(Unroll.candidates(initial(copy(65)), "i")) == []
    longer = Unroll.offers(initial(copy(65)), "i")
    assert longer.what.startswith("not proposed: i runs 65 times"), "it is not refused: strategies unroll rows of 127"
    assert longer.hint == "split('i', 8) and unroll('i.i'); or unroll('i') all the same"
    assert Unroll("i").check(initial(copy(65)))
    assert Unroll.offers(plan(copy(), Unroll("i")), "i").what == "i is already unrolled"
