"""Programs whose speed is decided between their nests: what shares a kernel, what is computed where."""

from __future__ import annotations

import explorer as ex

B, C, D, H, K, M, N, P, Q, T, U = ex.sizes("B C D H K M N P Q T U")


@ex.program
def depthwise_pointwise(x: ex.f32[B, P + 2, Q + 2, C], w: ex.f32[3, 3, C], v: ex.f32[C, K], y: ex.f32[B, P, Q, K]):
    t = ex.local(ex.f32, B, P, Q, C)
    for n in range(B):
        for i in range(P):
            for j in range(Q):
                for c in range(C):
                    t[n, i, j, c] = 0.0
                    for a in range(3):
                        for b in range(3):
                            t[n, i, j, c] += x[n, i + a, j + b, c] * w[a, b, c]
    for n in range(B):
        for i in range(P):
            for j in range(Q):
                for k in range(K):
                    y[n, i, j, k] = 0.0
                    for c in range(C):
                        y[n, i, j, k] += t[n, i, j, c] * v[c, k]


@ex.program
def depthwise_pointwise_planes(x: ex.f32[B, C, P + 2, Q + 2], w: ex.f32[C, 3, 3], v: ex.f32[K, C], y: ex.f32[B, K, P, Q]):
    """The same with channels outside."""
    t = ex.local(ex.f32, B, C, P, Q)
    for n in range(B):
        for c in range(C):
            for i in range(P):
                for j in range(Q):
                    t[n, c, i, j] = 0.0
                    for a in range(3):
                        for b in range(3):
                            t[n, c, i, j] += x[n, c, i + a, j + b] * w[c, a, b]
    for n in range(B):
        for k in range(K):
            for i in range(P):
                for j in range(Q):
                    y[n, k, i, j] = 0.0
                    for c in range(C):
                        y[n, k, i, j] += v[k, c] * t[n, c, i, j]


@ex.program
def two_products(a: ex.f32[M, K], b: ex.f32[K, N], c: ex.f32[N, P], d: ex.f32[M, P]):
    """PolyBench's 2mm without its factors."""
    t = ex.local(ex.f32, M, N)
    for i in range(M):
        for j in range(N):
            t[i, j] = 0.0
            for k in range(K):
                t[i, j] += a[i, k] * b[k, j]
    for i in range(M):
        for j in range(P):
            d[i, j] = 0.0
            for k in range(N):
                d[i, j] += t[i, k] * c[k, j]


@ex.program
def three_products(a: ex.f32[M, K], b: ex.f32[K, N], c: ex.f32[N, D], d: ex.f32[D, P], g: ex.f32[M, P]):
    """PolyBench's 3mm."""
    e = ex.local(ex.f32, M, N)
    f = ex.local(ex.f32, N, P)
    for i in range(M):
        for j in range(N):
            e[i, j] = 0.0
            for k in range(K):
                e[i, j] += a[i, k] * b[k, j]
    for i in range(N):
        for j in range(P):
            f[i, j] = 0.0
            for k in range(D):
                f[i, j] += c[i, k] * d[k, j]
    for i in range(M):
        for j in range(P):
            g[i, j] = 0.0
            for k in range(N):
                g[i, j] += e[i, k] * f[k, j]


@ex.program
def atax(a: ex.f32[M, N], x: ex.f32[N], y: ex.f32[N]):
    t = ex.local(ex.f32, M)
    for j in range(N):
        y[j] = 0.0
    for i in range(M):
        t[i] = 0.0
        for j in range(N):
            t[i] += a[i, j] * x[j]
        for j in range(N):
            y[j] += a[i, j] * t[i]


@ex.program
def bicg(a: ex.f32[M, N], p: ex.f32[N], r: ex.f32[M], q: ex.f32[M], s: ex.f32[N]):
    for j in range(N):
        s[j] = 0.0
    for i in range(M):
        q[i] = 0.0
        for j in range(N):
            s[j] += r[i] * a[i, j]
            q[i] += a[i, j] * p[j]


@ex.program
def recurrent(x: ex.f32[T, B, D], w: ex.f32[D, H], u: ex.f32[H, H], h: ex.f32[T + 1, B, H]):
    """A recurrent network: every step reads the step before it."""
    for b in range(B):
        for j in range(H):
            h[0, b, j] = 0.0
    for t in range(T):
        for b in range(B):
            for j in range(H):
                z = ex.local(ex.f32)
                z = 0.0
                for k in range(D):
                    z += x[t, b, k] * w[k, j]
                for k in range(H):
                    z += h[t, b, k] * u[k, j]
                h[t + 1, b, j] = ex.tanh(z)


@ex.program
def recurrent_in_parts(x: ex.f32[T, B, D], w: ex.f32[D, H], u: ex.f32[H, H], h: ex.f32[T + 1, B, H]):
    """The same, its inputs' product a nest of its own."""
    z = ex.local(ex.f32, T, B, H)
    for t in range(T):
        for b in range(B):
            for j in range(H):
                z[t, b, j] = 0.0
                for k in range(D):
                    z[t, b, j] += x[t, b, k] * w[k, j]
    for b in range(B):
        for j in range(H):
            h[0, b, j] = 0.0
    for t in range(T):
        for b in range(B):
            for j in range(H):
                for k in range(H):
                    z[t, b, j] += h[t, b, k] * u[k, j]
        for b in range(B):
            for j in range(H):
                h[t + 1, b, j] = ex.tanh(z[t, b, j])


@ex.program
def swiglu(x: ex.f16[M, D], w: ex.f16[D, U], v: ex.f16[D, U], o: ex.f16[U, D], y: ex.f16[M, D]):
    g = ex.local(ex.f32, M, U)
    up = ex.local(ex.f32, M, U)
    a = ex.local(ex.f32, M, U)
    r = ex.local(ex.f32, M, D)
    for i in range(M):
        for j in range(U):
            g[i, j] = 0.0
            for k in range(D):
                g[i, j] += x[i, k] * w[k, j]
    for i in range(M):
        for j in range(U):
            up[i, j] = 0.0
            for k in range(D):
                up[i, j] += x[i, k] * v[k, j]
    for i in range(M):
        for j in range(U):
            a[i, j] = g[i, j] / (1.0 + ex.exp(-g[i, j])) * up[i, j]
    for i in range(M):
        for j in range(D):
            r[i, j] = 0.0
            for k in range(U):
                r[i, j] += a[i, k] * o[k, j]
    for i in range(M):
        for j in range(D):
            y[i, j] = r[i, j]


@ex.program
def swiglu_end(g: ex.f32[M, U], up: ex.f32[M, U], o: ex.f32[U, D], y: ex.f32[M, D]):
    """An activation that one statement reads, once for each of its results."""
    a = ex.local(ex.f32, M, U)
    for i in range(M):
        for j in range(U):
            a[i, j] = g[i, j] / (1.0 + ex.exp(-g[i, j])) * up[i, j]
    for i in range(M):
        for j in range(D):
            y[i, j] = 0.0
            for k in range(U):
                y[i, j] += a[i, k] * o[k, j]


@ex.program
def cast_sum(x: ex.f16[M, N], y: ex.f32[M]):
    """A cast before a sum, both over whole rows."""
    for i in range(M):
        t = ex.local(ex.f32, N)
        for j in range(N):
            t[j] = x[i, j]
        y[i] = 0.0
        for j in range(N):
            y[i] += t[j]


@ex.program
def whole_sum(x: ex.f32[M, N], y: ex.i32[M]):
    """A cast of narrow range, kept in a value of its own for each element."""
    for i in range(M):
        y[i] = 0
        for j in range(N):
            t = ex.local(ex.i32)
            t = ex.cast(x[i, j], ex.i32)
            y[i] += t


@ex.program
def cast_sum_apart(x: ex.f16[M, N], y: ex.f32[M]):
    """The same as nests of their own."""
    t = ex.local(ex.f32, M, N)
    for i in range(M):
        for j in range(N):
            t[i, j] = x[i, j]
    for i in range(M):
        y[i] = 0.0
        for j in range(N):
            y[i] += t[i, j]


@ex.program
def transformer(x: ex.f32[T, D], wq: ex.f32[H, D, K], wk: ex.f32[H, D, K], wv: ex.f32[H, D, K], wo: ex.f32[H, K, D],
                gain: ex.f32[D], w1: ex.f32[D, U], w2: ex.f32[U, D], y: ex.f32[T, D]):
    q = ex.local(ex.f32, H, T, K)
    k = ex.local(ex.f32, H, T, K)
    v = ex.local(ex.f32, H, T, K)
    s = ex.local(ex.f32, H, T, T)
    peak = ex.local(ex.f32, H, T)
    total = ex.local(ex.f32, H, T)
    o = ex.local(ex.f32, H, T, K)
    r = ex.local(ex.f32, T, D)
    mean = ex.local(ex.f32, T)
    spread = ex.local(ex.f32, T)
    n = ex.local(ex.f32, T, D)
    m = ex.local(ex.f32, T, U)
    for h in range(H):
        for i in range(T):
            for c in range(K):
                q[h, i, c] = 0.0
                for d in range(D):
                    q[h, i, c] += x[i, d] * wq[h, d, c]
    for h in range(H):
        for i in range(T):
            for c in range(K):
                k[h, i, c] = 0.0
                for d in range(D):
                    k[h, i, c] += x[i, d] * wk[h, d, c]
    for h in range(H):
        for i in range(T):
            for c in range(K):
                v[h, i, c] = 0.0
                for d in range(D):
                    v[h, i, c] += x[i, d] * wv[h, d, c]
    for h in range(H):
        for i in range(T):
            for j in range(T):
                s[h, i, j] = 0.0
                for c in range(K):
                    s[h, i, j] += q[h, i, c] * k[h, j, c]
    for h in range(H):
        for i in range(T):
            peak[h, i] = -ex.inf
            for j in range(T):
                peak[h, i] = max(peak[h, i], s[h, i, j])
            total[h, i] = 0.0
            for j in range(T):
                total[h, i] += ex.exp((s[h, i, j] - peak[h, i]) * 0.125)
    for h in range(H):
        for i in range(T):
            for c in range(K):
                o[h, i, c] = 0.0
                for j in range(T):
                    o[h, i, c] += ex.exp((s[h, i, j] - peak[h, i]) * 0.125) / total[h, i] * v[h, j, c]
    for i in range(T):
        for d in range(D):
            r[i, d] = x[i, d]
            for h in range(H):
                for c in range(K):
                    r[i, d] += o[h, i, c] * wo[h, c, d]
    for i in range(T):
        mean[i] = 0.0
        for d in range(D):
            mean[i] += r[i, d] / D
        spread[i] = 0.0
        for d in range(D):
            spread[i] += (r[i, d] - mean[i]) * (r[i, d] - mean[i]) / D
        for d in range(D):
            n[i, d] = (r[i, d] - mean[i]) * ex.rsqrt(spread[i] + 1e-5) * gain[d]
    for i in range(T):
        for j in range(U):
            m[i, j] = 0.0
            for d in range(D):
                m[i, j] += n[i, d] * w1[d, j]
    for i in range(T):
        for d in range(D):
            y[i, d] = r[i, d]
            for j in range(U):
                y[i, d] += max(m[i, j], 0.0) * w2[j, d]


CASES = {
    "depthwise_pointwise": (depthwise_pointwise, {"B": 16, "C": 64, "K": 128, "P": 56, "Q": 56}),
    "depthwise_pointwise_planes": (depthwise_pointwise_planes, {"B": 16, "C": 64, "K": 128, "P": 56, "Q": 56}),
    "two_products": (two_products, {"M": 512, "N": 384, "K": 256, "P": 320}),
    "three_products": (three_products, {"M": 512, "N": 384, "K": 256, "D": 448, "P": 320}),
    "atax": (atax, {"M": 1900, "N": 2100}),
    "bicg": (bicg, {"M": 1900, "N": 2100}),
    "recurrent": (recurrent, {"T": 16, "B": 64, "D": 128, "H": 256}),
    "recurrent_in_parts": (recurrent_in_parts, {"T": 16, "B": 64, "D": 128, "H": 256}),
    "swiglu": (swiglu, {"M": 512, "D": 1024, "U": 4096}),
    "swiglu_end": (swiglu_end, {"M": 512, "D": 4096, "U": 1024}),
    "cast_sum": (cast_sum, {"M": 64, "N": 4096}),
    "whole_sum": (whole_sum, {"M": 64, "N": 4096}),
    "cast_sum_apart": (cast_sum_apart, {"M": 64, "N": 4096}),
    "transformer": (transformer, {"T": 128, "D": 1024, "H": 16, "K": 64, "U": 4096}),
}
"""Each with sizes of a usual use."""
