"""Register arrays that a thread has to hold together: what cannot fit, which arrays take how many, and what just fits."""

from __future__ import annotations

from dataclasses import replace

import pytest

import explorer as ex
from explorer.errors import CompileError, IllegalSchedule
from explorer.kernel.emit import emit
from explorer.poly.register_pressure import WGMMA_RESERVE, pressures, registers_of
from explorer.run.nvrtc.compiler import compile_module
from explorer.schedule import Schedule
from explorer.strategies.contraction.form import product_form
from explorer.strategies.contraction.moves import build
from explorer.strategies.contraction.shapes import Tiling
from tests.strategies.products import product

N, K = ex.sizes("N K")


@ex.program
def two_sums(x: ex.f32[N, K], y: ex.f32[N], z: ex.f32[N]):
    for i in range(N):
        y[i] = 0.0
        z[i] = 0.0
        for k in range(K):
            y[i] += x[i, k]
            z[i] += x[i, k] * x[i, k]


def made(t: Tiling, kind: ex.DType = ex.f16) -> Schedule:
    written = product(kind, ex.f32, "n", "t").schedule(M=1024, N=1024, K=256)
    form = product_form(written, written.plan.kernels[0].id)
    assert form is not None
    return build(written, form, t)


def plain(rows: int, columns: int, down: int, across: int) -> Schedule:
    return made(Tiling("plain", rows * down, columns * across, 8, down, across, 1), ex.f32)


def groups(number: int, columns: int) -> Schedule:
    return made(Tiling("warpgroup", 64 * number, columns, 64, number, 1, 1))


def both(each: int, terms: int = 64) -> Schedule:
    """`each` sums of both outputs in every one of 1,024 threads, carried through the terms."""
    s = two_sums.schedule(N=1024 * each, K=terms).split("i", each).bind("i", "thread.x").accumulate("y").accumulate("z")
    s = s.distribute("i.i", after="k").distribute("i.i", after="S1").interchange("i.i.3", "k")
    return s.contract("y_acc", "register").contract("z_acc", "register")


@pytest.mark.parametrize(("threads", "each"), [(32, 255), (256, 255), (257, 224), (384, 168), (512, 128), (640, 96), (1024, 64)])
def test_a_block_divides_its_registers(threads: int, each: int) -> None:
    assert registers_of(threads) == each


@pytest.mark.parametrize(("shape", "fits"), [((4, 8, 32, 32), True), ((8, 8, 32, 32), False), ((8, 16, 32, 32), False),
                                             ((8, 8, 16, 32), True), ((8, 16, 16, 32), False), ((8, 16, 16, 16), True)])
def test_sums_of_plain_arithmetic(shape: tuple[int, int, int, int], fits: bool) -> None:
    rows, columns, down, across = shape
    s = plain(*shape)
    assert s.judgement.legal
    assert s.judgement.emittable is fits
    if fits:
        return
    (finding,) = s.obligations
    threads = down * across
    assert f"s ({rows * columns}) takes {rows * columns} registers of each of {threads:,} threads" in finding.what
    assert f"which is {registers_of(threads)} for each" in finding.why
    assert any("smaller tiles of s" in h for h in finding.hints)
    assert any("fewer threads" in h for h in finding.hints)
    with pytest.raises(IllegalSchedule, match="registers of each of"):
        s.kernel("A100")
    (kernel,) = compile_module(emit(s.plan, arch="sm_80"), "sm_80").kernels.values()
    assert kernel.spill_store_bytes > 100, "only what the compiler cannot keep is refused"


@pytest.mark.parametrize(("number", "fits", "not_fits"), [(8, 72, 80), (5, 136, 144), (4, 200, 208)])
def test_a_warpgroup_instruction_is_refused_where_ptxas_does(number: int, fits: int, not_fits: int) -> None:
    s = groups(number, fits)
    assert s.judgement.emittable
    (kernel,) = compile_module(emit(s.plan), "sm_90").kernels.values()
    assert not kernel.spill_store_bytes
    s = groups(number, not_fits)
    (finding,) = s.obligations
    takes = f"s ({not_fits // 2}) takes {not_fits // 2} registers of each of {128 * number:,} threads"
    assert f"{takes} and {WGMMA_RESERVE}" in finding.what
    with pytest.raises(CompileError, match="Insufficient registers"):
        compile_module(emit(s.plan), "sm_90")


def test_registers_that_a_producer_gives_away_count() -> None:
    s = made(Tiling("warpgroup", 192, 256, 64, 3, 1, 2, producer=True))
    assert s.plan.kernels[0].registers == 160
    assert not list(pressures(s.plan))
    shared = replace(s.plan, kernels=tuple(replace(k, registers=0) for k in s.plan.kernels))
    (finding,) = pressures(shared)
    assert "128 registers of each of 512 threads" in finding.what


def test_arrays_of_several_statements_count_together() -> None:
    """Each fits, both do not: 40 sums of one output and 40 of the other."""
    assert both(20).judgement.emittable
    (finding,) = both(40).obligations
    assert finding.what.startswith("y_acc (40), z_acc (40) take 80 registers of each of 1,024 threads")
    assert "at S2" in finding.why
    assert finding.nodes == ("S2", "y_acc", "z_acc")


def test_what_a_compiler_may_order_otherwise_is_not_counted() -> None:
    """Few iterations are written out; sums that begin anew in each iteration are not carried."""
    assert both(40, terms=4).judgement.emittable
    s = two_sums.schedule(N=1024 * 40, K=64).split("i", 40).bind("i", "thread.x").accumulate("y").accumulate("z")
    s = s.contract("y_acc", "register").contract("z_acc", "register")
    assert not list(pressures(s.plan))
