"""Sum of a whole matrix."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import f32, program, sizes

M, N = sizes("M N")
TINY = {"M": 5, "N": 6}
TYPICAL = {"M": 4096, "N": 4096}


@program
def sum_all(x: f32[M, N], y: f32[1]):
    y[0] = 0.0
    for i in range(M):
        for j in range(N):
            y[0] += x[i, j]


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """NumPy's reduction in double precision."""
    return {"y": np.array([arrays["x"].astype(np.float64).sum()])}
