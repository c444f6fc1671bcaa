"""Products of matrices by tensor instructions.

One tile a warp, factors from global memory or in pipelined shared memory; and what `contraction` makes of products in every
order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import product_programs
from product_cases import Conv

import explorer as ex
from explorer.gpu.spec import default_gpu
from explorer.ir.instructions import INSTRUCTIONS, Mma
from explorer.schedule import Schedule
from explorer.strategies.attention import attention
from explorer.strategies.attention.moves import Tiling as Attending
from explorer.strategies.auto import auto
from explorer.strategies.contraction.arrange import PADDED, ways
from explorer.strategies.contraction.form import product_form
from explorer.strategies.contraction.moves import build
from explorer.strategies.contraction.shapes import Tiling
from tests.transforms.results import COPY, GROUP, WARPS, left, turned

M, N, K = ex.sizes("M N K")


@cache
def product(a: Any, b: Any, c: Any, turned: bool = False) -> Any:
    """``c = a @ b`` for some element types; `turned`: the right factor is stored transposed."""
    if turned:

        @ex.program
        def matmul(x: a[M, K], y: b[N, K], z: c[M, N]):  # type: ignore[valid-type]
            for i in range(M):
                for j in range(N):
                    total = ex.local(c)
                    total = 0
                    for k in range(K):
                        total += x[i, k] * y[j, k]
                    z[i, j] = total

        return matmul

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
    s = product(*types).schedule(M=m, N=n, K=k)
    s = s.approximate("S1", factors="tf32") if row.significand else s
    s = s.split("i", row.m, inner="ti").split("j", row.n, inner="tj")
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


TILINGS = (
    Tiling("warpgroup", 128, 64, 64, 2, 1, 3, through=True),
    Tiling("warpgroup", 64, 64, 64, 1, 1, 2),
    Tiling("warpgroup", 64, 64, 64, 1, 1, 2, slices=2),
    Tiling("warp", 64, 64, 32, 2, 2, 3, 16, through=True),
)
"""Bulk copies with products in flight, results through shared memory or not, and the depth in slices."""


def tiled(program: str, t: Tiling, **sizes: int) -> Schedule:
    """One of the programs of products in a tiling."""
    written = getattr(product_programs, program).schedule(**sizes)
    form = product_form(written, written.plan.kernels[0].id)
    assert form is not None
    return build(written, form, t)


THREADS = tuple(replace(t, transposed=transposed) for transposed in (False, True) for t in (
    Tiling("plain", 64, 64, 16, 8, 8, 2), Tiling("plain", 64, 128, 16, 8, 16, 3), Tiling("plain", 32, 32, 8, 8, 8, 1),
    Tiling("plain", 64, 64, 16, 8, 8, 2, step=8)))
"""Of products by plain arithmetic."""


def named(t: Tiling) -> str:
    """A tiling with how much of a step is written out, which its own text leaves out."""
    return f"{t}, {t.step or t.depth} of a step written out"


def schedules() -> Iterator[tuple[str, Schedule]]:
    """Name and schedule."""
    for row in INSTRUCTIONS.values():
        yield f"products by {row.name}", tiles(row, 2 * row.m, 4 * row.n, 3 * row.k)
    for stages in (2, 3):
        yield f"products by m16n8k16, {stages} stages", tiles(INSTRUCTIONS["m16n8k16_f16_f16_f32"], 64, 64, 128, stages=stages)
    for order in ("nn", "nt", "tn", "tt"):
        for t in TILINGS:
            yield f"products, {order}, {t}", tiled(f"product_{order}", t, M=200, N=136, K=328)
    for dtype, depth in ((ex.f8e4m3, 128), (ex.f8e5m2, 128), (ex.f32, 32)):
        written = product(dtype, dtype, ex.f32, turned=True).schedule(M=136, N=72, K=208)
        written = written.approximate("S1", factors="tf32") if dtype is ex.f32 else written
        form = product_form(written, written.plan.kernels[0].id)
        assert form is not None
        yield f"products of {dtype.__name__} by warpgroups", build(written, form, Tiling("warpgroup", 64, 64, depth, 1, 1, 3))
    for t, words in ((WARPS, "warps"), (GROUP, "a warpgroup")):
        yield f"results of {words} by stmatrix", left(t).store_matrix(COPY)
        yield f"results of {words} by stmatrix, transposed", left(t, 8, turned).store_matrix(COPY)
    for t in THREADS:
        for m, n, k in ((128, 192, 288), (101, 75, 259)):
            yield f"products of f32, {m}x{n}x{k}, {named(t)}", tiled("product_f32", t, M=m, N=n, K=k)
    cut = tiled("product_nn", Tiling("warpgroup", 64, 64, 64, 1, 1, 2, slices=2), M=64, N=128, K=512)
    yield "slices of a product, joined by a barrier of the grid", cut.join(cut.plan.kernels[1].id, "grid")
    yield "batches of products", tiled("batched_nt", TILINGS[0], Z=3, M=72, N=200, K=136)
    yield "a product and what follows", tiled("bias_gelu", TILINGS[0], M=136, N=200, K=200)
    yield "a product, and its rows normalised", auto(product_programs.residual_rmsnorm.schedule(M=136, N=200, K=200))
    for stride in (1, 2):
        case = Conv("tiny", 2, 64, 14, 14, 64, 3, 3, stride, 1, 1)
        last = case._replace(last=True)
        yield f"a convolution of stride {stride}", auto(product_programs.conv_nhwc.schedule(**last.sizes))
        yield f"a convolution of stride {stride}, channels first", auto(product_programs.conv.schedule(**case.sizes))
    turns = Tiling("warpgroup", 64, 64, 64, 1, 1, 3, persistent=4)
    for order, n, t in (("nt", 75, Tiling("warpgroup", 64, 64, 64, 1, 1, 3, through=True)),
                        ("nn", 76, Tiling("warp", 64, 64, 32, 2, 2, 2, 16, through=True)),
                        ("tn", 83, Tiling("warp", 64, 64, 32, 2, 2, 2, 16, through=True))):
        yield f"products, {order}, results of odd rows, {t}", tiled(f"product_{order}", t, M=72, N=n, K=72)
    for order, t in (("nn", Tiling("warp", 64, 64, 32, 2, 2, 1, 16)), ("tn", Tiling("warp", 64, 64, 32, 2, 2, 1, 16)),
                     ("nn", Tiling("warpgroup", 128, 128, 64, 2, 2, 2, through=True, bulk_stores=True))):
        yield f"products, {order}, ragged, {t}", tiled(f"product_{order}", t, M=200, N=136, K=328)
    for mates in ((1, 2), (2, 1), (2, 2)):
        t = Tiling("warpgroup", 64, 64, 64, 1, 1, 3, producer=True, mates=mates)
        yield f"products, nn, {t}", tiled("product_nn", t, M=200, N=200, K=328)
    for order in ("nn", "nt", "tn", "tt"):
        t = Tiling("warpgroup", 64, 64, 128, 1, 1, 3, through=order in ("nt", "tn"))
        yield f"products, {order}, steps of two panels, {t}", tiled(f"product_{order}", t, M=136, N=200, K=456)
    for columns in (96, 160, 192, 224):
        t = Tiling("warpgroup", 64, columns, 64, 1, 1, 2, through=True)
        yield f"products, nt, {t}", tiled("product_nt", t, M=136, N=456, K=136)
    for t in (Tiling("warpgroup", 64, 128, 64, 1, 1, 3, producer=True, mates=(2, 1)),
              Tiling("warpgroup", 64, 128, 64, 1, 1, 3, persistent=4, producer=True, mates=(2, 1))):
        yield f"products, nn, panels of {t}", tiled("product_nn", t, M=256, N=256, K=328)
    last = replace(turns, producer=True, through=True)
    two = replace(last, rows=128, down=2)
    for t in (turns, replace(turns, producer=True), last, replace(last, bulk_stores=True), replace(two, bulk_stores=True),
              replace(two, bulk_stores=True, matrix=True)):
        yield f"products, nn, {t}", tiled("product_nn", t, M=200, N=200, K=200)
    for program in (product_programs.attention, product_programs.causal_attention):
        yield f"{program.name} in one kernel", attention(program.schedule(B=1, H=2, L=48, D=16))
        for length in (256, 200):
            made = attention(program.schedule(B=1, H=2, L=length, D=32), tiling=Attending(128, 8, 32, 2, 2, turns=True))
            yield f"{program.name} in turns, {length} keys", made
    for order in ("nn", "tt"):
        written = getattr(product_programs, f"product_{order}").schedule(M=131, N=67, K=133)
        way = next(w for w in ways(written, written.plan.kernels[0].id, default_gpu()) if w.label == PADDED)
        yield f"products, {order}, padded rows", build(way.schedule, way.form, TILINGS[1])
