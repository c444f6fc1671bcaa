"""Split: one loop into two, at any factor, and its names."""

from __future__ import annotations

import pytest

from explorer.ir.plan import initial
from explorer.transforms.split import Split
from tests.transforms.programs import matmul, row_sum
from tests.transforms.storage import refusal, rewritten, right


@pytest.mark.parametrize("factor", [1, 2, 3, 7, 11, 12])
def test_any_factor_computes_the_same(factor: int) -> None:
    plan = right(row_sum(3, 11), ("split", "k", factor))
    assert plan.loops["k"].extent == -(-11 // factor)
    assert plan.loops["k.i"].extent == factor


@pytest.mark.parametrize("by", [1, 3, -2, 7])
@pytest.mark.parametrize("factor", [1, 2, 3, 5])
def test_aligned_parts_begin_at_multiples(factor: int, by: int) -> None:
    plan = right(row_sum(3, 11), ("shift", "k", by), ("split", "k", factor, "", True))
    loop = plan.loops["k"]
    assert loop.start == by // factor
    assert loop.start + loop.extent == -(-(by + 11) // factor)


def test_names() -> None:
    plan = right(row_sum(3, 11), ("split", "k", 4, "t"), ("split", "t", 2), ("split", "k", 2), ("split", "i", 2, "k.j"))
    assert set(plan.loops) == {"i", "k.j", "k", "k.i", "t", "t.i"}
    assert set(rewritten(row_sum(3, 11), ("split", "k", 4), ("split", "k", 2)).loops) == {"i", "k", "k.i_2", "k.i"}


@pytest.mark.parametrize(("call", "words"), [
    (("split", "q", 4), "there is no loop 'q'"),
    (("split", "S1", 4), "S1 is a statement, not a loop"),
    (("split", "k", 0), "at least 1, not 0"),
    (("split", "k", 2.5), "at least 1, not 2.5"),
    (("split", "k", 4, "j"), "the name 'j' is taken"),
    (("split", "k", 4, "t\n#include <cstdlib>"), "is no name for a loop"),
    (("split", "k", 4, "t\n"), "is no name for a loop"),
    (("split", "k", 4, "3t"), "is no name for a loop"),
    (("split", "k", 4, "a b"), "is no name for a loop"),
])
def test_refusals(call: tuple, words: str) -> None:
    assert words in refusal(matmul(), call)


def test_a_bound_loop_is_not_split() -> None:
    assert "k is already thread.x" in refusal(matmul(), ("bind", "k", "thread.x"), ("split", "k", 2))


def test_candidates_are_smaller_than_the_loop() -> None:
    assert [s.factor for s in Split.candidates(initial(row_sum(3, 11)), "k")] == [2, 4, 8]
    assert not list(Split.candidates(initial(row_sum(3, 11)), "S1"))
