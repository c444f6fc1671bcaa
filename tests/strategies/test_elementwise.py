"""Element by element: how wide an access may be."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.ir.tree import Loop, walk
from explorer.strategies.auto import auto

M, N = ex.sizes("M N")


@ex.program
def added(a: ex.f16[M, N], b: ex.f16[M, N], y: ex.f16[M, N]):
    for i in range(M):
        for k in range(N):
            y[i, k] = a[i, k] * 2.0 + b[i, k]


@ex.program
def turned(a: ex.f16[M, N], b: ex.f16[N, M], y: ex.f16[M, N]):
    for i in range(M):
        for k in range(N):
            y[i, k] = a[i, k] * 2.0 + b[k, i]


@ex.program
def biased(a: ex.f16[M, N], b: ex.f16[N], y: ex.f16[M, N]):
    for i in range(M):
        for k in range(N):
            y[i, k] = a[i, k] * 2.0 + b[k]


def lanes(schedule: ex.Schedule) -> int:
    """Elements of one access."""
    loops = (n for k in schedule.plan.kernels for n in walk(k.body) if isinstance(n, Loop))
    return max((n.extent for n in loops if n.role == "vector"), default=1)


@pytest.mark.parametrize(("definition", "rows", "columns", "wide"), [
    (added, 40, 71, 8), (added, 4, 71, 4), (added, 41, 71, 1), (added, 41, 72, 8),  # the size decides, not the row
    (turned, 40, 71, 1), (biased, 40, 71, 1), (biased, 41, 72, 8)])  # fmt: skip
def test_width(definition: ex.Definition, rows: int, columns: int, wide: int) -> None:
    made = auto(definition.schedule(M=rows, N=columns))
    assert lanes(made) == wide
    assert made.run(device="cpu", time=False).correct
