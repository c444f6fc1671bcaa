"""Largest element of each column of a matrix, accumulated row by row."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import f32, inf, program, sizes

M, N = sizes("M N")
TINY = {"M": 7, "N": 5}
TYPICAL = {"M": 4096, "N": 4096}


@program
def max_columns(x: f32[M, N], y: f32[N]):
    for j in range(N):
        y[j] = -inf
    for i in range(M):
        for j in range(N):
            y[j] = max(y[j], x[i, j])


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """NumPy's reduction in double precision."""
    return {"y": arrays["x"].astype(np.float64).max(axis=0, initial=-np.inf)}
