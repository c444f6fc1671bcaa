"""Pipelines with stages of their own and over two levels; products summed over rows, of few rows, of an array with itself, by
triangles, and those whose sums are scattered.
"""

from __future__ import annotations

from collections.abc import Iterator

import product_programs

from explorer.schedule import Schedule
from explorer.strategies import auto, pipelined
from explorer.strategies.contraction.apart import products_apart
from explorer.strategies.contraction.form import product_form
from explorer.strategies.contraction.moves import build
from explorer.strategies.contraction.shapes import Tiling
from tests.strategies import scattered, test_row_sums, test_triangles
from tests.transforms import test_tensorize_held
from tests.transforms.test_engines import ENGINES, before
from tests.transforms.test_stage_reads import columns, gram

STEP = Tiling("warp", 64, 64, 64, 2, 2, 1, 16)
"""Four instructions deep, in one stage."""


def schedules() -> Iterator[tuple[str, Schedule]]:
    """Name and schedule."""
    for x, y in (("async", "async"), ("bulk", "bulk"), ("bulk", "async"), ("async", "bulk")):
        for a, b in ((4, 2), (2, 3), (3, 0)):
            s = before().stage("x", "k", **ENGINES[x]).stage("y", "k", **ENGINES[y])
            for name, stages in (("x_s", a), ("y_s", b)):
                s = s.pipeline("k", stages, copies=(name,)) if stages else s
            yield f"{a} stages of {x} copies beside {b or 1} of {y} copies", s
    for order in ("nn", "tt"):
        written = getattr(product_programs, f"product_{order}").schedule(M=136, N=104, K=328)
        form = product_form(written, written.plan.kernels[0].id)
        assert form is not None
        for stages in (2, 3):
            made = pipelined(build(written, form, STEP), "k", stages)
            yield f"products, {order}, {stages} stages, fragments from tile to tile", made
    for t in (Tiling("warpgroup", 128, 64, 64, 2, 1, 3), Tiling("warp", 64, 64, 32, 2, 2, 3)):
        s = products_apart(test_row_sums.squares.schedule(M=200, N=152, K=104))
        form = product_form(s, s.plan.kernels[1].id)
        assert form is not None
        yield f"sums of squares over rows, {t}", build(s, form, t)
    for t in (Tiling("warpgroup", 128, 64, 64, 2, 1, 2, through=True, persistent=5, producer=True, bulk_stores=True),
              Tiling("warpgroup", 64, 128, 64, 1, 1, 2, persistent=3, producer=True), Tiling("warp", 64, 32, 32, 2, 1, 2)):
        s = products_apart(test_row_sums.both.schedule(M=200, N=152, K=104))
        form = product_form(s, s.plan.kernels[1].id)
        assert form is not None
        yield f"sums of squares over rows of a stored product, {t}", build(s, form, t)
    for program in (test_row_sums.squares, test_row_sums.perceptron, test_row_sums.batched):
        yield f"{program.name}, summed over rows, auto", auto(program.schedule(**test_row_sums.SIZES[program.name]))
    for program in (gram, columns):
        yield f"{program.name}: an array with itself, auto", auto(program.schedule(M=136, K=72))
    for dtype, step in (("f16", 64), ("bf16", 32), ("i8", 64), ("tf32", 16), ("tf32", 32)):
        yield f"products of a left factor in registers, {dtype}, {step} deep", test_tensorize_held.held(dtype=dtype, step=step)
    for m, n in ((2, 136), (7, 72), (72, 5)):
        yield f"products of {m} x {n}", auto(product_programs.product_nn.schedule(M=m, N=n, K=264))
    for program in test_triangles.TENSOR:
        yield f"products by triangles, {program.name}, auto", auto(test_triangles.sized(program))
    for program in (test_triangles.lower, test_triangles.both):
        s = test_triangles.sized(program)
        form = product_form(s, s.plan.kernels[0].id)
        assert form is not None
        yield f"products by triangles, {program.name}, warpgroups", build(s, form, Tiling("warpgroup", 128, 64, 64, 2, 1, 3))
    for program in (*scattered.PRODUCTS, scattered.fold):
        for sizes in ({"N": 2, "C": 32, "D": 32, "H": 9, "W": 7, "K": 4}, {"N": 16, "C": 136, "D": 72, "H": 27, "W": 29, "K": 5}):
            yield (f"scattered sums, {program.name}, {sizes['C']} channels",
                   auto(program.schedule(**{name: sizes[name] for name in program.sizes})))
