"""Products, convolutions and attention as programs: the loops that a user would write, f16 in and out, sums in f32.

The last two letters of a product say how its factors lie: ``n`` as in ``a[i, k]`` and ``b[k, j]``, ``t`` transposed.

Tests import them too, as ``benchmarks.product_programs``; the scripts here by the plain name.
"""

from __future__ import annotations

import explorer as ex

Z, M, N, K = ex.sizes("Z M N K")
B, C, H, W, D, E, R, S, P, Q, T, A, L = ex.sizes("B C H W D E R S P Q T A L")
EPSILON = 1e-5
ROOT_HALF = 0.7071067811865476
ROOT_2_OVER_PI = 0.7978845608028654


@ex.program
def product_nn(a: ex.f16[M, K], b: ex.f16[K, N], c: ex.f16[M, N]):
    for i in range(M):
        for j in range(N):
            total = ex.local(ex.f32)
            total = 0.0
            for k in range(K):
                total += a[i, k] * b[k, j]
            c[i, j] = total


@ex.program
def product_nt(a: ex.f16[M, K], b: ex.f16[N, K], c: ex.f16[M, N]):
    for i in range(M):
        for j in range(N):
            total = ex.local(ex.f32)
            total = 0.0
            for k in range(K):
                total += a[i, k] * b[j, k]
            c[i, j] = total


@ex.program
def product_tn(a: ex.f16[K, M], b: ex.f16[K, N], c: ex.f16[M, N]):
    for i in range(M):
        for j in range(N):
            total = ex.local(ex.f32)
            total = 0.0
            for k in range(K):
                total += a[k, i] * b[k, j]
            c[i, j] = total


@ex.program
def product_tt(a: ex.f16[K, M], b: ex.f16[N, K], c: ex.f16[M, N]):
    for i in range(M):
        for j in range(N):
            total = ex.local(ex.f32)
            total = 0.0
            for k in range(K):
                total += a[k, i] * b[j, k]
            c[i, j] = total


@ex.program
def product_f32(a: ex.f32[M, K], b: ex.f32[K, N], c: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            total = ex.local(ex.f32)
            total = 0.0
            for k in range(K):
                total += a[i, k] * b[k, j]
            c[i, j] = total


@ex.program
def batched_nn(a: ex.f16[Z, M, K], b: ex.f16[Z, K, N], c: ex.f16[Z, M, N]):
    for z in range(Z):
        for i in range(M):
            for j in range(N):
                total = ex.local(ex.f32)
                total = 0.0
                for k in range(K):
                    total += a[z, i, k] * b[z, k, j]
                c[z, i, j] = total


@ex.program
def batched_nt(a: ex.f16[Z, M, K], b: ex.f16[Z, N, K], c: ex.f16[Z, M, N]):
    for z in range(Z):
        for i in range(M):
            for j in range(N):
                total = ex.local(ex.f32)
                total = 0.0
                for k in range(K):
                    total += a[z, i, k] * b[z, j, k]
                c[z, i, j] = total


@ex.program
def bias_relu(a: ex.f16[M, K], b: ex.f16[K, N], bias: ex.f16[N], y: ex.f16[M, N]):
    for i in range(M):
        for j in range(N):
            total = ex.local(ex.f32)
            total = 0.0
            for k in range(K):
                total += a[i, k] * b[k, j]
            y[i, j] = max(total + bias[j], 0.0)


@ex.program
def bias_gelu(a: ex.f16[M, K], b: ex.f16[K, N], bias: ex.f16[N], y: ex.f16[M, N]):
    for i in range(M):
        for j in range(N):
            total = ex.local(ex.f32)
            v = ex.local(ex.f32)
            total = 0.0
            for k in range(K):
                total += a[i, k] * b[k, j]
            v = total + bias[j]
            y[i, j] = 0.5 * v * (1.0 + ex.erf(v * ROOT_HALF))


@ex.program
def bias_gelu_tanh(a: ex.f16[M, K], b: ex.f16[K, N], bias: ex.f16[N], y: ex.f16[M, N]):
    """The GELU of GPT-2, with a hyperbolic tangent in place of the error function."""
    for i in range(M):
        for j in range(N):
            total = ex.local(ex.f32)
            v = ex.local(ex.f32)
            total = 0.0
            for k in range(K):
                total += a[i, k] * b[k, j]
            v = total + bias[j]
            y[i, j] = 0.5 * v * (1.0 + ex.tanh(ROOT_2_OVER_PI * (v + 0.044715 * v * v * v)))


@ex.program
def bias_residual(a: ex.f16[M, K], b: ex.f16[K, N], bias: ex.f16[N], r: ex.f16[M, N], y: ex.f16[M, N]):
    for i in range(M):
        for j in range(N):
            total = ex.local(ex.f32)
            total = 0.0
            for k in range(K):
                total += a[i, k] * b[k, j]
            y[i, j] = total + bias[j] + r[i, j]


@ex.program
def residual_rmsnorm(a: ex.f16[M, K], b: ex.f16[K, N], r: ex.f16[M, N], w: ex.f16[N], y: ex.f16[M, N]):
    """The rows are f16 before they are normalised, as the product and its residual are in PyTorch."""
    for i in range(M):
        row = ex.local(ex.f16, N)
        square = ex.local(ex.f32)
        scale = ex.local(ex.f32)
        for j in range(N):
            total = ex.local(ex.f32)
            total = 0.0
            for k in range(K):
                total += a[i, k] * b[k, j]
            row[j] = total + r[i, j]
        square = 0.0
        for j in range(N):
            square += row[j] * row[j]
        scale = ex.rsqrt(square / N + EPSILON)
        for j in range(N):
            y[i, j] = row[j] * scale * w[j]


@ex.program
def row_squares(a: ex.f16[M, K], b: ex.f16[K, N], y: ex.f32[M]):
    """The sum of squares of each row of a product."""
    for i in range(M):
        square = ex.local(ex.f32)
        square = 0.0
        for j in range(N):
            total = ex.local(ex.f32)
            total = 0.0
            for k in range(K):
                total += a[i, k] * b[k, j]
            square += total * total
        y[i] = square


@ex.program
def stored_squares(a: ex.f16[M, K], b: ex.f16[K, N], y: ex.f16[M, N], r: ex.f32[M]):
    """A product, and the sum of squares of each row of it."""
    for i in range(M):
        square = ex.local(ex.f32)
        square = 0.0
        for j in range(N):
            total = ex.local(ex.f32)
            total = 0.0
            for k in range(K):
                total += a[i, k] * b[k, j]
            y[i, j] = total
            square += total * total
        r[i] = square


@ex.program
def triangle_lower(a: ex.f16[M, M], b: ex.f16[M, N], y: ex.f16[M, N]):
    """A product by a lower triangle."""
    for i in range(M):
        for j in range(N):
            total = ex.local(ex.f32)
            total = 0.0
            for k in range(i + 1):
                total += a[i, k] * b[k, j]
            y[i, j] = total


@ex.program
def triangle_upper(a: ex.f16[M, M], b: ex.f16[M, N], y: ex.f16[M, N]):
    """A product by an upper triangle."""
    for i in range(M):
        for j in range(N):
            total = ex.local(ex.f32)
            total = 0.0
            for k in range(i, M):
                total += a[i, k] * b[k, j]
            y[i, j] = total


@ex.program
def triangle_right(a: ex.f16[N, M], b: ex.f16[M, M], y: ex.f16[N, M]):
    """A product whose right factor is an upper triangle."""
    for i in range(N):
        for j in range(M):
            total = ex.local(ex.f32)
            total = 0.0
            for k in range(j + 1):
                total += a[i, k] * b[k, j]
            y[i, j] = total


@ex.program
def gram(a: ex.f16[M, K], y: ex.f16[M, M]):
    """The products of all rows with each other."""
    for i in range(M):
        for j in range(M):
            total = ex.local(ex.f32)
            total = 0.0
            for k in range(K):
                total += a[i, k] * a[j, k]
            y[i, j] = total


@ex.program
def conv(x: ex.f16[B, C, H, W], f: ex.f16[K, D, R, S], bias: ex.f16[K], y: ex.f16[B, K, P, Q]):
    """NCHW; stride T, padding A, D channels of the input and E of the output in a group."""
    for n in range(B):
        for k in range(K):
            for h in range(P):
                for w in range(Q):
                    total = ex.local(ex.f32)
                    total = 0.0
                    for d in range(D):
                        for r in range(R):
                            for s in range(S):
                                if 0 <= h * T + r - A < H and 0 <= w * T + s - A < W:
                                    total += x[n, k // E * D + d, h * T + r - A, w * T + s - A] * f[k, d, r, s]
                    y[n, k, h, w] = max(total + bias[k], 0.0)


@ex.program
def conv_nhwc(x: ex.f16[B, H, W, C], f: ex.f16[K, R, S, D], bias: ex.f16[K], y: ex.f16[B, P, Q, K]):
    """Channels last; otherwise as above."""
    for n in range(B):
        for h in range(P):
            for w in range(Q):
                for k in range(K):
                    total = ex.local(ex.f32)
                    total = 0.0
                    for r in range(R):
                        for s in range(S):
                            for d in range(D):
                                if 0 <= h * T + r - A < H and 0 <= w * T + s - A < W:
                                    total += x[n, h * T + r - A, w * T + s - A, k // E * D + d] * f[k, r, s, d]
                    y[n, h, w, k] = max(total + bias[k], 0.0)


@ex.program
def conv_weights(x: ex.f16[B, C, H, W], g: ex.f16[B, K, H, W], y: ex.f16[K, C, R, S]):
    """NCHW, a padding of A: each weight's gradient is a sum over all images and pixels."""
    for k in range(K):
        for c in range(C):
            for r in range(R):
                for s in range(S):
                    total = ex.local(ex.f32)
                    total = 0.0
                    for n in range(B):
                        for h in range(H):
                            for w in range(W):
                                if 0 <= h + r - A < H and 0 <= w + s - A < W:
                                    total += g[n, k, h, w] * x[n, c, h + r - A, w + s - A]
                    y[k, c, r, s] = total


@ex.program
def conv_weights_nhwc(x: ex.f16[B, H, W, C], g: ex.f16[B, H, W, K], y: ex.f16[R, S, K, C]):
    """Channels last; otherwise as above."""
    for r in range(R):
        for s in range(S):
            for k in range(K):
                for c in range(C):
                    total = ex.local(ex.f32)
                    total = 0.0
                    for n in range(B):
                        for h in range(H):
                            for w in range(W):
                                if 0 <= h + r - A < H and 0 <= w + s - A < W:
                                    total += g[n, h, w, k] * x[n, h + r - A, w + s - A, c]
                    y[r, s, k, c] = total


@ex.program
def conv_transposed(x: ex.f16[B, C, H, W], f: ex.f16[C, K, R, S], y: ex.f16[B, K, P, Q]):
    """NCHW; each input scatters over the result, T apart, less a padding of A: also the gradient of a convolution's input."""
    total = ex.local(ex.f32, B, K, P, Q)
    for n in range(B):
        for k in range(K):
            for p in range(P):
                for q in range(Q):
                    total[n, k, p, q] = 0.0
    for n in range(B):
        for c in range(C):
            for h in range(H):
                for w in range(W):
                    for k in range(K):
                        for r in range(R):
                            for s in range(S):
                                if 0 <= h * T + r - A < P and 0 <= w * T + s - A < Q:
                                    total[n, k, h * T + r - A, w * T + s - A] += x[n, c, h, w] * f[c, k, r, s]
    for n in range(B):
        for k in range(K):
            for p in range(P):
                for q in range(Q):
                    y[n, k, p, q] = total[n, k, p, q]


@ex.program
def conv_transposed_nhwc(x: ex.f16[B, H, W, C], f: ex.f16[R, S, K, C], y: ex.f16[B, P, Q, K]):
    """Channels last; otherwise as above."""
    total = ex.local(ex.f32, B, P, Q, K)
    for n in range(B):
        for p in range(P):
            for q in range(Q):
                for k in range(K):
                    total[n, p, q, k] = 0.0
    for n in range(B):
        for h in range(H):
            for w in range(W):
                for r in range(R):
                    for s in range(S):
                        for k in range(K):
                            for c in range(C):
                                if 0 <= h * T + r - A < P and 0 <= w * T + s - A < Q:
                                    total[n, h * T + r - A, w * T + s - A, k] += x[n, h, w, c] * f[r, s, k, c]
    for n in range(B):
        for p in range(P):
            for q in range(Q):
                for k in range(K):
                    y[n, p, q, k] = total[n, p, q, k]


@ex.program
def depthwise(x: ex.f16[B, C, H, W], f: ex.f16[C, R, S], bias: ex.f16[C], y: ex.f16[B, C, P, Q]):
    """NCHW, one filter for each channel."""
    for n in range(B):
        for c in range(C):
            for h in range(P):
                for w in range(Q):
                    total = ex.local(ex.f32)
                    total = 0.0
                    for r in range(R):
                        for s in range(S):
                            if 0 <= h * T + r - A < H and 0 <= w * T + s - A < W:
                                total += x[n, c, h * T + r - A, w * T + s - A] * f[c, r, s]
                    y[n, c, h, w] = max(total + bias[c], 0.0)


@ex.program
def depthwise_nhwc(x: ex.f16[B, H, W, C], f: ex.f16[R, S, C], bias: ex.f16[C], y: ex.f16[B, P, Q, C]):
    """Channels last, one filter for each channel."""
    for n in range(B):
        for h in range(P):
            for w in range(Q):
                for c in range(C):
                    total = ex.local(ex.f32)
                    total = 0.0
                    for r in range(R):
                        for s in range(S):
                            if 0 <= h * T + r - A < H and 0 <= w * T + s - A < W:
                                total += x[n, h * T + r - A, w * T + s - A, c] * f[r, s, c]
                    y[n, h, w, c] = max(total + bias[c], 0.0)


@ex.program
def attention(q: ex.f16[B, H, L, D], k: ex.f16[B, H, L, D], v: ex.f16[B, H, L, D], y: ex.f16[B, H, L, D]):
    """Weights are f16 for the second product, as every library has them."""
    for b in range(B):
        for h in range(H):
            for i in range(L):
                s = ex.local(ex.f32, L)
                p = ex.local(ex.f16, L)
                peak = ex.local(ex.f32)
                total = ex.local(ex.f32)
                for j in range(L):
                    dot = ex.local(ex.f32)
                    dot = 0.0
                    for d in range(D):
                        dot += q[b, h, i, d] * k[b, h, j, d]
                    s[j] = dot * D ** -0.5
                peak = -ex.inf
                for j in range(L):
                    peak = max(peak, s[j])
                total = 0.0
                for j in range(L):
                    e = ex.local(ex.f32)
                    e = ex.exp(s[j] - peak)
                    total += e
                    p[j] = e
                for d in range(D):
                    out = ex.local(ex.f32)
                    out = 0.0
                    for j in range(L):
                        out += p[j] * v[b, h, j, d]
                    y[b, h, i, d] = out / total


@ex.program
def causal_attention(q: ex.f16[B, H, L, D], k: ex.f16[B, H, L, D], v: ex.f16[B, H, L, D], y: ex.f16[B, H, L, D]):
    """No query sees a later key."""
    for b in range(B):
        for h in range(H):
            for i in range(L):
                s = ex.local(ex.f32, L)
                p = ex.local(ex.f16, L)
                peak = ex.local(ex.f32)
                total = ex.local(ex.f32)
                for j in range(i + 1):
                    dot = ex.local(ex.f32)
                    dot = 0.0
                    for d in range(D):
                        dot += q[b, h, i, d] * k[b, h, j, d]
                    s[j] = dot * D ** -0.5
                peak = -ex.inf
                for j in range(i + 1):
                    peak = max(peak, s[j])
                total = 0.0
                for j in range(i + 1):
                    e = ex.local(ex.f32)
                    e = ex.exp(s[j] - peak)
                    total += e
                    p[j] = e
                for d in range(D):
                    out = ex.local(ex.f32)
                    out = 0.0
                    for j in range(i + 1):
                        out += p[j] * v[b, h, j, d]
                    y[b, h, i, d] = out / total
