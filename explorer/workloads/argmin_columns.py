"""Index of the first smallest element of each column of a matrix."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import argmin, f16, i32, program, sizes

M, N = sizes("M N")
TINY = {"M": 6, "N": 5}
TYPICAL = {"M": 4096, "N": 4096}


@program
def argmin_columns(x: f16[M, N], y: i32[N]):
    for j in range(N):
        y[j] = argmin(x[k, j] for k in range(M))


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """NumPy's argmin."""
    return {"y": arrays["x"].argmin(axis=0).astype(np.float64)}
