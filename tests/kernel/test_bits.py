"""Reductions of bits and of truth values over blocks: every way to join their parts, and the instructions of an atomic."""

from __future__ import annotations

import re

import numpy as np
import pytest

from explorer.ir.plan import Plan
from explorer.ir.scalar import BITWISE
from explorer.kernel.emit import emit
from explorer.poly.judge import judge
from explorer.run.cpu.device import CpuDevice
from explorer.run.nvrtc.compiler import compile_module
from tests.kernel.plan_run import follow
from tests.kernel.reductions import INTS, definition, expected, inputs
from tests.transforms.multiblock import TOTAL, start

M, N = 9, 70
CASES = [*((op, dtype) for op in BITWISE for dtype in INTS), ("xor", "bool"), ("and", "bool"), ("or", "bool")]
JOINS = ("kernel", "last_block", "grid", "cluster", "atomic")


def joined(op: str, dtype: str, how: str) -> Plan:
    """Threads by shuffles, and blocks in a way."""
    steps = [("split", "k", 35), ("bind", "k", "block.x"), ("bind", "k.i", "thread.x"), ("collect", "S1", "shuffle"),
             ("collect", "S1", how)]
    plan = follow(definition(op, dtype).at(M=M, N=N), steps)
    assert not judge(plan).refusals, judge(plan).refusals
    return plan


@pytest.mark.parametrize("how", JOINS)
def test_blocks_join_bits_as_numpy_does(how: str) -> None:
    device = CpuDevice(seeds=3)
    modules = [emit(joined(*case, how)) for case in CASES]
    for (op, dtype), built in zip(CASES, device.build_many(modules), strict=True):
        x = inputs(op, dtype, N)
        for got in device.run_seeds(built, {"x": x}):
            np.testing.assert_array_equal(got["y"], expected(op, dtype, x), err_msg=f"{op} of {dtype}, {how}")


@pytest.mark.parametrize(("arch", "how"), [("sm_75", "last_block"), ("sm_75", "grid"), ("sm_90", "cluster")])
def test_nvrtc_takes_every_join(arch: str, how: str) -> None:
    for case in CASES:
        assert compile_module(emit(joined(*case, how), arch=arch), arch).kernels, case


@pytest.mark.parametrize("op", [*BITWISE, "xor"])
def test_blocks_hand_parts_of_bits_over(op: str) -> None:
    begin = {"bitand": "2**32 - 1", "xor": "False"}.get(op, "0")
    symbol = {"bitand": "&=", "bitor": "|="}.get(op, "^=")
    text = TOTAL.replace("0.0", begin).replace("+=", symbol).replace("f32", "bool_" if op == "xor" else "u32")
    s = start(text, N=250).split("k", 16).bind("k", "block.x").bind("k.i", "thread.x").collect("y", "handoff")
    module, device = emit(s.plan, arch="sm_90"), CpuDevice(seeds=3)
    assert "handed_off<" in module.text
    assert compile_module(module, "sm_90").kernels
    x = np.random.default_rng(1).integers(0, 2**32, 250, np.uint32) | np.uint32(5 if op == "bitand" else 0)
    x = x % 3 == 0 if op == "xor" else x
    for got in device.run_seeds(device.build(module), {"x": x}):
        assert got["y"][0] == expected(op, "bool" if op == "xor" else "u32", x[None])[0]


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("op", BITWISE)
def test_an_atomic_is_one_instruction_where_there_is_one(op: str, dtype: str) -> None:
    ptx = compile_module(emit(joined(op, dtype, "atomic")), "sm_75").ptx
    assert ptx
    word = {"bitand": "and", "bitor": "or", "bitxor": "xor"}[op] + (".b64" if dtype.endswith("64") else ".b32")
    wide = dtype in ("i32", "u32", "i64", "u64")
    assert bool(re.search(rf"(atom|red)\.\S*{re.escape(word)}", ptx)) == wide
    assert (".cas." in ptx) == (not wide)


def test_text_is_what_a_person_would_write() -> None:
    text = emit(definition("bitxor", "u32").schedule(M=M, N=N).plan).text
    assert "y[i] ^= x[i * 70 + k];" in text
    assert "y[i] = y[i] & x[i * 70 + k];" in emit(definition("bitand", "u8").schedule(M=M, N=N).plan).text
    assert "y[i] = y[i] != x[i * 70 + k];" in emit(definition("xor", "bool").schedule(M=M, N=N).plan).text
