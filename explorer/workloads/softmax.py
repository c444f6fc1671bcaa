"""Softmax of each row: shifted by the row's largest element, in f16 with f32 inside."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import exp, f16, f32, inf, local, program, sizes

M, N = sizes("M N")
TINY = {"M": 5, "N": 7}
TYPICAL = {"M": 16384, "N": 1024}


@program
def softmax(x: f16[M, N], y: f16[M, N]):
    for i in range(M):
        peak = local(f32)
        total = local(f32)
        peak = -inf
        for k in range(N):
            peak = max(peak, x[i, k])
        total = 0.0
        for k in range(N):
            total += exp(x[i, k] - peak)
        for k in range(N):
            y[i, k] = exp(x[i, k] - peak) / total


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Through the logarithm of the sum of exponentials."""
    x = arrays["x"].astype(np.float64)
    return {"y": np.exp(x - np.logaddexp.reduce(x, axis=1, keepdims=True))}
