"""Programs whose sums are scattered: transposed convolutions with strides, gradients, `fold`."""

from __future__ import annotations

import explorer as ex

N, C, D, H, W, K = ex.sizes("N C D H W K")


@ex.program
def stride_two(x: ex.f16[N, C, H], w: ex.f16[C, D, K], y: ex.f32[N, D, 2 * H + K - 2]):
    for n in range(N):
        for d in range(D):
            for o in range(2 * H + K - 2):
                y[n, d, o] = 0.0
    for n in range(N):
        for d in range(D):
            for c in range(C):
                for i in range(H):
                    for k in range(K):
                        y[n, d, 2 * i + k] += x[n, c, i] * w[c, d, k]


@ex.program
def padded_relu(x: ex.f16[N, C, H], w: ex.f16[C, D, 3], bias: ex.f16[D], z: ex.f16[N, D, 2 * H]):
    y = ex.local(ex.f32, N, D, 2 * H)
    for n in range(N):
        for d in range(D):
            for o in range(2 * H):
                y[n, d, o] = 0.0
    for n in range(N):
        for c in range(C):
            for i in range(H):
                for d in range(D):
                    for k in range(3):
                        if 0 <= 2 * i + k - 1 < 2 * H:
                            y[n, d, 2 * i + k - 1] += x[n, c, i] * w[c, d, k]
    for n in range(N):
        for d in range(D):
            for o in range(2 * H):
                z[n, d, o] = ex.max(y[n, d, o] + bias[d], 0.0)


@ex.program
def images(x: ex.f16[N, H, W, C], w: ex.f16[4, 4, D, C], y: ex.f32[N, 2 * H, 2 * W, D]):
    for n in range(N):
        for o in range(2 * H):
            for p in range(2 * W):
                for d in range(D):
                    y[n, o, p, d] = 0.0
    for n in range(N):
        for i in range(H):
            for j in range(W):
                for r in range(4):
                    for s in range(4):
                        for d in range(D):
                            for c in range(C):
                                if 0 <= 2 * i + r - 1 < 2 * H and 0 <= 2 * j + s - 1 < 2 * W:
                                    y[n, 2 * i + r - 1, 2 * j + s - 1, d] += x[n, i, j, c] * w[r, s, d, c]


@ex.program
def input_gradient(g: ex.f16[N, D, H, W], w: ex.f16[D, C, 3, 3], y: ex.f32[N, C, H, W]):
    for n in range(N):
        for c in range(C):
            for o in range(H):
                for p in range(W):
                    y[n, c, o, p] = 0.0
    for n in range(N):
        for d in range(D):
            for i in range(H):
                for j in range(W):
                    for c in range(C):
                        for r in range(3):
                            for s in range(3):
                                if 0 <= i + r - 1 < H and 0 <= j + s - 1 < W:
                                    y[n, c, i + r - 1, j + s - 1] += g[n, d, i, j] * w[d, c, r, s]


@ex.program
def dilated(x: ex.f16[N, C, H], w: ex.f16[C, D, K], y: ex.f32[N, D, H + 2 * K - 2]):
    for n in range(N):
        for d in range(D):
            for o in range(H + 2 * K - 2):
                y[n, d, o] = 0.0
            for c in range(C):
                for i in range(H):
                    for k in range(K):
                        y[n, d, i + 2 * k] += x[n, c, i] * w[c, d, k]


@ex.program
def backwards(x: ex.f16[N, C, H], w: ex.f16[C, D, K], y: ex.f32[N, D, H + K - 1]):
    for n in range(N):
        for d in range(D):
            for o in range(H + K - 1):
                y[n, d, o] = 0.0
            for c in range(C):
                for i in range(H):
                    for k in range(K):
                        y[n, d, i - k + K - 1] += x[n, c, i] * w[c, d, k]


@ex.program
def stride_three(x: ex.f16[N, C, H], w: ex.f16[C, D, 5], y: ex.f32[N, D, 3 * H]):
    for n in range(N):
        for d in range(D):
            for o in range(3 * H):
                y[n, d, o] = 0.0
            for c in range(C):
                for i in range(H):
                    for k in range(5):
                        if 0 <= 3 * i + k - 4 < 3 * H:
                            y[n, d, 3 * i + k - 4] += x[n, c, i] * w[c, d, k]


@ex.program
def fold(x: ex.f32[N, C, K, H], y: ex.f32[N, C, 2 * H + K - 2]):
    for n in range(N):
        for c in range(C):
            for o in range(2 * H + K - 2):
                y[n, c, o] = 0.0
            for k in range(K):
                for i in range(H):
                    y[n, c, 2 * i + k] += x[n, c, k, i]


@ex.program
def strided_and_dilated(x: ex.f32[C, H], w: ex.f32[C, K], y: ex.f32[2 * H + 3 * K - 4]):
    for o in range(2 * H + 3 * K - 4):
        y[o] = 0.0
    for c in range(C):
        for i in range(H):
            for k in range(K):
                y[2 * i + 3 * k] += x[c, i] * w[c, k]


@ex.program
def twice(x: ex.f16[N, H, W, C], w: ex.f16[C, K, K, D], y: ex.inout[ex.f32[N, 2 * H + 2 * K, 2 * W + 2 * K, D]]):
    """A stride of 2 and a dilation of 2: only elements at even places have terms."""
    for n in range(N):
        for h in range(H):
            for v in range(W):
                for c in range(C):
                    for r in range(K):
                        for s in range(K):
                            for d in range(D):
                                y[n, 2 * h + 2 * r, 2 * v + 2 * s, d] += x[n, h, v, c] * w[c, r, s, d]


@ex.program
def four_and_two(x: ex.f16[N, H, C], w: ex.f16[C, K, D], y: ex.f16[N, 4 * H + 2 * K, D]):
    for n in range(N):
        for o in range(4 * H + 2 * K):
            for d in range(D):
                y[n, o, d] = 0.0
    for n in range(N):
        for h in range(H):
            for c in range(C):
                for k in range(K):
                    for d in range(D):
                        y[n, 4 * h + 2 * k, d] += x[n, h, c] * w[c, k, d]


PRODUCTS = (stride_two, padded_relu, images, input_gradient, dilated, backwards, stride_three, twice, four_and_two)
"""Those that tensor cores compute."""
