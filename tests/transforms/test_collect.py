"""Collect: one click from a bound reduction to registers and a strategy, with the launches it needs."""

from __future__ import annotations

import pytest

from explorer.ir.text import loops_text
from explorer.poly.judge import judge
from explorer.transforms.collect import Collect
from tests.run_plan import Hazard
from tests.transforms.programs import all_sum, column_sum, row_sum, softmax, triangle_sum
from tests.transforms.storage import agree, refusal, rewritten, right

ROW = (("split", "k", 4), ("bind", "i", "block.x"), ("bind", "k.i", "thread.x"))
ALL = (("launch", "all_sum", {"after": "S0"}), ("split", "k", 8), ("split", "k.i", 4), ("bind", "k", "block.x"),
       ("bind", "k.i.i", "thread.x"))


@pytest.mark.parametrize("how", ["shuffle", "shared"])
def test_one_click_from_threads_to_registers(how: str, golden) -> None:
    plan = right(row_sum(), *ROW, ("collect", "total", how), ("contract", "total"))
    assert {b.name: b.space for b in plan.buffers} == {"total_p": "register", "total": "register"}
    golden(loops_text(plan))


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("space", ["register", "shared", "global"])
def test_every_operation_and_storage(op: str, space: str) -> None:
    steps = (("contract", "total", space),) if space != "global" else ()
    right(row_sum(op=op), *ROW, ("collect", "total", "shuffle"), *steps)


def test_without_loops_in_time_nothing_else_changes() -> None:
    before = rewritten(row_sum(), ("bind", "k", "thread.x"))
    plan = right(row_sum(), ("bind", "k", "thread.x"), ("collect", "total", "shuffle"))
    assert plan.program == before.program
    assert dict(plan.leaves[1][0].collect) == {"k": "shuffle"}


def test_atomics_over_blocks_then_shuffles_over_threads(golden) -> None:
    plan = right(all_sum(), *ALL, ("collect", "y", "atomic"), ("collect", "y", "shuffle"))
    golden(loops_text(plan))
    right(all_sum(), *ALL, ("collect", "y", "shuffle"), ("collect", "y", "atomic"))
    right(all_sum(), *ALL, ("collect", "y", "atomic"), ("collect", "y", "atomic"))


def test_atomics_move_the_start_to_a_launch_of_its_own(golden) -> None:
    plan = right(all_sum(), *ALL[1:], ("collect", "y", "atomic"), ("collect", "y", "shared"))
    assert [k.id for k in plan.kernels] == ["all_sum.2", "all_sum"]
    assert plan.kernel_of("S0") is plan.kernels[0]
    golden(loops_text(plan))


def test_atomics_divide_the_loops_around_the_start() -> None:
    plan = right(row_sum(), ("split", "k", 4), ("bind", "i", "block.y"), ("bind", "k", "block.x"), ("collect", "total", "atomic"))
    assert [sorted(leaf.statement for leaf, _, k in plan.leaves if k is kernel) for kernel in plan.kernels] == [
        ["S0"], ["S1", "S1_combine", "S1_init"], ["S2"]]


def test_kernel_cut(golden) -> None:
    plan = right(all_sum(), *ALL, ("collect", "y", "kernel"), ("collect", "y_p", "shuffle"))
    golden(loops_text(plan))


def test_kernel_cut_keeps_what_follows_in_a_later_launch() -> None:
    plan = right(row_sum(), ("split", "k", 4), ("bind", "i", "block.y"), ("bind", "k", "block.x"), ("collect", "total", "kernel"))
    assert [sorted(leaf.statement for leaf, _, k in plan.leaves if k is kernel) for kernel in plan.kernels] == [
        ["S0", "S1", "S1_init"], ["S1_combine"], ["S2"]]


def test_reduced_loops_outside_of_parallel_ones() -> None:
    steps = (("launch", "column_sum", {"after": "j0"}), ("split", "k", 4), ("bind", "k.i", "thread.y"), ("bind", "j", "thread.x"))
    plan = right(column_sum(), *steps, ("collect", "y", "shared"))
    assert plan.buffer_of["y_p"].shape == ()
    steps = (("launch", "column_sum", {"after": "j0"}), ("split", "k", 4), ("split", "j", 2), ("bind", "k.i", "thread.y"),
             ("bind", "j", "thread.x"))
    plan = right(column_sum(), *steps, ("collect", "y", "shared"))
    assert plan.buffer_of["y_p"].shape == (2,)


def test_threads_without_work_take_part() -> None:
    steps = (("bind", "i0", "block.x"), ("split", "k", 4), ("bind", "i", "block.x"), ("bind", "k.i", "thread.x"))
    right(triangle_sum(), *steps, ("collect", "y", "shuffle"))


def test_warps_and_lanes_are_combined_together() -> None:
    steps = (("split", "k", 8), ("split", "k.i", 2), ("bind", "i", "block.x"), ("bind", "k.i", "warp"), ("bind", "k.i.i", "lane"))
    right(row_sum(), *steps, ("collect", "total", "shuffle"), ("contract", "total"))


def test_an_open_obligation_is_a_hazard_when_run() -> None:
    plan = rewritten(row_sum(), *ROW)
    assert judge(plan).obligations
    with pytest.raises(Hazard, match=r"race: S1.* nothing orders the two"):
        agree(plan)


@pytest.mark.parametrize(("calls", "words"), [
    ((("collect", "total", "shuffle"),), "updated in one place only"),
    ((*ROW, ("collect", "total", "magic")), "no way 'magic'"),
    ((*ROW, ("collect", "total", "kernel")), "kernel cannot combine k.i"),
    ((*ROW, ("collect", "total", "shuffle", ("i",))), "shuffle cannot combine i"),
    ((*ROW, ("collect", "S2", "shuffle")), "S2 is not a reduction"),
    ((("bind", "k", "thread.x"), ("collect", "total", "shuffle"), ("collect", "total", "shuffle")),
     "already combined by shuffle"),
    ((("split", "k", 4), ("bind", "k", "block.x"), ("contract", "total"), ("collect", "total", "atomic")),
     "other places cannot update"),
])
def test_refusals(calls: tuple, words: str) -> None:
    assert words in refusal(row_sum(), *calls)


def test_candidates_apply() -> None:
    plan = rewritten(softmax(), ("split", "k_3", 4), ("bind", "k_3.i", "thread.x"))
    assert [c.how for c in Collect.candidates(plan, "S4")] == ["shuffle", "shared", "atomic"]
    assert not Collect.offers(plan, "S1")
