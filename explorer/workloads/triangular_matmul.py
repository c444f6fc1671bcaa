"""Product with a lower triangular matrix: c = tril(a) b, without touching the upper half."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import f32, local, program, sizes

M, N = sizes("M N")
TINY = {"M": 6, "N": 5}
TYPICAL = {"M": 2048, "N": 2048}


@program
def triangular_matmul(a: f32[M, M], b: f32[M, N], c: f32[M, N]):
    for i in range(M):
        for j in range(N):
            total = local(f32)
            total = 0.0
            for k in range(i + 1):
                total += a[i, k] * b[k, j]
            c[i, j] = total


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """A dense product after the upper half is set to zero."""
    return {"c": np.tril(arrays["a"].astype(np.float64)) @ arrays["b"].astype(np.float64)}
