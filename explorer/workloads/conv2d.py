"""Convolution in two dimensions (NCHW), zero padded so that the output is as large as the input.

As in deep learning, the filter is not flipped: a cross-correlation.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import f32, local, program, sizes

B, C, H, W, K, R, S = sizes("B C H W K R S")
TINY = {"B": 2, "C": 3, "H": 5, "W": 6, "K": 4, "R": 3, "S": 3}
TYPICAL = {"B": 8, "C": 64, "H": 56, "W": 56, "K": 64, "R": 3, "S": 3}


@program
def conv2d(x: f32[B, C, H, W], f: f32[K, C, R, S], y: f32[B, K, H, W]):
    for n in range(B):
        for k in range(K):
            for h in range(H):
                for w in range(W):
                    total = local(f32)
                    total = 0.0
                    for c in range(C):
                        for r in range(R):
                            for s in range(S):
                                if 0 <= h + r - R // 2 < H and 0 <= w + s - S // 2 < W:
                                    total += x[n, c, h + r - R // 2, w + s - S // 2] * f[k, c, r, s]
                    y[n, k, h, w] = total


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """A contraction of all windows of the padded input."""
    x, f = arrays["x"].astype(np.float64), arrays["f"].astype(np.float64)
    r, s = sizes["R"], sizes["S"]
    padded = np.pad(x, ((0, 0), (0, 0), (r // 2, r - 1 - r // 2), (s // 2, s - 1 - s // 2)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (r, s), axis=(2, 3))
    return {"y": np.einsum("nchwrs,kcrs->nkhw", windows, f, optimize=True)}
