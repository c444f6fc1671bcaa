"""Gauss-Seidel relaxation of Laplace's equation on a plane, in place: each point uses its newest neighbours."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import f32, program, sizes

T, H, W = sizes("T H W")
TINY = {"T": 3, "H": 6, "W": 5}
TYPICAL = {"T": 4, "H": 1024, "W": 1024}


@program
def gauss_seidel(u: f32[H, W]):
    for t in range(T):
        for i in range(1, H - 1):
            for j in range(1, W - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Antidiagonal by antidiagonal: the points of one depend on no other point of it."""
    u = arrays["u"].astype(np.float64)
    height, width = u.shape
    for _ in range(sizes["T"]):
        for diagonal in range(2, height + width - 3):
            i = np.arange(max(1, diagonal - width + 2), min(height - 2, diagonal - 1) + 1)
            j = diagonal - i
            u[i, j] = (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]) / 4
    return {"u": u}
