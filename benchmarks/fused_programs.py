"""The fused chains of the public cases as programs, computing what the peers' formulas compute.

Tests import them too, as ``benchmarks.fused_programs``; the scripts here by the plain name.
"""

from __future__ import annotations

import explorer as ex
from explorer.workloads.softmax import softmax  # noqa: F401

M, N, B, H, Q, K, C, P = ex.sizes("M N B H Q K C P")
EPSILON = 1e-5
ROOT_HALF = 0.7071067811865476


@ex.program
def attention_softmax(x: ex.f16[B, H, Q, K], m: ex.f16[B, K], y: ex.f16[B, H, Q, K]):
    for b in range(B):
        for h in range(H):
            for q in range(Q):
                row = ex.local(ex.f32, K)
                peak = ex.local(ex.f32)
                total = ex.local(ex.f32)
                for k in range(K):
                    row[k] = x[b, h, q, k] * 0.125 + m[b, k]
                peak = -ex.inf
                for k in range(K):
                    peak = max(peak, row[k])
                total = 0.0
                for k in range(K):
                    total += ex.exp(row[k] - peak)
                for k in range(K):
                    y[b, h, q, k] = ex.exp(row[k] - peak) / total


@ex.program
def layernorm(x: ex.f16[M, N], w: ex.f16[N], c: ex.f16[N], y: ex.f16[M, N]):
    for i in range(M):
        total = ex.local(ex.f32)
        mean = ex.local(ex.f32)
        spread = ex.local(ex.f32)
        scale = ex.local(ex.f32)
        total = 0.0
        for k in range(N):
            total += x[i, k]
        mean = total / N
        spread = 0.0
        for k in range(N):
            spread += (x[i, k] - mean) * (x[i, k] - mean)
        scale = ex.rsqrt(spread / N + EPSILON)
        for k in range(N):
            y[i, k] = (x[i, k] - mean) * scale * w[k] + c[k]


@ex.program
def rmsnorm(x: ex.f16[M, N], w: ex.f16[N], y: ex.f16[M, N]):
    for i in range(M):
        total = ex.local(ex.f32)
        scale = ex.local(ex.f32)
        total = 0.0
        for k in range(N):
            total += x[i, k] * x[i, k]
        scale = ex.rsqrt(total / N + 0.0009765625)
        for k in range(N):
            y[i, k] = x[i, k] * scale * w[k]


@ex.program
def bias_gelu(x: ex.f16[M, N], c: ex.f16[N], y: ex.f16[M, N]):
    for i in range(M):
        for k in range(N):
            v = ex.local(ex.f32)
            v = x[i, k] + c[k]
            y[i, k] = 0.5 * v * (1.0 + ex.erf(v * ROOT_HALF))


@ex.program
def bias_residual_layernorm(x: ex.f16[M, N], r: ex.f16[M, N], b: ex.f16[N], w: ex.f16[N], c: ex.f16[N], y: ex.f16[M, N]):
    for i in range(M):
        row = ex.local(ex.f32, N)
        total = ex.local(ex.f32)
        mean = ex.local(ex.f32)
        spread = ex.local(ex.f32)
        scale = ex.local(ex.f32)
        for k in range(N):
            row[k] = x[i, k] + b[k] + r[i, k]
        total = 0.0
        for k in range(N):
            total += row[k]
        mean = total / N
        spread = 0.0
        for k in range(N):
            spread += (row[k] - mean) * (row[k] - mean)
        scale = ex.rsqrt(spread / N + EPSILON)
        for k in range(N):
            y[i, k] = (row[k] - mean) * scale * w[k] + c[k]


@ex.program
def batchnorm_relu(x: ex.f32[B, C, P], w: ex.f32[C], c: ex.f32[C], y: ex.f32[B, C, P]):
    for j in range(C):
        total = ex.local(ex.f32)
        total = 0.0
        for n in range(B):
            for p in range(P):
                total += x[n, j, p]
        square = ex.local(ex.f32)
        square = 0.0
        for n in range(B):
            for p in range(P):
                square += x[n, j, p] * x[n, j, p]
        mean = ex.local(ex.f32)
        scale = ex.local(ex.f32)
        mean = total / (B * P)
        scale = ex.rsqrt(square / (B * P) - mean * mean + EPSILON) * w[j]
        for n in range(B):
            for p in range(P):
                y[n, j, p] = max((x[n, j, p] - mean) * scale + c[j], 0.0)


@ex.program
def cross_entropy(x: ex.f16[M, N], target: ex.i64[M], y: ex.f32[M]):
    for i in range(M):
        peak = ex.local(ex.f32)
        total = ex.local(ex.f32)
        peak = -ex.inf
        for k in range(N):
            peak = max(peak, x[i, k])
        total = 0.0
        for k in range(N):
            total += ex.exp(x[i, k] - peak)
        y[i] = ex.log(total) + peak - x[i, target[i]]


@ex.program
def layernorm_gradient(x: ex.f16[M, N], dy: ex.f16[M, N], w: ex.f16[N], dx: ex.f16[M, N], dw: ex.f32[N], db: ex.f32[N]):
    mean = ex.local(ex.f32, M)
    scale = ex.local(ex.f32, M)
    for i in range(M):
        total = ex.local(ex.f32)
        spread = ex.local(ex.f32)
        along = ex.local(ex.f32)
        across = ex.local(ex.f32)
        total = 0.0
        for k in range(N):
            total += x[i, k]
        mean[i] = total / N
        spread = 0.0
        for k in range(N):
            spread += (x[i, k] - mean[i]) * (x[i, k] - mean[i])
        scale[i] = ex.rsqrt(spread / N + EPSILON)
        along = 0.0
        for k in range(N):
            along += dy[i, k] * w[k]
        across = 0.0
        for k in range(N):
            across += dy[i, k] * w[k] * (x[i, k] - mean[i]) * scale[i]
        for k in range(N):
            dx[i, k] = scale[i] * (dy[i, k] * w[k] - (along + (x[i, k] - mean[i]) * scale[i] * across) / N)
    for k in range(N):
        dw[k] = 0.0
        for i in range(M):
            dw[k] += dy[i, k] * (x[i, k] - mean[i]) * scale[i]
    for k in range(N):
        db[k] = 0.0
        for i in range(M):
            db[k] += dy[i, k]


@ex.program
def adam(p: ex.f32[M], m: ex.f32[M], v: ex.f32[M], g: ex.f32[M], p2: ex.f32[M], m2: ex.f32[M], v2: ex.f32[M]):
    for i in range(M):
        a = ex.local(ex.f32)
        b = ex.local(ex.f32)
        a = 0.9 * m[i] + 0.1 * g[i]
        b = 0.999 * v[i] + 0.001 * g[i] * g[i]
        p2[i] = p[i] - 0.001 * a / (ex.sqrt(b) + 1e-8)
        m2[i] = a
        v2[i] = b


@ex.program
def tanh(x: ex.f32[M], y: ex.f32[M]):
    for i in range(M):
        y[i] = ex.tanh(x[i])


@ex.program
def sigmoid(x: ex.f32[M], y: ex.f32[M]):
    for i in range(M):
        y[i] = 1.0 / (1.0 + ex.exp(-x[i]))


@ex.program
def clamp(x: ex.f32[M], y: ex.f32[M]):
    for i in range(M):
        y[i] = min(max(x[i], -1.0), 1.0)


@ex.program
def gelu(x: ex.f32[M], y: ex.f32[M]):
    for i in range(M):
        y[i] = 0.5 * x[i] * (1.0 + ex.erf(x[i] * ROOT_HALF))


@ex.program
def axpby(x: ex.f32[M], z: ex.f32[M], y: ex.f32[M]):
    for i in range(M):
        y[i] = 2.0 * x[i] + 0.5 * z[i]


@ex.program
def mean_middle(x: ex.f32[B, N, K], y: ex.f32[B, K]):
    for b in range(B):
        for k in range(K):
            total = ex.local(ex.f32)
            total = 0.0
            for n in range(N):
                total += x[b, n, k]
            y[b, k] = total / N


@ex.program
def two_branches(a: ex.f16[M, N], b: ex.f16[M, N], y: ex.f32[N], z: ex.f32[N]):
    """Two sums of columns behind element-wise producers; the result of the first producer is read twice.  No public case."""
    t = ex.local(ex.f32, M, N)
    u = ex.local(ex.f32, M, N)
    for i in range(M):
        for j in range(N):
            t[i, j] = a[i, j] + b[i, j]
    for i in range(M):
        for j in range(N):
            u[i, j] = t[i, j] * b[i, j]
    for j in range(N):
        y[j] = 0.0
        for i in range(M):
            y[j] += u[i, j]
    for j in range(N):
        z[j] = 0.0
        for i in range(M):
            z[j] += t[i, j]
