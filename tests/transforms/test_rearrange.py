"""An input copied with its axes in another order: what reads it reads the copy, in the same kernel or behind a launch."""

from __future__ import annotations

from math import prod

import pytest

import explorer as ex
from explorer.errors import IllegalSchedule, TransformError
from explorer.poly.overapproximated import overapproximates
from explorer.transforms.launch import Launch

N, C, H, M, K = ex.sizes("N C H M K")


@ex.program
def weighted(x: ex.f32[N, C, H], f: ex.f32[C], y: ex.f32[N, H]):
    for n in range(N):
        for h in range(H):
            total = ex.local(ex.f32)
            total = 0.0
            for c in range(C):
                total += x[n, c, h] * f[c]
            y[n, h] = total + x[n, 0, h]


@ex.program
def triangle(x: ex.f32[N, C, C], y: ex.f32[N, C]):
    for n in range(N):
        for h in range(C):
            total = ex.local(ex.f32)
            total = 0.0
            for c in range(h + 1):
                total += x[n, c, h]
            y[n, h] = total


def start() -> ex.Schedule:
    return weighted.schedule(N=3, C=5, H=7)


@ex.program
def gradient(x: ex.f32[N, C, H], g: ex.f32[N, H], y: ex.f32[C, 3]):
    """Each slice of it, of one h, has elements without terms."""
    for c in range(C):
        for s in range(3):
            total = ex.local(ex.f32)
            total = 0.0
            for n in range(N):
                for h in range(H):
                    if 0 <= h + s - 1 < H:
                        total += x[n, c, h + s - 1] * g[n, h]
            y[c, s] = total


@ex.program
def conditional(x: ex.f32[M, K, N], y: ex.f32[M]):
    for i in range(M):
        y[i] = 0.0
    for i2 in range(M):
        for k in range(K):
            for n in range(N):
                if k + i2 >= 2:
                    y[i2] += x[i2, k, n]


@ex.program
def scattered(x: ex.f32[N], f: ex.f32[3], y: ex.f32[N]):
    """What falls beside the ends is left out."""
    for i in range(N):
        y[i] = 0.0
    for i in range(N):
        for k in range(3):
            if 0 <= i + k - 1 < N:
                y[i + k - 1] += x[i] * f[k]


def test_every_reader_reads_the_copy() -> None:
    s = start().rearrange("x", (0, 2, 1))
    made = s.plan.program.array_of["x_a"]
    assert (made.shape, made.role) == ((3, 7, 5), "temporary")
    reads = [str(r.index[-1]) for st in s.plan.program.statements for r in st.reads if r.array == "x_a"]
    assert len(reads) == 2
    assert s.judgement.emittable
    assert s.run(device="cpu", time=False).correct


def test_a_launch_of_its_own() -> None:
    s = start().rearrange("x", (2, 0, 1)).launch("weighted", after="x_a.0")
    assert [len(k.body) for k in s.plan.kernels] == [1, 1]
    s = s.bind("n", "block.x").bind("h", "thread.x").bind("x_a.0", "block.x").contract("total")
    assert s.judgement.emittable
    assert s.run(device="cpu", time=False).correct


def test_without_a_launch_blocks_would_read_what_others_write() -> None:
    with pytest.raises(IllegalSchedule, match=r"launch\('weighted', after='x_a.0'\)"):
        start().rearrange("x", (0, 2, 1)).bind("x_a.1", "block.x")


def test_a_box_may_hold_what_nobody_reads_if_all_of_it_is_written_before() -> None:
    """A triangle's box is a square."""
    s = triangle.schedule(N=3, C=8).rearrange("x", (0, 2, 1)).launch("triangle", after="x_a.0")
    s = s.split("h", 4).bind("n", "block.x").bind("h", "block.y")
    made = s.stage("x_a", "h")
    (copy,) = (c.name for c in made.plan.copies)
    assert made.judgement.legal
    assert not overapproximates(made.plan, copy)
    assert made.contract("total").run(device="cpu", time=False).correct
    packed = Launch("triangle", pack=made.plan.kernels[1].id).rewrite(made.plan)  # nothing orders the copy behind all writes
    assert overapproximates(packed, copy)


@pytest.mark.parametrize("axes", [(0, 1, 2), (0, 2, 1)])
def test_rows_with_a_pitch(axes: tuple[int, ...]) -> None:
    s = start().rearrange("x", axes, pad=3)
    copy = next(a for a in s.plan.program.arrays if a.name == "x_a")
    length = start().plan.array_of["x"].shape[axes[-1]]
    assert copy.shape[-1] == length
    assert copy.stored[-1] == copy.pitch == length + 3
    assert copy.nbytes == 4 * prod(copy.shape[:-1]) * (length + 3)
    assert f"* {length + 3} + " in s.cuda
    assert s.run(device="cpu", time=False, checked=True).correct
    assert start().replay(s.steps).plan == s.plan


def test_pads_that_are_none() -> None:
    for pad in (-1, 129):
        with pytest.raises(TransformError, match="is no padding of a row"):
            start().rearrange("x", (0, 2, 1), pad=pad)


@pytest.mark.parametrize(("array", "axes", "why"), [
    ("x", (0, 1, 2), "in this order already"), ("x", (0, 1), "in another order"), ("x", (0, 1, 1), "in another order"),
    ("y", (1, 0), "is written"), ("z", (1, 0), "there is no array"), ("f", (0,), "in this order already")])
def test_what_is_refused(array: str, axes: tuple[int, ...], why: str) -> None:
    with pytest.raises(TransformError, match=why):
        start().rearrange(array, axes)


def test_not_behind_a_staged_copy() -> None:
    with pytest.raises(TransformError, match="staged already"):
        start().stage("x", "n", space="register").rearrange("x", (0, 2, 1))


def test_no_copy_in_front_of_a_loop_of_the_host() -> None:
    """Its launches would each have made the copy, and the refusal named blocks that were none (chain 620352:465)."""
    with pytest.raises(TransformError, match="the host runs n of weighted"):
        start().bind("n", "launch").rearrange("x", (0, 2, 1))


def test_a_temporary_is_laid_out_anew() -> None:
    s = gradient.schedule(N=4, C=5, H=6).reorder(("h", "n")).rfactor("total", "h", axes=(0,))
    laid = s.rearrange("total_p", (0, 2, 1))
    assert laid.plan.array_of["total_p"].shape == (6, 3, 5)
    assert len(laid.plan.program.statements) == len(s.plan.program.statements)  # nothing is copied
    assert {tuple(str(e)[0] for e in a.index) for st in laid.plan.program.statements for a in st.accesses
            if a.array == "total_p"} == {("h", "s", "c")}
    assert laid.run(device="cpu", time=False, checked=True).correct
    assert laid.rearrange("total_p", (0, 2, 1)).plan.program.array_of["total_p"].shape == (6, 5, 3)
    padded = s.rearrange("total_p", (0, 2, 1), pad=3)
    assert padded.plan.array_of["total_p"].stored == (6, 3, 8)
    assert padded.run(device="cpu", time=False, checked=True).correct


def test_storage_of_its_own_stays() -> None:
    s = gradient.schedule(N=4, C=5, H=6).rfactor("total", "h", axes=(0,)).contract("total_p")
    with pytest.raises(TransformError, match=r"contract\('total_p', space='global'\) first"):
        s.rearrange("total_p", (0, 2, 1))


def test_partial_results_without_terms_are_written_out_as_they_started() -> None:
    """The slices' sums stay in registers, started and stored without a condition; they were stored twice before."""
    s = gradient.schedule(N=4, C=5, H=6).reorder(("h", "n")).rfactor("total", "h", axes=(0,)).accumulate("total_p")
    last = next(st for st in s.plan.program.statements if st.target.array == "total_p")
    assert last.update is None
    assert all(len(c.expr.variables()) == 1 for c in last.domain)  # a box
    assert sum(st.target.array == "total_p" for st in s.plan.program.statements) == 1
    assert s.contract("total_p_acc").run(device="cpu", time=False, checked=True).correct


def test_loops_leave_out_iterations_in_which_nothing_runs() -> None:
    s = scattered.schedule(N=9).interchange("i_2", "k").skew("i_2", "k")
    assert s.plan.loops["i_2"].range == (1, 9)  # of 0 to 10
    assert s.run(device="cpu", time=False, checked=True).correct
    moved = s.shift("i_2", -1)
    assert moved.plan.loops["i_2"].range == (0, 8)
    whole = scattered.schedule(N=9).split("i_2", 6).coalesce(("i_2", "i_2.i"))
    assert whole.plan.loops["i_2"].extent == 12
    assert whole.shift("i_2", 2).plan.loops["i_2"].range == (2, 10)
    assert whole.shift("i_2", 2).run(device="cpu", time=False, checked=True).correct


def test_a_pad_can_be_taken_back() -> None:
    s = gradient.schedule(N=4, C=5, H=6).rfactor("total", "h", axes=(0,)).rearrange("total_p", (0, 1, 2), pad=3)
    assert s.plan.array_of["total_p"].stored == (6, 5, 6)
    assert s.rearrange("total_p", (0, 1, 2)).plan.array_of["total_p"].stored == (6, 5, 3)


def test_loops_that_walk_fewer_elements_than_were_started_keep_the_identity() -> None:
    """skew leaves out what has no terms, so the loops of the last statement would not reach all that rfactor started."""
    s = conditional.schedule(M=4, K=8, N=8).rfactor("S1", "k").distribute("k", after="S1_init").skew("k.2", "i2", 1)
    s = s.accumulate("y_p", at="i2")
    assert any(st.update for st in s.plan.program.statements if st.name == "S1_combine_2")
    assert s.run(device="cpu", time=False, checked=True).correct
