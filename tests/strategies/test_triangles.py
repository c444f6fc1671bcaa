"""Products by triangles and bands: on tensor cores, with zeros behind the diagonal and no tile beyond it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

import explorer as ex
from explorer.gpu.spec import gpu
from explorer.ir.instructions import instruction
from explorer.kernel.emit import emit
from explorer.kernel.launches import plan_ir
from explorer.kernel.nodes import Copy, Node
from explorer.kernel.traverse import map_bodies
from explorer.kernel.validate import judged
from explorer.run.nvrtc.compiler import compile_module
from explorer.strategies import auto
from explorer.strategies.contraction import build, product_form
from explorer.strategies.contraction.shapes import Tiling
from explorer.strategies.price import price

M, N, K, B = ex.sizes("M N K B")


@ex.program
def lower(a: ex.f16[M, M], b: ex.f16[M, N], y: ex.f16[M, N]):
    for i in range(M):
        for j in range(N):
            t = ex.local(ex.f32)
            t = 0.0
            for k in range(i + 1):
                t += a[i, k] * b[k, j]
            y[i, j] = t


@ex.program
def upper(a: ex.f16[M, M], b: ex.f16[M, N], y: ex.f16[M, N]):
    for i in range(M):
        for j in range(N):
            t = ex.local(ex.f32)
            t = 0.0
            for k in range(i, M):
                t += a[i, k] * b[k, j]
            y[i, j] = t


@ex.program
def transposed(a: ex.f16[M, M], b: ex.f16[M, N], y: ex.f16[M, N]):
    """The triangle is stored with its columns along memory."""
    for i in range(M):
        for j in range(N):
            t = ex.local(ex.f32)
            t = 0.0
            for k in range(i + 1):
                t += a[k, i] * b[k, j]
            y[i, j] = t


@ex.program
def right(a: ex.f16[N, M], b: ex.f16[M, M], y: ex.f16[N, M]):
    """The right factor is the triangle."""
    for i in range(N):
        for j in range(M):
            t = ex.local(ex.f32)
            t = 0.0
            for k in range(j, M):
                t += a[i, k] * b[k, j]
            y[i, j] = t


@ex.program
def band(a: ex.f16[M, M], b: ex.f16[M, N], y: ex.f16[M, N]):
    for i in range(M):
        for j in range(N):
            t = ex.local(ex.f32)
            t = 0.0
            for k in range(max(i - 20, 0), min(i + 9, M)):
                t += a[i, k] * b[k, j]
            y[i, j] = t


@ex.program
def both(a: ex.f16[M, M], b: ex.f16[M, M], y: ex.f16[M, M]):
    """Each factor is a triangle: their product is one, too."""
    for i in range(M):
        for j in range(M):
            t = ex.local(ex.f32)
            t = 0.0
            for k in range(j, i + 1):
                t += a[i, k] * b[k, j]
            y[i, j] = t


@ex.program
def batched(a: ex.f16[B, M, K], b: ex.f16[B, K, N], y: ex.f16[B, M, N]):
    """Sequences of different lengths: element n has 32*n + 24 of the depth."""
    for n in range(B):
        for i in range(M):
            for j in range(N):
                t = ex.local(ex.f32)
                t = 0.0
                for k in range(min(32 * n + 24, K)):
                    t += a[n, i, k] * b[n, k, j]
                y[n, i, j] = t


@ex.program
def floats(a: ex.f32[M, M], b: ex.f32[M, N], y: ex.f32[M, N]):
    """Without tensor cores."""
    for i in range(M):
        for j in range(N):
            t = ex.local(ex.f32)
            t = 0.0
            for k in range(i + 1):
                t += a[i, k] * b[k, j]
            y[i, j] = t


@ex.program
def mixed(a: ex.f16[M, K], b: ex.f16[K, N], y: ex.f16[M, N]):
    """Which terms are left out depends on rows and columns at once: no factor has zeros there."""
    for i in range(M):
        for j in range(N):
            t = ex.local(ex.f32)
            t = 0.0
            for k in range(min(i + j + 1, K)):
                t += a[i, k] * b[k, j]
            y[i, j] = t


SIZES = {"M": 152, "N": 72, "K": 104, "B": 3}
TENSOR = (lower, upper, transposed, right, band, both, batched)


def sized(program: ex.ProgramDefinition, **others: int) -> ex.Schedule:
    sizes = SIZES | others
    return program.schedule(**{name: sizes[name] for name in program.sizes})


@pytest.mark.parametrize("where", ["H200", "A100-40GB", "T4"])
@pytest.mark.parametrize("program", TENSOR, ids=lambda p: p.name)
def test_auto_multiplies_by_tensor_instructions(program: ex.ProgramDefinition, where: str) -> None:
    s = auto(sized(program), gpu=gpu(where))
    assert any(instruction(leaf.mechanism) for leaf, _, _ in s.plan.leaves)
    assert s.run(device="cpu", time=False).correct


@pytest.mark.parametrize("extent", [1, 7, 33, 65, 129])
@pytest.mark.parametrize("program", [lower, upper, right], ids=lambda p: p.name)
def test_odd_sizes(program: ex.ProgramDefinition, extent: int) -> None:
    assert auto(sized(program, M=extent, N=extent + 2)).run(device="cpu", time=False).correct


def test_plain_arithmetic_and_conditions_on_both() -> None:
    for program in (floats, mixed):
        s = auto(sized(program))
        assert not any(instruction(leaf.mechanism) for leaf, _, _ in s.plan.leaves)
        assert s.run(device="cpu", time=False).correct
    s = sized(mixed)
    assert product_form(s, s.plan.kernels[0].id) is None


@pytest.mark.parametrize(("program", "end"), [
    (lower, "k < 64 - 2 * i"), (upper, "k < 64 - 2 * i"), (right, "k < 64 - 4 * j"), (batched, "k < min(2, n / 2 + 1)"),
], ids=lambda x: getattr(x, "name", ""))
def test_tiles_beyond_the_diagonal_are_left_out(program: ex.ProgramDefinition, end: str) -> None:
    """The longest first; an upper triangle runs through its depth backwards."""
    s = auto(sized(program, M=4096, N=4096) if program is not batched else sized(batched, M=512, N=512, K=128, B=8))
    [loop] = re.findall(r"for \(int k = 0; (.*?); \+\+k\)", s.cuda)
    assert loop == end
    assert price(s.plan, gpu("H200")).total_us < 300


def test_a_tile_on_the_diagonal(golden) -> None:
    """Asynchronous copies bring the elements before the diagonal and zeros behind it; fragments are loaded as always."""
    s = sized(lower)
    form = product_form(s, s.plan.kernels[0].id)
    assert form is not None
    assert form.cut == (True, False)
    assert form.filled == pytest.approx((152 + 1) / 2 / 152)
    made = build(s, form, Tiling("warp", 64, 32, 32, 2, 1, 2))
    assert made.judgement.emittable
    text = made.cuda
    assert "load_matrix<4, false>" in text
    assert "first_elements<16, 2>(" in text
    assert "async_copy_part" not in text, "that is for vectors in which the array ends"
    golden(text[text.index('extern "C"'):])
    assert made.run(device="cpu", time=False).correct


def test_zeros_before_the_diagonal() -> None:
    """Of a vector that the diagonal cuts only the last lanes are read; boxes bring the other factor."""
    written = sized(upper, M=512, N=512)
    form = product_form(written, written.plan.kernels[0].id)
    assert form is not None
    assert form.first == (True, False)
    s = build(written, form, Tiling("warpgroup", 128, 64, 64, 2, 1, 3))
    assert s.cuda.count("async_copy_between<8, true>(") == 2  # the prologue's and the loop's
    assert "bulk_copy_2d<" in s.cuda
    [launch] = plan_ir(s.plan).launches
    assert not list(judged(launch))
    for by in (-1, 1):
        assert list(judged(begin_moved(launch, by))), f"the first lane that is read, moved by {by}"


def begin_moved(launch: Any, by: int) -> Any:
    """The launch with asynchronous copies that begin `by` lanes later."""
    def among(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(replace(n, begins=tuple(e + by for e in n.begins)) if isinstance(n, Copy) else map_bodies(n, among)
                     for n in nodes)

    return replace(launch, bodies=tuple(among(body) for body in launch.bodies))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_nothing_spills(arch: str) -> None:
    for program in (lower, upper, right):
        s = auto(sized(program, M=4096, N=4096), gpu=gpu("H200" if arch == "sm_90a" else "A100-40GB"))
        assert not any(k.spill_store_bytes for k in compile_module(emit(s.plan, arch=arch), arch).kernels.values())
