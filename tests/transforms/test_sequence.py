"""Sequence: a statement or loop behind a later sibling; order decides whether it may."""

from __future__ import annotations

import pytest

from explorer.ir.plan import initial
from explorer.ir.text import loops_text
from explorer.transforms.sequence import Sequence
from tests.transforms.programs import matmul, row_sum
from tests.transforms.storage import judged_illegal, refusal, rewritten, right

PARTS = (("split", "k", 4), ("rfactor", "total", "k"))


def test_the_start_moves_behind_the_partial_sums(golden) -> None:
    golden(loops_text(right(row_sum(), *PARTS, ("sequence", "S0", "k"))))


def test_in_a_body_below_the_top() -> None:
    plan = rewritten(row_sum(), *PARTS, ("sequence", "S0", "k"))
    assert [n.id for n in plan.loops["i"].body][:2] == ["k", "S0"]


def test_the_start_cannot_follow_what_it_starts() -> None:
    assert "reads" in judged_illegal(matmul(), ("sequence", "S0", "k"))


@pytest.mark.parametrize(("call", "words"), [
    (("sequence", "Q", "k"), "there is no node 'Q'"),
    (("sequence", "S0", "i"), "does not stand beside"),
    (("sequence", "k", "S0"), "sequence('S0', after='k')"),
    (("sequence", "k", "k"), "the node itself"),
])
def test_refusals(call: tuple, words: str) -> None:
    assert words in refusal(matmul(), call)


def test_candidates_are_the_later_siblings() -> None:
    plan = initial(matmul())
    assert [c.after for c in Sequence.candidates(plan, "S0")] == ["k", "S2"]
    assert not Sequence.offers(plan, "S2")
