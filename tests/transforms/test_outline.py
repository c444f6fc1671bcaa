"""A result written in two steps: what it may be done to, that it changes no value, and results through shared memory."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer import workloads
from explorer.errors import TransformError
from explorer.kernel.emit import emit
from explorer.run.nvrtc.compiler import compile_module
from explorer.strategies.contraction.form import product_form
from explorer.strategies.contraction.moves import build
from explorer.strategies.contraction.shapes import Tiling
from tests.strategies.products import biased, product

M, N = ex.sizes("M N")


@ex.program
def transposed(x: ex.f32[M, N], y: ex.f32[N, M]):
    for i in range(M):
        for j in range(N):
            y[j, i] = 2.0 * x[i, j]


def test_each_element_takes_the_way_through_the_temporary() -> None:
    s = transposed.schedule(M=5, N=7).outline("S0")
    statements = s.plan.statement_of
    assert [str(statements[name].target.array) for name in ("S0", "S0_store")] == ["y_t", "y"]
    assert statements["S0_store"].reads[0].index == statements["S0_store"].target.index
    assert s.judgement.emittable
    assert s.run(device="cpu", time=False).correct


def test_inline_is_the_way_back() -> None:
    written = transposed.schedule(M=5, N=7)
    back = written.outline("S0").inline("y_t")
    (leaf, _, _), = back.plan.leaves
    assert leaf.statement == "S0_store"
    assert back.plan.statement_of["S0_store"].value == written.plan.statement_of["S0"].value
    assert back.run(device="cpu", time=False).correct


def test_a_transposition_through_shared_memory() -> None:
    """Rows are read by neighbours, columns are written by neighbours, at ragged sizes."""
    s = transposed.schedule(M=37, N=29).tile(("i", "j"), (16, 16)).bind("i", "block.y").bind("j", "block.x").outline("S0")
    s = s.distribute("j.i", after="S0").distribute("i.i", after="j.i").contract("y_t", "shared", pad=1)
    s = s.bind("i.i", "thread.y").bind("j.i", "thread.x")
    outer, inner = (x.id for x in s.plan.resolve("S0_store")[1][-2:])  # type: ignore[index]
    s = s.reorder((inner, outer)).bind(inner, "thread.y").bind(outer, "thread.x")
    assert s.cuda.count("__syncthreads()") == 1
    assert s.run(device="cpu", time=False).correct


def test_what_is_refused() -> None:
    s = workloads.get("matmul").definition.schedule(M=4, N=4, K=4)
    with pytest.raises(TransformError, match="updates"):
        s.outline("S1")
    with pytest.raises(TransformError, match="there is no statement"):
        s.outline("nothing")
    staged = s.stage(s.plan.statement_of["S1"].reads[0].array, "k")
    (copy,) = (c.name for c in staged.plan.copies)
    with pytest.raises(TransformError, match="is a copy already"):
        staged.outline(copy)


@pytest.mark.parametrize("engine", ["warpgroup", "warp"])
@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 128), (100, 136, 200), (70, 72, 72)])
def test_results_of_tensor_instructions(engine: str, m: int, n: int, k: int) -> None:
    """Lanes leave pairs in shared memory, and each stores 16 bytes."""
    tiling = {"warpgroup": Tiling("warpgroup", 128, 64, 64, 2, 1, 2, through=True),
              "warp": Tiling("warp", 64, 64, 32, 2, 2, 2, 16, through=True)}[engine]
    written = product(ex.f16, ex.f32, "n", "n").schedule(M=m, N=n, K=k)
    form = product_form(written, written.plan.kernels[0].id)
    assert form is not None
    s = build(written, form, tiling)
    assert s.judgement.emittable
    assert "*(vec<__half, 8>*)&z[" in s.cuda
    assert "*(vec<__half, 2>*)&z_t[swizzled" in s.cuda
    assert s.run(device="cpu", time=False).correct
    (kernel,) = compile_module(emit(s.plan), "sm_90").kernels.values()
    assert not kernel.spill_store_bytes


def test_what_follows_the_sums_is_computed_before_it_is_left() -> None:
    written = biased.schedule(M=100, N=72, K=64)
    form = product_form(written, written.plan.kernels[0].id)
    assert form is not None
    s = build(written, form, Tiling("warpgroup", 64, 64, 64, 1, 1, 2, through=True))
    assert s.judgement.emittable
    assert len(s.plan.launched) == 1
    assert "*(vec<__half, 8>*)&" in s.cuda
    assert s.run(device="cpu", time=False).correct
