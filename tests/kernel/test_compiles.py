"""NVRTC takes the emitted text, for the oldest and a current GPU, and keeps register arrays in registers."""

from __future__ import annotations

import pytest

from explorer.kernel.emit import emit
from explorer.run.nvrtc.compiler import compile_module
from explorer.workloads import names
from tests.kernel.test_emit import GOLDENS, plan_of
from tests.properties import test_copies as copies
from tests.properties.programs import define


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


@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_partial_vectors_compile(arch: str) -> None:
    """Copies whose last vector is partial: asynchronous, plain, and from a copy with zeros beyond the edge; a constant's type."""
    ahead = define(copies.ONE_ROW.replace("{dtype}", "f16"), "partial.py").schedule(N=19)
    small = define(copies.ONE_ROW.replace("{dtype}", "i8"), "partial.py").schedule(N=19)
    again = define(copies.ONE_ROW.replace("{dtype}", "f32"), "partial.py").schedule(N=19)
    constant = define(copies.CONSTANT.replace("{dtype}", "bf16"), "partial.py").schedule(N=5)
    last = "first_elements<" if arch == "sm_90" else "load_within<"
    for s, used in ((ahead.split("t", 16).stage("x", "t", vector=8).pipeline("t", 2), last),
                    (small.split("t", 16).stage("x", "t", vector=4), "load_within<"),
                    (again.split("t", 16).stage("x", "f", vector=4).stage("x", "x_s.r", vector=4), "load_first<"),
                    (constant.inline("t"), "__float2bfloat16")):
        module = emit(s.plan, arch=arch)
        assert used in module.text
        assert compile_module(module, arch).kernels
