"""Matrix product: c = a b."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import f32, local, program, sizes

M, N, K = sizes("M N K")
TINY = {"M": 5, "N": 6, "K": 7}
TYPICAL = {"M": 2048, "N": 2048, "K": 2048}


@program
def matmul(a: f32[M, K], b: f32[K, N], c: f32[M, N]):
    for i in range(M):
        for j in range(N):
            total = local(f32)
            total = 0.0
            for k in range(K):
                total += a[i, k] * b[k, j]
            c[i, j] = total


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """BLAS in double precision."""
    return {"c": arrays["a"].astype(np.float64) @ arrays["b"].astype(np.float64)}
