"""Columns of which several make one result: rows taken together, and reduced axes inside of the results, in whole vectors."""

from __future__ import annotations

import random
import re

import pytest

import explorer as ex
from benchmarks.reduction_program import reduction
from explorer.gpu.spec import gpu
from explorer.kernel.emit import emit
from explorer.run.nvrtc.compiler import compile_module
from explorer.strategies.default import default
from explorer.strategies.reductions import Shape, priced, problem_of, reduce, reduction_form
from explorer.strategies.reductions.families import candidates
from explorer.strategies.reductions.shapes import Problem
from explorer.strategies.reductions.sums import shared
from tests.strategies.device import right

HERE = gpu("H200")
M, N, K = ex.sizes("M N K")
CASES = {
    "rows of odd length": ((57, 19), (0,), "f32", "sum"),
    "the last period is cut off": ((399, 19), (0,), "f16", "max"),
    "two axes in one": ((57, 28, 3), (0, 1), "f32", "sum"),
    "two odd axes in one": ((57, 27, 3), (0, 1), "f32", "sum"),
    "three odd axes in one": ((9, 7, 11, 5), (0, 1, 2), "f16", "max"),
    "a period divides the axes, but none of them": ((7, 3, 6, 10, 9), (0, 2, 3), "f32", "sum"),
    "batches": ((5, 32, 83), (1,), "f16", "max"),
    "half of a vector fits": ((333, 10), (0,), "f16", "sum"),
    "a reduced axis inside": ((39, 12, 11, 4), (0, 2), "f32", "min"),
    "rows inside of the results": ((23, 24, 9), (0, 2), "f16", "sum"),
    "rows inside of two results": ((23, 4, 6, 10), (0, 3), "f32", "max"),
    "batches of both": ((3, 53, 40, 11), (1, 3), "f16", "sum"),
    "both, and no batch begins with a vector but together": ((64, 7, 55), (0, 2), "f16", "max"),
    "three reduced axes": ((7, 5, 16, 3, 12), (0, 2, 4), "f32", "sum"),
    "the columns of several blocks": ((11, 96, 7, 8), (0, 2), "f32", "sum"),
}


def canonical(case: tuple) -> tuple[Problem, list[Shape]]:
    """The canonical reduction, and the shapes whose sums meet in the block, the cheapest first."""
    written = reduction(*case)
    form = reduction_form(written, written.plan.kernels[0].id)
    assert form is not None
    return problem_of(written, form), [s for s, _ in priced(written, form, HERE) if s.two_stage]


def test_so_many_rows_as_make_whole_vectors() -> None:
    def of(p: Problem, widest: int) -> set[tuple[int, int]]:
        return {(s.vector, s.period) for s in candidates(p, widest, HERE) if s.period > 1}

    odd = Problem(False, 4000, 113, 113, 4, beside=113)
    assert of(odd, 4) == {(2, 2), (4, 4)}
    assert of(Problem(False, 4001, 113, 113, 2), 8) == {(4, 4), (8, 8)}  # what is cut off may lie in the last vector
    assert of(Problem(False, 4000, 114, 114, 2), 8) == {(4, 2), (8, 4)}
    assert not of(Problem(False, 4000, 112, 112, 2), 8)
    assert not of(Problem(True, 113, 4000, 113, 4), 4)
    assert not of(Problem(False, 4000, 1131, 1131, 4), 4)  # a period's columns are one block's
    batches = Problem(False, 256, 9379, 83, 2, 0, 83)
    assert of(batches, 8) == {(4, 4), (8, 8)}
    assert of(Problem(False, 252, 9379, 83, 2, 0, 83), 8) == {(4, 4)}  # every batch begins where a vector does
    assert not of(Problem(False, 251, 9379, 83, 2, 0, 83), 8)
    assert Shape(113, 1, 4, 1, 1, period=4).seen(odd) == Problem(False, 1000, 452, 452, 4, 0, 452)


def test_inner_reduced_axes_and_the_results_beside_them_are_columns() -> None:
    problem, found = canonical(((7, 5, 16, 3, 12), (0, 2, 4), "f32", "sum"))
    assert problem == Problem(True, 7 * 16 * 12, 15, 12, 4, inner=12, beside=3, whole=36, further=16)
    kept = [s for s in found if s.kept]
    assert {s.vector * s.x // 12 for s in kept} == {3}  # a block has whole results, more than one
    assert kept[0].seen(problem) == Problem(False, 7 * 16, 5 * 36, 36, 4, inner=16, beside=36)

    problem, found = canonical(((39, 12, 11, 4), (0, 2), "f32", "min"))
    assert problem == Problem(False, 39 * 11, 48, 4, 4, inner=11, beside=4, whole=528)
    assert all(s.x * s.vector % 44 == 0 and 528 % (s.x * s.vector) == 0 for s in found if s.kept and s.period == 1)
    assert not canonical(((64, 128), (1,), "f32", "sum"))[1]  # nothing is outside of the reduced axis


@pytest.mark.parametrize("name", CASES)
def test_every_way_to_join_is_right(name: str) -> None:
    case, rng = CASES[name], random.Random(3)
    _, found = canonical(case)
    ways = sorted({(s.join if s.parts > 1 else "", s.kept, s.period > 1) for s in found})
    chosen = [rng.choice([s for s in found if (s.join if s.parts > 1 else "", s.kept, s.period > 1) == way]) for way in ways]
    assert {"", "launch", "cluster"} <= {way for way, _, _ in ways}
    made = [default(reduce(reduction(*case), shape=s)) for s in chosen]
    for shape, s in zip(chosen, made, strict=True):
        assert re.search(rf"(vec|packed)<\w+, {shape.vector}>.*&x\[", s.cuda), shape  # nothing is read element by element
        assert "__syncthreads();" in s.cuda
    right(made)


@ex.program
def extremes(x: ex.f32[M, N], low: ex.f32[N], high: ex.f32[N]):
    for j in range(N):
        low[j] = ex.inf
        high[j] = -ex.inf
        for i in range(M):
            low[j] = min(low[j], x[i, j])
            high[j] = max(high[j], x[i, j])


@ex.program
def moments(x: ex.f16[M, N, K], total: ex.f32[N], squares: ex.f32[N]):
    for j in range(N):
        total[j] = 0.0
        squares[j] = 0.0
        for i in range(M):
            for k in range(K):
                total[j] += ex.cast(x[i, j, k], ex.f32)
                squares[j] += ex.cast(x[i, j, k], ex.f32) * ex.cast(x[i, j, k], ex.f32)


def test_several_results_share_the_vectors_of_a_period() -> None:
    """4 divides 400: a vector's lanes all have a row or none has, though the vector begins in one row and ends in the next."""
    s = extremes.schedule(M=400, N=19)
    form = reduction_form(s, "extremes")
    assert form is not None
    shape = next(x for x, _ in priced(s, form, HERE) if x.vector == x.period == 4 and x.parts > 1 and x.join == "launch")
    made = default(reduce(s, shape=shape))
    assert made.cuda.count("*(const vec<float, 4>*)&x[") == 1
    right([made])

    odd = extremes.schedule(M=401, N=19)
    form = reduction_form(odd, "extremes")
    assert form is not None
    assert not any(x.period > 1 for x, _ in priced(odd, form, HERE))


def test_several_results_share_the_vectors_of_the_axes_inside() -> None:
    s = moments.schedule(M=40, N=24, K=9)
    form = reduction_form(s, "moments")
    assert form is not None
    found = [x for x, _ in priced(s, form, HERE) if x.kept and x.vector == 8]
    made = [default(reduce(s, shape=next(x for x in found if (x.join if x.parts > 1 else "") == join)))
            for join in ("", "launch", "cluster")]
    for one in made:
        assert len(re.findall(r"\*\(const (?:vec|packed)<__half, 8>\*\)&x\[", one.cuda)) == 1
    right(made)


def test_a_period_is_read_without_divisions_and_its_end_is_asked_for_once() -> None:
    shape = Shape(19, 8, 8, 4, 4, period=8, join="cluster")
    s = default(reduce(reduction((3989, 19), (0,), "f16", "max"), shape=shape))
    loads = [line for line in s.cuda.splitlines() if "*(const packed<__half, 8>*)&x[" in line]
    assert len(loads) == 2  # where no vector of a batch lies beyond the array, and else
    assert not re.search(r"[/%]", "".join(loads))
    assert "load_within" not in loads[0]
    assert re.search(r"r0 >= 3 && r0_u >= 3 \? load_within|r0_u >= 3 \? load_within", loads[1])
    assert compile_module(emit(s.plan), "sm_90").kernels


@pytest.mark.parametrize("shape", [(9, 7, 11, 3), (12, 12, 5, 3), (8, 16, 5, 3), (6, 10, 27, 3)])
def test_odd_axes_that_follow_each_other_are_read_as_one(shape: tuple[int, ...]) -> None:
    """Whatever the loads in flight together: an index of the rows taken as one is a sum, and no other one."""
    case = shape, (0, 1, 2), "f32", "sum"
    _, found = canonical(case)
    shapes = [s for s in found if s.period > 1 and s.parts in (1, 4)]
    assert {s.unroll for s in shapes} > {4, 8}
    for one in shapes[::3]:
        s = reduce(reduction(*case), shape=one)
        read = re.findall(r"&x\[([^\]]*)\]", s.cuda)
        assert read, one
        assert not any(re.search(r"[/%]", at) for at in read), one
        assert not re.search(r"[ (]x\[", s.cuda), one


def test_rows_apart_are_taken_together_where_a_period_ends_with_them() -> None:
    assert any(s.period > 1 for s in canonical(((7, 3, 6, 10, 9), (0, 2, 3), "f32", "sum"))[1])
    assert not any(s.period > 1 for s in canonical(((7, 3, 7, 11, 9), (0, 2, 3), "f32", "sum"))[1])


def test_sums_lie_in_shared_memory_as_their_columns_lie_in_the_array() -> None:
    s = reduce(reduction((13, 53, 40, 11), (1, 3), "f16", "sum"), shape=Shape(55, 8, 8, 7, 1, kept=True))
    assert "float acc_p[8][40][11];" in s.cuda
    assert re.search(r"\*\(vec<float, 4>\*\)&acc_p\[ty\]\[\(8 \* tx \+ 4 \* \w+\) / 11\]", s.cuda)
    assert "acc_p_2 += acc_p[ty][tx][r3_c];" in s.cuda


@pytest.mark.parametrize("seed", range(40))
def test_who_adds_up_which_sums(seed: int) -> None:
    """Every sum of every result is somebody's, and the threads are there."""
    rng = random.Random(seed)
    results, terms, x, y = rng.randint(1, 200), rng.randint(1, 300), rng.randint(2, 128), rng.choice((1, 2, 4, 8))
    rows = rng.choice((0, y))
    terms = terms * y if rows else terms
    how = shared(results, terms, x, y, rng.choice((1, 16)), rows)
    assert how.share * how.alone >= terms * (how.rounds if how.place == "x" else 1)
    if how.place == "x":
        assert how.share <= x
        assert results % how.rounds == 0
        assert results // how.rounds <= y
    else:
        assert how.spread <= x
        assert results % how.spread == 0
        assert how.share == 1 or (how.place == "y" and how.share <= y and how.spread == results)
        rounds = results // how.spread
        assert how.alone >= terms // how.share * (1 if rounds <= y else rounds)
