"""Copies with zeros where their readers' conditions leave an element out."""

from __future__ import annotations

from itertools import product

import pytest

import explorer as ex
from explorer.errors import TransformError
from explorer.schedule import Schedule
from explorer.transforms.stage import Stage

M, N = ex.sizes("M N")


@ex.program
def lower(a: ex.f32[M, M], b: ex.f32[M, N], y: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            t = ex.local(ex.f32)
            t = 0.0
            for k in range(i + 1):
                t += a[i, k] * b[k, j]
            y[i, j] = t


@ex.program
def twice(a: ex.f32[M, M], y: ex.f32[M], z: ex.f32[M]):
    """One reader takes what lies before the diagonal, the other one what lies up to two behind it."""
    for i in range(M):
        s = ex.local(ex.f32)
        t = ex.local(ex.f32)
        s = 0.0
        t = 0.0
        for k in range(M):
            if k <= i:
                s += a[i, k]
            if k <= i + 2:
                t += 2.0 * a[i, k]
        y[i] = s
        z[i] = t


@ex.program
def square(a: ex.f32[M, M], y: ex.f32[M]):
    """Nothing is left out."""
    for i in range(M):
        s = ex.local(ex.f32)
        s = 0.0
        for k in range(M):
            s += a[i, k]
        y[i] = s


def tiled(m: int = 37) -> Schedule:
    return lower.schedule(M=m, N=6).split("i", 8).bind("i", "block.x")


@pytest.mark.parametrize(("space", "vector"), [("shared", 1), ("shared", 4), ("register", 1)])
@pytest.mark.parametrize("m", [5, 16, 21])
def test_the_copy_has_zeros_behind_the_diagonal(space: str, vector: int, m: int) -> None:
    s = tiled(m).stage("a", "i", space=space, vector=vector if m % 4 == 0 else 1, masked=True)
    copy = next(c for c in s.plan.copies if c.origin == "copy")
    names = dict(zip(copy.dims, ("i", "row", "k"), strict=True))
    for i, row, k in product(range(-(-m // 8)), range(8), range(m)):
        at = {d: {"i": i, "row": row, "k": k}[names[d]] for d in copy.dims}
        kept = all(c.expr.evaluate(at) >= 0 for c in copy.inside)
        assert kept == (8 * i + row < m and k <= 8 * i + row)
    assert s.judgement.legal
    assert s.run(device="cpu", time=False).correct


def test_the_weakest_of_the_readers_conditions_counts() -> None:
    s = twice.schedule(M=24).split("i", 8).bind("i", "block.x").stage("a", "i", masked=True)
    [copy] = s.plan.copies
    at = dict(zip(copy.dims, (1, 3, 0), strict=True))
    kept = [k for k in range(24) if all(c.expr.evaluate(at | {copy.dims[-1]: k}) >= 0 for c in copy.inside)]
    assert kept == [*range(11 + 2 + 1)]
    assert s.run(device="cpu", time=False).correct


def test_without_it_the_copy_is_whole() -> None:
    [copy] = tiled(32).stage("a", "i").plan.copies
    assert not copy.inside


def test_a_bulk_copy_is_refused_with_the_way_that_works() -> None:
    with pytest.raises(TransformError) as caught:
        tiled(32).stage("a", "i", engine="bulk", masked=True)
    assert "a bulk copy brings what a reader's condition leaves out, too" in str(caught.value)
    assert "engine='thread' or 'async'" in str(caught.value)


def test_it_is_offered_where_it_leaves_something_out() -> None:
    s = lower.schedule(M=24, N=6).split("i", 8)
    masked = [x for x in Stage.candidates(s.plan, "i") if x.masked]
    assert [x.array for x in masked] == ["a"], "no condition is about b's rows alone"
    assert "stage('a', 'i', masked=True)" in str(s.moves("i"))
    whole = square.schedule(M=24).split("i", 8)
    assert not [x for x in Stage.candidates(whole.plan, "i") if x.masked]
