"""Every row of the table of operations, found by itself: the CPU device, the float64 reference and NumPy agree on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from explorer.ir import operations
from explorer.ir.dtype import DTYPES, DType
from explorer.ir.operation import COMPUTED, Operation
from explorer.ir.operations import LESS_EXACT, OPERATIONS
from explorer.ir.plan import initial
from explorer.kernel.emit import emit
from explorer.kernel.reference.error_bound import SAFETY
from explorer.run.cpu.device import CpuDevice
from explorer.run.device import Device
from explorer.run.nvrtc.compiler import compile_module
from explorer.run.verify.reference import compiled
from tests.ir.rows import arguments, bound_of, inputs, meaning, program, takes

PAIRS = [(row.name, d.name) for row in OPERATIONS.values() for d in COMPUTED if takes(row, d)]
TYPES = sorted({d for _, d in PAIRS})


Results = tuple[Mapping[str, np.ndarray], ...]


@cache
def computed(kind: str) -> Results:
    return results([OPERATIONS[op] for op, d in PAIRS if d == kind], DTYPES[kind])


def results(rows: list[Operation], dtype: DType, device: Device | None = None) -> Results:
    """The inputs, what a device (the CPU) computes, what the reference does, and its bounds."""
    made = program(rows, dtype)
    given = inputs(made)
    device = device or CpuDevice(checked=False, threads=1)
    got = device.run(device.build(emit(initial(made))), given)
    expected = compiled(made, given)
    return given, got, expected.values, expected.bounds


def wrong(row: Operation, dtype: DType, found: Results) -> str:
    """Where device, reference and NumPy disagree by more than the row allows, as a sentence; empty if nowhere."""
    given, got, expected, bounds = found
    name = f"y_{row.name}"
    if got[name].dtype.kind != "f":
        for what, value in (("the device", got[name]), ("the reference", expected[name].astype(got[name].dtype))):
            if (bad := np.flatnonzero(value != meaning(row, dtype, given))).size:
                return f"{what} computes {value[bad[0]]}" + where(row, dtype, given, int(bad[0]))
        return ""
    exact = meaning(row, dtype, given, exact=True)
    with np.errstate(all="ignore"):
        limit = float(np.finfo(dtype.numpy).max)
        beyond = np.abs(exact) > limit * (1 - 2.0**-20)
        apart = np.abs(expected[name] - exact)
        for what, value, allowed in (("the reference", expected[name], 2 * row.roundings * 2.0**-53 * np.abs(exact) + 5e-324),
                                     ("the device", got[name].astype(np.float64), SAFETY * bounds[name])):
            same = (np.isnan(value) & np.isnan(exact)) | (value == exact) | (beyond & np.isinf(value) & (value * exact > 0))
            near = np.abs(value - exact) <= allowed + (0 if what == "the reference" else apart)
            near |= np.isposinf(allowed)
            if (bad := np.flatnonzero(~(same | near))).size:
                return f"{what} computes {value[bad[0]]!r}, not {exact[bad[0]]!r}" + where(row, dtype, given, int(bad[0]))
            zero = (value == 0) & (exact == 0) & (np.signbit(value) != np.signbit(exact)) & (row.ulp == 0.0)
            if row.name in PICKS:
                zero &= ~either_zero([given[name] for name in arguments(row, dtype)])
            if (bad := np.flatnonzero(zero)).size:
                return f"{what} gives zero another sign" + where(row, dtype, given, int(bad[0]))
    return ""


PICKS = ("min", "max", "clamp")
"""Rows that pick one of their operands by its size."""


def either_zero(operands: Sequence[np.ndarray]) -> np.ndarray:
    """Where zeros of both signs are among the operands: the processor picks one, a GPU the other."""
    signs = [(np.signbit(v), v == 0) for v in operands]
    return np.logical_or.reduce([negative & zero for negative, zero in signs]) & np.logical_or.reduce(
        [~negative & zero for negative, zero in signs])


def where(row: Operation, dtype: DType, given: Mapping[str, np.ndarray], at: int) -> str:
    return f" for {row.name}({', '.join(str(given[name][at]) for name in arguments(row, dtype))}) in {dtype}"


@pytest.mark.parametrize(("op", "kind"), PAIRS)
def test_device_reference_and_numpy_agree(op: str, kind: str) -> None:
    assert not (said := wrong(OPERATIONS[op], DTYPES[kind], computed(kind))), said


def lost(row: Operation, dtype: DType) -> str:
    """Where the rule for the error bound promises less than what happens, or far more, as a sentence; empty if nowhere."""
    draw = np.random.default_rng(3)
    count, floats = 300, dtype.kind == "float"
    fixed = [DTYPES[name] if name else dtype for name in row.fixed]
    values = [draw.uniform(0.2, 3.0, count) if d.kind == "float" else draw.integers(0, 50, count) for d in fixed]
    values = [v.astype(d.numpy) for v, d in zip(values, fixed, strict=True)]
    for size in (1e-6, 0.05) if floats else (1.0,):
        errors = [np.full(count, size if d == dtype else 0.0) for d in fixed]
        bound = bound_of(row, dtype, values, errors)
        with np.errstate(all="ignore"):
            own = np.asarray(row.numpy(*values)).astype(np.float64)
            moved = np.zeros(count)
            for signs in product((-1, 0, 1), repeat=row.arity):
                there = [(v + s * e).astype(v.dtype) for v, s, e in zip(values, signs, errors, strict=True)]
                apart = np.abs(np.asarray(row.numpy(*there)).astype(np.float64) - own)
                moved = np.fmax(moved, np.where(np.isnan(apart), 0.0, apart))
        if (bad := np.flatnonzero(~(SAFETY * bound * (1 + 1e-9) + 1e-14 * np.abs(own) >= moved))).size:
            return f"{row.name}({', '.join(str(v[bad[0]]) for v in values)}) moves by {moved[bad[0]]}, not {bound[bad[0]]}"
        smooth = floats and row.ulp > 0.0 and row.result != "bool" and size < 1e-3 and row.name not in LESS_EXACT
        if smooth and (bad := np.flatnonzero(bound > 1.2 * moved + 1e-6 * size)).size:
            return f"{row.name}({', '.join(str(v[bad[0]]) for v in values)}) moves by {moved[bad[0]]} alone, not {bound[bad[0]]}"
    return ""


@pytest.mark.parametrize(("op", "kind"), [(op, d) for op, d in PAIRS if d in ("f64", "i64", "bool")
                                          and not op.endswith("_index")])  # a key's bound is of its value, not of its index
def test_the_bound_follows_the_derivative(op: str, kind: str) -> None:
    assert not (said := lost(OPERATIONS[op], DTYPES[kind])), said


@pytest.mark.parametrize(("op", "rule"), [
    ("sin", "reference_wave(sin({v0}), {e0})"), ("exp", "{e0}"), ("log", "reference_scaled({v0}, {e0})"), ("floor", "{e0}"),
    ("tanh", "reference_scaled(1.0 - {t}, {e0})"), ("mul", "{e0} + {e1}"), ("erfc", "INFINITY"), ("fma", "{e0} + {e1} + {e2}"),
    ("fused_exp", "reference_scaled({t}, {e0})"),
    ("clamp", "0.0"), ("fmod", "{e0} + {e1}"), ("lshift", "{e0}"), ("sqrt", "0.25 * {e0} / {t}"), ("where", "{e0}"),
])
def test_a_wrong_derivative_is_noticed(op: str, rule: str) -> None:
    kind = "i64" if op == "lshift" else "f64"
    assert lost(replace(OPERATIONS[op], bound=rule), DTYPES[kind])


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_nvrtc_compiles_every_row(kind: str, arch: str) -> None:
    made = program([OPERATIONS[op] for op, d in PAIRS if d == kind], DTYPES[kind])
    assert compile_module(emit(initial(made), arch=arch), arch).kernels


@pytest.mark.parametrize(("op", "kind", "change"), [
    ("sin", "f32", {"cuda": {"f32": "cosf({0})", "f64": "cos({0})"}}),
    ("round", "f32", {"cuda": {"f32": "roundf({0})", "f64": "round({0})"}}),
    ("max", "f32", {"cuda": {"float": "fmaxf({0}, {1})", "*": "max({0}, {1})"}}),
    ("clamp", "f32", {"cuda": {"float": "max_nan(min_nan({0}, {2}), {1})", "int": "max(min({0}, {2}), {1})"}}),
    ("fmod", "f64", {"cuda": {"f32": "remainderf({0}, {1})", "f64": "remainder({0}, {1})"}}),
    ("lshift", "i32", {"cuda": {"int": "({0} << ({1} & 31))"}}),
    ("rshift", "i64", {"c": {"int": "({0} >> ({1} & 63))"}}),
    ("floordiv", "i64", {"cuda": {"i32": "({0} / {1})", "i64": "(({1}) == 0 || ({1}) == -1 ? 0 : ({0}) / ({1}))"}}),
    ("erfc", "f32", {"c": {"float": "(1.0 - erf({0}))"}}),
    ("expm1", "f32", {"cuda": {"f32": "(expf({0}) - 1.0f)", "f64": "expm1({0})"}}),
    ("fma", "f64", {"cuda": {"f32": "fmaf({0}, {1}, {2})", "f64": "(({0}) * ({1}) + 1.0000001 * ({2}))"}}),
    ("sin", "f32", {"ulp": 0.0}),
    ("pow", "f32", {"ulp": 0.0}),
    ("fused_exp", "f32", {"cuda": {"f32": "__expf(fmaf({0}, {1}, {2}))", "f64": "exp(({0}) * ({1}) - ({2}))"}}),
    ("fused_exp", "f32", {"bound": "reference_scaled({t}, 1.4e-7 * fabs({v0} * {v1} - {v2}))"}),
    ("sigmoid", "f32", {"bound": "reference_scaled({t} * (1.0 - {t}), {e0})"}),
])
def test_a_row_with_a_fault_is_noticed(op: str, kind: str, change: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    row = replace(OPERATIONS[op], **change)  # type: ignore[arg-type]
    monkeypatch.setitem(operations.OPERATIONS, op, row)
    assert wrong(row, DTYPES[kind], results([row], DTYPES[kind]))
