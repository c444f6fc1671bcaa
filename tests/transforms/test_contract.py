"""Contract: registers by the loops that move the index, shared memory by the footprint's box."""

from __future__ import annotations

import pytest

from explorer.ir.plan import initial
from explorer.ir.text import loops_text
from explorer.transforms.contract import Contract
from tests.transforms.programs import chain, conv1d, copy, matmul, row_sum, softmax
from tests.transforms.storage import judged_illegal, refusal, rewritten, right

ROWS = (("bind", "i", "block.x"),)


def test_a_scalar_per_thread(golden) -> None:
    plan = right(matmul(), ("bind", "i", "block.x"), ("bind", "j", "thread.x"), ("contract", "acc"))
    assert plan.buffer_of["acc"].shape == ()
    assert plan.buffer_of["acc"].scope == "j"
    golden(loops_text(plan))


def test_strided_registers_are_indexed_by_their_loops_not_by_their_box() -> None:
    steps = []
    for name in ("k", "k_2", "k_3", "k_4"):
        steps += [("split", name, 4), ("bind", f"{name}.i", "thread.x")]
    plan = right(softmax(), *ROWS, *steps, ("collect", "peak", "shuffle"), ("collect", "total", "shuffle"),
                 ("contract", "e"), ("contract", "peak"), ("contract", "total"))
    assert plan.buffer_of["e"].shape == (3,)  # 10 elements over 4 threads, not a box of 9


def test_register_dimensions_come_in_order_of_falling_stride() -> None:
    plan = right(chain(6, 8), ("split", "j", 4), ("interchange", "j", "j.i"), ("split", "j_2", 4), ("contract", "t"))
    assert plan.buffer_of["t"].shape == (6, 2, 4)


def test_differently_split_but_contiguous_loops_agree_when_merged() -> None:
    plan = right(chain(6, 8), ("split", "j", 4), ("fuse", "i", "i_2"), ("contract", "t"))
    assert plan.buffer_of["t"].shape == (8,)


def test_registers_are_the_box_of_what_a_thread_touches_where_loops_differ() -> None:
    plan = right(chain(6, 8), ("split", "j_2", 3), ("fuse", "i", "i_2"), ("bind", "i", "thread.x"), ("contract", "t"))
    assert plan.buffer_of["t"].shape == (9,)  # the last cell belongs to an iteration that does not run
    plan = right(chain(6, 8), ("split", "i", 2), ("split", "i_2", 2), ("fuse", "i", "i_2"), ("coalesce", ("i_2.i", "j_2")),
                 ("split", "i_2.i", 4), ("bind", "i", "thread.x"), ("contract", "t"))
    assert plan.buffer_of["t"].shape == (2, 8)


def test_shapes_that_differ_are_refused_with_both() -> None:
    said = refusal(chain(6, 8), ("bind", "i", "block.x"), ("bind", "i_2", "block.x"), ("bind", "j", "thread.x"),
                   ("contract", "t"))
    assert "one cell" in said
    assert "8 cells" in said
    assert "contract('t', 'shared')" in said


def test_shared_memory_holds_the_box(golden) -> None:
    plan = right(chain(6, 8), ("fuse", "i", "i_2"), ("bind", "i", "block.x"), ("bind", "j", "thread.x"), ("split", "j_2", 4),
                 ("bind", "j_2.i", "thread.x"), ("contract", "t", "shared", {"pad": 1}))
    assert plan.buffer_of["t"].padded_shape == (9,)
    golden(loops_text(plan))


def test_shared_scope_ends_outside_of_the_thread_loops() -> None:
    plan = right(row_sum(), ("bind", "i", "thread.x"), ("contract", "total", "shared"))
    assert plan.buffer_of["total"].scope == ""
    assert plan.buffer_of["total"].shape == (4,)


def test_a_scope_may_be_named() -> None:
    plan = right(matmul(), ("contract", "acc", "register", "i"))
    assert (plan.buffer_of["acc"].scope, plan.buffer_of["acc"].shape) == ("i", (7,))
    plan = right(matmul(), ("contract", "acc", "register", "matmul"))
    assert (plan.buffer_of["acc"].scope, plan.buffer_of["acc"].shape) == ("", (5, 7))


def test_a_value_that_another_thread_needs_is_judged_illegal() -> None:
    said = judged_illegal(chain(4, 6), ("fuse", "i", "i_2"), ("reverse", "j"), ("bind", "j", "thread.x"),
                          ("bind", "j_2", "thread.x"),
                          ("contract", "t"))
    assert "private to a thread" in said


def test_back_to_global_memory() -> None:
    base = initial(row_sum())
    plan = rewritten(row_sum(), ("contract", "total"), ("contract", "total", "global"))
    assert plan == base
    assert "already lives in global" in refusal(row_sum(), ("contract", "total", "global"))


def test_contracting_again_replaces_the_storage() -> None:
    plan = right(row_sum(), ("contract", "total"), ("contract", "total", "shared"))
    assert [(b.name, b.space) for b in plan.buffers] == [("total", "shared")]


def test_contracting_again_to_the_same_place_is_refused() -> None:
    once = rewritten(row_sum(), ("contract", "total"))
    verdict = Contract("total").check(once)
    assert not verdict
    assert "already lives there" in str(verdict)
    assert not [step for step in Contract.candidates(once, "total") if step.check(once) and step.rewrite(once) == once]


@pytest.mark.parametrize(("call", "words"), [
    (("contract", "x"), "x is a parameter"),
    (("contract", "nothing"), "there is no array 'nothing'"),
    (("contract", "total", "texture"), "there is no storage 'texture'"),
    (("contract", "total", "register", "k"), "does not hold all of its accesses"),
    (("contract", "total", "register", {"pad": 1}), "only rows in shared memory"),
])
def test_refusals(call: tuple, words: str) -> None:
    assert words in refusal(row_sum(), call)


def test_several_launches_are_refused() -> None:
    said = refusal(chain(), ("launch", "chain", {"after": "i"}), ("contract", "t"))
    assert "do not outlive a launch" in said


def test_candidates_apply() -> None:
    plan = initial(softmax())
    found = list(Contract.candidates(plan, "S3"))
    assert {(c.array, c.space) for c in found} == {(a, s) for a in ("peak", "e") for s in ("register", "shared")}
    assert all(c.check(plan) for c in found)
    assert not Contract.offers(initial(copy()), "S0")
    assert Contract.offers(initial(conv1d()), "S1")
