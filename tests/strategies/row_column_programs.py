"""Programs whose column reductions can ride along a row nest, beside `layernorm_gradient` of `benchmarks/fused_programs.py`."""

from __future__ import annotations

import explorer as ex

M, N, B, Q, H = ex.sizes("M N B Q H")


@ex.program
def rmsnorm_backward(x: ex.f32[B, Q, N], dy: ex.f32[B, Q, N], w: ex.f32[N], dx: ex.f32[B, Q, N], dw: ex.f32[N]):
    """Rows under two loops, their sum in the other order."""
    scale = ex.local(ex.f32, B, Q)
    for b in range(B):
        for q in range(Q):
            square = ex.local(ex.f32)
            along = ex.local(ex.f32)
            square = 0.0
            for k in range(N):
                square += x[b, q, k] * x[b, q, k]
            scale[b, q] = ex.rsqrt(square / N + 1e-5)
            along = 0.0
            for k in range(N):
                along += dy[b, q, k] * w[k] * x[b, q, k]
            for k in range(N):
                dx[b, q, k] = scale[b, q] * (dy[b, q, k] * w[k] - x[b, q, k] * scale[b, q] * scale[b, q] * along / N)
    for k in range(N):
        dw[k] = 0.0
    for q in range(Q):
        for b in range(B):
            for k in range(N):
                dw[k] += dy[b, q, k] * x[b, q, k] * scale[b, q]


@ex.program
def gelu_backward(x: ex.f16[M, N], dy: ex.f16[M, N], c: ex.f16[N], dx: ex.f16[M, N], dc: ex.f32[N]):
    """The gradient of a bias and an activation: an elementwise nest with the sum in it."""
    for k in range(N):
        dc[k] = 0.0
    for i in range(M):
        for k in range(N):
            v = ex.local(ex.f32)
            g = ex.local(ex.f32)
            v = x[i, k] + c[k]
            g = dy[i, k] * (0.5 * (1.0 + ex.erf(v * 0.7071067811865476)) + v * ex.exp(-0.5 * v * v) * 0.3989422804014327)
            dx[i, k] = g
            dc[k] += g


@ex.program
def softmax_peaks(x: ex.f32[M, N], y: ex.f32[M, N], high: ex.f32[N], low: ex.f64[N]):
    """Softmax by rows with the largest and, in double precision, the smallest logit of each column."""
    for i in range(M):
        peak = ex.local(ex.f32)
        total = ex.local(ex.f32)
        peak = -ex.inf
        for k in range(N):
            peak = max(peak, x[i, k])
        total = 0.0
        for k in range(N):
            total += ex.exp(x[i, k] - peak)
        for k in range(N):
            y[i, k] = ex.exp(x[i, k] - peak) / total
    for k in range(N):
        high[k] = -ex.inf
        for i in range(M):
            high[k] = max(high[k], x[i, k])
    for k in range(N):
        low[k] = ex.inf
        for i in range(M):
            low[k] = min(low[k], x[i, k])


@ex.program
def scaled_planes(x: ex.f32[M, Q, H], s: ex.f32[M], y: ex.f32[M, Q, H], total: ex.f32[Q, H]):
    """Columns along two axes, with a sum that nothing starts."""
    for i in range(M):
        for q in range(Q):
            for h in range(H):
                y[i, q, h] = x[i, q, h] * s[i]
    for i in range(M):
        for q in range(Q):
            for h in range(H):
                total[q, h] += x[i, q, h] * s[i]
