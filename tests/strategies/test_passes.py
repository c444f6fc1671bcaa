"""However a user writes reductions of one array, in nests of their own or in one, the array is read once, in one launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

import explorer as ex
from explorer.ir.plan import Plan
from explorer.ir.tree import Kernel, Leaf
from explorer.strategies import auto
from explorer.strategies.fuse_reduction import fuse_reduction
from explorer.strategies.stitching.passes import in_one_pass

A, B, C = ex.sizes("A B C")
Arrays = Mapping[str, np.ndarray]


@ex.program
def two_totals(x: ex.f32[A, B], y: ex.f32[1], z: ex.f32[1]):
    y[0] = 0.0
    z[0] = -ex.inf
    for i in range(A):
        for k in range(B):
            y[0] += x[i, k]
            z[0] = max(z[0], ex.abs(x[i, k]))


@ex.program
def two_passes(x: ex.f32[A, B], y: ex.f32[1], z: ex.f32[1]):
    total = ex.local(ex.f32)
    peak = ex.local(ex.f32)
    total = 0.0
    peak = -ex.inf
    for i in range(A):
        for k in range(B):
            total += x[i, k]
    for i in range(A):
        for k in range(B):
            peak = max(peak, ex.abs(x[i, k]))
    y[0] = total
    z[0] = peak


@ex.program
def one_nest(x: ex.f32[A, B, C], y: ex.f32[B], z: ex.f32[B]):
    for j in range(B):
        y[j] = 0.0
        z[j] = -ex.inf
    for i in range(A):
        for j in range(B):
            for k in range(C):
                y[j] += x[i, j, k]
                z[j] = max(z[j], ex.abs(x[i, j, k]))


@ex.program
def own_nests(x: ex.f32[A, B, C], y: ex.f32[B], z: ex.f32[B]):
    for j in range(B):
        y[j] = 0.0
        for i in range(A):
            for k in range(C):
                y[j] += x[i, j, k]
        y[j] = y[j] * 1.0
    for j in range(B):
        z[j] = -ex.inf
        for i in range(A):
            for k in range(C):
                z[j] = max(z[j], ex.abs(x[i, j, k]))


@ex.program
def other_order(x: ex.f32[A, B, C], y: ex.f32[A, B]):
    for j in range(B):
        for i in range(A):
            y[i, j] = 0.0
    for i in range(A):
        for k in range(C):
            for j in range(B):
                y[i, j] += x[i, j, k]


@ex.program
def finished(x: ex.f32[A, B], y: ex.f32[A], z: ex.f32[A]):
    for i in range(A):
        y[i] = 0.0
    for i in range(A):
        for k in range(B):
            y[i] += x[i, k]
    for i in range(A):
        z[i] = ex.sqrt(ex.abs(y[i]) / B)


@ex.program
def normalised(x: ex.f16[A, B], mean: ex.f32[A], scale: ex.f32[A], y: ex.f16[A, B]):
    for i in range(A):
        mean[i] = 0.0
    for i in range(A):
        for k in range(B):
            mean[i] += x[i, k] / B
    for i in range(A):
        scale[i] = 0.0
        for k in range(B):
            scale[i] += (x[i, k] - mean[i]) * (x[i, k] - mean[i])
        scale[i] = ex.rsqrt(scale[i] / B + 0.001)
    for i in range(A):
        for k in range(B):
            y[i, k] = (x[i, k] - mean[i]) * scale[i]


def _sum_and_peak(axes: tuple[int, ...]) -> Callable[[Arrays, Mapping[str, int]], dict[str, np.ndarray]]:
    def reference(arrays: Arrays, _: Mapping[str, int]) -> dict[str, np.ndarray]:
        x = arrays["x"].astype(np.float64)
        return {"y": x.sum(axes).reshape(-1), "z": np.abs(x).max(axes).reshape(-1)}

    return reference


def _normalised(arrays: Arrays, _: Mapping[str, int]) -> dict[str, np.ndarray]:
    x = arrays["x"].astype(np.float64)
    mean, scale = x.mean(1), 1 / np.sqrt(x.var(1) + 0.001)
    return {"mean": mean, "scale": scale, "y": (x - mean[:, None]) * scale[:, None]}


def _finished(arrays: Arrays, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    y = arrays["x"].astype(np.float64).sum(1)
    return {"y": y, "z": np.sqrt(np.abs(y) / sizes["B"])}


CASES = {
    "two totals": (two_totals, {"A": 37, "B": 8529}, _sum_and_peak((0, 1))),
    "two passes": (two_passes, {"A": 37, "B": 8529}, _sum_and_peak((0, 1))),
    "one nest": (one_nest, {"A": 8, "B": 140, "C": 36}, _sum_and_peak((0, 2))),
    "nests of their own": (own_nests, {"A": 8, "B": 140, "C": 36}, _sum_and_peak((0, 2))),
    "start in another order": (other_order, {"A": 40, "B": 30, "C": 36},
                               lambda arrays, _: {"y": arrays["x"].astype(np.float64).sum(2)}),
    "a last nest over the results": (finished, {"A": 150, "B": 70}, _finished),
    "results on the way": (normalised, {"A": 150, "B": 96}, _normalised),
}


@pytest.mark.parametrize("name", CASES)
def test_the_input_is_read_once_in_one_launch(name: str) -> None:
    program, sizes, reference = CASES[name]
    schedule = auto(program.schedule(**sizes), "H200")
    plan = schedule.plan
    assert sum(not k.join for k in plan.kernels) == 1, schedule
    reading = [leaf.id for leaf, _, _ in plan.leaves if not _from_a_buffer(plan, leaf)
               and any(r.array == "x" for r in plan.statement_of[leaf.statement].reads)]
    above = {tuple(x.id for x in plan.find(leaf)[1]) for leaf in reading}
    assert len(above) == 1, "all statements that read it stand in one loop"
    run = schedule.run(device="cpu", seeds=2, time=False, ragged=False, reference=reference)
    assert run.correct, run


def _from_a_buffer(plan: Plan, leaf: Leaf) -> bool:
    """Whether a leaf reads `x` from registers or shared memory."""
    statement = plan.statement_of[leaf.statement]
    slots = [n for n, r in enumerate(statement.reads) if r.array == "x"]
    return bool(slots) and all(leaf.view(n) is not None for n in slots)


def test_what_needs_the_other_result_keeps_its_own_pass() -> None:
    start = normalised.schedule(A=6, B=8)
    b = in_one_pass(fuse_reduction(start))
    assert not b.judgement.refusals
    nests = [leaf.id for leaf, above, _ in b.plan.leaves if len(above) == 2]
    assert len({b.plan.find(leaf)[1][-1].id for leaf in nests}) == 3, "mean, spread and y: none can share"


def test_row_and_column_sums_of_a_square_stay_apart() -> None:
    @ex.program
    def cross(x: ex.f32[A, A], y: ex.f32[A], z: ex.f32[A]):
        for i in range(A):
            y[i] = 0.0
            for k in range(A):
                y[i] += x[i, k]
        for i in range(A):
            z[i] = 0.0
            for k in range(A):
                z[i] += x[k, i]

    start = cross.schedule(A=64)
    assert in_one_pass(start) is start
    run = auto(start).run(device="cpu", seeds=1, time=False, ragged=False)
    assert run.correct


def test_updates_that_read_other_results_stay_in_their_order() -> None:
    @ex.program
    def round_about(x: ex.f32[A, B], y: ex.f32[B]):
        for j in range(B):
            y[j] = 1.0
        for i in range(A):
            for j in range(B):
                y[j] += x[i, j] * y[(j + 1) % B]

    start = round_about.schedule(A=5, B=7)
    assert fuse_reduction(start) is start or not fuse_reduction(start).judgement.refusals
    assert auto(start).run(device="cpu", seeds=1, time=False, ragged=False).correct


def test_a_kernel_that_is_bound_stays_as_it_is() -> None:
    start = own_nests.schedule(A=4, B=8, C=4)
    bound = start.bind("j", "block.x")
    assert in_one_pass(bound) is bound
    kernels: tuple[Kernel, ...] = in_one_pass(start).plan.kernels
    assert len(kernels) == 1
    assert in_one_pass(start) is not start


@ex.program
def backward(x: ex.f16[A, B], dy: ex.f16[A, B], w: ex.f16[B], mean: ex.f32[A], scale: ex.f32[A], dx: ex.f16[A, B],
             dw: ex.f32[B], db: ex.f32[B]):
    along = ex.local(ex.f32, A)
    across = ex.local(ex.f32, A)
    for i in range(A):
        along[i] = 0.0
        for k in range(B):
            along[i] += dy[i, k] * w[k]
    for i in range(A):
        across[i] = 0.0
        for k in range(B):
            across[i] += dy[i, k] * w[k] * (x[i, k] - mean[i]) * scale[i]
    for i in range(A):
        for k in range(B):
            dx[i, k] = scale[i] * (dy[i, k] * w[k] - (along[i] + (x[i, k] - mean[i]) * scale[i] * across[i]) / B)
    for k in range(B):
        dw[k] = 0.0
        db[k] = 0.0
    for i in range(A):
        for k in range(B):
            dw[k] += dy[i, k] * (x[i, k] - mean[i]) * scale[i]
            db[k] += dy[i, k]


def test_column_sums_ride_along_rows_that_are_written_as_nests_of_their_own() -> None:
    schedule = auto(backward.schedule(A=4096, B=768), "H200")
    assert len(schedule.plan.kernels) == 2, "rows with parts of the columns, and what joins them"
    loads = [line for line in str(schedule.cuda).splitlines() if "&dy[" in line or "&x[" in line]
    assert len(loads) == 2, loads
    small = auto(backward.schedule(A=300, B=40), "H200")
    assert len(small.plan.kernels) == 2
    assert small.run(device="cpu", seeds=2, time=False, ragged=False).correct
