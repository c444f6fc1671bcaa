"""Mean and (biased) variance of each channel over a batch of images (NCHW), in two passes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import f32, local, program, sizes

B, C, H, W = sizes("B C H W")
TINY = {"B": 3, "C": 4, "H": 2, "W": 5}
TYPICAL = {"B": 32, "C": 64, "H": 56, "W": 56}


@program
def batchnorm_statistics(x: f32[B, C, H, W], mean: f32[C], variance: f32[C]):
    for c in range(C):
        total = local(f32)
        spread = local(f32)
        total = 0.0
        for n in range(B):
            for h in range(H):
                for w in range(W):
                    total += x[n, c, h, w]
        mean[c] = total / (B * H * W)
        spread = 0.0
        for n in range(B):
            for h in range(H):
                for w in range(W):
                    spread += (x[n, c, h, w] - mean[c]) * (x[n, c, h, w] - mean[c])
        variance[c] = spread / (B * H * W)


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """NumPy's moments in double precision."""
    x = arrays["x"].astype(np.float64)
    return {"mean": x.mean(axis=(0, 2, 3)), "variance": x.var(axis=(0, 2, 3))}
