"""Gradients of layer normalisation with respect to its input, its scale and its shift."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import f16, f32, local, program, sizes

M, N = sizes("M N")
EPSILON = 1e-5
TINY = {"M": 5, "N": 8}
TYPICAL = {"M": 8192, "N": 1024}


@program
def layernorm_backward(
    dy: f16[M, N], x: f16[M, N], gamma: f16[N], mean: f32[M], scale: f32[M], dx: f16[M, N], dgamma: f32[N], dbeta: f32[N]
):
    for i in range(M):
        along = local(f32)
        across = local(f32)
        along = 0.0
        across = 0.0
        for k in range(N):
            along += dy[i, k] * gamma[k]
            across += dy[i, k] * gamma[k] * (x[i, k] - mean[i]) * scale[i]
        for k in range(N):
            dx[i, k] = scale[i] * (dy[i, k] * gamma[k] - (along + (x[i, k] - mean[i]) * scale[i] * across) / N)
    for k in range(N):
        dgamma[k] = 0.0
        dbeta[k] = 0.0
    for i in range(M):
        for k in range(N):
            dgamma[k] += dy[i, k] * (x[i, k] - mean[i]) * scale[i]
            dbeta[k] += dy[i, k]


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """The gradient g minus its projections on the constant and on the normalised row."""
    dy, x, gamma, mean, scale = (arrays[k].astype(np.float64) for k in ("dy", "x", "gamma", "mean", "scale"))
    normal = (x - mean[:, None]) * scale[:, None]
    g = dy * gamma
    along = g.mean(axis=1, keepdims=True)
    across = np.einsum("mn,mn->m", g, normal)[:, None] / sizes["N"]
    return {
        "dx": scale[:, None] * (g - along - normal * across),
        "dgamma": np.einsum("mn,mn->n", dy, normal),
        "dbeta": dy.sum(axis=0),
    }


def inputs(rng: np.random.Generator, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """The saved mean and scale are those of the forward pass on the same input."""
    x = rng.standard_normal((sizes["M"], sizes["N"]), dtype=np.float32).astype(np.float16)
    wide = x.astype(np.float64)
    scale = 1 / np.sqrt(wide.var(axis=1) + EPSILON)
    return {"x": x, "mean": wide.mean(axis=1).astype(np.float32), "scale": scale.astype(np.float32)}
