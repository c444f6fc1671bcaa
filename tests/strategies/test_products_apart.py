"""Products among other nests: each gets a kernel of its own, with what follows it element by element."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.ir.instructions import instruction
from explorer.ir.tree import Kernel, Leaf
from explorer.strategies.auto import auto, by_rules
from explorer.strategies.contraction import products_apart
from tests.strategies.products import product

K, M, N = ex.sizes("K M N")


@ex.program
def residual_norm(a: ex.f16[M, K], b: ex.f16[K, N], r: ex.f16[M, N], y: ex.f16[M, N]):
    for i in range(M):
        row = ex.local(ex.f32, N)
        square = ex.local(ex.f32)
        square = 0.0
        for j in range(N):
            total = ex.local(ex.f32)
            total = 0.0
            for k in range(K):
                total += a[i, k] * b[k, j]
            row[j] = total + r[i, j]
        for j in range(N):
            square += row[j] * row[j]
        for j in range(N):
            y[i, j] = row[j] * ex.rsqrt(square / N + 1e-5)


@ex.program
def square_in_the_same_loop(a: ex.f16[M, K], b: ex.f16[K, N], r: ex.f16[M, N], y: ex.f16[M, N]):
    for i in range(M):
        row = ex.local(ex.f32, N)
        square = ex.local(ex.f32)
        square = 0.0
        for j in range(N):
            total = ex.local(ex.f32)
            total = 0.0
            for k in range(K):
                total += a[i, k] * b[k, j]
            row[j] = total + r[i, j]
            square += row[j] * row[j]
        for j in range(N):
            y[i, j] = row[j] * ex.rsqrt(square / N + 1e-5)


@ex.program
def residual_in_a_loop_of_its_own(a: ex.f16[M, K], b: ex.f16[K, N], r: ex.f16[M, N], y: ex.f16[M, N]):
    for i in range(M):
        row = ex.local(ex.f32, N)
        square = ex.local(ex.f32)
        sums = ex.local(ex.f32, N)
        for j in range(N):
            sums[j] = 0.0
            for k in range(K):
                sums[j] += a[i, k] * b[k, j]
        for j in range(N):
            row[j] = sums[j] + r[i, j]
        square = 0.0
        for j in range(N):
            square += row[j] * row[j]
        for j in range(N):
            y[i, j] = row[j] * ex.rsqrt(square / N + 1e-5)


@ex.program
def rows_before(a: ex.f16[M, K], b: ex.f16[K, N], y: ex.f16[M, N]):
    """The factor's rows are normalised first."""
    for i in range(M):
        h = ex.local(ex.f16, K)
        square = ex.local(ex.f32)
        square = 0.0
        for k in range(K):
            square += a[i, k] * a[i, k]
        for k in range(K):
            h[k] = a[i, k] * ex.rsqrt(square / K + 1e-5)
        for j in range(N):
            total = ex.local(ex.f32)
            total = 0.0
            for k in range(K):
                total += h[k] * b[k, j]
            y[i, j] = max(total, 0.0)


@ex.program
def attention(q: ex.f16[M, K], k: ex.f16[M, K], v: ex.f16[M, N], y: ex.f16[M, N]):
    for i in range(M):
        s = ex.local(ex.f32, M)
        p = ex.local(ex.f16, M)
        peak = ex.local(ex.f32)
        total = ex.local(ex.f32)
        for j in range(M):
            dot = ex.local(ex.f32)
            dot = 0.0
            for d in range(K):
                dot += q[i, d] * k[j, d]
            s[j] = dot * 0.125
        peak = -ex.inf
        for j in range(M):
            peak = max(peak, s[j])
        total = 0.0
        for j in range(M):
            e = ex.local(ex.f32)
            e = ex.exp(s[j] - peak)
            total += e
            p[j] = e
        for d in range(N):
            out = ex.local(ex.f32)
            out = 0.0
            for j in range(M):
                out += p[j] * v[j, d]
            y[i, d] = out / total


@ex.program
def causal(q: ex.f16[M, K], k: ex.f16[M, K], v: ex.f16[M, N], y: ex.f16[M, N]):
    """The second product's depth ends at the diagonal: its factor has zeros beyond, which no bulk copy brings."""
    for i in range(M):
        s = ex.local(ex.f32, M)
        p = ex.local(ex.f16, M)
        peak = ex.local(ex.f32)
        total = ex.local(ex.f32)
        for j in range(i + 1):
            dot = ex.local(ex.f32)
            dot = 0.0
            for d in range(K):
                dot += q[i, d] * k[j, d]
            s[j] = dot * 0.125
        peak = -ex.inf
        for j in range(i + 1):
            peak = max(peak, s[j])
        total = 0.0
        for j in range(i + 1):
            e = ex.local(ex.f32)
            e = ex.exp(s[j] - peak)
            total += e
            p[j] = e
        for d in range(N):
            out = ex.local(ex.f32)
            out = 0.0
            for j in range(i + 1):
                out += p[j] * v[j, d]
            y[i, d] = out / total


@ex.program
def narrow(a: ex.f16[M, K], b: ex.f16[K, 4], y: ex.f16[M, 4]):
    for i in range(M):
        row = ex.local(ex.f32, 4)
        peak = ex.local(ex.f32)
        for j in range(4):
            total = ex.local(ex.f32)
            total = 0.0
            for k in range(K):
                total += a[i, k] * b[k, j]
            row[j] = total
        peak = -ex.inf
        for j in range(4):
            peak = max(peak, row[j])
        for j in range(4):
            y[i, j] = row[j] - peak


NESTS = {"residual_norm": residual_norm, "square_in_the_same_loop": square_in_the_same_loop,
         "residual_in_a_loop_of_its_own": residual_in_a_loop_of_its_own, "rows_before": rows_before, "attention": attention,
         "causal": causal}
KERNELS = {"attention": 3, "causal": 3}
FUSED = {"rows_before": "y", "attention": "y", "causal": "y"}
"""What is written by the last product's kernel beside its sums; the row with the residual added, elsewhere."""


def multiplying(made: ex.Schedule) -> list[Kernel]:
    """The kernels with tensor instructions."""
    return [k for k in made.plan.kernels if any(leaf.mechanism and instruction(leaf.mechanism) for leaf in of(made, k))]


def of(made: ex.Schedule, kernel: Kernel) -> list[Leaf]:
    return [leaf for leaf, _, k in made.plan.leaves if k.id == kernel.id]


@pytest.mark.parametrize("name", NESTS)
def test_products_have_kernels_with_tensor_instructions(name: str) -> None:
    made = auto(NESTS[name].schedule(M=1024, N=512, K=512))
    assert made.judgement.emittable
    assert len(made.plan.launched) == KERNELS.get(name, 2)
    found = multiplying(made)
    assert len(found) == KERNELS.get(name, 2) - 1
    assert FUSED.get(name, "row") in {made.plan.statement_of[leaf.statement].target.array for leaf in of(made, found[-1])}


@pytest.mark.parametrize(("name", "m", "n", "k"), [*((name, 37, 41, 29) for name in NESTS), ("residual_norm", 64, 64, 128)])
def test_they_compute_the_same(name: str, m: int, n: int, k: int) -> None:
    made = by_rules(NESTS[name].schedule(M=m, N=n, K=k), ex.gpu("H200"))
    assert len(made.plan.launched) == KERNELS.get(name, 2)
    assert len(multiplying(made)) == KERNELS.get(name, 2) - 1
    assert made.judgement.emittable
    assert made.run(device="cpu", time=False).correct


def test_what_is_no_product_among_others_stays() -> None:
    softmax = ex.workloads.get("softmax").definition.schedule(M=64, N=64)
    assert products_apart(softmax) is softmax
    alone = product(ex.f16, ex.f32, "n", "n").schedule(M=64, N=64, K=64)
    assert products_apart(alone) is alone
    few = narrow.schedule(M=64, K=64)
    assert products_apart(few) is few
