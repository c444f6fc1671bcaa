"""Pipeline: copies run ahead, slots are counted right, asynchronous copies are waited for."""

from __future__ import annotations

from dataclasses import replace

import pytest

import explorer as ex
from explorer.ir.dtype import DTYPES
from explorer.ir.plan import initial
from explorer.ir.text import loops_text
from explorer.ir.tree import Sync, walk
from explorer.poly.judge import judge
from explorer.transforms.pipeline import Pipeline
from tests.oracle import check_plan
from tests.transforms.programs import inputs, matmul, row_sum
from tests.transforms.storage import agree, judged_illegal, refusal, rewritten, right, step

TILES = (("split", "i", 4), ("split", "j", 4), ("split", "k", 2), ("interchange", "i.i", "j"), ("bind", "i", "block.x"),
         ("bind", "j", "block.y"),
         ("bind", "i.i", "thread.y"), ("bind", "j.i", "thread.x"), ("contract", "acc"), ("stage", "A", "k"),
         ("stage", "B", "k", {"pad": 1}))
REGISTERS = (("stage", "A", "k.i", "register"), ("stage", "B", "k.i", "register"))
PLAIN = {"asynchronous": False}


def ragged():
    """Five tiles of k, the last one partial."""
    return matmul(5, 7, 9)


def test_asynchronous_copies_in_three_stages(golden) -> None:
    plan = right(ragged(), *TILES, ("pipeline", "k", 3))
    assert plan.buffer_of["A_s"].shape == (3, 4, 2)
    assert [n.pending for n in walk(plan.kernels[0].body) if isinstance(n, Sync) and n.kind == "wait"] == [1]
    golden(loops_text(plan))


@pytest.mark.parametrize("stages", [2, 3, 4, 6])
@pytest.mark.parametrize("asynchronous", [True, False])
def test_any_number_of_stages(stages: int, asynchronous: bool) -> None:
    right(ragged(), *TILES, ("pipeline", "k", stages, {"asynchronous": asynchronous}))


def test_plain_double_buffering_has_no_synchronisation_of_its_own(golden) -> None:
    plan = right(ragged(), *TILES, ("pipeline", "k", 2, PLAIN))
    assert not [n for n in walk(plan.kernels[0].body) if isinstance(n, Sync)]
    golden(loops_text(plan))


@pytest.mark.parametrize(("stages", "buffers"), [(3, 2), (2, 1), (4, 2), (4, 3)])
@pytest.mark.parametrize("asynchronous", [True, False])
def test_too_few_slots_are_judged_illegal(stages: int, buffers: int, asynchronous: bool) -> None:
    said = judged_illegal(ragged(), *TILES, ("pipeline", "k", stages, {"buffers": buffers, "asynchronous": asynchronous}))
    assert "_s" in said


def test_more_slots_than_stages_are_fine() -> None:
    right(ragged(), *TILES, ("pipeline", "k", 2, {"buffers": 3}))


def test_register_pipelining_unrolls_the_loop(golden) -> None:
    plan = right(ragged(), *TILES, *REGISTERS, ("pipeline", "k.i", 2, PLAIN))
    assert plan.loops["k.i"].role == plan.loops["k.i.pro"].role == "unroll"
    golden(loops_text(plan))


@pytest.mark.parametrize("outer_first", [True, False])
def test_two_levels(outer_first: bool, golden) -> None:
    levels = [("pipeline", "k", 3), ("pipeline", "k.i", 2, PLAIN)]
    plan = right(ragged(), *TILES, *REGISTERS, *(levels if outer_first else levels[::-1]))
    golden(loops_text(plan))


def test_registers_of_the_body_do_not_run_ahead_with_the_outer_loop() -> None:
    plan = rewritten(ragged(), *TILES, *REGISTERS, ("pipeline", "k.i", 2, PLAIN), ("pipeline", "k", 2))
    assert plan.buffer_of["A_r"].shape == (2,)
    assert plan.buffer_of["A_s"].shape == (2, 4, 2)
    assert [x.id for x, _, _ in plan.leaves if x.mechanism == "async"] == ["A_s.pro", "B_s.pro", "A_s", "B_s"]


def test_some_copies_only() -> None:
    plan = right(ragged(), *TILES, ("pipeline", "k", 2, ("B_s",)))
    assert (len(plan.buffer_of["A_s"].shape), len(plan.buffer_of["B_s"].shape)) == (2, 3)
    assert "A_s" not in [x.id for x, _, _ in plan.leaves if x.mechanism == "async"]


@pytest.mark.parametrize(("stages", "pending"), [((4, 2), 1), ((2, 4), 1), ((3, 4), 3), ((5, 3), 3), ((3, 3), 1), ((4, 3), 3)])
def test_each_copy_with_stages_of_its_own(stages: tuple[int, int], pending: int) -> None:
    """One wait counts over both queues: the shorter pipeline is committed first, and the wait leaves as much open as it may."""
    a, b = stages
    plan = right(ragged(), *TILES, ("pipeline", "k", a, ("A_s",)), ("pipeline", "k", b, ("B_s",)))
    waits = [n for n in walk(plan.kernels[0].body) if isinstance(n, Sync) and n.kind == "wait"]
    assert [n.pending for n in waits] == [pending]
    assert [plan.buffer_of[name].shape[0] for name in ("A_s", "B_s")] == [a, b]
    assert plan.loops["k.pro"].extent == max(a, b) - 1
    more = plan.replace_node(waits[0].id, replace(waits[0], pending=pending + 1))
    assert judge(more).refusals
    with pytest.raises(AssertionError):
        agree(more)


def test_pipelines_of_as_many_stages_are_one_group() -> None:
    once = right(ragged(), *TILES, ("pipeline", "k", 3))
    apart = right(ragged(), *TILES, ("pipeline", "k", 3, ("B_s",)), ("pipeline", "k", 3, ("A_s",)))
    kinds = [[n.kind for n in walk(p.kernels[0].body) if isinstance(n, Sync)] for p in (once, apart)]
    assert kinds[0] == kinds[1]


def test_stages_of_their_own(golden) -> None:
    golden(loops_text(right(ragged(), *TILES, ("pipeline", "k", 4, ("A_s",)), ("pipeline", "k", 2, ("B_s",)))))


def test_an_outer_loop_in_time_starts_the_pipeline_again() -> None:
    plan = right(matmul(5, 7, 9), ("split", "i", 2), ("split", "k", 2), ("bind", "i.i", "thread.y"), ("bind", "j", "thread.x"),
                 ("contract", "acc"),
                 ("stage", "A", "k"), ("stage", "B", "k"), ("pipeline", "k", 3))
    assert plan.loops["i"].role == "seq"


def test_the_prologue_and_the_loop_run_each_copy_once() -> None:
    plan = rewritten(ragged(), *TILES, ("pipeline", "k", 4))
    check_plan(plan)
    assert plan.loops["k.pro"].extent == 3


@pytest.mark.parametrize(("calls", "words"), [
    ((("pipeline", "q", 2),), "there is no loop 'q'"),
    ((("pipeline", "i", 2),), "i is bound"),
    ((("pipeline", "k", 1),), "a pipeline has 2 stages or more, not 1"),
    ((("pipeline", "k", "3"),), "a pipeline has 2 stages or more, not '3'"),
    ((("pipeline", "k", 7),), "can fill at most 6 stages"),
    ((("pipeline", "k.i", 2),), "no copies are made in the body of k.i"),
    ((("pipeline", "k", 2, ("C_s",)),), "C_s is not a copy"),
    ((("pipeline", "k", 2, {"buffers": -1}),), "number of slots"),
    ((("pipeline", "k", 2), ("pipeline", "k", 2)), "already runs ahead"),
    ((*REGISTERS, ("pipeline", "k.i", 2)), "goes from global to shared memory"),
])
def test_refusals(calls: tuple, words: str) -> None:
    assert words in refusal(ragged(), *TILES, *calls)


def halves():
    base = ragged()
    return replace(base, arrays=tuple(replace(a, dtype=DTYPES["f16"]) if a.name in "AB" else a for a in base.arrays))


def test_narrow_elements_need_wide_asynchronous_copies() -> None:
    said = refusal(halves(), *TILES, ("pipeline", "k", 2))
    assert "moves 2 bytes" in said
    assert "vector=2 or 4 or 8" in said
    assert "asynchronous=False" in said
    plan = rewritten(halves(), *TILES, ("pipeline", "k", 2, PLAIN))
    assert plan.buffer_of["A_s"].dtype.name == "f16"


def test_a_missing_wait_is_seen_when_run() -> None:
    plan = rewritten(ragged(), *TILES, ("pipeline", "k", 3))
    agree(plan)
    late = plan.replace_node("k.wait", Sync("k.wait", "wait", 2))
    with pytest.raises(AssertionError):
        agree(late)


def test_candidates_apply() -> None:
    plan = rewritten(ragged(), *TILES)
    found = list(Pipeline.candidates(plan, "k"))
    assert [(c.stages, c.asynchronous) for c in found] == [(2, True), (3, True), (4, True), (2, False), (3, False), (4, False)]
    assert Pipeline.offers(plan, "k")
    assert not Pipeline.offers(initial(row_sum()), "k")
    assert str(step(("pipeline", "k", 3))) == "pipeline('k', 3)"
    assert inputs(ragged())


def test_a_register_that_is_copied_ahead_lives_around_the_loop() -> None:
    """In a program that runs nothing, so that nobody misses the value (found by random schedules)."""
    m, n = ex.sizes("M N")

    @ex.program
    def f(x: ex.f32[m + 2, n + 2], y: ex.f32[m, n]):
        for i in range(1, m):
            for j in range(i, n):
                t = ex.local(ex.f32)
                t = x[i, j] + 1.0
                y[i, j] = abs(t)

    s = f.schedule(M=1, N=17).split("j", 2).skew("i", "j").stage("t", "j.i", space="register").contract("t")
    s = s.pipeline("j.i", 3, asynchronous=False)
    assert s.run(device="cpu", time=False, ragged=False).correct
