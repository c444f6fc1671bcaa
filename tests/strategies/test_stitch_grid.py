"""The scheme `grid`: kernels on both sides of an edge are phases of one cooperative launch, behind a barrier of its grid."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from math import prod

import pytest

import explorer as ex
from benchmarks.reduction_program import reduction
from explorer.errors import TransformError
from explorer.gpu.occupancy import check_launch, occupancy
from explorer.gpu.spec import gpu
from explorer.ir.plan import Plan, block_extents, grid_extents
from explorer.ir.tree import Loop, walk
from explorer.kernel.emit import emit
from explorer.run.nvrtc.compiler import compile_module
from explorer.strategies import edges, stitch, stitching
from explorer.strategies.reductions import Shape, reduce
from explorer.strategies.stitching.phases import one_launch, resident
from explorer.strategies.stitching.rates import GRID_US
from tests.strategies.stitched import program, run_all, written

H200 = gpu("H200")
M, N = ex.sizes("M N")


@ex.program
def column_means(x: ex.f32[M, N], w: ex.f32[N], y: ex.f32[M, N]):
    mean = ex.local(ex.f32, N)
    for k in range(N):
        total = ex.local(ex.f32)
        total = 0.0
        for i in range(M):
            total += x[i, k]
        mean[k] = total / M
    for i in range(M):
        for k in range(N):
            y[i, k] = (x[i, k] - mean[k]) * w[k]


@ex.program
def overall(x: ex.f32[M, N], y: ex.f32[M, N]):
    total = ex.local(ex.f32)
    mean = ex.local(ex.f32)
    total = 0.0
    for i in range(M):
        for k in range(N):
            total += x[i, k]
    mean = total / (M * N)
    for i in range(M):
        for k in range(N):
            y[i, k] = x[i, k] - mean


CASES = [(column_means, {"M": 37, "N": 21}, "mean->y"), (column_means, {"M": 24, "N": 24}, "mean->y"),
         (overall, {"M": 9, "N": 33}, "mean->y"), (overall, {"M": 64, "N": 96}, "total->mean"),
         (program("softmax"), {"M": 5, "N": 96}, "peak->total"), (program("softmax"), {"M": 5, "N": 96}, "total->y"),
         (program("batchnorm_relu"), {"B": 3, "C": 5, "P": 24}, "mean->y"),
         (program("batchnorm_relu"), {"B": 3, "C": 5, "P": 24}, "total->mean")]


def one(plan: Plan) -> tuple[str, ...]:
    """The phases of the launch that has several."""
    (found,) = [g for g in plan.launched if len(g) > 1]
    return tuple(k.id for k in found)


@pytest.mark.parametrize(("definition", "sizes", "edge"), CASES)
def test_the_consumer_is_a_phase_behind_a_barrier(definition: ex.Definition, sizes: dict[str, int], edge: str) -> None:
    found = stitching(definition.schedule(**sizes), {edge: "grid"})
    plan = found.schedule.plan
    assert found.chosen[edge] == "grid"
    assert all(k.join == "grid" for k in plan.kernels if k.id in one(plan)[1:])
    assert dict(found.terms)["barrier"] == pytest.approx(GRID_US * (len(one(plan)) - 1))
    assert len(plan.launched) < len(stitching(definition.schedule(**sizes), {edge: "cut"}).schedule.plan.launched)
    launch = next(x for x in emit(plan).launches if x.cooperative)
    assert len(re.findall(r"^ *grid_barrier\(", found.schedule.cuda, re.MULTILINE)) == len(one(plan)) - 1
    check_launch(H200, launch)
    run_all([found.schedule])


def test_the_whole_chain_is_one_launch() -> None:
    for definition, sizes in ((column_means, {"M": 37, "N": 21}), (overall, {"M": 9, "N": 33})):
        found = stitching(definition.schedule(**sizes), {"mean->y": "grid"})
        assert len(emit(found.schedule.plan).launches) == 1
        assert "behind a barrier of the grid" in str(found)
        assert found.barriers
    apart = stitching(overall.schedule(M=9, N=33), {"mean->y": "cut"})
    assert not apart.barriers
    assert dict(apart.terms)["barrier"] == 0


def test_parts_are_joined_behind_the_barrier() -> None:
    found = stitching(overall.schedule(M=64, N=96), {"total->mean": "grid"})
    made = found.schedule.plan
    assert made.kernels[1].join == "grid"
    read = {r.array for leaf, _, k in made.leaves if k is made.kernels[1] for r in made.statement_of[leaf.statement].reads}
    left = {made.statement_of[leaf.statement].target.array for leaf, _, k in made.leaves if k is made.kernels[0]}
    assert "total" not in left
    assert read & left
    said = stitching(overall.schedule(M=64, N=96), {"total->mean": "global", "mean->y": "grid"})
    assert said.chosen == {"total->mean": "global", "mean->y": "grid"}
    assert [len(g) for g in said.schedule.plan.launched] == [1, 2]
    run_all([said.schedule])


@pytest.mark.parametrize(("name", "sizes", "edge"), [
    ("softmax", {"M": 4096, "N": 4096}, "total->y"), ("layernorm", {"M": 65536, "N": 768}, "total->mean"),
    ("batchnorm_relu", {"B": 64, "C": 256, "P": 3136}, "mean->y"), ("softmax", {"M": 8, "N": 200000}, "peak->y")])
def test_all_blocks_are_resident_at_once(name: str, sizes: dict[str, int], edge: str) -> None:
    made = stitch(written(name, **sizes), {edge: "grid"})
    module = emit(made.plan)
    launch = next(x for x in module.launches if x.cooperative)
    phases = one(made.plan)
    assert prod(launch.grid) <= resident(made.plan, phases, H200)
    assert prod(launch.grid) >= H200.multiprocessors
    need = compile_module(module, "sm_90a").kernels[launch.kernel]
    check_launch(H200, launch, need.registers)  # by what the compiler says
    shared = launch.static_shared_bytes + launch.dynamic_shared_bytes
    assert occupancy(H200, prod(launch.block), need.registers, shared).blocks_per_sm >= 1
    walked = [x for k in made.plan.kernels if k.id in phases for x in walk(k.body) if isinstance(x, Loop) and x.id.endswith(".b")]
    assert walked
    assert all(x.is_block for x in walked)


def test_columns_go_to_blocks_that_rows_fit_too() -> None:
    """64 threads along x for a row and 64 along y for a column are no block together."""
    for sizes in ({"M": 16384, "N": 768}, {"M": 64, "N": 96}):
        made = stitch(program("layernorm_gradient").schedule(**sizes), {"mean->dw": "grid"})
        blocks = [block_extents(k) for k in made.plan.kernels if k.id in one(made.plan)]
        assert max(x for x, _, _ in blocks) > min(x for x, _, _ in blocks)
        assert max(y for _, y, _ in blocks) > 1
        check_launch(H200, next(x for x in emit(made.plan).launches if x.cooperative))
    run_all([made])


def test_elements_go_to_blocks_as_wide_as_those_of_the_other_phases() -> None:
    made = stitch(written("layernorm", M=16384, N=768), {"mean->y": "grid"})
    first, last = (k for k in made.plan.kernels if k.id in one(made.plan))
    assert block_extents(first) == block_extents(last)
    assert block_extents(first)[1] > 1
    assert prod(grid_extents(last)) == prod(grid_extents(first))


@ex.program
def exponentials(x: ex.f16[M, N], y: ex.f16[M, N]):
    """Softmax with the exponentials of a row in an array."""
    peak = ex.local(ex.f32, M)
    e = ex.local(ex.f32, M, N)
    total = ex.local(ex.f32, M)
    for i in range(M):
        peak[i] = -ex.inf
        for k in range(N):
            peak[i] = max(peak[i], x[i, k])
    for i in range(M):
        for k in range(N):
            e[i, k] = ex.exp(x[i, k] - peak[i])
    for i in range(M):
        total[i] = 0.0
        for k in range(N):
            total[i] += e[i, k]
    for i in range(M):
        for k in range(N):
            y[i, k] = e[i, k] / total[i]


def test_elements_keep_all_threads_where_rows_get_blocks_of_their_own() -> None:
    made = stitch(exponentials.schedule(M=8, N=65536), {"total->y": "grid"})
    rows, joined, elements = made.plan.kernels
    assert [k.join for k in (rows, joined, elements)] == ["", "grid", "grid"]
    assert grid_extents(joined)[0] == 8
    assert block_extents(elements) == block_extents(rows) == (256, 1, 1)


def test_rows_side_by_side_get_blocks_of_their_own_where_a_block_would_be_too_large() -> None:
    made = stitch(written("cross_entropy", M=5, N=20000), {"peak->y": "grid"})
    first, last = (k for k in made.plan.kernels if k.id in one(made.plan))
    assert block_extents(first)[0] > 32
    assert block_extents(last)[1] == 1
    assert grid_extents(last)[1] > 1 or grid_extents(last)[0] >= 5
    apart = stitch(written("cross_entropy", M=5, N=20000), {"peak->y": "global"})
    assert prod(block_extents(apart.plan.kernels[-1])[1:]) > 1
    run_all([made])


def test_steps_are_ordinary_moves() -> None:
    made = stitch(written("layernorm", M=3000, N=768), {"mean->y": "grid"})
    again = written("layernorm", M=3000, N=768)
    for step in made.steps:
        again = again.apply(step)
    assert again.plan == made.plan
    assert made.steps[-1].name == "join"
    assert program("layernorm").load(made.to_json()).plan == made.plan


def test_values_that_other_edges_keep_together_have_no_barrier_between() -> None:
    with pytest.raises(TransformError, match=r"(total->y|peak->total) keeps peak and y in one kernel"):
        stitch(written("softmax"), {"peak->y": "grid", "peak->total": "register", "total->y": "register"})
    with pytest.raises(TransformError, match="lies in one place") as caught:
        stitch(written("softmax"), {"peak->total": "shared", "peak->y": "register"})
    assert "peak" in str(caught.value)


def test_phases_with_a_launch_between_them_are_refused() -> None:
    with pytest.raises(TransformError) as caught:
        stitch(written("layernorm"), {"mean->spread": "cut", "mean->y": "grid"})
    text = str(caught.value)
    assert "mean->y cannot be grid while mean->spread is cut" in text
    assert re.search(r"mean and y do not stand next to each other: (spread|spread, scale), a launch of its own, is between", text)
    with pytest.raises(TransformError, match="is a phase of the launch before it, or a launch of its own"):
        stitch(written("softmax"), {"peak->total": "register", "peak->y": "cut", "total->y": "grid"})
    found = stitching(written("softmax"), {"peak->y": "cut", "total->y": "grid"})  # a launch before the barrier
    assert found.groups == (("peak",), ("total",), ("y",))
    assert [len(g) for g in found.schedule.plan.launched] == [1, 2]


def test_a_launch_that_fits_no_multiprocessor_is_refused() -> None:
    spread = stitch(written("layernorm", M=64, N=768), {"mean->y": "cut"})
    tiny = gpu("H200").__class__(**{**H200.__dict__, "registers_per_sm": 256})
    with pytest.raises(TransformError, match=r"not one block of .* fits a multiprocessor"):
        one_launch(spread, [k.id for k in spread.plan.kernels], tiny)


def test_it_is_an_option_with_a_price_but_no_default() -> None:
    for e in edges(written("softmax")):
        option = {o.scheme: o for o in e.options}
        assert option["grid"].verdict
        assert dict(option["grid"].terms)["barrier"] >= GRID_US
        assert option["grid"].saved_launches >= 1
        assert option["grid"].saved_bytes == option["cut"].saved_bytes == 0
    for name, sizes in (("softmax", {"M": 8, "N": 200000}), ("layernorm", {"M": 16384, "N": 768})):
        assert "grid" not in stitching(written(name, **sizes)).chosen.values()


@pytest.mark.parametrize("room", [1, 3])
@pytest.mark.parametrize(("name", "sizes"), [
    ("batchnorm_relu", {"B": 3, "C": 7, "P": 40}), ("layernorm", {"M": 300, "N": 64}), ("softmax", {"M": 2, "N": 9001}),
    ("two_branches", {"M": 70, "N": 96})])
def test_blocks_walk_over_what_does_not_fit_at_once(name: str, sizes: dict[str, int], room: int,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["explorer.strategies.stitching.phases"], "resident", lambda *_: room)
    made, source = [], written(name, **sizes)
    for e in stitching(source).edges:
        with suppress(TransformError):
            found = stitch(source, {e.id: "grid"})
            assert prod(next(x for x in emit(found.plan).launches if x.cooperative).grid) <= room
            made.append(found)
    assert made
    run_all(made)


def test_phases_ask_for_no_registers_of_their_own() -> None:
    """Column sums alone ask for the registers that their loads need; the blocks of a grid's barrier all have to be resident."""
    sums = reduction((6400, 384), (0,), "f32", "sum")
    assert any(k.resident for k in reduce(sums, shape=Shape(8, 32, 4, 16, 11)).plan.kernels)
    made = reduce(sums, shape=Shape(8, 32, 4, 16, 11))
    made = one_launch(made, tuple(k.id for k in made.plan.kernels), H200)
    assert not any(k.resident for k in made.plan.kernels)
    assert one(made.plan)
