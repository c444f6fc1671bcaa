"""NVRTC takes what joins the blocks of a launch, on every architecture that has it."""

from __future__ import annotations

import pytest

from explorer.codegen.emit import emit
from explorer.run.nvrtc import compile_module
from tests.transforms.multiblock import spread


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a"])
@pytest.mark.parametrize("how", ["ticket", "grid"])
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
    assert "fence" in compiled.ptx or "membar" in compiled.ptx


def test_parts_are_not_read_through_the_read_only_cache() -> None:
    """Only ``x``, the kernel's first parameter, may be: what other blocks wrote in this launch would be stale there."""
    compiled = compile_module(emit(spread("columns").collect("y", "ticket").plan), "sm_90a")
    loads = [line for line in compiled.ptx.splitlines() if "ld.global" in line]
    assert len([line for line in loads if ".nc" in line]) < len(loads)


@pytest.mark.parametrize("name", ["total", "columns", "peaks"])
def test_clusters_compile(name: str) -> None:
    compiled = compile_module(emit(spread(name).collect("y", "cluster").plan, arch="sm_90a"), "sm_90a")
    assert "barrier.cluster.arrive" in compiled.ptx
    assert "mapa" in compiled.ptx
    assert all(k.stack_bytes == 0 for k in compiled.kernels.values())
