"""An infinity past a diagonal: what the loops skip, tiles multiply by zero."""

from __future__ import annotations

import numpy as np
import pytest

import explorer as ex
from explorer.strategies.contraction import contraction
from tests.frontend.support import define

LOWER = """
@ex.program
def lower(a: ex.f16[N, N], b: ex.f16[N, M], c: ex.f32[N, M]):
    for i in range(N):
        for j in range(M):
            total = ex.local(ex.f32)
            total = 0.0
            for k in range(i + 1):
                total += a[i, k] * b[k, j]
            c[i, j] = total
"""


@pytest.mark.parametrize("odd", [np.inf, np.nan])
def test_a_difference_by_infinities_is_explained(odd: float) -> None:
    written = define(LOWER).schedule(N=64, M=64)
    rng = np.random.default_rng(0)
    arrays = {"a": rng.standard_normal((64, 64)).astype(np.float16), "b": rng.standard_normal((64, 64)).astype(np.float16)}
    tiled = contraction(written, gpu=ex.gpu("H200"))
    assert "masked=True" in str(tiled.steps)
    assert not tiled.run(arrays, device="cpu", time=False, ragged=False).notes
    arrays["b"][40, 3] = odd
    assert written.run(arrays, device="cpu", time=False, ragged=False).correct
    run = tiled.run(arrays, device="cpu", time=False, ragged=False)
    assert not run.correct
    assert any(note.startswith("b holds infinities or NaN: ") for note in run.notes)
