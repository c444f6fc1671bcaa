"""Largest element of each row of a matrix."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import f32, inf, local, program, sizes

M, N = sizes("M N")
TINY = {"M": 5, "N": 7}
TYPICAL = {"M": 4096, "N": 4096}


@program
def max_rows(x: f32[M, N], y: f32[M]):
    for i in range(M):
        peak = local(f32)
        peak = -inf
        for k in range(N):
            peak = max(peak, x[i, k])
        y[i] = peak


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """NumPy's reduction in double precision."""
    return {"y": arrays["x"].astype(np.float64).max(axis=1, initial=-np.inf)}
