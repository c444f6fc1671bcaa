"""The schedules behind the spine's figures: an f32 matrix product, a softmax of rows, Jacobi in time tiles.

Ordinary schedules of ordinary programs, of any size: what a user would write by hand or click in the explorer.
"""

from __future__ import annotations

import explorer as ex

M, N, K, T, H, W = ex.sizes("M N K T H W")


@ex.program
def matmul(a: ex.f32[M, K], b: ex.f32[K, N], c: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            acc = ex.local(ex.f32)
            acc = 0.0
            for k in range(K):
                acc += a[i, k] * b[k, j]
            c[i, j] = acc


@ex.program
def softmax(x: ex.f32[M, N], y: ex.f32[M, N]):
    for i in range(M):
        peak = ex.local(ex.f32)
        total = ex.local(ex.f32)
        peak = -ex.inf
        for k in range(N):
            peak = max(peak, x[i, k])
        total = 0.0
        for k in range(N):
            total += ex.exp(x[i, k] - peak)
        for k in range(N):
            y[i, k] = ex.exp(x[i, k] - peak) / total


@ex.program
def jacobi(u: ex.f32[2, H, W]):
    for t in range(T):
        for i in range(1, H - 1):
            for j in range(1, W - 1):
                u[(t + 1) % 2, i, j] = 0.2 * (
                    u[t % 2, i, j] + u[t % 2, i - 1, j] + u[t % 2, i + 1, j] + u[t % 2, i, j - 1] + u[t % 2, i, j + 1]
                )


def tiled_matmul(m: int, n: int, k: int, *, bm: int = 128, bn: int = 128, bk: int = 32, tm: int = 8, tn: int = 4,
                 stages: int = 2) -> ex.Schedule:
    """Blocks of bm × bn; threads of tm × 2·tn in two halves bn/2 apart; tiles of depth bk in `stages` buffers."""
    s = matmul.schedule(M=m, N=n, K=k)
    s = s.tile(("i", "j"), (bm, bn)).split("i.i", tm, inner="ui")
    s = s.split("j.i", bn // 2, inner="tj").split("tj", tn, inner="uj").reorder(("i.i", "tj", "ui", "j.i", "uj"))
    s = s.bind("i", "block.y").bind("j", "block.x").bind("i.i", "thread.y").bind("tj", "thread.x")
    for loop in ("uj", "j.i", "ui"):
        s = s.distribute(loop, after="S1").distribute(loop, after="S0")
    s = s.reorder(("k", "ui.3", "j.i.3", "uj.3")).split("k", bk).contract("acc", "register")
    s = s.stage("a", "k", vector=4).stage("b", "k", vector=4).pipeline("k", stages).split("k.i", 4, inner="kv")
    s = s.stage("a_s", "k.i", space="register", vector=4).stage("b_s", "kv", space="register", vector=4)
    return s.unroll("k.i").vectorize("uj.2")


def softmax_rows(m: int, n: int, threads: int = 256) -> ex.Schedule:
    """One block a row; the row in registers between its three passes; 16 bytes an access."""
    s = softmax.schedule(M=m, N=n).bind("i", "block.x")
    for k in ("k", "k_2", "k_3"):
        s = s.split(k, 4, inner=k + ".v").split(k, threads, inner=k + ".t").bind(k + ".t", "thread.x")
    s = s.stage("x", "i", space="register", vector=4).collect("peak", "shuffle").collect("total", "shuffle")
    s = s.contract("peak").contract("total").vectorize("k_3.v")
    return s.unroll("k").unroll("k_2").unroll("k_3")


def jacobi_steps(t: int, h: int, w: int, *, rows: int = 4, threads: int = 256) -> ex.Schedule:
    """One launch a time step; a thread computes `rows` points of a column."""
    s = jacobi.schedule(T=t, H=h, W=w).bind("t", "launch").split("i", rows, inner="y").split("j", threads, inner="x")
    return s.reorder(("i", "j", "x", "y")).bind("i", "block.y").bind("j", "block.x").bind("x", "thread.x").unroll("y")


def jacobi_naive(t: int, h: int, w: int, threads: int = 256) -> ex.Schedule:
    """One launch a time step; one point a thread."""
    s = jacobi.schedule(T=t, H=h, W=w).bind("t", "launch").bind("i", "block.y").split("j", threads, inner="x")
    return s.bind("j", "block.x").bind("x", "thread.x")


def jacobi_tiles(t: int, h: int, w: int, *, steps: int = 8, rows: int = 64, threads: int = 128, ty: int = 8,
                 unroll: bool = False) -> ex.Schedule:
    """Tiles of `steps` × rows × threads in skewed time; the tiles of one diagonal plane run in one launch."""
    s = jacobi.schedule(T=t, H=h, W=w).split("t", steps, inner="tt")
    for loop in "ij":
        s = s.skew(loop, by="tt").skew(loop, by="t", factor=steps)
    s = s.split("i", rows, inner="y").split("j", threads, inner="x").reorder(("t", "i", "j", "tt", "y", "x"))
    s = s.skew("j", by="i").skew("j", by="t").reorder(("j", "t", "i"))
    s = s.bind("j", "launch").bind("t", "block.y").bind("i", "block.x").bind("x", "thread.x")
    s = s.split("y", ty, inner="ty").bind("ty", "thread.y")
    return s.unroll("y") if unroll else s
