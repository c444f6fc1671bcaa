"""Bind: the same iterations in places, dealt out cyclically, within what every GPU can do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.errors import IllegalSchedule
from explorer.ir.dtype import DTYPES
from explorer.ir.expr import const, var
from explorer.ir.plan import Buffer, block_extents, grid_extents, initial
from explorer.ir.program import Program
from explorer.ir.text import loops_text
from explorer.ir.tree import PLACE_ROLES, View
from explorer.schedule import Schedule
from explorer.steps.calls import calls_in
from explorer.transforms.bind import MOST_LAUNCHES, Bind
from explorer.transforms.cut import Cut
from explorer.transforms.launch import Launch
from explorer.transforms.shift import Shift
from explorer.transforms.split import Split
from explorer.transforms.unroll import Unroll
from explorer.transforms.vectorize import Vectorize
from tests.oracle import check_plan, run_order
from tests.transforms.nests import copy, copy_2d, cube, matmul, plan, refusal, seidel, siblings, softmax


@pytest.mark.parametrize("role", PLACE_ROLES)
def test_each_iteration_has_its_place(role: str) -> None:
    bound = plan(copy(13), Bind("i", role))
    check_plan(bound)
    assert [(place, point) for _, place, _, point in run_order(bound)] == [(((role, v),), (v,)) for v in range(13)]


@pytest.mark.parametrize("count", [1, 4, 5, 12])
def test_places_are_dealt_out_cyclically(count: int) -> None:
    bound = plan(copy(13), Bind("i", "thread.x", count=count))
    check_plan(bound)
    assert all(place == (("thread.x", point[0] % count),) for _, place, _, point in run_order(bound))
    assert run_order(bound) == sorted(run_order(bound), key=lambda r: r[3])


def test_a_count_that_covers_the_loop_is_a_plain_binding() -> None:
    plain = plan(copy(13), Bind("i", "thread.x"))
    assert plan(copy(13), Bind("i", "thread.x", count=13)) == plan(copy(13), Bind("i", "thread.x", 64)) == plain


def test_places_start_at_zero() -> None:
    bound = plan(copy(13), Shift("i", 3), Bind("i", "block.x"))
    check_plan(bound)
    assert grid_extents(bound.kernels[0]) == (13, 1, 1)


def test_a_loop_can_be_bound_again_and_freed() -> None:
    base = initial(copy())
    assert plan(copy(), Bind("i", "thread.x"), Bind("i", "block.y"), Bind("i", "seq")) == base
    assert plan(copy(), Unroll("i"), Bind("i", "seq")) == base


def test_warps_and_lanes_make_up_the_block() -> None:
    bound = plan(copy(100), Split("i", 32), Bind("i", "warp"), Bind("i.i", "lane"))
    assert block_extents(bound.kernels[0]) == (128, 1, 1)
    check_plan(bound)


def test_combinations_that_no_longer_fit_are_dropped() -> None:
    bound = plan(matmul(), Bind("k", "thread.x"))
    bound = bound.replace_node("S1", replace(bound.resolve("S1")[0], collect=(("k", "shuffle"),)))
    assert Bind("k", "thread.y").rewrite(bound).resolve("S1")[0].collect == (("k", "shuffle"),)
    assert Bind("k", "block.x").rewrite(bound).resolve("S1")[0].collect == ()
    assert Bind("k", "seq").rewrite(bound).resolve("S1")[0].collect == ()


def test_tree(golden) -> None:
    golden(f"{loops_text(initial(copy(1000)))}\n\n{loops_text(plan(copy(1000), Bind('i', 'thread.x', count=256)))}")


@pytest.mark.parametrize(("step", "what", "hint"), [
    (Bind("i", "thread"), "there is no place 'thread'", "block.x"),
    (Bind("i", "seq"), "i is already seq", ""),
    (Bind("i", "thread.x", count=0), "at least 1 place, not 0", "bind('i', 'thread.x') instead: a place for each iteration"),
    (Bind("i", "lane"), "i runs 2000 times; lane has at most 32 places", "count=32"),
    (Bind("i", "warp"), "warp has at most 32 places", ""),
    (Bind("i", "thread.x"), "thread.x has at most 1024 places", "bind('i', 'thread.x', count=1024)"),
    (Bind("i", "thread.z", 65), "thread.z has at most 64 places", ""),
])
def test_refusals(step: Bind, what: str, hint: str) -> None:
    verdict = refusal(initial(copy(2000)), step)
    assert what in verdict.what
    assert hint in verdict.hint


def test_limits_of_the_grid() -> None:
    assert "block.y has at most 65535 places" in refusal(initial(copy(65536)), Bind("i", "block.y")).what
    assert Bind("i", "block.x").check(initial(copy(65536)))


def test_limits_of_a_block() -> None:
    verdict = refusal(plan(copy_2d(64, 32), Bind("i", "thread.y")), Bind("j", "thread.x"))
    assert verdict.what == "a block would have 32 x 64 x 1 = 2048 threads"
    assert verdict.why == "a block has at most 1024"
    assert Bind("j", "thread.x", count=16).check(plan(copy_2d(64, 32), Bind("i", "thread.y")))


def test_one_index_of_each_kind() -> None:
    bound = plan(cube(), Bind("j", "thread.x"))
    assert refusal(bound, Bind("k", "thread.x")).what == "j, around k, is already thread.x"
    assert refusal(bound, Bind("i", "thread.x")).what == "j, inside i, is already thread.x"
    assert refusal(bound, Bind("k", "lane")).why == "thread.x is made up of warp and lane"
    assert Bind("k", "thread.y").check(bound)
    siblings_may_share = plan(siblings(), Bind("i", "thread.x"), Bind("j", "thread.x"))
    check_plan(siblings_may_share)


def test_shaped_loops_are_refused() -> None:
    wide = plan(copy_2d(), Split("j", 4), Vectorize("j.i"))
    assert refusal(wide, Bind("j.i", "thread.x")).what == "j.i is already vector"
    assert "makes it an ordinary loop again" in refusal(wide, Bind("j.i", "thread.x")).hint


def test_a_part_of_a_cut_is_divided_by_any_number() -> None:
    assert Bind("i", "thread.x", count=3).check(plan(copy(12), Cut("i", 7)))


def test_places_cannot_be_cells_of_private_storage() -> None:
    base = initial(copy())
    leaf = replace(base.leaves[0][0], views=((1, View("r", (var("i"),))),))
    for space, role, refused in (("register", "thread.x", True), ("register", "block.x", True), ("shared", "thread.x", False),
                                 ("shared", "block.x", True), ("global", "block.x", False)):
        stored = replace(base.replace_node("S0", leaf), buffers=(Buffer("r", DTYPES["f32"], (13,), space),))
        if refused:
            assert f"r in {space} memory is indexed by i" in refusal(stored, Bind("i", role)).what
        else:
            assert Bind("i", role).check(stored)
    scalar = base.replace_node("S0", replace(leaf, views=((1, View("r", (const(0),))),)))
    assert Bind("i", "thread.x").check(replace(scalar, buffers=(Buffer("r", DTYPES["f32"], (1,), "register"),)))


def test_the_host_runs_outermost_loops() -> None:
    hosted = plan(seidel(), Bind("t", "launch"))
    check_plan(hosted)
    assert "t is not outermost" not in str(Bind("t", "launch").check(initial(seidel())))
    assert refusal(initial(seidel()), Bind("i", "launch")).what == "i is not outermost: t is around it"
    verdict = refusal(initial(siblings()), Bind("i", "launch"))
    assert verdict.what == "siblings also holds j"
    assert "launch('siblings', after=…)" in verdict.hint
    check_plan(plan(siblings(), Launch("siblings", after="i"), Bind("i", "launch")))
    twice = plan(cube(), Bind("i", "launch"), Bind("j", "launch"))
    assert "is run by the host" in refusal(twice, Bind("i", "seq")).what
    assert refusal(initial(seidel()), Bind("t", "launch", count=2)).hint == "bind('t', 'launch') instead"


def test_the_host_does_not_launch_for_ever() -> None:
    verdict = refusal(initial(copy(MOST_LAUNCHES + 1)), Bind("i", "launch"))
    assert verdict.what == f"that would be {MOST_LAUNCHES + 1:,} launches"
    assert "split('i'" in verdict.hint
    assert Bind("i", "launch").check(initial(copy(MOST_LAUNCHES)))


@pytest.mark.parametrize(("made", "loop"), [(matmul(), "k"), (softmax(), "k"), (softmax(), "k_2")])
def test_what_is_proposed_before_blocks_leads_to_them(made: Program, loop: str) -> None:
    """The cuts that keep the order, one or two of them: behind them another place would be no answer to what was asked."""
    s = Schedule.of(made)
    with pytest.raises(IllegalSchedule) as caught:
        s.bind(loop, "block.x")
    hint, *others = [text for text in caught.value.hint.split("; or ") if "distribute" in text]
    assert not others
    assert "bind(" not in hint
    for step in calls_in(hint):
        s = s.apply(step)
    assert s.bind(loop, "block.x").judgement.legal


def test_candidates_are_the_free_places() -> None:
    bound = plan(cube(), Bind("i", "block.x"))
    roles = [step.to for step in Bind.candidates(bound, "k")]
    assert roles == ["block.y", "thread.x", "thread.y", "warp", "lane"]
    assert list(Bind.candidates(bound, "i"))[-1] == Bind("i", "seq"), "taking a place back is offered last"
    assert next(iter(Bind.candidates(initial(copy(100)), "i"))).to == "block.x"
    assert Bind("i", "lane", 32) in list(Bind.candidates(initial(copy(100)), "i"))
