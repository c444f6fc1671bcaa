"""Products of matrices with all orders of their operands, as a user writes them."""

from __future__ import annotations

from functools import cache
from typing import Any

import explorer as ex
from explorer.strategies.contraction.form import product_form
from explorer.strategies.contraction.moves import build
from explorer.strategies.contraction.shapes import Tiling

M, N, K = ex.sizes("M N K")


@cache
def product(dtype: Any, total: Any, left: str, right: str, out: Any = None) -> Any:
    """``z = x @ y``; a factor's order is ``"n"``, or ``"t"`` where it is stored transposed."""
    result = out or dtype

    if (left, right) == ("n", "n"):

        @ex.program
        def matmul(x: dtype[M, K], y: dtype[K, N], z: result[M, N]):  # type: ignore[valid-type]
            for i in range(M):
                for j in range(N):
                    s = ex.local(total)
                    s = 0
                    for k in range(K):
                        s += x[i, k] * y[k, j]
                    z[i, j] = s

    elif (left, right) == ("n", "t"):

        @ex.program
        def matmul(x: dtype[M, K], y: dtype[N, K], z: result[M, N]):  # type: ignore[valid-type]
            for i in range(M):
                for j in range(N):
                    s = ex.local(total)
                    s = 0
                    for k in range(K):
                        s += x[i, k] * y[j, k]
                    z[i, j] = s

    elif (left, right) == ("t", "n"):

        @ex.program
        def matmul(x: dtype[K, M], y: dtype[K, N], z: result[M, N]):  # type: ignore[valid-type]
            for i in range(M):
                for j in range(N):
                    s = ex.local(total)
                    s = 0
                    for k in range(K):
                        s += x[k, i] * y[k, j]
                    z[i, j] = s

    else:

        @ex.program
        def matmul(x: dtype[K, M], y: dtype[N, K], z: result[M, N]):  # type: ignore[valid-type]
            for i in range(M):
                for j in range(N):
                    s = ex.local(total)
                    s = 0
                    for k in range(K):
                        s += x[k, i] * y[j, k]
                    z[i, j] = s

    return matmul


@ex.program
def biased(x: ex.f16[M, K], y: ex.f16[K, N], bias: ex.f16[N], z: ex.f16[M, N]):
    for i in range(M):
        for j in range(N):
            s = ex.local(ex.f32)
            s = 0.0
            for k in range(K):
                s += x[i, k] * y[k, j]
            v = ex.local(ex.f32)
            v = s + bias[j]
            z[i, j] = max(v, 0.0) * v


def built(program: Any, tiling: Tiling, **sizes: int) -> ex.Schedule:
    """The tiled schedule of a program's one product."""
    written = program.schedule(**sizes)
    form = product_form(written, written.plan.kernels[0].id)
    assert form is not None
    return build(written, form, tiling)
