"""The automatic schedule: right on every workload and on reductions of every shape; its form follows from the program."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

import explorer as ex
from benchmarks.cases import drawn
from benchmarks.reduction_program import reduction
from explorer.errors import ScheduleError
from explorer.ir.tree import Loop, walk
from explorer.kernel.emit import emit
from explorer.run.cpu.device import CpuDevice
from explorer.run.nvrtc.compiler import compile_module
from explorer.strategies.auto import auto
from explorer.strategies.reductions import Shape, choose, priced, reduce, reduction_form
from explorer.strategies.rows import rows
from explorer.strategies.rows.form import row_form
from explorer.strategies.rows.model import group_size

NAMES = ex.workloads.names()
H200 = ex.gpu("H200")
SHAPES = [
    ((5, 64), (1,), "f32", "sum"), ((300, 49), (1,), "f32", "max"), ((7, 4096), (1,), "f16", "sum"),
    ((65536,), (0,), "f32", "sum"),
    ((100, 64), (0,), "f32", "sum"), ((700, 768), (0,), "f16", "sum"), ((8, 64, 12, 12), (0, 2, 3), "f32", "sum"),
    ((6, 33, 40), (1,), "f32", "max"), ((6, 5, 8, 12), (0, 2), "f32", "min"), ((3, 4, 5, 6), (0, 1, 2, 3), "f32", "sum"),
    ((31, 7, 13), (0, 2), "f64", "sum"), ((97, 101), (0,), "f32", "sum"), ((2000, 1), (0,), "f32", "sum"),
    ((1, 1), (1,), "f32", "prod"),
]  # fmt: skip


@pytest.mark.parametrize("case", [
    ((1, 16, 1, 16), (0, 2, 3), "f64", "min"), ((5, 1, 3, 1, 7), (0, 1, 2), "f16", "sum"), ((40, 1, 30), (0, 1), "f32", "max"),
    ((3, 50, 6, 7), (1, 3), "f32", "sum")])  # fmt: skip
def test_every_shape_on_offer_applies(case: tuple) -> None:
    written = reduction(*case)
    form = reduction_form(written, written.plan.kernels[0].id)
    assert form is not None
    offered = [s for s, _ in priced(written, form, H200)]
    for shape in {*offered[:4], *offered[:: max(1, len(offered) // 12)]}:
        assert not reduce(written, shape=shape).judgement.refusals, shape


@pytest.mark.parametrize("name", NAMES)
def test_workloads_are_right(name: str) -> None:
    workload = ex.workloads.get(name)
    schedule = auto(workload.definition.schedule(**workload.tiny))
    assert schedule.judgement.emittable
    run = schedule.run(workload.arrays(workload.tiny), device="cpu", seeds=1, time=False, ragged=False,
                       reference=workload.reference)
    assert run.correct
    threads = [n for k in schedule.plan.kernels for n in walk(k.body) if isinstance(n, Loop) and n.is_thread]
    assert threads


def test_reductions_of_every_shape_are_right() -> None:
    small = [c for c in drawn(60, 7) if prod(c[1]) <= 1 << 17][:12]
    cases = [*SHAPES, *(c[1:] for c in small)]
    made = [auto(reduction(*case)) for case in cases]
    device, random = CpuDevice(checked=True, seeds=1), np.random.default_rng(0)
    for case, schedule, built in zip(cases, made, device.build_many([emit(s.plan) for s in made]), strict=True):
        shape, axes, dtype, op = case
        x = random.standard_normal(shape).astype({"f16": np.float16, "f32": np.float32, "f64": np.float64}[dtype])
        wanted = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}[op](x.astype(np.float64), axis=axes)
        (found,) = device.run_seeds(built, {"x": x})
        scale = np.sqrt(prod(shape[a] for a in axes)) * (1e-3 if dtype == "f16" else 1e-6) * 8
        got = found["y"].reshape(wanted.shape).astype(np.float64)
        np.testing.assert_allclose(got, wanted, atol=scale, rtol=1e-3, err_msg=str(case))
        assert schedule.judgement.emittable


def test_few_results_are_reduced_in_parts() -> None:
    written = reduction((4_000_000,), (0,), "f32", "sum")
    schedule = auto(written)
    assert len(schedule.plan.kernels) == 2
    assert schedule.module().launches[0].grid[1] > 100
    assert len(auto(reduction((100_000, 64), (1,), "f32", "sum")).plan.kernels) == 1


def test_the_contiguous_axis_decides() -> None:
    for axes, is_row in (((0, 2), True), ((1,), False)):
        written = reduction((6, 64, 32), axes, "f32", "sum")
        form = reduction_form(written, written.plan.kernels[0].id)
        assert form is not None
        assert form.rows is is_row
        assert f"threadIdx.{'x' if is_row else 'y'}" in auto(written).cuda


def test_wide_loads_where_rows_are_aligned() -> None:
    assert "vec<float, 4>" in auto(reduction((1024, 8192), (1,), "f32", "sum")).cuda
    assert "vec<__half, 8>" in auto(reduction((1024, 8192), (1,), "f16", "sum")).cuda
    odd = reduction((64, 49), (1,), "f32", "sum")
    form = reduction_form(odd, odd.plan.kernels[0].id)
    assert form is not None
    assert choose(odd, form, H200).vector == 1


def test_a_shape_of_ones_own() -> None:
    written = reduction((64, 4096), (1,), "f32", "sum")
    schedule = reduce(written, shape=Shape(64, 1, 4, 2, 3))
    assert schedule.module().launches[0].block == (64, 1, 1)
    assert schedule.module().launches[0].grid == (64, 3, 1)


def test_rows_are_read_once() -> None:
    workload = ex.workloads.get("softmax")
    schedule = rows(workload.definition.schedule(M=64, N=1024))
    reads = [a for a in schedule.facts.accesses if a.space == "global" and not a.writes]
    assert len(reads) == 1
    assert reads[0].width_bytes == 16


@pytest.mark.parametrize(("extent", "vector", "threads"), [
    (64, 8, 4), (768, 8, 32), (1024, 8, 64), (4096, 8, 128), (32000, 8, 512), (3, 1, 1)])
def test_threads_for_a_row(extent: int, vector: int, threads: int) -> None:
    assert group_size(extent, vector) == threads


def test_reused_elements_want_tiles_not_rows() -> None:
    written = ex.workloads.get("matmul").definition.schedule(M=64, N=64, K=64)
    assert row_form(written, written.plan.kernels[0].id) is None
    assert rows(written) is written


def test_approximations_are_steps_that_can_be_left_out() -> None:
    written = ex.workloads.get("softmax").definition.schedule(M=4, N=64)
    assert "__expf" in auto(written).cuda
    exact = auto(written, approximate=False)
    assert "__expf" not in exact.cuda
    assert not any(step.name == "approximate" for step in exact.steps)


def test_the_steps_replay() -> None:
    written = ex.workloads.get("layernorm").definition.schedule(M=6, N=512)
    schedule = auto(written)
    assert written.replay(schedule.steps).cuda == schedule.cuda


@pytest.mark.parametrize("name", [
    "softmax", "layernorm_backward", "batchnorm_statistics", "sum_columns", "max_interleaved", "adam"])
def test_typical_sizes_compile(name: str) -> None:
    workload = ex.workloads.get(name)
    schedule = auto(workload.definition.schedule(**workload.typical))
    compiled = compile_module(schedule.module())
    assert all(k.spill_store_bytes == 0 for k in compiled.kernels.values())


def test_unknown_gpu() -> None:
    with pytest.raises(ex.ResourceError, match="No GPU"):
        auto(reduction((4, 4), (1,), "f32", "sum"), gpu="H2000")
    with pytest.raises(ScheduleError):
        auto("softmax")  # type: ignore[type-var]
