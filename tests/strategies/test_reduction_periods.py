"""Columns whose rows are no whole number of vectors: several rows are taken as one, which are."""

from __future__ import annotations

import random
import re

import pytest

import explorer as ex
from benchmarks.reduction_program import reduction
from explorer.codegen.emit import emit
from explorer.gpu.spec import gpu
from explorer.run.cpu import CpuDevice
from explorer.run.inputs import seeded_arrays
from explorer.run.nvrtc import compile_module
from explorer.strategies.default import default
from explorer.strategies.reductions import Shape, priced, reduce, reduction_form
from explorer.strategies.reductions.families import candidates
from explorer.strategies.reductions.shapes import Problem, periodic
from tests.properties.equal import difference

HERE = gpu("H200")
M, N = ex.sizes("M N")
CASES = {
    "rows of odd length": ((57, 19), (0,), "f32", "sum"),
    "the last period is cut off": ((399, 19), (0,), "f16", "max"),
    "two axes in one": ((57, 27, 3), (0, 1), "f32", "sum"),
    "batches": ((5, 32, 83), (1,), "f16", "max"),
    "half of a vector fits": ((333, 10), (0,), "f16", "sum"),
    "blocks share a period": ((40, 645), (0,), "f32", "min"),
}


def periods(case: tuple) -> list[Shape]:
    """The shapes that take several rows as one."""
    written = reduction(*case)
    form = reduction_form(written, written.plan.kernels[0].id)
    assert form is not None
    return [s for s, _ in priced(written, form, HERE) if s.period > 1]


def test_so_many_rows_as_make_whole_vectors() -> None:
    def of(p: Problem, widest: int) -> set[tuple[int, int]]:
        return {(s.vector, s.period) for s in candidates(p, widest, HERE) if s.period > 1}

    odd = Problem(False, 4000, 113, 113, 4, beside=113)
    assert of(odd, 4) == {(2, 2), (4, 4)}
    assert of(Problem(False, 4001, 113, 113, 2), 8) == {(4, 4), (8, 8)}  # what is cut off may lie in the last vector
    assert of(Problem(False, 4000, 114, 114, 2), 8) == {(4, 2), (8, 4)}
    assert not of(Problem(False, 4000, 112, 112, 2), 8)
    assert not of(Problem(True, 113, 4000, 113, 4), 4)
    batches = Problem(False, 256, 9379, 83, 2, 0, 83)
    assert of(batches, 8) == {(4, 4), (8, 8)}
    assert of(Problem(False, 252, 9379, 83, 2, 0, 83), 8) == {(4, 4)}  # every batch begins where a vector does
    assert not of(Problem(False, 251, 9379, 83, 2, 0, 83), 8)
    assert periodic(odd, 4) == Problem(False, 1000, 452, 452, 4, 0, 452)


@pytest.mark.parametrize("name", CASES)
def test_every_way_to_join_is_right(name: str) -> None:
    case, rng = CASES[name], random.Random(3)
    found = periods(case)
    chosen = [rng.choice([s for s in found if s.join == join]) for join in sorted({s.join for s in found})]
    assert "launch" in {s.join for s in chosen}
    made = [default(reduce(reduction(*case), shape=s)) for s in chosen]
    device = CpuDevice(seeds=3)
    for shape, s, built in zip(chosen, made, device.build_many([emit(s.plan) for s in made]), strict=True):
        assert re.search(rf"(vec|packed)<\w+, {shape.vector}>.*&x\[", s.cuda), shape  # nothing is read element by element
        arrays = seeded_arrays(s.source, 5)
        for results in device.run_seeds(built, arrays):
            assert not difference(s.source, arrays, results), shape


@ex.program
def extremes(x: ex.f32[M, N], low: ex.f32[N], high: ex.f32[N]):
    for j in range(N):
        low[j] = ex.inf
        high[j] = -ex.inf
        for i in range(M):
            low[j] = min(low[j], x[i, j])
            high[j] = max(high[j], x[i, j])


def test_several_results_share_the_vectors_of_a_period() -> None:
    """4 divides 400: a vector's lanes all have a row or none has, though the vector begins in one row and ends in the next."""
    s = extremes.schedule(M=400, N=19)
    form = reduction_form(s, "extremes")
    assert form is not None
    shape = next(x for x, _ in priced(s, form, HERE) if x.vector == x.period == 4 and x.join == "signal")
    made = default(reduce(s, shape=shape))
    assert made.cuda.count("*(const vec<float, 4>*)&x[") == 1
    device, arrays = CpuDevice(seeds=3), seeded_arrays(made.source, 5)
    for results in device.run_seeds(device.build(emit(made.plan)), arrays):
        assert not difference(made.source, arrays, results)

    odd = extremes.schedule(M=401, N=19)
    form = reduction_form(odd, "extremes")
    assert form is not None
    assert not any(x.period > 1 for x, _ in priced(odd, form, HERE))


def test_a_period_is_read_without_divisions_and_its_end_is_asked_for_once() -> None:
    shape = Shape(19, 8, 8, 4, 4, period=8, join="signal")
    s = default(reduce(reduction((3989, 19), (0,), "f16", "max"), shape=shape))
    loads = [line for line in s.cuda.splitlines() if "*(const packed<__half, 8>*)&x[" in line]
    assert len(loads) == 1
    assert not re.search(r"[/%]", loads[0])
    assert re.search(r"r0 >= 3 && r0_u >= 3 \? load_within|r0_u >= 3 \? load_within", loads[0])
    assert compile_module(emit(s.plan), "sm_90").kernels


def test_parts_and_rows_of_a_period_in_one_loop_have_places_of_their_own_in_a_cluster() -> None:
    """The loop that joins walks the parts of two blocks, and four rows in each."""
    s = default(reduce(reduction((40, 101), (0,), "f16", "sum"), shape=Shape(101, 1, 4, 5, 2, period=4, join="cluster")))
    assert s.plan.kernels[-1].join == "cluster"
    assert "_slots" in s.cuda
    device, arrays = CpuDevice(seeds=3), seeded_arrays(s.source, 5)
    for results in device.run_seeds(device.build(emit(s.plan)), arrays):
        assert not difference(s.source, arrays, results)
