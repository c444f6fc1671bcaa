"""Small programs that several tests write schedules of.

Larger ones are shared with the benchmarks and live there: ``benchmarks/fused_programs.py``, ``benchmarks/reduction_program.py``.

``ROW_SUM_CELL`` is the text of `row_sum` as somebody types it into a notebook.
"""

from __future__ import annotations

import explorer as ex

M, N = ex.sizes("M N")


@ex.program
def row_sum(x: ex.f32[M, N], y: ex.f32[M]):
    for i in range(M):
        y[i] = 0.0
        for k in range(N):
            y[i] += x[i, k]


@ex.program
def two_sums(x: ex.f32[M, N], z: ex.f32[N, M], y: ex.f32[M], w: ex.f32[M]):
    """Rows of one array and columns of another: two kernels with choices of their own."""
    for i in range(M):
        y[i] = 0.0
        for k in range(N):
            y[i] += x[i, k]
    for j in range(M):
        w[j] = 0.0
        for r in range(N):
            w[j] += z[r, j]


ROW_SUM_CELL = f'import explorer as ex\nM, N = ex.sizes("M N")\n\n{row_sum.source}'
