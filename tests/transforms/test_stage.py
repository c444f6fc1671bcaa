"""Stage: the box of what is read, copied by all threads, guarded at the edge."""

from __future__ import annotations

import numpy as np
import pytest

import explorer as ex
from explorer import workloads
from explorer.ir.expr import var
from explorer.ir.plan import initial
from explorer.ir.program import Indirect
from explorer.ir.scalar import Read
from explorer.ir.text import loops_text
from explorer.transforms.stage import Stage
from tests.transforms.programs import (
    array,
    chain,
    conv1d,
    copy,
    doubled,
    leaf,
    loops,
    matmul,
    program,
    read,
    row_sum,
    softmax,
    statement,
    stencil1d,
)
from tests.transforms.storage import refusal, rewritten, right

M, N, K = ex.sizes("M N K")


@ex.program
def blocks_of_rows(x: ex.f32[M, N, K], y: ex.f32[M, N, K]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                y[i, j, k] = x[i, j, k]


@ex.program
def strided_sums(x: ex.f32[M, N], w: ex.f32[M, K], y: ex.f32[K]):
    for p in range(K):
        total = ex.local(ex.f32)
        total = 0.0
        for i in range(M):
            for k in range(K):
                total += x[i, 3 * p + k] * w[i, k]
        y[p] = total


TILES = (("split", "i", 4), ("split", "j", 4), ("split", "k", 3), ("interchange", "i.i", "j"), ("bind", "i", "block.x"),
         ("bind", "j", "block.y"),
         ("bind", "i.i", "thread.y"), ("bind", "j.i", "thread.x"), ("contract", "acc"))
LINE = (("split", "i", 4), ("bind", "i", "block.x"), ("bind", "i.i", "thread.x"))


def test_matmul_tiles_in_shared_memory(golden) -> None:
    plan = right(matmul(), *TILES, ("stage", "A", "k"), ("stage", "B", "k", {"pad": 1}))
    assert plan.buffer_of["A_s"].shape == (4, 3)
    assert plan.buffer_of["B_s"].padded_shape == (3, 5)
    golden(loops_text(plan))


def test_a_run_of_the_array_where_coalesced_loops_make_no_box(golden) -> None:
    """Ten elements begin anywhere in rows of seven: no box holds them, but they follow each other."""
    plan = right(doubled(6, 7), ("coalesce", ("i", "j")), ("split", "i", 10), ("bind", "i", "block.x"),
                 ("bind", "i.i", "thread.x"), ("stage", "x", "i"))
    assert plan.buffer_of["x_s"].shape == (10,)
    golden(loops_text(plan))


def test_a_run_of_whole_vectors(golden) -> None:
    plan = right(doubled(6, 7), ("coalesce", ("i", "j")), ("split", "i", 20), ("bind", "i", "block.x"),
                 ("bind", "i.i", "thread.x"), ("stage", "x", "i", {"vector": 4}))
    assert [x.extent for x in plan.loops.values() if x.role == "vector"] == [4]
    golden(loops_text(plan))  # the last vector holds two elements: 42 is no multiple of 4


def test_rows_that_follow_each_other_are_copied_in_vectors_whatever_their_length() -> None:
    steps = (("split", "i", 4), ("bind", "i", "block.x"), ("bind", "i.i", "thread.x"), ("contract", "total"))
    plan = right(row_sum(11, 7), *steps, ("stage", "x", "i", {"vector": 4}))
    assert plan.buffer_of["x_s"].shape == (28,)
    assert "not evenly spaced" in refusal(row_sum(11, 7), *steps, ("stage", "x", "i", {"vector": 4, "pad": 1}))
    assert "4 does not divide" in refusal(row_sum(11, 7), ("split", "i", 5), *steps[1:], ("stage", "x", "i", {"vector": 4}))


@ex.program
def slices(x: ex.f32[M, N, K], y: ex.f32[K, M, N]):
    for i in range(M):
        for j in range(1, N):
            for k in range(K):
                y[k, i, j] = x[i, j, k] + i


def test_an_empty_array_has_no_run() -> None:
    plan = slices.schedule(M=6, N=0, K=4).tile(("i", "k"), (2, 2)).split("i.i", 1).plan
    for node in plan.loops:
        assert all(step.check(plan) for step in Stage.candidates(plan, node))


def test_threads_inside_of_the_loop_get_loops_of_their_own(golden) -> None:
    plan = right(stencil1d(), *LINE, ("stage", "x", "i"))
    assert plan.buffer_of["x_s"].shape == (6,)
    golden(loops_text(plan))


def test_the_box_is_the_union_of_all_reads_of_a_stencil_and_a_strided_convolution() -> None:
    plan = right(conv1d(), *LINE, ("contract", "acc"), ("stage", "x", "i"), ("stage", "w", "conv1d"))
    assert plan.buffer_of["x_s"].shape == (9,)
    assert plan.buffer_of["w_s"].shape == (3,)


def test_several_statements_read_one_copy() -> None:
    steps = []
    for name in ("k", "k_2", "k_3", "k_4"):
        steps += [("split", name, 4), ("bind", f"{name}.i", "thread.x")]
    plan = right(softmax(), ("bind", "i", "block.x"), *steps, ("collect", "peak", "shuffle"), ("collect", "total", "shuffle"),
                 ("stage", "x", "i"))
    assert plan.buffer_of["x_s"].shape == (12,)
    assert sum(v.buffer == "x_s" for leaf_, _, _ in plan.leaves for _, v in leaf_.views) == 3


@pytest.mark.parametrize("vector", [2, 4])
def test_wide_copies(vector: int, golden) -> None:
    plan = right(matmul(5, 8, 8), ("split", "i", 4), ("split", "k", 4), ("bind", "i", "block.x"), ("bind", "i.i", "thread.y"),
                 ("bind", "j", "thread.x"),
                 ("contract", "acc"), ("stage", "A", "k", {"vector": vector}), ("stage", "B", "k", {"vector": vector, "pad": 4}))
    assert sorted(x.extent for x in plan.loops.values() if x.role == "vector") == [vector, vector]
    golden(loops_text(plan))


@pytest.mark.parametrize(("sizes", "call", "words"), [
    ((5, 7, 6), ("stage", "A", "k", {"vector": 2}), "rows of 3 elements"),
    ((5, 7, 6), ("stage", "B", "k", {"vector": 4}), "not aligned to 4 elements"),
    ((5, 6, 6), ("stage", "B", "k", {"vector": 4}), "not aligned to 4 elements"),
    ((5, 8, 6), ("stage", "B", "k", {"vector": 4, "pad": 1}), "not aligned to 4 elements"),
    ((5, 8, 6), ("stage", "B", "k", {"vector": 3}), "1, 2, 4, 8 or 16"),
])
def test_unaligned_wide_copies_are_refused(sizes: tuple, call: tuple, words: str) -> None:
    assert words in refusal(matmul(*sizes), *TILES, call)


def test_registers_are_private_copies(golden) -> None:
    plan = right(stencil1d(), ("split", "i", 4), ("split", "i.i", 2), ("bind", "i", "block.x"), ("bind", "i.i", "thread.x"),
                 ("stage", "x", "i.i", "register"))
    assert plan.buffer_of["x_r"].shape == (4,)
    golden(loops_text(plan))


def test_wide_loads_into_registers() -> None:
    plan = right(matmul(4, 4, 8), ("bind", "i", "thread.y"), ("bind", "j", "thread.x"), ("split", "k", 8),
                 ("stage", "A", "k", "register", 4))
    assert plan.buffer_of["A_r"].shape == (8,)


def test_gaps_between_strides_take_no_cells() -> None:
    plan = right(conv1d(8, 2, 3), ("split", "i", 4), ("bind", "i", "block.x"), ("bind", "i.i", "thread.x"), ("contract", "acc"),
                 ("stage", "x", "i"))
    assert plan.buffer_of["x_s"].shape == (4, 2)
    plan = right(copy(32), ("split", "i", 16), ("split", "i.i", 2), ("bind", "i.i", "thread.x"), ("interchange", "i", "i.i"),
                 ("stage", "x", "i.i", "register"))
    assert plan.buffer_of["x_r"].shape == (2, 2)
    assert str(plan.statement_of["x_r"].reads[0].index[0]) == "16*x_r[0] + 2*x_r.i.i + x_r[1]"


def test_from_shared_memory_to_registers(golden) -> None:
    plan = right(matmul(), *TILES, ("stage", "A", "k"), ("stage", "B", "k"), ("stage", "A", "k.i", "register"),
                 ("stage", "B_s", "k", "register"))
    assert plan.statement_of["A_r"].reads[0].array == "A_s"
    assert plan.statement_of["B_r"].reads[0].array == "B_s"
    golden(loops_text(plan))


def test_a_copy_may_be_stored_in_another_order_of_its_axes(golden) -> None:
    """Columns of A one after the other; a copy of the copy finds its cells, and copies that run ahead have slots of them."""
    plan = right(matmul(), *TILES, ("stage", "A", "k", {"axes": (1, 0), "pad": 2}), ("stage", "B", "k", {"axes": (0, 1)}),
                 ("stage", "A_s", "k.i", "register"), ("pipeline", "k", 2))
    assert plan.buffer_of["A_s"].padded_shape[-2:] == (3, 6)
    assert plan.buffer_of["B_s"].padded_shape[-2:] == (3, 4)
    golden(loops_text(plan))


def test_a_loop_around_blocks_leaves_no_place_for_a_copy_of_the_kernel() -> None:
    blocks = ("bind", "j", "block.x")
    assert "i lies around loops over blocks" in refusal(doubled(6, 7), blocks, ("stage", "x", "doubled", "register"))


def test_vectors_lie_along_the_array_and_along_the_copy() -> None:
    whole = ("split", "k", 4)
    tiles = (*TILES[:2], whole, *TILES[3:])
    across = ("stage", "A", "k", {"vector": 4, "axes": (1, 0)})
    assert "cannot move 4 elements at once" in refusal(matmul(8, 8, 8), *tiles, across)


def test_registers_outside_of_a_thread_loop_get_thread_loops_of_their_own() -> None:
    plan = right(matmul(3, 4, 5), ("bind", "j", "thread.x"), ("stage", "B", "i", "register"))
    own = next(x for x in plan.loops.values() if x.role == "thread.x" and x.id != "j")
    assert own.extent == plan.loops["j"].extent == 4
    assert plan.buffer_of["B_r"].shape == (5,)  # a thread's own column, not all of B


def test_readers_in_different_threads_share_no_registers() -> None:
    said = refusal(softmax(), ("bind", "k", "thread.x"), ("stage", "x", "i", "register"))
    assert "the readers of x are spread differently over threads" in said


def test_one_array_in_two_places() -> None:
    k, j = var("k"), var("j")
    s0 = statement("S0", {"k": 6}, read("y", k), Read(0), (read("x", k),))
    s1 = statement("S1", {"j": 6}, read("z", j), Read(0), (read("x", j + 6),))
    arrays = (array("x", 12, role="in"), array("y", 6, role="out"), array("z", 6, role="out"))
    both = program("two", arrays, (s0, s1), loops({"k": 6}, leaf(s0)), loops({"j": 6}, leaf(s1)))
    plan = rewritten(both, ("split", "k", 3), ("split", "j", 2), ("stage", "x", "k"), ("stage", "x", "j"))
    assert [(b.name, b.shape) for b in plan.buffers] == [("x_s", (3,)), ("x_s_2", (2,))]
    from tests.run_plan import run_plan
    given = {"x": np.arange(12, dtype=np.float32)}
    assert (run_plan(plan, given)["y"] == given["x"][:6]).all()
    assert (run_plan(plan, given)["z"] == given["x"][6:]).all()


def test_without_fill_the_cells_beyond_the_edge_stay_unwritten() -> None:
    plan = right(stencil1d(), *LINE, ("stage", "x", "i", {"fill": False}))
    copy = plan.statement_of["x_s"]
    assert copy.inside == ()
    assert len(copy.domain) == len(rewritten(stencil1d(), *LINE, ("stage", "x", "i")).statement_of["x_s"].domain) + 1


def test_one_thread_may_copy() -> None:
    plan = right(stencil1d(), *LINE, ("stage", "x", "i", {"threads": False}))
    assert plan.loops["x_s.0"].extent == 6
    assert "all threads have to take part" in refusal(matmul(), *TILES, ("stage", "A", "k", {"threads": False}))


def test_temporaries_can_be_staged_before_they_have_storage() -> None:
    right(chain(), ("bind", "i", "thread.x"), ("bind", "i_2", "thread.x"), ("stage", "t", "chain"))


def test_warps_and_lanes_share_the_copy() -> None:
    right(stencil1d(70), ("split", "i", 64), ("split", "i.i", 32), ("bind", "i", "block.x"), ("bind", "i.i", "warp"),
          ("bind", "i.i.i", "lane"),
          ("stage", "x", "i"))


@pytest.mark.parametrize("engine", ["thread", "bulk"])
def test_a_tile_that_one_loop_runs_through_is_one_dimension(engine: str) -> None:
    s = blocks_of_rows.schedule(M=10, N=20, K=8).split("i", 4).split("j", 8)
    s = s.reorder(("i", "j", "i.i", "j.i")).coalesce(("i.i", "j.i")).stage("x", "j", engine=engine)
    (copy,) = s.plan.buffers
    assert copy.shape == (32, 8)
    assert "x_s[i_i][k]" in s.cuda
    if engine == "bulk":
        assert "bulk_copy_3d<8, 8, 4>(" in s.cuda
    assert s.run(device="cpu", time=False).correct


def test_a_cell_for_each_iteration_where_elements_are_no_box() -> None:
    s = strided_sums.schedule(M=11, N=40, K=6).split("p", 4)
    s = s.distribute("p.i", after="S1").distribute("p.i", after="S0").reorder(("i", "k", "p.i.3"))
    s = s.coalesce(("i", "k")).split("i", 5, inner="i.k").reorder(("i", "p.i.3", "i.k")).contract("total", "register")
    with pytest.raises(ex.TransformError, match="mixes variables inside and outside"):
        s.stage("w", "i", space="register").stage("x", "i")
    made = s.stage("x", "i", loops=("p.i.3", "i.k"))
    (copy,) = (b for b in made.plan.buffers if b.name == "x_s")
    assert copy.shape == (4, 5)
    assert "x_s[p_i_3][i_k]" in made.cuda
    assert made.run(device="cpu", time=False).correct
    turned = s.stage("x", "i", loops=("i.k", "p.i.3"))
    assert "x_s[i_k][p_i_3]" in turned.cuda
    assert turned.run(device="cpu", time=False).correct
    for named, words in ((("i.k",), "another element of x in each iteration of p.i.3"), (("p.i.3", "i.k", "p"), "p is no loop"),
                         (("i.k", "i.k", "p.i.3"), "named twice")):
        with pytest.raises(ex.TransformError, match=words):
            s.stage("x", "i", loops=named)
    with pytest.raises(ex.TransformError, match="no cell for each iteration"):
        s.stage("x", "i", engine="bulk", loops=("p.i.3", "i.k"))


def test_data_dependent_reads_are_refused() -> None:
    k = var("k")
    s0 = statement("S0", {"k": 4}, read("y", k), Read(0), (read("x", k), read("p", k)))
    from dataclasses import replace
    s0 = replace(s0, reads=(replace(s0.reads[0], index=(Indirect(Read(1)),)), s0.reads[1]))
    arrays = (array("x", 4, role="in"), array("p", 4, role="in", dtype="i32"), array("y", 4, role="out"))
    gather = program("gather", arrays, (s0,), loops({"k": 4}, leaf(s0)))
    assert "data-dependent" in refusal(gather, ("stage", "x", "gather"))


@pytest.mark.parametrize(("calls", "words"), [
    ((("stage", "q", "k"),), "there is no array 'q'"),
    ((("stage", "A", "q"),), "there is no loop 'q'"),
    ((("stage", "C", "k"),), "nothing below k reads C"),
    ((("stage", "A", "k", "texture"),), "cannot live in 'texture'"),
    ((("stage", "A", "k", "register", {"pad": 1}),), "only rows in shared memory"),
    ((("stage", "A", "k", "register", {"axes": (1, 0)}),), "only what threads copy to shared memory has an order of axes"),
    ((("stage", "A", "k", {"axes": (1, 0), "engine": "bulk"}),), "only what threads copy to shared memory has an order of axes"),
    ((("stage", "A", "i", {"axes": (0, 0)}),), "is no order of them"),
    ((("stage", "A", "k", {"axes": (1, 0)}),), "is no order of them"),
    ((("bind", "j", "block.x"), ("stage", "B", "i", "register")), "i lies outside of j"),
    ((("contract", "acc"), ("stage", "acc", "j")), "acc already lives in register"),
])
def test_refusals(calls: tuple, words: str) -> None:
    assert words in refusal(matmul(), *calls)


def test_candidates_apply() -> None:
    plan = rewritten(matmul(4, 8, 8), ("split", "k", 4))
    found = list(Stage.candidates(plan, "k"))
    assert 0 < len(found) <= 8
    assert all(c.check(plan) for c in found)
    assert any(c.vector == 4 for c in found)
    assert not Stage.offers(initial(row_sum()), "S1")


def test_one_of_two_copies_of_an_array_can_be_named() -> None:
    """After a cut each half has a copy of its own; one of them may be copied again, where it has been made already."""
    s = workloads.get("sum_rows").definition.schedule(M=3, N=4)
    s = s.stage("x", "k").cut("k", -1)
    first, second = (b.name for b in s.plan.buffers)
    again = s.stage(second, "k.2", "register")
    assert [b.name for b in again.plan.buffers][:2] == [first, second]
    assert again.run(device="cpu", time=False, ragged=False).correct
    with pytest.raises(ex.IllegalSchedule, match="this order would be lost"):
        s.stage(second, "i", fill=False)


def test_the_box_has_no_cells_that_the_array_lacks() -> None:
    plan = right(doubled(5, 2), ("split", "i", 33), ("split", "j", 33), ("stage", "x", "doubled", {"space": "register"}))
    assert plan.buffer_of["x_r"].shape == (5, 2)
    assert right(doubled(5, 2), ("split", "i", 33), ("split", "j", 33), ("stage", "x", "i")).buffer_of["x_s"].shape == (5, 2)


def test_no_more_than_a_thread_or_a_block_has() -> None:
    large = doubled(500, 300)
    said = refusal(large, ("stage", "x", "doubled", {"space": "register"}))
    assert "600,000 bytes of registers a thread" in said
    assert "255 registers of 4 bytes" in said
    assert "600,000 bytes of shared memory a block" in refusal(large, ("stage", "x", "doubled"))
    rows = doubled(500, 250)
    assert "2,000 bytes of registers" in refusal(rows, ("stage", "x", "i", {"space": "register"}),
                                                 ("pipeline", "i", 2, {"asynchronous": False}))


@pytest.mark.parametrize("space", ["shared", "register"])
def test_a_cell_for_each_iteration_of_a_loop_without_any_is_refused(space: str) -> None:
    m, n = ex.sizes("M N")

    @ex.program
    def shifted(x: ex.f32[m, n], y: ex.f32[m, n]):
        for i in range(1, m):
            for j in range(n):
                y[i, j] = x[i, j] + x[i, j]

    s = shifted.schedule(M=1, N=3).bind("j", "thread.x").interchange("i", "j")
    verdict, _ = s.try_step(Stage("x", "j", space=space, loops=("j", "i") if space == "shared" else ("i",)))
    assert not verdict
    assert "no cells" in verdict.what
    assert "has no iterations" in verdict.why
