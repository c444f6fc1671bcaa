"""Sum of each column of a matrix, accumulated row by row."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import f32, program, sizes

M, N = sizes("M N")
TINY = {"M": 7, "N": 5}
TYPICAL = {"M": 4096, "N": 4096}


@program
def sum_columns(x: f32[M, N], y: f32[N]):
    for j in range(N):
        y[j] = 0.0
    for i in range(M):
        for j in range(N):
            y[j] += x[i, j]


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """NumPy's reduction in double precision."""
    return {"y": arrays["x"].astype(np.float64).sum(axis=0)}
