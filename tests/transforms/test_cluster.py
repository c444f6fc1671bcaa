"""Blocks combined as a cluster, through distributed shared memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.errors import KernelFault, ResourceError
from explorer.ir.text import loops_text
from explorer.ir.tree import Kernel
from explorer.kernel.emit import emit
from explorer.poly.joins import check_joins
from explorer.poly.judge import judge
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from explorer.transforms.collect import Collect
from tests.oracle import check_plan
from tests.properties.equal import difference
from tests.run_plan import run_plan
from tests.transforms.multiblock import ROWS, TOTAL, spread, start

FITTING = ("total", "total, one thread", "rows", "peaks", "rows, two to a block", "columns", "columns, one row of threads")


@pytest.mark.parametrize("name", FITTING)
def test_one_click_makes_a_cluster_that_computes_the_same(name: str) -> None:
    s = spread(name).collect("y", "cluster")
    assert not s.obligations
    check_plan(s.plan)
    module = emit(s.plan)
    assert not [b for b in module.buffers if b.kind == "workspace"]
    assert module.launches[-1].cluster == s.plan.clusters[s.plan.kernels[-1].id] != (1, 1, 1)
    assert f"__cluster_dims__({', '.join(map(str, module.launches[-1].cluster))})" in module.text
    arrays = seeded_arrays(s.source, 3)
    assert not difference(s.source, arrays, run_plan(s.plan, arrays, 1))


def test_the_same_bits_in_every_order_and_in_both_builds() -> None:
    made = [spread(name).collect("y", "cluster") for name in FITTING]
    device, fast = CpuDevice(seeds=100), CpuDevice(checked=False, threads=2)
    modules = [emit(s.plan) for s in made]
    for s, built, quick in zip(made, device.build_many(modules), fast.build_many(modules), strict=True):
        arrays = seeded_arrays(s.source, 1)
        results = device.run_seeds(built, arrays)
        assert len({r["y"].tobytes() for r in results}) == 1
        assert fast.run(quick, arrays)["y"].tobytes() == results[0]["y"].tobytes()
        assert not difference(s.source, arrays, results[0])


def test_shared_memory_outlives_the_barrier_of_a_cluster() -> None:
    """A staged tile is read before and after the cluster's blocks have taken turns."""
    text = """@ex.program
def f(x: ex.f32[4, N], y: ex.f32[4], z: ex.f32[4, N]):
    for b in range(4):
        for k in range(N):
            y[0] += x[b, k]
        for j in range(N):
            z[b, j] = x[b, N - 1 - j]
"""
    from tests.properties.programs import define

    s = define(text, "tiles.py").schedule(N=16).bind("b", "block.x").stage("x", "b").bind("k", "thread.x").bind("j", "thread.x")
    s = s.collect("y", "shuffle").collect("y", "cluster")
    assert len(s.plan.kernels) == 1
    arrays = seeded_arrays(s.source, 1)
    for device in (CpuDevice(seeds=6), CpuDevice(checked=False)):
        assert not difference(s.source, arrays, device.run(device.build(emit(s.plan)), arrays))


def test_text(golden) -> None:
    s = spread("columns").collect("y", "cluster")
    text = emit(s.plan).text
    golden(loops_text(s.plan) + "\n\n" + text[text.index('extern "C"'):])


def test_clusters_of_a_larger_grid_meet_in_atomics() -> None:
    """64 blocks in 8 clusters: 8 atomics for an element and not 64."""
    s = start(TOTAL, N=250).split("k", 32).split("k.i", 4).bind("k", "block.y").bind("k.i", "block.x").bind("k.i.i", "thread.x")
    s = s.collect("y", "cluster", loops=("k.i",)).collect("y", "atomic", loops=("k",))
    assert s.plan.clusters[s.plan.kernels[-1].id] == (8, 1, 1)
    arrays = seeded_arrays(s.source, 1)
    device = CpuDevice(seeds=5)
    assert not difference(s.source, arrays, device.run(device.build(emit(s.plan)), arrays))


def test_a_block_without_work_comes_all_the_same() -> None:
    """The last block of each cluster has no column: its threads bring the identity."""
    s = start(ROWS, M=5, N=50).bind("i_2", "block.y").split("k", 16).bind("k", "block.x").bind("k.i", "thread.x")
    s = s.collect("y", "cluster")
    text = emit(s.plan).text
    assert "cluster_reduce<reduce_sum, 4>(block_reduce_first<reduce_sum, 16, 1, 1, true, false, false>(16 * k" in text
    arrays = seeded_arrays(s.source, 1)
    device = CpuDevice(seeds=5)
    assert not difference(s.source, arrays, device.run(device.build(emit(s.plan)), arrays))


def test_below_sm_90_it_is_refused_with_the_reason() -> None:
    plan = spread("rows").collect("y", "cluster").plan
    with pytest.raises(ResourceError, match=r"sm_80 has no clusters of 4 blocks, which rows\.2 needs") as caught:
        emit(plan, arch="sm_80")
    assert "begin with sm_90" in caught.value.why
    assert "__cluster_dims__" in emit(plan, arch="sm_90a").text


def test_too_many_blocks_for_a_cluster() -> None:
    verdict = Collect("y", "cluster").check(spread("total, many blocks").plan)
    assert not verdict
    assert "clusters of 63 blocks" in str(verdict)
    assert "the other by atomics" in str(verdict)


def test_a_cluster_grows_with_its_grid() -> None:
    """Bound anew with more blocks along the axis, it has too many: an open obligation, and no text."""
    s = spread("total").collect("y", "cluster")
    wide = s.plan.map_bodies(lambda body: body)
    leaf = next(x for x, above, _ in wide.leaves if "cluster" in dict(x.collect).values())
    loop = next(name for name, how in leaf.collect if how == "cluster")
    wide = wide.replace_node(loop, replace(wide.loops[loop], extent=40))
    assert "40 blocks" in judge(wide).obligations[0].what


def test_the_last_block_alone_is_no_cluster() -> None:
    s = spread("rows").collect("y", "cluster")
    name = s.plan.kernels[-1].id
    joined = replace(s.plan, kernels=tuple(replace(k, join="last_block") if k.id == name else k for k in s.plan.kernels))
    assert any("combined over a cluster" in f.what for f in check_joins(joined))
    assert isinstance(joined.kernels[-1], Kernel)


def test_other_elements_are_not_combined() -> None:
    """Blocks that update different elements: the obligation stays open, and the move is refused."""
    s = start(ROWS, M=4, N=32).bind("i_2", "block.x").bind("k", "block.y")
    verdict = Collect("y", "cluster", ("i_2",)).check(s.plan)
    assert not verdict
    forced = s.plan.map_leaves(lambda n: replace(n, collect=(("i_2", "cluster"), ("k", "cluster"))) if n.id == "S1" else n)
    assert judge(forced).obligations


def test_a_block_that_leaves_its_cluster_is_noticed() -> None:
    s = spread("rows").collect("y", "cluster")
    module = emit(s.plan)
    line = next(x for x in module.text.splitlines() if "cluster_reduce<reduce_sum, 4>(" in x)
    early = module.text.replace(line, f"  if (k == 3) return;\n{line}")
    with pytest.raises(KernelFault) as caught:
        CpuDevice().run(CpuDevice().build(replace(module, text=early)), seeded_arrays(s.source, 1))
    assert caught.value.kind == "grid-divergence"
