"""Products of matrices by tensor instructions: one tile a warp, factors from global memory or in pipelined shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import explorer as ex
from explorer.ir.instructions import INSTRUCTIONS, Mma
from explorer.schedule import Schedule

M, N, K = ex.sizes("M N K")


@cache
def product(a: Any, b: Any, c: Any) -> Any:
    """``c = a @ b`` for some element types."""

    @ex.program
    def matmul(x: a[M, K], y: b[K, N], z: c[M, N]):  # type: ignore[valid-type]
        for i in range(M):
            for j in range(N):
                total = ex.local(c)
                total = 0
                for k in range(K):
                    total += x[i, k] * y[k, j]
                z[i, j] = total

    return matmul


def tiles(row: Mma, m: int, n: int, k: int, *, across: int = 2, down: int = 2, stages: int = 0) -> Schedule:
    """Blocks of `down` x `across` warps, each with one tile of the instruction; `stages` buffers of shared memory, or none."""
    types = (getattr(ex, str(d)) for d in (row.a, row.b, row.c))
    s = product(*types).schedule(M=m, N=n, K=k).split("i", row.m, inner="ti").split("j", row.n, inner="tj")
    s = s.split("i", down, inner="wi").split("j", across, inner="wj").reorder(("i", "j", "wi", "wj", "ti", "tj"))
    s = s.bind("i", "block.y").bind("j", "block.x").coalesce(("wi", "wj")).bind("wi", "warp")
    for loop in ("tj", "ti"):
        s = s.distribute(loop, after="S1").distribute(loop, after="S0")
    rows, columns, depth = (x.id for x in s.plan.resolve("S1")[1][-3:])
    s = s.reorder((depth, rows, columns)).split("k", row.k).reorder(("k", rows, columns, "k.i")).contract("total", "register")
    x, y = "x", "y"
    if stages:
        wide = 16 // row.a.bytes
        s = s.stage("x", "k", vector=wide).stage("y", "k", vector=min(wide, 8)).pipeline("k", stages)
        x, y = "x_s", "y_s"
    return s.stage(x, "k", space="register").stage(y, "k", space="register").tensorize("S1")


def schedules() -> Iterator[tuple[str, Schedule]]:
    """Name and schedule."""
    for row in INSTRUCTIONS.values():
        if not row.significand:
            yield f"products by {row.name}", tiles(row, 2 * row.m, 4 * row.n, 3 * row.k)
    for stages in (2, 3):
        yield f"products by m16n8k16, {stages} stages", tiles(INSTRUCTIONS["m16n8k16_f16_f16_f32"], 64, 64, 128, stages=stages)
