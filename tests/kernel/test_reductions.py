"""Reductions are NumPy's: every operation and type, combined in every way, with NaN, infinities, zeros, ties and no elements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from explorer.errors import ProgramError
from explorer.ir.dtype import DTYPES
from explorer.ir.interpret import interpret
from explorer.ir.operations import OPERATIONS
from explorer.ir.scalar import REDUCTIONS
from explorer.kernel.emit import emit
from explorer.run.cpu.device import CpuDevice
from explorer.run.export import exported
from explorer.run.nvrtc.compiler import compile_module
from explorer.run.verify.reference import reference
from tests.frontend.support import body, define
from tests.kernel.host_run import host_run
from tests.kernel.reductions import CASES, FLOATS, KINDS, WAYS, definition, expected, inputs, plan, result_type, wide

M, N = 9, 70
ROUNDED = {"f16": 2e-2, "bf16": 1e-1, "f32": 1e-6, "f64": 1e-14}
"""What N roundings of a mean may add up to; everything else is exact."""


def agrees(got: np.ndarray, op: str, dtype: str, what: str) -> None:
    out = result_type(op, dtype)
    rounding = ROUNDED.get(out, 0.0) if op == "mean" else 0.0
    want = expected(op, dtype, inputs(op, dtype, N))
    np.testing.assert_allclose(wide(got, out), want, rtol=rounding, atol=rounding, err_msg=what)


@pytest.mark.parametrize("way", WAYS)
def test_every_operation_and_type_is_numpys(way: str) -> None:
    device = CpuDevice(seeds=3)
    programs = [definition(*case).at(M=M, N=N) for case in CASES]
    modules = [emit(plan(p, way)) for p in programs]
    for (op, dtype), built in zip(CASES, device.build_many(modules), strict=True):
        for got in device.run_seeds(built, {"x": inputs(op, dtype, N)}):
            agrees(got["y"], op, dtype, f"{op} of {dtype}, {way}")


def test_an_optimising_compiler_keeps_nan() -> None:
    cases = [(op, dtype, way) for op in ("max", "min", "argmax", "argmin") for dtype in FLOATS
             for way in ("auto", "atomic, blocks", "as written")]  # fmt: skip
    device = CpuDevice(checked=False, threads=2)
    built = device.build_many([emit(plan(definition(op, dtype).at(M=M, N=N), way)) for op, dtype, way in cases])
    for (op, dtype, way), one in zip(cases, built, strict=True):
        agrees(device.run(one, {"x": inputs(op, dtype, N)})["y"], op, dtype, f"{op} of {dtype}, {way}")


OTHER_AXES = {
    "columns": "for j in range(N):\n    y[j] = {start}\n    for k in range(M):\n        y[j] = {op}(y[j], x[k, j])",
    "all": "y[0] = {start}\nfor i in range(M):\n    for k in range(N):\n        y[0] = {op}(y[0], x[i, k])",
    "places in columns": "for j in range(N):\n    y[j] = ex.arg{op}(x[k, j] for k in range(M))",
    "place of all": "key = ex.local(ex.i64)\nkey = {first}\nfor i in range(M):\n    for k in range(N):\n"
                    "        key = {op}(key, ex.arg{op}_key(x[i, k], i * N + k))\ny[0] = ex.arg{op}_index(key)",
}  # fmt: skip


@pytest.mark.parametrize("way", ["default", "auto"])
@pytest.mark.parametrize("form", OTHER_AXES)
def test_columns_and_whole_matrices_keep_nan(form: str, way: str) -> None:
    """Vectors of results and several blocks for one result, which rows do not need."""
    out, shape = ("i32" if "place" in form else "f32"), ("N" if "columns" in form else "1")
    device = CpuDevice(seeds=2)
    for op, start, first in (("max", "-ex.inf", "-2**63"), ("min", "ex.inf", "2**63 - 1")):
        text = OTHER_AXES[form].format(op=op, start=start, first=first)
        program = body(text, f"x: ex.f32[M, N], y: ex.{out}[{shape}]").at(M=300, N=64)
        x = np.random.default_rng(4).standard_normal((300, 64)).astype(np.float32)
        x[:, 3], x[:, 9] = -0.0, 0.0
        x[:, 4], x[:, 5] = np.inf, -np.inf
        built = device.build(emit(plan(program, way)))
        for hole in ((), (slice(7, 300, 50), slice(20, 40))):
            if hole:
                x[hole] = np.nan
            function = getattr(np, ("arg" if "place" in form else "") + op)
            want = function(x, axis=0) if "columns" in form else [function(x)]
            for got in device.run_seeds(built, {"x": x}):
                np.testing.assert_array_equal(got["y"], want, err_msg=f"{op}, {form}")


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_interpreter_and_float64_reference_agree(op: str, dtype: str) -> None:
    program = definition(op, dtype).at(M=M, N=N)
    arrays = {"x": inputs(op, dtype, N)}
    agrees(interpret(program, arrays)["y"], op, dtype, "interpreter")
    found = reference(program, arrays)
    np.testing.assert_allclose(found.values["y"], expected(op, dtype, arrays["x"]), rtol=1e-14, atol=1e-14)
    if op not in ("mean", "sum", "squares", "prod"):
        np.testing.assert_array_equal(found.bounds["y"][:1], 0.0, err_msg="nothing is rounded")


@pytest.mark.parametrize(("arch", "way"), [("sm_75", "atomic, blocks"), ("sm_90", "shuffle")])
def test_nvrtc_takes_every_operation_and_type(arch: str, way: str) -> None:
    for op, dtype in CASES:
        assert compile_module(emit(plan(definition(op, dtype).at(M=M, N=N), way), arch=arch), arch).kernels, (op, dtype)


def test_maximum_is_one_instruction_that_keeps_nan() -> None:
    module = emit(plan(definition("max", "f32").at(M=M, N=N), "shuffle"))
    assert "max.NaN.f32" in compile_module(module, "sm_90").ptx
    assert "max.NaN.f32" not in compile_module(module, "sm_75").ptx


# -- nothing to reduce ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [{"M": 5, "N": 0}, {"M": 0, "N": 5}, {"M": 0, "N": 0}], ids=str)
def test_no_elements_give_the_identity_and_no_rows_give_nothing(sizes: dict[str, int]) -> None:
    cases = [(op, dtype, way) for op, dtypes in KINDS.items() if op in REDUCTIONS for dtype in dtypes[-2:] for way in WAYS]
    device = CpuDevice(seeds=2)
    modules = [emit(plan(definition(op, dtype).at(**sizes), way)) for op, dtype, way in cases]
    for (op, dtype, way), module, built in zip(cases, modules, device.build_many(modules), strict=True):
        assert all(min(*launch.grid, *launch.block) > 0 for launch in module.launches), f"{op} of {dtype}, {way}"
        kind = DTYPES[dtype]
        got = device.run(built, {"x": np.zeros((sizes["M"], sizes["N"]), kind.numpy)})["y"]
        want = np.full(sizes["M"], REDUCTIONS[op].identity(kind), kind.numpy)
        np.testing.assert_array_equal(got, want, err_msg=f"{op} of {dtype}, {way}")


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_the_place_of_no_element_is_refused(dtype: str) -> None:
    with pytest.raises(ProgramError) as caught:
        definition("argmax", dtype).at(M=5, N=0)
    assert caught.value.what == "argmax over an empty range: the loop k in range(N) has no elements with M=5, N=0"
    assert "y[i] = ex.argmax(x[i, k] for k in range(N))" in caught.value.where
    assert "^^^^^^^^" in caught.value.where
    assert caught.value.line == 4
    assert definition("argmax", dtype).at(M=0, N=0).parameters[1].shape == (0,), "no row asks for a place"


def test_keys_without_elements_say_so() -> None:
    text = "key = ex.local(ex.i64)\nkey = {}\nfor k in range(N):\n    key = {}(key, ex.arg{}_key(x[k], k))\n" \
           "y[0] = ex.arg{}_index(key)"  # fmt: skip
    for op, start in (("max", "-2**63"), ("min", "2**63 - 1")):
        program = body(text.format(start, op, op, op), "x: ex.f32[N], y: ex.i32[1]").at(N=0)
        assert interpret(program, {"x": np.zeros(0, np.float32)})["y"][0] == -1
        device = CpuDevice()
        assert device.run(device.build(emit(plan(program, "default"))), {"x": np.zeros(0, np.float32)})["y"][0] == -1


# -- keys -----------------------------------------------------------------------------------------------------------


def special(dtype: str, count: int = 2000) -> np.ndarray:
    r = np.random.default_rng(7)
    if dtype == "i32":
        return np.concatenate([[-(2**31), 2**31 - 1, 0, -1], r.integers(-(2**31), 2**31, count)]).astype(np.int32)
    bits = r.integers(0, 2**32, count, dtype=np.uint32).view(np.float32)
    few = np.array([np.inf, -np.inf, 0.0, -0.0, np.nan, -np.nan, 1.0, -1.0, 1e-45, -1e-45], np.float32)
    return np.concatenate([few, bits])


@pytest.mark.parametrize("dtype", ["f32", "i32"])
@pytest.mark.parametrize("op", ["argmax", "argmin"])
def test_keys_order_as_numpy_chooses(op: str, dtype: str) -> None:
    """Of any two elements, in either order, the key of NumPy's choice wins; and all three implementations make equal keys."""
    x = special(dtype)
    at = np.arange(len(x)) % 1000
    with np.errstate(invalid="ignore"):
        key = OPERATIONS[f"{op}_key"].numpy(x, at)
    assert (OPERATIONS[f"{op}_index"].numpy(key) == at).all()
    better = np.maximum if op == "argmax" else np.minimum
    r = np.random.default_rng(1)
    for a, b in zip(r.integers(0, len(x), 3000), r.integers(0, len(x), 3000), strict=True):
        if at[a] < at[b]:
            chosen = at[(a, b)[int(getattr(np, op)(x[[a, b]]))]]
            for pair in ((a, b), (b, a)):
                assert OPERATIONS[f"{op}_index"].numpy(better(key[pair[0]], key[pair[1]])) == chosen, x[[a, b]]
    program = define(f"@ex.program\ndef f(x: ex.{dtype}[{len(x)}], y: ex.i64[{len(x)}]):\n    for i in range({len(x)}):\n"
                     f"        y[i] = ex.{op}_key(x[i], i % 1000)\n").at()  # fmt: skip
    device = CpuDevice(checked=False)
    np.testing.assert_array_equal(device.run(device.build(emit(plan(program, "default"))), {"x": x})["y"], key)
    np.testing.assert_array_equal(reference(program, {"x": x}).values["y"], key)
    np.testing.assert_array_equal(interpret(program, {"x": x})["y"], key)


def test_the_place_of_a_computed_value_is_checked_where_rounding_leaves_no_choice() -> None:
    text = "for i in range(M):\n    v = ex.local(ex.f32, N)\n    for k in range(N):\n" \
           "        v[k] = x[i, k] * x[i, k] + 1.0 / (k + 3)\n    y[i] = ex.argmax(v[k] for k in range(N))"  # fmt: skip
    program = body(text, "x: ex.f32[M, N], y: ex.i32[M]").at(M=2, N=5)
    x = np.array([[0, 3, 1, 0, 0], [0, 0, 0, 0, 0]], np.float32)
    x[1, 3] = np.sqrt(np.float32(1 / 3 - 1 / 6))  # as large as x[1, 0], but for a rounding
    found = reference(program, {"x": x})
    assert found.values["y"][0] == 1
    assert found.bounds["y"][0] == 0.0
    assert found.values["y"][1] in (0, 3)
    assert found.bounds["y"][1] == np.inf


# -- several at once ------------------------------------------------------------------------------------------------

SEVERAL = {
    "extremes and mean": """
        for i in range(M):
            lo[i] = ex.inf
            hi[i] = -ex.inf
            mid[i] = 0.0
            for k in range(N):
                lo[i] = min(lo[i], x[i, k])
                hi[i] = max(hi[i], x[i, k])
                mid[i] += x[i, k] / N
        """,
    "mean and variance": """
        for i in range(M):
            total = ex.local(ex.f32)
            squares = ex.local(ex.f32)
            total = 0.0
            squares = 0.0
            lo[i] = ex.inf
            for k in range(N):
                total += x[i, k]
                squares += x[i, k] * x[i, k]
                lo[i] = min(lo[i], x[i, k])
            mid[i] = total / N
            hi[i] = squares / N - (total / N) * (total / N)
        """,
}
NUMPY = {
    "extremes and mean": lambda x: (x.min(1), x.max(1), x.mean(1)),
    "mean and variance": lambda x: (x.min(1), x.var(1), x.mean(1)),
}


@pytest.mark.parametrize("way", ["as written", "default", "auto"])
@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_several_reductions_of_one_row_share_a_kernel(name: str, way: str, dtype: str) -> None:
    signature = f"x: ex.{dtype}[M, N], lo: ex.{dtype}[M], hi: ex.{dtype}[M], mid: ex.{dtype}[M]"
    program = body(SEVERAL[name], signature).at(M=37, N=300)
    made = plan(program, way)
    assert len(made.kernels) == 1
    x = np.random.default_rng(0).standard_normal((37, 300)).astype(DTYPES[dtype].numpy)
    device = CpuDevice(seeds=3)
    built = device.build(emit(made))
    for got in device.run_seeds(built, {"x": x}):
        for array, want in zip(("lo", "hi", "mid"), NUMPY[name](x.astype(np.float64)), strict=True):
            close = 300 * max(DTYPES[dtype].digits, DTYPES["f32"].digits)
            np.testing.assert_allclose(got[array].astype(np.float64), want, rtol=0, atol=close, err_msg=array)


# -- the exported file ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("op", "dtype"), [("argmax", "f32"), ("argmin", "f16"), ("argmin", "f64"), ("max", "bf16"),
                                           ("and", "bool"), ("prod", "i32"), ("bitand", "u8"), ("bitor", "i64"),
                                           ("bitxor", "u64"), ("xor", "bool")])  # fmt: skip
@pytest.mark.parametrize("sizes", [{"M": 5, "N": 33}, {"M": 5, "N": 0}, {"M": 0, "N": 4}], ids=str)
def test_exported_files_check_themselves(op: str, dtype: str, sizes: dict[str, int], tmp_path: Path) -> None:
    if op in ("argmax", "argmin") and sizes == {"M": 5, "N": 0}:
        sizes = {"M": 5, "N": 1}
    schedule = definition(op, dtype).schedule(**sizes)
    answer = host_run(exported(schedule), tmp_path)
    assert answer.returncode == 0, answer.stdout
    assert f"y: {sizes['M']} of {sizes['M']} cells checked, 0 wrong" in answer.stdout
