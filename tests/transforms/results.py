"""Products whose results lie in registers as what is stored, and leave them one by one: what `store_matrix` is for."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import explorer as ex
from explorer.strategies.contraction.form import product_form
from explorer.strategies.contraction.moves import build
from explorer.strategies.contraction.shapes import Tiling
from tests.strategies.products import K, M, N, product

WARPS = Tiling("warp", 64, 64, 32, 2, 2, 2, through=True)
GROUP = Tiling("warpgroup", 64, 64, 32, 1, 1, 2, through=True)
COPY = "S2_store_2"


@ex.program
def turned(x: ex.f16[M, K], y: ex.f16[K, N], z: ex.f16[N, M]):
    for i in range(M):
        for j in range(N):
            s = ex.local(ex.f32)
            s = 0.0
            for k in range(K):
                s += x[i, k] * y[k, j]
            z[j, i] = s


@cache
def left(tiling: Tiling = WARPS, registers: int = 8, program: ex.Program | None = None) -> ex.Schedule:
    """A product whose results lie in registers as what is stored, and then leave them one by one."""
    written = (program or product(ex.f16, ex.f32, "n", "n")).schedule(M=64, N=64, K=64)
    form = product_form(written, written.plan.kernels[0].id)
    assert form is not None
    steps = build(written, form, tiling).steps
    first = next(n for n, step in enumerate(steps) if step.name == "outline")
    last = next(n for n, step in enumerate(steps) if str(step).startswith("contract('z_t'"))
    s = written.replay(steps[: first + 1]).outline("S2")
    for step in steps[first + 1: last]:
        s = s.apply(replace(step, after=COPY) if step.name == "distribute" and step.after == "S2" else step)
    *_, columns, parts, lanes = (x.id for x in s.plan.resolve("S2")[1])  # type: ignore[index]
    if tiling is GROUP:
        columns = parts
    else:
        s = s.coalesce((columns, parts))
    if s.plan.loops[columns].extent > registers:
        inner = s.plan.fresh(f"{columns}.r")
        s = s.split(columns, registers, inner=inner)
        columns = inner
    s = s.distribute(lanes, "S2").distribute(columns, lanes)
    s = s.contract("z_t_t", "register").contract("z_t", "shared")
    return s.replay((*s.steps, *steps[last + 1: last + 6]))
