"""Batch normalisation with known statistics: scale and shift each channel (NCHW)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import f32, program, rsqrt, sizes

B, C, H, W = sizes("B C H W")
EPSILON = 1e-5
TINY = {"B": 2, "C": 3, "H": 4, "W": 5}
TYPICAL = {"B": 32, "C": 64, "H": 56, "W": 56}


@program
def batchnorm_apply(x: f32[B, C, H, W], mean: f32[C], variance: f32[C], gamma: f32[C], beta: f32[C], y: f32[B, C, H, W]):
    for n in range(B):
        for c in range(C):
            for h in range(H):
                for w in range(W):
                    y[n, c, h, w] = (x[n, c, h, w] - mean[c]) * rsqrt(variance[c] + EPSILON) * gamma[c] + beta[c]


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """The definition, broadcast over channels."""
    x, mean, variance, gamma, beta = (arrays[k].astype(np.float64) for k in ("x", "mean", "variance", "gamma", "beta"))
    c = (slice(None), None, None)
    return {"y": (x - mean[c]) / np.sqrt(variance[c] + EPSILON) * gamma[c] + beta[c]}


def inputs(rng: np.random.Generator, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Variances are positive."""
    return {"variance": rng.uniform(0.5, 2.0, sizes["C"]).astype(np.float32)}
