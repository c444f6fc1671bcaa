"""Batched matrix product: c[z] = a[z] b[z] for each z."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import f32, local, program, sizes

B, M, N, K = sizes("B M N K")
TINY = {"B": 2, "M": 3, "N": 4, "K": 5}
TYPICAL = {"B": 16, "M": 512, "N": 512, "K": 512}


@program
def batched_matmul(a: f32[B, M, K], b: f32[B, K, N], c: f32[B, M, N]):
    for z in range(B):
        for i in range(M):
            for j in range(N):
                total = local(f32)
                total = 0.0
                for k in range(K):
                    total += a[z, i, k] * b[z, k, j]
                c[z, i, j] = total


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Batched BLAS in double precision."""
    return {"c": np.matmul(arrays["a"].astype(np.float64), arrays["b"].astype(np.float64))}
