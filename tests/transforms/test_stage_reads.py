"""One of the reads of a statement goes to a copy, where two of them read tiles of one array that move apart."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.errors import TransformError
from explorer.gpu.spec import gpu
from explorer.schedule import Schedule
from explorer.strategies import auto
from explorer.transforms.stage import Stage

M, K = ex.sizes("M K")


@ex.program
def gram(x: ex.f16[M, K], z: ex.f32[M, M]):
    """The products of all rows with each other."""
    for i in range(M):
        for j in range(M):
            t = ex.local(ex.f32)
            t = 0.0
            for k in range(K):
                t += x[i, k] * x[j, k]
            z[i, j] = t


@ex.program
def columns(x: ex.f16[K, M], z: ex.f32[M, M]):
    for i in range(M):
        for j in range(M):
            t = ex.local(ex.f32)
            t = 0.0
            for k in range(K):
                t += x[k, i] * x[k, j]
            z[i, j] = t


def tiles() -> Schedule:
    s = gram.schedule(M=20, K=24).tile(("i", "j"), (8, 8)).split("k", 8)
    for loop, place in (("i", "block.y"), ("j", "block.x"), ("i.i", "thread.y"), ("j.i", "thread.x")):
        s = s.bind(loop, place)
    return s.contract("t")


def test_each_read_has_a_copy_of_its_own(golden) -> None:
    s = tiles().stage("x", "k", read=0).stage("x", "k", read=1).pipeline("k", 2, asynchronous=False)
    assert [b.name for b in s.plan.buffers if b.space == "shared"] == ["x_s", "x_s_2"]
    golden(str(s))
    assert s.run(device="cpu").correct


def test_one_copy_and_what_goes_on_reading_the_array() -> None:
    s = tiles().stage("x", "k", read=1)
    views = next(leaf for leaf, _, _ in s.plan.leaves if leaf.statement == "S1").views
    assert [(slot, view.buffer) for slot, view in views if slot < 2] == [(1, "x_s")]
    assert s.run(device="cpu").correct


def test_a_refusal_says_that_there_is_this_way() -> None:
    with pytest.raises(TransformError, match="copy one read at a time"):
        tiles().stage("x", "k")
    with pytest.raises(TransformError, match="has x as read 4"):
        tiles().stage("x", "k", read=4)
    offered = [str(step) for step in Stage.candidates(tiles().plan, "k")]
    assert "stage('x', 'k', vector=4, read=0)" in offered
    assert "stage('x', 'k', vector=4, read=1)" in offered


@pytest.mark.parametrize("where", ["H200", "A100-40GB", "T4"])
@pytest.mark.parametrize("program", [gram, columns], ids=lambda p: p.name)
def test_products_of_an_array_with_itself_are_products(program: ex.ProgramDefinition, where: str) -> None:
    s = auto(program.schedule(M=100, K=72), gpu=gpu(where))
    assert "mma" in s.cuda
    assert s.run(device="cpu", time=False).correct
