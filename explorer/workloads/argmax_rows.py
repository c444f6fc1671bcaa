"""Index of the first largest element of each row of a matrix."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import argmax, f32, i32, program, sizes

M, N = sizes("M N")
TINY = {"M": 5, "N": 7}
TYPICAL = {"M": 4096, "N": 4096}


@program
def argmax_rows(x: f32[M, N], y: i32[M]):
    for i in range(M):
        y[i] = argmax(x[i, k] for k in range(N))


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """NumPy's argmax."""
    return {"y": arrays["x"].argmax(axis=1).astype(np.float64)}
