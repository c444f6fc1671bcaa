"""Panamera's sub-graphs: element-wise producers take the loops of the reductions that read them, in one pass over the inputs."""

from __future__ import annotations

import numpy as np
import pytest

import explorer as ex
from benchmarks.fused_programs import layernorm_gradient, two_branches
from explorer.strategies import auto
from explorer.strategies.fuse_reduction import fuse_reduction
from explorer.strategies.producers import chained, produced_in_place
from explorer.strategies.row_column import fuse_row_column

M, N = ex.sizes("M N")


@ex.program
def product_sum(a: ex.f32[M, N], b: ex.f32[M, N], y: ex.f32[M]):
    t = ex.local(ex.f32, M, N)
    for i in range(M):
        for j in range(N):
            t[i, j] = a[i, j] * b[i, j]
    for i in range(M):
        y[i] = 0.0
        for j in range(N):
            y[i] += t[i, j]


@pytest.mark.parametrize(("program", "most"), [(product_sum, 1), (two_branches, 2)])
@pytest.mark.parametrize("sizes", [(5, 64), (130, 96), (33, 17)])
def test_nothing_but_inputs_and_results_is_in_memory(program: ex.Definition, most: int, sizes: tuple[int, int]) -> None:
    schedule = auto(program.schedule(M=sizes[0], N=sizes[1]))
    assert len(schedule.plan.kernels) <= most
    assert not {"t", "u"} & {a.name for a in schedule.plan.program.arrays if a.name not in schedule.plan.buffer_of}
    run = schedule.run(device="cpu", seeds=1, time=False, ragged=False)
    assert run.correct


def test_every_input_is_loaded_once_for_both_sums() -> None:
    schedule = auto(two_branches.schedule(M=16384, N=256))
    first = schedule.plan.kernels[0]
    loads = [line for line in str(schedule.cuda).splitlines() if "= *(const vec<__half" in line]
    assert len(loads) == 2, loads
    assert {a.role for a in schedule.plan.program.arrays} == {"in", "out", "temporary"}
    assert first.body


def test_a_result_that_is_read_twice_stays_legal() -> None:
    @ex.program
    def neighbours(a: ex.f32[M, N], y: ex.f32[M, N]):
        t = ex.local(ex.f32, M, N)
        for i in range(M):
            for j in range(N):
                t[i, j] = a[i, j] * 2.0
        for i in range(M):
            for j in range(1, N):
                y[i, j] = t[i, j] + t[i, j - 1]
        for i in range(M):
            y[i, 0] = t[i, 0]

    schedule = auto(neighbours.schedule(M=7, N=33))
    a = np.random.default_rng(0).standard_normal((7, 33)).astype(np.float32)
    assert schedule.run({"a": a}, device="cpu", seeds=1, time=False).correct


def test_what_buffers_of_another_launch_hold_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of column sums come from registers: no other launch can compute them, which needs no judgement of a new plan."""
    ridden = fuse_row_column(fuse_reduction(layernorm_gradient.schedule(M=4096, N=256)))
    assert len(ridden.plan.kernels) == 2
    assert chained(ridden)
    judged = []
    monkeypatch.setattr("explorer.poly.judge.check_cover", lambda plan, *_: judged.append(plan) or ())
    assert produced_in_place(ridden) is ridden
    assert not judged
