"""Bias, residual connection and layer normalisation in one program, with both results."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import f16, f32, local, program, rsqrt, sizes

M, N = sizes("M N")
EPSILON = 1e-5
TINY = {"M": 4, "N": 8}
TYPICAL = {"M": 8192, "N": 1024}


@program
def bias_residual_layernorm(
    x: f16[M, N], bias: f16[N], residual: f16[M, N], gamma: f16[N], beta: f16[N], carried: f16[M, N], y: f16[M, N]
):
    for i in range(M):
        row = local(f32, N)
        total = local(f32)
        mean = local(f32)
        spread = local(f32)
        scale = local(f32)
        for k in range(N):
            row[k] = x[i, k] + bias[k] + residual[i, k]
            carried[i, k] = row[k]
        total = 0.0
        for k in range(N):
            total += row[k]
        mean = total / N
        spread = 0.0
        for k in range(N):
            spread += (row[k] - mean) * (row[k] - mean)
        scale = rsqrt(spread / N + EPSILON)
        for k in range(N):
            y[i, k] = (row[k] - mean) * scale * gamma[k] + beta[k]


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """The definition, through NumPy's moments."""
    x, bias, residual, gamma, beta = (arrays[k].astype(np.float64) for k in ("x", "bias", "residual", "gamma", "beta"))
    row = x + bias + residual
    centred = row - row.mean(axis=1, keepdims=True)
    return {"carried": row, "y": centred / np.sqrt(row.var(axis=1, keepdims=True) + EPSILON) * gamma + beta}
