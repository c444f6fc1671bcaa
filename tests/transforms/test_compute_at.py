"""Compute_at: a producer moves into its consumers' loop, with the loops that the consumers' elements give it."""

from __future__ import annotations

import pytest

from explorer.ir.plan import initial
from explorer.ir.text import loops_text
from explorer.transforms.compute_at import ComputeAt
from tests.transforms.programs import blur, chain, matmul, softmax
from tests.transforms.storage import refusal, right


def test_one_row_at_a_time(golden) -> None:
    plan = right(chain(), ("compute_at", "t", "i_2"), ("contract", "t"))
    assert plan.buffer_of["t"].shape == (8,)
    golden(loops_text(plan))


def test_one_element_at_a_time() -> None:
    plan = right(chain(), ("compute_at", "t", "j_2"), ("contract", "t"))
    assert plan.buffer_of["t"].shape == ()


def test_tiles_take_over_the_consumers_loops_and_roles(golden) -> None:
    plan = right(chain(), ("split", "i_2", 4), ("split", "j_2", 4), ("interchange", "i_2.i", "j_2"),
                 ("bind", "j_2.i", "thread.x"),
                 ("compute_at", "t", "j_2"), ("bind", "i_2", "block.x"), ("contract", "t", "shared"))
    assert plan.buffer_of["t"].shape == (4, 4)
    assert plan.loops["j_2.i.p"].role == "thread.x"
    golden(loops_text(plan))


def test_a_reduction_brings_its_own_loops(golden) -> None:
    plan = right(matmul(), ("distribute", "j", {"after": "k"}), ("compute_at", "S1", "j.2"), ("compute_at", "S0", "j.2"),
                 ("contract", "acc"))
    assert plan.buffer_of["acc"].shape == ()
    golden(loops_text(plan))


def test_stencils_need_a_loop_around_all_their_reads() -> None:
    said = refusal(blur(), ("compute_at", "t", "i_2"))
    assert "more than one iteration of i_2" in said
    assert "inline('t')" in said


def test_every_consumer_has_to_be_in_the_loop() -> None:
    assert "S5 uses e outside of k_3" in refusal(softmax(), ("compute_at", "e", "k_3"))


@pytest.mark.parametrize(("call", "words"), [
    (("compute_at", "q", "i_2"), "there is no statement 'q'"),
    (("compute_at", "t", "q"), "there is no loop 'q'"),
    (("compute_at", "t", "i"), "already runs inside of i"),
    (("compute_at", "S1", "i"), "nothing in i uses y"),
])
def test_refusals(call: tuple, words: str) -> None:
    assert words in refusal(chain(), call)


def test_candidates_apply() -> None:
    plan = initial(chain())
    assert [(c.statement, c.loop) for c in ComputeAt.candidates(plan, "S0")] == [("S0", "i_2"), ("S0", "j_2")]
    assert not list(ComputeAt.candidates(plan, "S1"))
