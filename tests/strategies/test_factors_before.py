"""Products whose factors are computed from elements, and products in spellings of every day: all are tiles for tensor cores."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.gpu.spec import gpu
from explorer.ir.dtype import DTYPES
from explorer.ir.scalar import Call, Read
from explorer.strategies import auto
from explorer.strategies.contraction import factors_outside
from explorer.strategies.contraction.factors import _is_exact, factors_before
from explorer.strategies.price import price

M, N, K = ex.sizes("M N K")


@ex.program
def relu(a: ex.f16[M, K], b: ex.f16[K, N], c: ex.f16[M, N]):
    for i in range(M):
        for j in range(N):
            t = ex.local(ex.f32)
            t = 0.0
            for k in range(K):
                t += max(a[i, k], 0.0) * b[k, j]
            c[i, j] = t


@ex.program
def three(a: ex.f16[M, K], d: ex.f16[K], b: ex.f16[K, N], c: ex.f16[M, N]):
    for i in range(M):
        for j in range(N):
            t = ex.local(ex.f32)
            t = 0.0
            for k in range(K):
                t += a[i, k] * d[k] * b[k, j]
            c[i, j] = t


@ex.program
def both(a: ex.f16[M, K], d: ex.f16[M, K], b: ex.f16[K, N], c: ex.f16[M, N]):
    for i in range(M):
        for j in range(N):
            t = ex.local(ex.f32)
            t = 0.0
            for k in range(K):
                t += (a[i, k] + d[i, k]) * abs(b[k, j])
            c[i, j] = t


@ex.program
def weights(a: ex.bf16[M, K], b: ex.i8[K, N], scale: ex.f32[N], c: ex.bf16[M, N]):
    for i in range(M):
        for j in range(N):
            t = ex.local(ex.f32)
            t = 0.0
            for k in range(K):
                t += a[i, k] * b[k, j]
            c[i, j] = t * scale[j]


@ex.program
def zero_points(a: ex.f16[M, K], b: ex.i8[K, N], zero: ex.i8[N], scale: ex.f16[N], c: ex.f16[M, N]):
    for i in range(M):
        for j in range(N):
            t = ex.local(ex.f32)
            t = 0.0
            for k in range(K):
                t += a[i, k] * ((b[k, j] - zero[j]) * scale[j])
            c[i, j] = t


@ex.program
def into_halves(a: ex.f16[M, K], b: ex.f16[K, N], c: ex.f16[M, N]):
    for i in range(M):
        for j in range(N):
            c[i, j] = 0.0
            for k in range(K):
                c[i, j] += a[i, k] * b[k, j]


@ex.program
def gated(a: ex.f16[M, K], b: ex.f16[K, N], g: ex.f16[K, N], c: ex.f16[M, N]):
    for i in range(M):
        for j in range(N):
            t = ex.local(ex.f32)
            u = ex.local(ex.f32)
            t = 0.0
            u = 0.0
            for k in range(K):
                t += a[i, k] * b[k, j]
                u += a[i, k] * g[k, j]
            c[i, j] = t * ex.sigmoid(t) * u


@ex.program
def gated_apart(a: ex.f16[M, K], b: ex.f16[K, N], g: ex.f16[K, N], c: ex.f16[M, N]):
    for i in range(M):
        for j in range(N):
            t = ex.local(ex.f32)
            u = ex.local(ex.f32)
            t = 0.0
            for k in range(K):
                t += a[i, k] * b[k, j]
            u = 0.0
            for k in range(K):
                u += a[i, k] * g[k, j]
            c[i, j] = t * u


BEFORE = {relu: 18, three: 18, both: 25, weights: 24, zero_points: 25}
SPELLINGS = {into_halves: 16, gated: 36, gated_apart: 36}
"""At most so many microseconds at 2048 x 2048 x 1024, by the model (H200): the product alone takes 14.8."""


@pytest.mark.parametrize("program", [*BEFORE, *SPELLINGS], ids=lambda p: p.name)
def test_ordinary_spellings_are_tiles(program: ex.ProgramDefinition) -> None:
    """Each took 176 to 8,732 µs so, one output for each thread."""
    s = auto(program.schedule(M=2048, N=2048, K=1024))
    assert "wgmma_m64" in s.cuda
    assert price(s.plan, gpu("H200")).total_us <= {**BEFORE, **SPELLINGS}[program]


@pytest.mark.parametrize("program", [*BEFORE, *SPELLINGS], ids=lambda p: p.name)
@pytest.mark.parametrize("sizes", [(72, 136, 40), (65, 33, 50)], ids=str)
def test_they_are_right(program: ex.ProgramDefinition, sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    s = program.schedule(M=m, N=n, K=k)
    made = auto(factors_before(factors_outside(s), approximate=True))
    assert made.run(device="cpu", time=False).correct
    assert auto(s, gpu="A100").run(device="cpu", time=False).correct


def test_what_would_be_rounded_needs_leave() -> None:
    """A maximum of f16 is one; a sum of two is none, and is multiplied in f32 where nothing may be approximate."""
    for program, kept in ((relu, {"f16"}), (weights, {"bf16"}), (three, {"f32"}), (both, {"f32"})):
        s = factors_before(factors_outside(program.schedule(M=512, N=512, K=512)), approximate=False)
        assert {a.dtype.name for a in s.plan.program.arrays if a.name.endswith("_p")} == kept
    assert {a.dtype.name for a in factors_before(three.schedule(M=512, N=512, K=512), True).plan.program.arrays
            if a.name.endswith("_p")} == {"f16"}


def test_few_uses_stay_as_they_are() -> None:
    s = relu.schedule(M=512, N=4, K=512)
    assert factors_before(s, approximate=True) is s


@ex.program
def eights(a: ex.f8e4m3[M, K], b: ex.f8e4m3[K, N], c: ex.f16[M, N]):
    for i in range(M):
        for j in range(N):
            t = ex.local(ex.f32)
            t = 0.0
            for k in range(K):
                t += a[i, k] * b[k, j]
            c[i, j] = t


def test_floats_of_8_bits_are_multiplied_in_f16_where_there_is_no_instruction() -> None:
    s = eights.schedule(M=512, N=512, K=256)
    assert factors_before(s, approximate=False, gpu=gpu("H200")) is s
    assert factors_before(s, approximate=False, gpu=gpu("RTX 4090")) is s
    made = factors_before(s, approximate=False, gpu=gpu("A100"))
    assert {a.dtype.name for a in made.plan.program.arrays if a.name.endswith("_p")} == {"f16"}
    text = auto(eights.schedule(M=2048, N=2048, K=1024), gpu="A100").cuda
    assert "mma_m16n8k16_f16_f16_f32(" in text
    assert auto(made, gpu="A100").run(device="cpu", time=False).correct


def test_whole_numbers_that_the_type_lacks_are_not_rounded() -> None:
    """Differences of 8 bits are numbers of f16; not all are of bf16, and no products of them are of f16."""

    i8, difference = DTYPES["i8"], Call("sub", (Read(0), Read(1)))
    assert _is_exact(difference, DTYPES["f16"], [i8, i8])
    assert _is_exact(difference, DTYPES["bf16"], [i8, i8]) is None
    assert _is_exact(Call("abs", (Read(0),)), DTYPES["f16"], [DTYPES["i32"]]) is None
    assert _is_exact(Call("max", (Read(0), Read(1))), DTYPES["f16"], [DTYPES["f16"]] * 2)
    assert _is_exact(Call("add", (Read(0), Read(1))), DTYPES["f16"], [DTYPES["f16"]] * 2) is False
