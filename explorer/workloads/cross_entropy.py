"""Cross-entropy of each row of logits with its target class; the target is a data-dependent read."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import exp, f16, f32, i32, inf, local, log, program, sizes

M, V = sizes("M V")
TINY = {"M": 5, "V": 9}
TYPICAL = {"M": 4096, "V": 32000}


@program
def cross_entropy(logits: f16[M, V], target: i32[M], loss: f32[M]):
    for i in range(M):
        peak = local(f32)
        total = local(f32)
        peak = -inf
        for k in range(V):
            peak = max(peak, logits[i, k])
        total = 0.0
        for k in range(V):
            total += exp(logits[i, k] - peak)
        loss[i] = log(total) + peak - logits[i, target[i]]


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """The logarithm of the sum of exponentials, minus the target's logit."""
    logits = arrays["logits"].astype(np.float64)
    chosen = np.take_along_axis(logits, arrays["target"].astype(np.int64)[:, None], axis=1)[:, 0]
    return {"loss": np.logaddexp.reduce(logits, axis=1) - chosen}


def inputs(rng: np.random.Generator, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Targets are classes."""
    return {"target": rng.integers(0, sizes["V"], sizes["M"], dtype=np.int32)}
