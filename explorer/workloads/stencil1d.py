"""Weighted sum of the neighbours within a radius R of each inner point."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import f32, local, program, sizes

N, R = sizes("N R")
TINY = {"N": 12, "R": 2}
TYPICAL = {"N": 16777216, "R": 4}


@program
def stencil1d(x: f32[N], weight: f32[2 * R + 1], y: f32[N - 2 * R]):
    for i in range(N - 2 * R):
        total = local(f32)
        total = 0.0
        for r in range(2 * R + 1):
            total += x[i + r] * weight[r]
        y[i] = total


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """NumPy's correlation in double precision."""
    return {"y": np.correlate(arrays["x"].astype(np.float64), arrays["weight"].astype(np.float64), mode="valid")}
