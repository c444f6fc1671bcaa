"""NVRTC takes what joins the blocks of a launch, on every architecture that has it, and orders what threads exchange."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.kernel.emit import emit
from explorer.kernel.module import CudaModule
from explorer.run.nvrtc.compiler import compile_module
from explorer.strategies import auto
from explorer.workloads import get
from tests.transforms.multiblock import spread


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a"])
@pytest.mark.parametrize("how", ["last_block", "handoff", "grid"])
@pytest.mark.parametrize("name", ["total", "columns"])
def test_joined_launches_compile(name: str, how: str, arch: str) -> None:
    s = spread(name).collect("y", how)
    compiled = compile_module(emit(s.plan, arch=arch), arch)
    (found,) = compiled.kernels.values()
    assert found.stack_bytes == 0
    loads = [line for line in compiled.ptx.splitlines() if "ld.global.nc" in line]
    stores = [line for line in compiled.ptx.splitlines() if "st.global" in line]
    assert loads
    assert stores
    fences, atomics = "fence" in compiled.ptx or "membar" in compiled.ptx, "atom." in compiled.ptx
    assert (fences, atomics, "ld.volatile" in compiled.ptx) == (how != "handoff", how != "handoff", how != "last_block")


def test_parts_are_not_read_through_the_read_only_cache() -> None:
    """Only ``x``, the kernel's first parameter, may be: what other blocks wrote in this launch would be stale there."""
    compiled = compile_module(emit(spread("columns").collect("y", "last_block").plan), "sm_90a")
    loads = [line for line in compiled.ptx.splitlines() if "ld.global" in line]
    assert len([line for line in loads if ".nc" in line]) < len(loads)


@pytest.mark.parametrize("name", ["total", "columns", "peaks"])
def test_clusters_compile(name: str) -> None:
    compiled = compile_module(emit(spread(name).collect("y", "cluster").plan, arch="sm_90a"), "sm_90a")
    assert "barrier.cluster.arrive" in compiled.ptx
    assert "mapa" in compiled.ptx
    assert all(k.stack_bytes == 0 for k in compiled.kernels.values())


def test_what_another_thread_wrote_is_loaded_behind_the_barrier() -> None:
    """A restricted pointer would let the compiler load the mean before the barrier, in the threads that do not write it."""
    work = get("batchnorm_statistics")
    made = emit(auto(work.definition.schedule(**work.tiny)).plan, arch="sm_90a")

    def loads_early(module: CudaModule) -> bool:
        before, behind = compile_module(module, "sm_90a").ptx.split("bar.sync", 1)
        return "ld.global.f32" in before and "ld.global.f32" not in behind

    assert "float* mean" in made.text
    assert not loads_early(made)
    assert loads_early(replace(made, text=made.text.replace("float* mean", "float* __restrict__ mean")))
