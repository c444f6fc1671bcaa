"""One step of Adam with decoupled weight decay (AdamW), element by element, in place.

``correction`` holds ``1 / (1 - beta1**t)`` and ``1 / (1 - beta2**t)`` of step ``t``, which are the same for all elements.
Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR 2019.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import f32, program, sizes, sqrt

N = sizes("N")
RATE, BETA1, BETA2, EPSILON, DECAY = 1e-3, 0.9, 0.999, 1e-8, 0.01
TINY = {"N": 9}
TYPICAL = {"N": 16777216}


@program
def adam(w: f32[N], g: f32[N], m: f32[N], v: f32[N], correction: f32[2]):
    for i in range(N):
        m[i] = BETA1 * m[i] + (1 - BETA1) * g[i]
        v[i] = BETA2 * v[i] + (1 - BETA2) * g[i] * g[i]
        w[i] -= RATE * (correction[0] * m[i] / (sqrt(correction[1] * v[i]) + EPSILON) + DECAY * w[i])


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """The published update, on whole vectors."""
    w, g, m, v, correction = (arrays[k].astype(np.float64) for k in ("w", "g", "m", "v", "correction"))
    m = m + (1 - BETA1) * (g - m)
    v = v + (1 - BETA2) * (g**2 - v)
    step = m * correction[0] / (np.sqrt(v * correction[1]) + EPSILON)
    return {"w": w * (1 - RATE * DECAY) - RATE * step, "m": m, "v": v}


def inputs(rng: np.random.Generator, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Second moments are positive; the corrections are those of step 10."""
    correction = np.array([1 / (1 - BETA1**10), 1 / (1 - BETA2**10)], dtype=np.float32)
    return {"v": rng.uniform(0.1, 1.0, sizes["N"]).astype(np.float32), "correction": correction}
