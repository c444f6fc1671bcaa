"""Column reductions that ride along a row kernel: right at odd sizes, legal step by step, each array read once, tight code."""

from __future__ import annotations

import re
from math import erf, sqrt
from typing import Any

import numpy as np
import pytest

import explorer as ex
from benchmarks.fused_programs import layernorm_gradient
from explorer.ir.tree import Leaf, Loop, leaves, walk
from explorer.kernel.emit import emit
from explorer.run.cpu.device import CpuDevice
from explorer.run.nvrtc.compiler import compile_module
from explorer.strategies.auto import auto
from explorer.strategies.fuse_reduction import fuse_reduction
from explorer.strategies.row_column import Spread, choose, fuse_row_column
from explorer.strategies.row_column.form import RowColumn, row_column_form
from tests.strategies import row_column_programs as programs

Arrays = dict[str, np.ndarray]
CASES = [
    (layernorm_gradient, {"M": 300, "N": 64}), (layernorm_gradient, {"M": 141, "N": 77}),
    (layernorm_gradient, {"M": 5, "N": 264}), (layernorm_gradient, {"M": 40, "N": 1040}),
    (programs.rmsnorm_backward, {"B": 3, "Q": 101, "N": 36}), (programs.rmsnorm_backward, {"B": 7, "Q": 2, "N": 127}),
    (programs.gelu_backward, {"M": 277, "N": 48}), (programs.gelu_backward, {"M": 134, "N": 9}),
    (programs.softmax_peaks, {"M": 300, "N": 50}), (programs.softmax_peaks, {"M": 3, "N": 129}),
    (programs.scaled_planes, {"M": 290, "Q": 3, "H": 20}), (programs.scaled_planes, {"M": 17, "Q": 5, "H": 7}),
]  # fmt: skip
NAMES = [f"{p.name}-{'x'.join(map(str, sizes.values()))}" for p, sizes in CASES]


def _given(schedule: Any) -> Arrays:
    random = np.random.default_rng(3)
    return {a.name: random.standard_normal(a.shape).astype(a.dtype.numpy) for a in schedule.source.parameters
            if a.role in ("in", "inout")}


def _wanted(name: str, given: Arrays) -> Arrays:
    """The results by NumPy in double precision."""
    a = {k: v.astype(np.float64) for k, v in given.items()}
    x = a["x"]
    n = x.shape[-1]
    if name == "layernorm_gradient":
        mean = x.mean(1, keepdims=True)
        scale = 1 / np.sqrt(((x - mean) ** 2).mean(1, keepdims=True) + 1e-5)
        h, g = (x - mean) * scale, a["dy"] * a["w"]
        dx = scale * (g - g.mean(1, keepdims=True) - h * (g * h).mean(1, keepdims=True))
        return {"dx": dx, "dw": (a["dy"] * h).sum(0), "db": a["dy"].sum(0)}
    if name == "rmsnorm_backward":
        scale = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
        g = a["dy"] * a["w"]
        return {"dx": scale * (g - x * scale**2 * (g * x).sum(-1, keepdims=True) / n), "dw": (a["dy"] * x * scale).sum((0, 1))}
    if name == "gelu_backward":
        v = x + a["c"]
        g = a["dy"] * (0.5 * (1 + np.vectorize(erf)(v / sqrt(2))) + v * np.exp(-0.5 * v * v) * 0.3989422804014327)
        return {"dx": g, "dc": g.sum(0)}
    if name == "softmax_peaks":
        e = np.exp(x - x.max(1, keepdims=True))
        return {"y": e / e.sum(1, keepdims=True), "high": x.max(0), "low": x.min(0)}
    y = x * a["s"][:, None, None]
    return {"y": y, "total": a["total"] + y.sum(0)}


@pytest.fixture(scope="module")
def made() -> list[Any]:
    return [fuse_row_column(fuse_reduction(p.schedule(**sizes))) for p, sizes in CASES]


def test_results_are_right(made: list[Any]) -> None:
    device = CpuDevice(checked=True, seeds=2)
    for name, schedule, built in zip(NAMES, made, device.build_many([emit(s.plan) for s in made]), strict=True):
        given = _given(schedule)
        wanted = _wanted(schedule.source.name, given)
        for found in device.run_seeds(built, given):
            for array, right in wanted.items():
                half = schedule.source.array_of[array].dtype.name == "f16"
                np.testing.assert_allclose(found[array].astype(np.float64), right, rtol=2e-3 if half else 2e-5,
                                           atol=4e-3 if half else 2e-4, err_msg=f"{name} {array}")


@pytest.mark.parametrize("case", range(len(CASES)), ids=NAMES)
def test_every_step_is_legal_and_two_launches_remain(made: list[Any], case: int) -> None:
    schedule = made[case]
    assert schedule.judgement.emittable
    assert len(schedule.plan.kernels) == 2
    again = schedule.replay(schedule.steps)  # every step is judged there
    assert again.plan == schedule.plan


@pytest.mark.parametrize("case", range(10), ids=NAMES[:10])  # columns along two axes are no box of one loop
def test_what_moves_with_the_rows_is_loaded_once(made: list[Any], case: int) -> None:
    plan = made[case].plan
    loads: dict[str, int] = {}
    for leaf, above, _ in plan.leaves:
        for slot, read in enumerate(plan.statement_of[leaf.statement].reads):
            if plan.array_of[read.array].role == "in" and leaf.view(slot) is None and _columnwise(leaf, above):
                loads[read.array] = loads.get(read.array, 0) + 1
    rows = {a.name for a in made[case].source.parameters if a.role == "in" and len(a.shape) > 1}
    assert {loads[name] for name in rows} == {1}


def _columnwise(leaf: Leaf, above: tuple[Loop, ...]) -> bool:
    return any(x.role == "thread.x" for x in above)


def test_auto_rides() -> None:
    schedule = auto(layernorm_gradient.schedule(M=16384, N=768))
    assert len(schedule.plan.kernels) == 2
    assert any(str(step).startswith("rfactor(") and "axes=(0,)" in str(step) for step in schedule.steps)


def test_layernorm_gradient_is_tight() -> None:
    module = auto(layernorm_gradient.schedule(M=16384, N=768)).module("sm_90a")
    grid, block = module.launches[0].grid, module.launches[0].block
    assert grid == (132, 1, 1)
    assert block[0] == 32
    body = module.text[module.text.index('extern "C"'):]
    first = body[: body.index('extern "C"', 10)]
    assert first.count("__syncthreads") == 1  # between the loop over rows and the sum over the rows of the block
    assert not re.search(r"\[[^\]]*[/%]", first)
    assert len(re.findall(r"\*\(const (?:vec|packed)<__half, 8>\*\)", first)) == 3  # x, dy, w
    assert len(re.findall(r"\*\(vec<__half, 8>\*\)&dx", first)) == 1
    used = compile_module(module, "sm_90a").kernels
    for kernel in used.values():
        assert kernel.registers <= 168
        assert kernel.spill_store_bytes == kernel.spill_load_bytes == 0


@pytest.mark.parametrize("sizes", [(4096, 1024), (8192, 4096), (100_000, 64), (2048, 1001), (512, 8192)])
def test_chosen_spreads_fit(sizes: tuple[int, int]) -> None:
    schedule = auto(layernorm_gradient.schedule(M=sizes[0], N=sizes[1]))
    launch = schedule.kernel("H200").module.launches[0]
    assert launch.grid[0] >= 128
    assert launch.block[0] * launch.block[1] <= 1024
    row = next(n for n in walk(schedule.plan.kernels[0].body) if isinstance(n, Loop) and n.id == "i")
    assert row.extent * launch.grid[0] <= sizes[0] + launch.grid[0]


def test_a_given_spread_is_taken_and_parts_without_rows_are_stored_too() -> None:
    schedule = fuse_row_column(fuse_reduction(layernorm_gradient.schedule(M=7, N=24)), spread=Spread(4, 2, 3, 5))
    assert schedule.module().launches[0].grid == (5, 1, 1)
    assert schedule.module().launches[0].block == (4, 3, 1)
    run = schedule.run(device="cpu", seeds=2, time=False, ragged=False)
    assert run.correct


def test_the_rule_counts_registers_and_shared_memory() -> None:
    h200 = ex.gpu("H200")

    def spread(m: int, n: int) -> Spread:
        given = fuse_reduction(programs.gelu_backward.schedule(M=m, N=n))
        form = row_column_form(given.plan, given.plan.kernels[0].id)
        assert isinstance(form, RowColumn)
        found = choose(given, form, h200)
        assert found is not None
        return found

    for n in (8, 768, 3072, 8192):
        s = spread(16384, n)
        assert -(-n // (s.threads * s.vector)) <= 16
        assert s.blocks % 132 == 0
        assert s.rows * n * 4 <= 232448
    assert spread(100, 768).blocks == 100
    assert spread(16384, 768).rows > 1
    assert spread(16384, 8192).threads == 256
    wide = fuse_reduction(layernorm_gradient.schedule(M=1000, N=32768))
    assert fuse_row_column(wide) is wide  # more columns than a block has registers for


def test_programs_without_a_sum_to_carry_stay_as_they_are() -> None:
    for name, sizes in (("row_softmax", None), ("matmul", None), ("column_sum", None)):
        if name not in ex.workloads.names():
            continue
        workload = ex.workloads.get(name)
        written = fuse_reduction(workload.definition.schedule(**(sizes or workload.tiny)))
        assert fuse_row_column(written) is written
    M, N = ex.sizes("M N")

    @ex.program
    def unrelated(x: ex.f32[M, N], z: ex.f32[M, N], y: ex.f32[M, N], s: ex.f32[N]):
        for i in range(M):
            for k in range(N):
                y[i, k] = 2.0 * x[i, k]
        for k in range(N):
            s[k] = 0.0
            for i in range(M):
                s[k] += z[i, k]

    written = fuse_reduction(unrelated.schedule(M=64, N=32))
    assert fuse_row_column(written) is written


def test_parts_may_come_anywhere() -> None:
    s = programs.scaled_planes.schedule(M=12, Q=3, H=4)
    update = next(leaf.id for leaf, _, _ in s.plan.leaves if s.plan.statement_of[leaf.statement].update)
    loop = s.plan.find(update)[1][0].id  # type: ignore[index]
    shapes = []
    for axes in ((), (0,), (1,)):
        made = s.split(loop, 4, inner="part").reorder(("part", loop)).rfactor(update, "part", axes=axes)
        shapes.append(made.plan.array_of["total_p"].shape)
        assert made.judgement.emittable
        assert made.run(device="cpu", seeds=1, time=False, ragged=False).correct
    assert shapes == [(3, 4, 4), (4, 3, 4), (3, 4, 4)]


def test_copies_may_come_early() -> None:
    s = programs.softmax_peaks.schedule(M=12, N=8)
    late, early = (s.stage("x", "i", space="register", early=e) for e in (False, True))
    firsts = [next(leaves(x.plan.loops["i"].body))[0].statement for x in (late, early)]
    assert firsts[0] == "S0"
    assert firsts[1].startswith("x_r")
    assert early.judgement.legal
