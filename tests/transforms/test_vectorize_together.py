"""Several statements in one vector loop whose lanes do not all run: loads of inputs are shared, each lane has its own guard."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.strategies.price import price

M, N = ex.sizes("M N")


@ex.program
def together(x: ex.f16[M, N], v: ex.f32[M], w: ex.f32[M]):
    for i in range(M):
        v[i] = 0.0
        w[i] = 0.0
        for k in range(N):
            v[i] += x[i, k]
            w[i] += x[i, k] * x[i, k]


@pytest.mark.parametrize(("m", "n"), [(4, 17), (5, 13), (3, 777)])
def test_statements_of_a_row_that_ends_in_a_vector_share_their_loads(m: int, n: int) -> None:
    s = together.schedule(M=m, N=n)
    s = s.accumulate("v").accumulate("w").contract("v_acc").contract("w_acc").align("k", "x", 8).split("k", 8).vectorize("k.i")
    text = s.cuda
    assert text.count("const vec<__half, 8> x_") == 1
    assert s.run(device="cpu", time=False, ragged=False).correct


def test_one_load_for_several_statements_is_priced_once() -> None:
    def requested(s: ex.Schedule) -> list[float]:
        return [x.requested_bytes for x in price(s.plan, ex.gpu("H200")).kernels[0].counts.leaves]

    s = together.schedule(M=4, N=512).accumulate("v").accumulate("w").contract("v_acc").contract("w_acc")
    _, _, first, second, *_ = requested(s)
    assert first > 0
    assert second == 0
