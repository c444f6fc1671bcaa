"""Softmax of scaled attention scores, where keys that are not kept get no weight."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.frontend import bool_, exp, f16, f32, inf, local, program, sizes

B, H, Q, K = sizes("B H Q K")
SCALE = 0.125  # one over the square root of a head width of 64
TINY = {"B": 2, "H": 3, "Q": 4, "K": 5}
TYPICAL = {"B": 2, "H": 16, "Q": 1024, "K": 1024}


@program
def attention_softmax(scores: f16[B, H, Q, K], keep: bool_[B, K], p: f16[B, H, Q, K]):
    for b in range(B):
        for h in range(H):
            for q in range(Q):
                peak = local(f32)
                total = local(f32)
                row = local(f32, K)
                for k in range(K):
                    row[k] = scores[b, h, q, k] * SCALE if keep[b, k] else -inf
                peak = -inf
                for k in range(K):
                    peak = max(peak, row[k])
                total = 0.0
                for k in range(K):
                    total += exp(row[k] - peak)
                for k in range(K):
                    p[b, h, q, k] = exp(row[k] - peak) / total


def reference(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Exponentials of kept scores alone, normalised; scores are small enough not to be shifted."""
    weights = np.exp(arrays["scores"].astype(np.float64) * SCALE) * arrays["keep"][:, None, None, :]
    return {"p": weights / weights.sum(axis=-1, keepdims=True)}


def inputs(rng: np.random.Generator, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Each row keeps at least its first key."""
    keep = rng.random((sizes["B"], sizes["K"])) < 0.8
    keep[:, :1] = True
    return {"keep": keep}
