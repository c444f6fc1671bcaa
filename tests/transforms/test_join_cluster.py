"""Parts joined in a cluster: in the shared memory of one of its blocks, or behind the cluster's barrier in global memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.errors import IllegalSchedule, KernelFault, ResourceError
from explorer.ir.text import loops_text
from explorer.ir.tree import Kernel
from explorer.kernel.cluster_layout import MOST_BYTES, slots_of
from explorer.kernel.emit import emit
from explorer.kernel.module import CudaModule
from explorer.poly.joins import check_joins
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from explorer.run.nvrtc.compiler import compile_module
from explorer.schedule import Schedule
from tests.oracle import check_plan
from tests.properties.equal import difference
from tests.run_plan import run_plan
from tests.transforms.multiblock import COLUMNS, TOTAL, apart, spread, start
from tests.transforms.test_join import shifted

FITTING = ("total", "total, one thread", "rows", "peaks", "rows, two to a block", "columns", "columns, one row of threads")


def of_cluster(name: str) -> Schedule:
    s, kernel = apart(spread(name))
    return s.join(kernel, "cluster")


def wide(columns: int) -> Schedule:
    """Two parts of so many columns, each block with all of them."""
    s = start(COLUMNS, M=columns, N=4).split("j_2", 256).bind("j_2.i", "thread.x").split("k", 2).bind("k", "block.y")
    s, kernel = apart(s)
    return s.join(kernel, "cluster")


@pytest.mark.parametrize("name", FITTING)
def test_one_launch_that_computes_the_same(name: str) -> None:
    s = of_cluster(name)
    assert not s.obligations
    check_plan(s.plan)
    module = emit(s.plan)
    launch, = module.launches
    assert launch.cluster == s.plan.clusters[s.plan.kernels[-1].id] != (1, 1, 1)
    assert not [b for b in module.buffers if b.kind == "workspace"]  # parts never leave the multiprocessors
    arrays = seeded_arrays(s.source, 3)
    for seed in range(3):
        assert not difference(s.source, arrays, run_plan(s.plan, arrays, seed)), f"order {seed}"


def test_the_same_bits_in_every_order_and_in_both_builds() -> None:
    made = [of_cluster(name) for name in FITTING]
    checked, fast = CpuDevice(seeds=20), CpuDevice(checked=False, threads=2)
    texts = [emit(s.plan) for s in made]
    for s, one, other in zip(made, checked.build_many(texts), fast.build_many(texts), strict=True):
        arrays = seeded_arrays(s.source, 1)
        results = [*checked.run_seeds(one, arrays), fast.run(other, arrays)]
        assert {r["y"].tobytes() for r in results} == {results[0]["y"].tobytes()}
        assert not difference(s.source, arrays, results[0])
        assert len(fast.time(other, arrays, repeats=3)) == 3


@pytest.mark.parametrize("name", ["total", "columns"])
def test_text(name: str, golden) -> None:
    s = of_cluster(name)
    text = emit(s.plan).text
    golden(loops_text(s.plan) + "\n\n" + text[text.index('extern "C"'):])


@pytest.mark.parametrize("name", FITTING)
def test_nvrtc_takes_it_and_keeps_the_loads_before_the_wait(name: str) -> None:
    compiled = compile_module(emit(of_cluster(name).plan, arch="sm_90a"), "sm_90a")
    assert all(k.stack_bytes == 0 for k in compiled.kernels.values())
    assert compiled.ptx.count("barrier.cluster.arrive.release") == 1
    if name == "columns":  # the blocks of a cluster come together while the values are on their way
        assert compiled.ptx.index("ld.global.nc") < compiled.ptx.index("barrier.cluster.wait;")


def broken(module: CudaModule, old: str, new: str) -> CudaModule:
    assert module.text.count(old) == 1
    return replace(module, text=module.text.replace(old, new))


@pytest.mark.parametrize("name", ["total", "columns"])
def test_without_the_barrier_the_parts_are_not_there(name: str) -> None:
    s = of_cluster(name)
    module = broken(emit(s.plan), "    simt_cluster_meet();\n", "")
    with pytest.raises(KernelFault, match="before anything was written"):
        CpuDevice().run(CpuDevice().build(module), seeded_arrays(s.source, 1))


def test_a_place_outside_of_the_slots_is_seen() -> None:
    s = of_cluster("columns")
    module = emit(s.plan)
    size = slots_of(s.plan, s.plan.launched[-1])["array", "y_p_2"].size
    module = broken(module, f"y_p_2_slots[{size}]", f"y_p_2_slots[{size // 2}]")
    with pytest.raises(KernelFault, match="y_p_2_slots"):
        CpuDevice().run(CpuDevice().build(module), seeded_arrays(s.source, 1))


# -- where parts lie -----------------------------------------------------------------------------------------------


def test_a_cluster_keeps_its_own_elements_alone() -> None:
    """7 parts of 16 of the 40 columns, in the order of the parts, whichever loops come to them."""
    s = of_cluster("columns")
    (slots,) = slots_of(s.plan, s.plan.launched[-1]).values()
    (_, wrote), (_, read) = sorted(slots.at.items(), key=lambda item: item[0][0] not in slots.writers)
    assert wrote.evaluate({"k": 3, "j_2.i": 5}) == 3 * 16 + 5
    assert read.evaluate({"k.c": 1, "k.c.t": 2, "j_2.i.c": 5}) == (4 * 1 + 2) * 16 + 5
    assert slots.size == 8 * 16  # the loops that read come to one part more, and do nothing there


@pytest.mark.parametrize("columns", [MOST_BYTES // 8, MOST_BYTES // 8 + 256])
def test_many_parts_stay_in_global_memory_behind_the_same_barrier(columns: int) -> None:
    s = wide(columns)
    module = emit(s.plan)
    assert bool([b for b in module.buffers if b.kind == "workspace"]) == (8 * columns > MOST_BYTES)
    arrays, device = seeded_arrays(s.source, 2), CpuDevice(seeds=3)
    for results in device.run_seeds(device.build(module), arrays):
        assert not difference(s.source, arrays, results)
    if 8 * columns > MOST_BYTES:
        with pytest.raises(KernelFault, match="race"):
            CpuDevice().run(CpuDevice().build(broken(module, "    simt_cluster_meet();\n", "")), arrays)


def test_parts_that_are_added_to_stay_in_global_memory() -> None:
    """Started and then updated: a block would have to read what lies in another's shared memory."""
    s = spread("rows").collect("y", "shuffle").collect("y", "kernel")
    s = s.join(s.plan.kernels[-1].id, "cluster")
    assert [b for b in emit(s.plan).buffers if b.kind == "workspace"]
    arrays, device = seeded_arrays(s.source, 2), CpuDevice(seeds=3)
    for results in device.run_seeds(device.build(emit(s.plan)), arrays):
        assert not difference(s.source, arrays, results)


def test_doubles_have_no_mark_to_fit_beside() -> None:
    s = start(TOTAL.replace("f32", "f64"), N=250).split("k", 16).bind("k", "block.x").bind("k.i", "thread.x")
    s = s.collect("y", "last_block")
    s = s.join(s.plan.kernels[-1].id, "launch").join(s.plan.kernels[-1].id, "cluster")
    assert "cluster_parts<double>" in emit(s.plan).text
    arrays = seeded_arrays(s.source, 2)
    assert not difference(s.source, arrays, CpuDevice().run(CpuDevice().build(emit(s.plan)), arrays))


def test_a_cluster_of_one_block_goes_on_by_itself() -> None:
    s = start(COLUMNS, M=40, N=5).split("j", 16).bind("j", "block.x").split("j_2", 16).bind("j_2", "block.x")
    s = s.join(s.plan.kernels[-1].id, "cluster")
    assert s.plan.kernels[-1].join == "cluster"
    assert "cluster" not in emit(s.plan).text
    arrays, device = seeded_arrays(s.source, 2), CpuDevice(seeds=3)
    for results in device.run_seeds(device.build(emit(s.plan)), arrays):
        assert not difference(s.source, arrays, results)


# -- refusals ------------------------------------------------------------------------------------------------------


def test_more_blocks_than_a_cluster_has() -> None:
    s, kernel = apart(spread("total, many blocks"))
    with pytest.raises(IllegalSchedule, match="63 blocks") as refused:
        s.join(kernel, "cluster")
    assert "last_block" in str(refused.value)


def test_another_phase_of_the_launch() -> None:
    plan = shifted("own", "thread.x", how="cluster")
    assert not check_joins(plan)
    first, second = plan.kernels
    finding = check_joins(replace(plan, kernels=(first, second, Kernel("c", (), "grid"))))[0]
    assert "c is a phase of the same launch" in finding.what


def test_two_kinds_of_clusters() -> None:
    plan = shifted("own", "thread.x", how="cluster")
    both = plan.map_leaves(lambda leaf: replace(leaf, collect=(("i", "cluster"),) if leaf.id == "S0" else ()))
    assert "S0 is combined over a cluster" in check_joins(both)[0].what


def test_gpus_without_clusters() -> None:
    with pytest.raises(ResourceError, match="sm_80 has no clusters"):
        emit(of_cluster("rows").plan, arch="sm_80")
