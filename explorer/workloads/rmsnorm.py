"""Root mean square normalisation of each row, in f16 with f32 inside."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import f16, f32, local, program, rsqrt, sizes

M, N = sizes("M N")
EPSILON = 1e-6
TINY = {"M": 5, "N": 8}
TYPICAL = {"M": 8192, "N": 4096}


@program
def rmsnorm(x: f16[M, N], gamma: f16[N], y: f16[M, N]):
    for i in range(M):
        total = local(f32)
        scale = local(f32)
        total = 0.0
        for k in range(N):
            total += x[i, k] * x[i, k]
        scale = rsqrt(total / N + EPSILON)
        for k in range(N):
            y[i, k] = x[i, k] * scale * gamma[k]


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """The definition."""
    x, gamma = arrays["x"].astype(np.float64), arrays["gamma"].astype(np.float64)
    return {"y": x / np.sqrt((x**2).mean(axis=1, keepdims=True) + EPSILON) * gamma}
