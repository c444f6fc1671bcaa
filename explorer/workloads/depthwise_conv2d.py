"""Depthwise convolution (NCHW), one filter for each channel, without padding."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import f32, local, program, sizes

B, C, H, W, R, S = sizes("B C H W R S")
TINY = {"B": 2, "C": 3, "H": 6, "W": 5, "R": 3, "S": 2}
TYPICAL = {"B": 8, "C": 128, "H": 58, "W": 58, "R": 3, "S": 3}


@program
def depthwise_conv2d(x: f32[B, C, H, W], f: f32[C, R, S], y: f32[B, C, H - R + 1, W - S + 1]):
    for n in range(B):
        for c in range(C):
            for h in range(H - R + 1):
                for w in range(W - S + 1):
                    total = local(f32)
                    total = 0.0
                    for r in range(R):
                        for s in range(S):
                            total += x[n, c, h + r, w + s] * f[c, r, s]
                    y[n, c, h, w] = total


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """A contraction of all windows of the input."""
    x, f = arrays["x"].astype(np.float64), arrays["f"].astype(np.float64)
    windows = np.lib.stride_tricks.sliding_window_view(x, (sizes["R"], sizes["S"]), axis=(2, 3))
    return {"y": np.einsum("nchwrs,crs->nchw", windows, f)}
