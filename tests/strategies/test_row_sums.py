"""Sums over a product's rows from the registers that hold its results: nothing of the product is stored."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.gpu.spec import gpu
from explorer.ir.instructions import instruction
from explorer.strategies import auto
from explorer.strategies.contraction import build, products_apart, tilings
from explorer.strategies.contraction.form import product_form
from explorer.strategies.contraction.shapes import Tiling

M, N, K, B = ex.sizes("M N K B")


@ex.program
def squares(a: ex.f16[M, K], b: ex.f16[K, N], r: ex.f32[M]):
    for i in range(M):
        s = ex.local(ex.f32)
        s = 0.0
        for j in range(N):
            z = ex.local(ex.f32)
            z = 0.0
            for k in range(K):
                z += a[i, k] * b[k, j]
            s += z * z
        r[i] = s


@ex.program
def perceptron(x: ex.f16[M, K], w: ex.f16[K, N], bias: ex.f32[N], v: ex.f32[N], y: ex.f32[M]):
    """Two layers, of which the second one has one output."""
    for i in range(M):
        s = ex.local(ex.f32)
        s = 0.0
        for j in range(N):
            z = ex.local(ex.f32)
            z = 0.0
            for k in range(K):
                z += x[i, k] * w[k, j]
            s += max(z + bias[j], 0.0) * v[j]
        y[i] = s + 1.0


@ex.program
def batched(a: ex.f16[B, M, K], b: ex.f16[B, N, K], r: ex.f32[B, M]):
    for n in range(B):
        for i in range(M):
            s = ex.local(ex.f32)
            s = 0.0
            for j in range(N):
                z = ex.local(ex.f32)
                z = 0.0
                for k in range(K):
                    z += a[n, i, k] * b[n, j, k]
                s += abs(z)
            r[n, i] = s


@ex.program
def stored(a: ex.f16[M, K], b: ex.f16[K, N], z: ex.f16[M, N], r: ex.f32[M]):
    """The product is a result, too: it is stored, and read again for its sums."""
    for i in range(M):
        for j in range(N):
            t = ex.local(ex.f32)
            t = 0.0
            for k in range(K):
                t += a[i, k] * b[k, j]
            z[i, j] = t
    for i in range(M):
        s = ex.local(ex.f32)
        s = 0.0
        for j in range(N):
            s += z[i, j] * z[i, j]
        r[i] = s


@ex.program
def both(a: ex.f16[M, K], b: ex.f16[K, N], z: ex.f16[M, N], r: ex.f32[M]):
    """The product is a result, and so are the sums of what it was before it was rounded."""
    for i in range(M):
        s = ex.local(ex.f32)
        s = 0.0
        for j in range(N):
            t = ex.local(ex.f32)
            t = 0.0
            for k in range(K):
                t += a[i, k] * b[k, j]
            z[i, j] = t
            s += t * t
        r[i] = s


@ex.program
def normalised(a: ex.f16[M, K], b: ex.f16[K, N], y: ex.f16[M, N]):
    """Rows are divided by their sums: what needs a sum comes behind all of its row."""
    for i in range(M):
        row = ex.local(ex.f32, N)
        s = ex.local(ex.f32)
        s = 1.0
        for j in range(N):
            row[j] = 0.0
            for k in range(K):
                row[j] += a[i, k] * b[k, j]
            s += row[j] * row[j]
        for j in range(N):
            y[i, j] = row[j] / s


SIZES = {"squares": {"M": 200, "N": 152, "K": 104}, "perceptron": {"M": 70, "N": 40, "K": 64},
         "batched": {"B": 3, "M": 33, "N": 72, "K": 48}}


@pytest.mark.parametrize("where", ["H200", "A100-40GB", "T4"])
@pytest.mark.parametrize("program", [squares, perceptron, batched], ids=lambda p: p.name)
def test_auto_sums_what_it_multiplies(program: ex.ProgramDefinition, where: str) -> None:
    s = auto(program.schedule(**SIZES[program.name]), gpu=gpu(where))
    at = next(leaf for leaf, _, _ in s.plan.leaves if leaf.statement == "S2")
    assert instruction(at.mechanism) is not None
    own = s.plan.kernel_of(at.id)
    stored = {s.plan.statement_of[leaf.statement].target.array for leaf, _, k in s.plan.leaves
              if k == own and leaf.view(len(s.plan.statement_of[leaf.statement].reads)) is None}
    assert stored == {"s"}
    assert "atomic_add(&s[" in s.cuda
    assert s.run(device="cpu", time=False).correct


@pytest.mark.parametrize("tiling", [Tiling("warpgroup", 128, 64, 64, 2, 1, 3), Tiling("warp", 64, 64, 32, 2, 2, 3),
                                    Tiling("warp", 32, 16, 32, 1, 1, 2)], ids=str)
def test_tiles_of_every_engine(tiling: Tiling, golden) -> None:
    s = products_apart(squares.schedule(M=200, N=152, K=104))
    kernel = s.plan.kernels[1].id
    form = product_form(s, kernel)
    assert form is not None
    assert form.sums == ("S3",)
    made = build(s, form, tiling)
    assert made.judgement.emittable
    golden(made.cuda[made.cuda.index('extern "C"'):])
    assert made.run(device="cpu", time=False).correct


@pytest.mark.parametrize("tiling", [Tiling("warpgroup", 128, 64, 64, 2, 1, 2), Tiling("warp", 64, 64, 32, 2, 2, 2)], ids=str)
@pytest.mark.parametrize("columns", [40, 64])
def test_rows_that_one_block_holds(tiling: Tiling, columns: int) -> None:
    """Lanes alone add to an element then."""
    s = products_apart(squares.schedule(M=72, N=columns, K=72))
    form = product_form(s, s.plan.kernels[1].id)
    assert form is not None
    made = build(s, form, tiling)
    assert made.judgement.emittable
    assert made.run(device="cpu", time=False).correct


def test_a_product_that_another_kernel_reads_is_summed_there() -> None:
    s = auto(normalised.schedule(M=200, N=152, K=104))
    assert "atomic_add" not in s.cuda
    assert s.run(device="cpu", time=False).correct


def test_such_tiles_go_out_at_once() -> None:
    """No slices of the depth, no blocks that take tiles in turn, no results through shared memory."""
    s = products_apart(squares.schedule(M=4096, N=4096, K=1024))
    form = product_form(s, s.plan.kernels[1].id)
    assert form is not None
    found = list(tilings(form, gpu("H200")))
    assert found
    assert not [t for t in found if t.through or t.persistent or t.slices > 1 or t.engine == "plain"]


@pytest.mark.parametrize("program", [both, stored], ids=lambda p: p.name)
def test_sums_of_a_product_that_is_stored(program: ex.ProgramDefinition) -> None:
    """From the same registers: what is stored is not read again, and what is summed not stored in f32 besides."""
    s = auto(program.schedule(M=4096, N=4096, K=1024))
    [product] = [k.id for leaf, _, k in s.plan.leaves if instruction(leaf.mechanism) is not None]
    leaves = [leaf for leaf, _, k in s.plan.leaves if k.id == product]
    written = {s.plan.statement_of[leaf.statement].target.array for leaf in leaves}
    assert {"z", "s"} <= written
    assert not [leaf for leaf, _, _ in s.plan.leaves if "z" in {r.array for r in s.plan.statement_of[leaf.statement].reads}]
    assert s.plan.buffer_of["t"].space == "register"
    assert auto(program.schedule(M=200, N=152, K=104)).run(device="cpu", time=False).correct


@pytest.mark.parametrize("tiling", [
    Tiling("warpgroup", 64, 64, 64, 1, 1, 2, through=True),
    Tiling("warpgroup", 128, 64, 64, 2, 1, 2, through=True, persistent=5, producer=True, bulk_stores=True),
    Tiling("warpgroup", 64, 128, 64, 1, 1, 2, persistent=3, producer=True),
    Tiling("warp", 64, 32, 32, 2, 1, 2),
], ids=str)
def test_tiles_in_turn_add_each_time(tiling: Tiling) -> None:
    """Where a block's tiles have other columns, too, it has no part of a row of its own to keep."""
    s = products_apart(both.schedule(M=200, N=152, K=104))
    form = product_form(s, s.plan.kernels[1].id)
    assert form is not None
    assert form.sums == ("S4",)
    made = build(s, form, tiling)
    assert made.judgement.emittable
    assert made.run(device="cpu", time=False).correct
