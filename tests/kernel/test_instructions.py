"""Tensor instructions: layouts as the PTX ISA prints them, and device functions that multiply matrices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from explorer.ir.coding import SMALL
from explorer.ir.dtype import f32_to_bf16
from explorer.ir.expr import var
from explorer.ir.instructions import INSTRUCTIONS, Mma
from explorer.ir.layout import LANES, Layout, fragment
from explorer.kernel.device.mma import mma_name, mma_text
from explorer.kernel.module import CudaModule
from explorer.run.cpu.device import CpuDevice
from explorer.run.device import Device
from explorer.run.nvrtc.compiler import compile_module
from tests.run.cpu.cpu_kernels import module

ROWS = tuple(INSTRUCTIONS.values())


def multiplication(row: Mma) -> CudaModule:
    """One warp that adds a product of fragments to an accumulator, all given lane by lane."""
    given = {"a": (row.a, row.left), "b": (row.b, row.right), "c": (row.c, row.accumulator)}
    kinds = {"f16": "fp16", "bf16": "bf16", "f8e4m3": "fp8", "f8e5m2": "fp8"}
    headers = [f"#include <cuda_{kind}.h>" for kind in dict.fromkeys(kinds[d] for d in (str(row.a), str(row.c)) if d in kinds)]
    loads = [f"  alignas(16) {d.cuda} {n}[{x.registers}];\n  for (int r = 0; r < {x.registers}; ++r) "
             f"{n}[r] = {n}_in[threadIdx.x * {x.registers} + r];" for n, (d, x) in given.items()]
    parameters = ", ".join([*(f"const {d.cuda}* {n}_in" for n, (d, _) in given.items()), f"{row.c.cuda}* d"])
    count = row.accumulator.registers
    text = "\n".join([*headers, mma_text(row), f'extern "C" __global__ void kernel({parameters}) {{', *loads,
                      f"  {mma_name(row)}(c, a, b);", f"  for (int r = 0; r < {count}; ++r) d[threadIdx.x * {count} + r] = c[r];",
                      "}", ""])
    buffers = {f"{n}_in": (str(d), (LANES, x.registers), "in") for n, (d, x) in given.items()}
    return module(text, {**buffers, "d": (str(row.c), (LANES, count), "out")})


def held(matrix: np.ndarray, layout: Layout) -> np.ndarray:
    """A matrix as the lanes hold it."""
    lane, register = np.meshgrid(np.arange(LANES), np.arange(layout.registers), indexing="ij")
    at = {"lane": lane, "register": register}
    return matrix[layout.row.evaluate(at), layout.column.evaluate(at)]


def stored(values: np.ndarray, name: str) -> np.ndarray:
    if name in SMALL:
        return SMALL[name].encode(values.astype(np.float64))
    return f32_to_bf16(values.astype(np.float32)) if name == "bf16" else values.astype({"f16": np.float16}.get(name, np.dtype(
        {"f32": "f4", "f64": "f8", "i8": "i1", "u8": "u1", "i32": "i4"}.get(name, "f4"))))


def product(row: Mma, device: Device) -> tuple[np.ndarray, np.ndarray]:
    """What the device computes, by rows and columns, and what is right."""
    draw = np.random.default_rng(row.k)
    least = 0 if row.a.unsigned else -7
    a, b, c = (draw.integers(low, 8, shape) for low, shape in (
        (least, (row.m, row.k)), (0 if row.b.unsigned else -7, (row.k, row.n)), (-7, (row.m, row.n))))
    made = multiplication(row)
    given = {"a_in": stored(held(a, row.left), str(row.a)), "b_in": stored(held(b, row.right), str(row.b)),
             "c_in": stored(held(c, row.accumulator), str(row.c))}
    found = device.run(device.build(made), given)["d"]
    return found.astype(np.float64), held(a @ b + c, row.accumulator).astype(np.float64)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_each_element_has_one_place(row: Mma) -> None:
    for layout, shape in ((row.left, (row.m, row.k)), (row.right, (row.k, row.n)), (row.accumulator, (row.m, row.n))):
        assert (layout.rows, layout.columns) == shape
        assert layout.is_bijective


def test_a_wrong_layout_is_noticed() -> None:
    good = fragment(16, 16, 2)
    assert not replace(good, lane=var("row") * 2).is_bijective
    assert not replace(good, row=good.row + 1).is_bijective
    assert not replace(good, register=good.register % 4).is_bijective


def test_layouts_are_those_of_the_manual() -> None:
    """PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type", word by word."""
    a, b, c = fragment(16, 16, 2), fragment(8, 16, 2).transposed, fragment(16, 8, 2)
    for lane in range(LANES):
        group, thread = lane >> 2, lane % 4
        for i in range(8):
            at = {"lane": lane, "register": i}
            row = group if 0 <= i < 2 or 4 <= i < 6 else group + 8
            assert (a.row.evaluate(at), a.column.evaluate(at)) == (row, thread * 2 + (i & 1) + (8 if i >= 4 else 0))
        for i in range(4):
            at = {"lane": lane, "register": i}
            assert (b.row.evaluate(at), b.column.evaluate(at)) == (thread * 2 + (i & 1) + (8 if i >= 2 else 0), group)
            assert (c.row.evaluate(at), c.column.evaluate(at)) == (group if i < 2 else group + 8, thread * 2 + (i & 1))


def test_layouts_of_bytes_are_those_of_the_manual() -> None:
    """PTX ISA, "Matrix Fragments for mma.m16n8k32" with ``.s8``."""
    a, b = fragment(16, 32, 4), fragment(8, 32, 4).transposed
    for lane in range(LANES):
        group, thread = lane >> 2, lane % 4
        for i in range(16):
            at = {"lane": lane, "register": i}
            row = group if 0 <= i < 4 or 8 <= i < 12 else group + 8
            assert (a.row.evaluate(at), a.column.evaluate(at)) == (row, thread * 4 + (i & 3) + (16 if i >= 8 else 0))
        for i in range(8):
            at = {"lane": lane, "register": i}
            assert (b.row.evaluate(at), b.column.evaluate(at)) == (thread * 4 + (i & 3) + (16 if i >= 4 else 0), group)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest.mark.parametrize("checked", [False, True])
def test_the_cpu_device_multiplies(row: Mma, checked: bool) -> None:
    found, expected = product(row, CpuDevice(checked=checked, threads=1))
    assert (found == expected).all()


@pytest.mark.parametrize("wrong", ["left", "right", "accumulator"])
def test_the_cpu_device_notices_an_operand_in_other_places(wrong: str) -> None:
    row, device = INSTRUCTIONS["m16n8k16_f16_f16_f32"], CpuDevice(checked=False, threads=1)
    a, b = (np.arange(row.m * row.k).reshape(row.m, row.k) % 7, np.arange(row.k * row.n).reshape(row.k, row.n) % 5)
    held_a, held_b = held(a, row.left), held(b, row.right)
    held_c = held(np.arange(row.m * row.n).reshape(row.m, row.n), row.accumulator)
    moved = {"left": held_a, "right": held_b, "accumulator": held_c}[wrong]
    moved[:, [0, 2]] = moved[:, [2, 0]]
    given = {"a_in": held_a.astype(np.float16), "b_in": held_b.astype(np.float16), "c_in": held_c.astype(np.float32)}
    found = device.run(device.build(multiplication(row)), given)["d"]
    assert (found != held(a @ b + np.arange(row.m * row.n).reshape(row.m, row.n), row.accumulator)).any()


def test_tf32_ignores_low_bits() -> None:
    row = INSTRUCTIONS["m16n8k8_tf32_tf32_f32"]
    a, b = np.zeros((row.m, row.k), np.float32), np.ones((row.k, row.n), np.float32)
    a[3, 2] = np.float32(1 + 2.0**-10 + 2.0**-11)
    device = CpuDevice(checked=False, threads=1)
    given = {"a_in": held(a, row.left), "b_in": held(b, row.right), "c_in": np.zeros((LANES, 4), np.float32)}
    found = device.run(device.build(multiplication(row)), given)["d"]
    assert set(found.ravel().tolist()) == {0.0, 1 + 2.0**-10}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_nvrtc_compiles_it_for_its_architectures(row: Mma) -> None:
    made = multiplication(row)
    for arch in sorted({row.arch, 90, 120}):
        compiled = compile_module(made, f"sm_{arch}")
        assert not compiled.kernels["kernel"].spill_store_bytes
