"""Machine code of products by `auto`: the tensor instructions that the schedule says, as many as it says, and no spills."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import explorer as ex
from benchmarks import product_programs as programs
from benchmarks.product_cases import CONVS_LAST
from benchmarks.sass import disassembler, whole
from explorer.ir.dtype import DType
from explorer.ir.instructions import Instruction, Wgmma
from explorer.run.nvrtc.compiler import compile_module
from explorer.schedule import Schedule
from explorer.strategies.auto import auto
from explorer.strategies.pipelines.facts import steppings
from tests.strategies.products import product

GROUP_STEP_BYTES = 32
"""Depth of one ``wgmma`` (PTX ISA): a statement of the text takes several."""
MOST_UNROLLED = 16
"""Steps that ptxas writes one behind the other, at most."""
FOUND = re.compile(r"\b([HIQD]G?MMA\.\w+)")

PRODUCTS: dict[str, tuple[Callable[[], Schedule], str]] = {
    "f16, H200": (lambda: programs.product_nn.schedule(M=1024, N=1024, K=512), "H200"),
    "f16, A100": (lambda: programs.product_nn.schedule(M=1024, N=1024, K=512), "A100"),
    "f16, T4": (lambda: programs.product_nn.schedule(M=1024, N=1024, K=512), "T4"),
    "bf16, A100": (lambda: product(ex.bf16, ex.f32, "n", "t").schedule(M=512, N=512, K=256), "A100"),
    "i8, H200": (lambda: product(ex.i8, ex.i32, "n", "t", ex.i32).schedule(M=512, N=512, K=256), "H200"),
    "i8, T4": (lambda: product(ex.i8, ex.i32, "n", "t", ex.i32).schedule(M=512, N=512, K=256), "T4"),
    "f8, H200": (lambda: product(ex.f8e4m3, ex.f32, "n", "t", ex.f32).schedule(M=512, N=512, K=256), "H200"),
    "f8, RTX 4090": (lambda: product(ex.f8e4m3, ex.f32, "n", "t", ex.f32).schedule(M=512, N=512, K=256), "RTX 4090"),
    "f64, A100": (lambda: product(ex.f64, ex.f64, "n", "t").schedule(M=512, N=512, K=256), "A100"),
    "bias and GELU, H200": (lambda: programs.bias_gelu.schedule(M=1024, N=1024, K=512), "H200"),
    "residual and a norm, A100": (lambda: programs.residual_rmsnorm.schedule(M=1024, N=1024, K=512), "A100"),
    "convolution, H200": (lambda: programs.conv_nhwc.schedule(**CONVS_LAST[1].sizes), "H200"),
    "attention, H200": (lambda: programs.attention.schedule(B=1, H=4, L=512, D=64), "H200"),
    "attention, A100": (lambda: programs.attention.schedule(B=1, H=4, L=512, D=64), "A100"),
}


def kind(dtype: DType) -> str:
    """What SASS calls products of a type."""
    return "D" if dtype.name == "f64" else "I" if dtype.kind == "int" else "Q" if dtype.name.startswith("f8") else "H"


def named(row: Instruction) -> tuple[str, int]:
    """An instruction as SASS has it, and how many of it are one of the schedule."""
    if isinstance(row, Wgmma):
        step = GROUP_STEP_BYTES // row.a.bytes
        return f"{kind(row.a)}GMMA.64x{row.n}x{step}", row.k // step
    return f"{kind(row.a)}MMA.{row.m}{row.n}{row.k}", 1


def wanted(s: Schedule) -> Counter[str]:
    """Tensor instructions of a thread in a step of each loop that steps."""
    found = Counter[str]()
    for kernel in s.plan.kernels:
        for step in steppings(s.plan, kernel):
            for use, row in step.instructions:
                name, each = named(row)
                found[name] += use.turns // (row.m * row.n * row.k) * each
    return found


@pytest.mark.parametrize("name", PRODUCTS)
def test_tensor_instructions_are_those_of_the_schedule(name: str, tmp_path: Path) -> None:
    make, gpu = PRODUCTS[name]
    s, arch = auto(make(), gpu=gpu), ex.gpu(gpu).arch
    file = tmp_path / "kernel.cubin"
    file.write_bytes(whole(compile_module(s.module(arch), arch).cubin))
    text = subprocess.run([disassembler(), "-c", file], stdout=subprocess.PIPE, text=True, check=True).stdout
    found, asked = Counter(FOUND.findall(text)), wanted(s)
    assert asked
    assert found.keys() == asked.keys()
    for instruction, count in asked.items():
        assert found[instruction] % count == 0, (instruction, found[instruction], count)
        assert 1 <= found[instruction] // count <= MOST_UNROLLED
    assert not re.search(r"\b(STL|LDL)\b", text), "spilled"
