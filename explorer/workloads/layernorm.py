"""Layer normalisation of each row, in f16 with f32 inside, mean and variance in two passes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import f16, f32, local, program, rsqrt, sizes

M, N = sizes("M N")
EPSILON = 1e-5
TINY = {"M": 5, "N": 8}
TYPICAL = {"M": 8192, "N": 1024}


@program
def layernorm(x: f16[M, N], gamma: f16[N], beta: f16[N], y: f16[M, N]):
    for i in range(M):
        total = local(f32)
        mean = local(f32)
        spread = local(f32)
        scale = local(f32)
        total = 0.0
        for k in range(N):
            total += x[i, k]
        mean = total / N
        spread = 0.0
        for k in range(N):
            spread += (x[i, k] - mean) * (x[i, k] - mean)
        scale = rsqrt(spread / N + EPSILON)
        for k in range(N):
            y[i, k] = (x[i, k] - mean) * scale * gamma[k] + beta[k]


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """The definition, through NumPy's moments."""
    x, gamma, beta = (arrays[k].astype(np.float64) for k in ("x", "gamma", "beta"))
    centred = x - x.mean(axis=1, keepdims=True)
    return {"y": centred / np.sqrt(x.var(axis=1, keepdims=True) + EPSILON) * gamma + beta}
