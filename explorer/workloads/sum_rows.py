"""Sum of each row of a matrix."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import f32, local, program, sizes

M, N = sizes("M N")
TINY = {"M": 5, "N": 7}
TYPICAL = {"M": 4096, "N": 4096}


@program
def sum_rows(x: f32[M, N], y: f32[M]):
    for i in range(M):
        total = local(f32)
        total = 0.0
        for k in range(N):
            total += x[i, k]
        y[i] = total


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """NumPy's reduction in double precision."""
    return {"y": arrays["x"].astype(np.float64).sum(axis=1)}
