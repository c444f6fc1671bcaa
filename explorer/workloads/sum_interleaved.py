"""Sum over the first and third of four dimensions: the reduced and the kept ones alternate."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import f32, local, program, sizes

A, B, C, D = sizes("A B C D")
TINY = {"A": 3, "B": 4, "C": 2, "D": 5}
TYPICAL = {"A": 64, "B": 64, "C": 64, "D": 64}


@program
def sum_interleaved(x: f32[A, B, C, D], y: f32[B, D]):
    for b in range(B):
        for d in range(D):
            total = local(f32)
            total = 0.0
            for a in range(A):
                for c in range(C):
                    total += x[a, b, c, d]
            y[b, d] = total


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """NumPy's reduction in double precision."""
    return {"y": arrays["x"].astype(np.float64).sum(axis=(0, 2))}
