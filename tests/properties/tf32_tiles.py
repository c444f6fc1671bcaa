"""A product of TF32 factors in tiles of one tensor instruction, its statements in nests of their own."""

from __future__ import annotations

import explorer as ex
from explorer.schedule import Schedule

M, N, K = ex.sizes("M N K")


@ex.program
def product(a: ex.f32[M, K], b: ex.f32[N, K], c: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            acc = ex.local(ex.f32)
            acc = 0
            for d in range(K):
                acc += ex.tf32(a[i, d]) * ex.tf32(b[j, d])
            c[i, j] = acc


def tf32_tiles(depth: int) -> Schedule:
    """16 rows, 16 columns and so many steps, in tiles of 16 x 8."""
    s = product.schedule(M=16, K=depth, N=16).tile(("i", "j"), (16, 8))
    for loop in ("j.i", "i.i"):
        s = s.distribute(loop, "S1").distribute(loop, "S0")
    return s
