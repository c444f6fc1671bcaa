"""Jacobi iteration on a plane: five-point averages over time, between two planes chosen by the parity of time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import f32, program, sizes

T, H, W = sizes("T H W")
TINY = {"T": 3, "H": 6, "W": 5}
TYPICAL = {"T": 16, "H": 2048, "W": 2048}


@program
def jacobi2d(u: f32[2, H, W]):
    for t in range(T):
        for i in range(1, H - 1):
            for j in range(1, W - 1):
                u[(t + 1) % 2, i, j] = 0.2 * (
                    u[t % 2, i, j] + u[t % 2, i - 1, j] + u[t % 2, i + 1, j] + u[t % 2, i, j - 1] + u[t % 2, i, j + 1]
                )


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Whole planes at a time."""
    u = arrays["u"].astype(np.float64)
    for t in range(sizes["T"]):
        old, new = u[t % 2], u[(t + 1) % 2]
        new[1:-1, 1:-1] = (old[1:-1, 1:-1] + old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:]) / 5
    return {"u": u}
