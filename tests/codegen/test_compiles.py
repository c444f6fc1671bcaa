"""NVRTC takes the emitted text, for the oldest and a current GPU, and keeps register arrays in registers."""

from __future__ import annotations

import pytest

from explorer.codegen.emit import emit
from explorer.run.nvrtc import compile_module
from explorer.workloads import names
from tests.codegen.test_emit import GOLDENS, plan_of


@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
@pytest.mark.parametrize("name", GOLDENS)
def test_schedules_compile(name: str, arch: str) -> None:
    compiled = compile_module(emit(GOLDENS[name](), arch=arch), arch)
    assert compiled.kernels


@pytest.mark.parametrize("name", names())
def test_workloads_compile_as_written(name: str) -> None:
    assert compile_module(emit(plan_of(name, [])), "sm_90").kernels


def test_no_register_array_is_spilled() -> None:
    kernel = compile_module(emit(GOLDENS["matmul_pipelined"]()), "sm_90").kernels["matmul"]
    assert kernel.stack_bytes == 0
    assert kernel.registers >= 16
