"""The cases of `benchmarks/product_cases.py`: their programs against NumPy, their arithmetic and bytes against counts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from math import erf, isqrt, prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import product_programs
from benchmarks.product_cases import (
    LEAST,
    MOST,
    Attention,
    Case,
    Conv,
    Epilogue,
    Product,
    Reduced,
    Transposed,
    Triangle,
    Weights,
    drawn_products,
    suites,
)
from benchmarks.tables import summary, table
from explorer.frontend.definition import Definition
from explorer.ir.interpret import interpret
from explorer.ir.program import Statement
from explorer.ir.scalar import Call, Read
from explorer.strategies.auto import auto

ROOT = Path(__file__).resolve().parent.parent
SUITES = suites(30, 0)
CASES = [case for cases in SUITES.values() for case in cases]
TINY = {str(case.tiny[1:]): case.tiny for case in reversed(CASES)}
"""One tiny case for every program, stride, padding and size of the filter."""
TINIES = [pytest.param(case, id=f"{case.program}-{case.name}") for case in TINY.values()]

Arrays = Mapping[str, np.ndarray]


def program(case: Case) -> Any:
    return getattr(product_programs, case.program)


def filled(case: Case, seed: int) -> dict[str, np.ndarray]:
    """Inputs, normal."""
    rng = np.random.default_rng(seed)
    arrays = program(case).at(**case.sizes).arrays
    return {a.name: rng.standard_normal(a.shape).astype(a.dtype.numpy) for a in arrays if a.role == "in"}


def wanted(case: Case, given: Arrays) -> np.ndarray:
    """The result in float64, by formulas that share nothing with the loops."""
    arrays = {name: value.astype(np.float64) for name, value in given.items()}
    if isinstance(case, Product):
        a, b = (np.swapaxes(arrays[x], -1, -2) if flip == "t" else arrays[x] for x, flip in zip("ab", case.order, strict=True))
        return a @ b
    if isinstance(case, Epilogue):
        return epilogue(case, arrays)
    if isinstance(case, Reduced):
        a = arrays["a"]
        return a @ a.T if case.program == "gram" else np.sum((a @ arrays["b"]) ** 2, -1)
    if isinstance(case, Triangle):
        half = np.tril if case.program == "triangle_lower" else np.triu
        return arrays["a"] @ half(arrays["b"]) if case.program == "triangle_right" else half(arrays["a"]) @ arrays["b"]
    if isinstance(case, Transposed):
        return transposed(case, arrays)
    if isinstance(case, Weights):
        return weights(case, arrays)
    return conv(case, arrays) if isinstance(case, Conv) else attention(case, arrays)


def results(case: Case, given: Arrays) -> tuple[np.ndarray, ...]:
    """All of them: sums of a product's rows stand behind the product, where it is stored."""
    if case.program == "stored_squares":
        return given["a"].astype(np.float64) @ given["b"].astype(np.float64), wanted(case, given)
    return (wanted(case, given),)


def epilogue(case: Epilogue, arrays: Arrays) -> np.ndarray:
    h = arrays["a"] @ arrays["b"]
    if case.program == "residual_rmsnorm":
        h = h + arrays["r"]
        return h / np.sqrt(np.mean(h * h, -1, keepdims=True) + 1e-5) * arrays["w"]
    h = h + arrays["bias"]
    if case.program == "bias_residual":
        return h + arrays["r"]
    if case.program == "bias_gelu_tanh":
        return h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3))) / 2
    return np.maximum(h, 0) if case.program == "bias_relu" else h * (1 + np.vectorize(erf)(h / np.sqrt(2))) / 2


def conv(case: Conv, arrays: Arrays) -> np.ndarray:
    """All windows of the padded input, every stride-th of them."""
    x, f = arrays["x"], arrays["f"]
    if case.last:
        x = x.transpose(0, 3, 1, 2)
        f = f.transpose(2, 0, 1)[:, None] if case.depthwise else f.transpose(0, 3, 1, 2)
    elif case.depthwise:
        f = f[:, None]
    padded = np.pad(x, ((0, 0), (0, 0), (case.padding,) * 2, (case.padding,) * 2))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (case.rows, case.columns), axis=(2, 3))
    windows = windows[:, :, :: case.stride, :: case.stride]
    windows = windows.reshape(case.batch, case.groups, -1, *windows.shape[2:])
    y = np.einsum("ngdhwrs,gedrs->ngehw", windows, f.reshape(case.groups, -1, *f.shape[1:]))
    y = np.maximum(y.reshape(case.batch, case.filters, *case.out) + arrays["bias"][:, None, None], 0)
    return y.transpose(0, 2, 3, 1) if case.last else y


def transposed(case: Transposed, arrays: Arrays) -> np.ndarray:
    """The convolution of the input with zeros between and around its elements, by the filter turned round."""
    x, f = arrays["x"], arrays["f"]
    x, f = (x.transpose(0, 3, 1, 2), f.transpose(3, 2, 0, 1)) if case.last else (x, f)
    apart = np.zeros((*x.shape[:2], *((n - 1) * case.stride + 1 for n in x.shape[2:])))
    apart[:, :, :: case.stride, :: case.stride] = x
    around, behind = case.reach - 1 - case.padding, case.reach - 1 - case.padding + case.beyond
    padded = np.pad(apart, ((0, 0), (0, 0), (around, behind), (around, behind)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (case.reach, case.reach), axis=(2, 3))
    y = np.einsum("nchwrs,ckrs->nkhw", windows, f[:, :, ::-1, ::-1])
    return y.transpose(0, 2, 3, 1) if case.last else y


def weights(case: Weights, arrays: Arrays) -> np.ndarray:
    """Each filter element of every window, times the gradient, summed up."""
    x, g = (arrays[n].transpose(0, 3, 1, 2) if case.last else arrays[n] for n in "xg")
    around = case.reach // 2
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (around, around), (around, around))),
                                                       x.shape[2:], axis=(2, 3))
    y = np.einsum("nkhw,ncrshw->kcrs", g, windows)
    return y.transpose(2, 3, 0, 1) if case.last else y


def attention(case: Attention, arrays: Arrays) -> np.ndarray:
    scores = np.einsum("bhid,bhjd->bhij", arrays["q"], arrays["k"]) / np.sqrt(case.width)
    weights = np.exp(scores) * (np.tri(case.length) if case.causal else 1)
    return np.einsum("bhij,bhjd->bhid", weights / weights.sum(-1, keepdims=True), arrays["v"])


def test_the_suites_have_their_cases() -> None:
    counts = {name: len(cases) for name, cases in SUITES.items()}
    assert counts == {"matmul": 18, "bmm": 6, "orders": 14, "f32": 7, "few_rows": 6, "reduced": 8, "triangles": 5, "conv": 11,
                      "conv_nhwc": 11, "conv_grouped": 4, "conv_transposed": 12, "conv_weights": 10, "epilogue": 12,
                      "gelu_tanh": 3, "attention": 12,
                      "random_products": 30}
    for cases in SUITES.values():
        assert len({case.name for case in cases}) == len(cases)
    assert len({*SUITES["bmm"]} & {*SUITES["matmul"]}) == 3
    assert {case.program for case in CASES} == {n for n, v in vars(product_programs).items() if isinstance(v, Definition)}


def test_tilings_of_threads_have_names_of_their_own() -> None:
    """`sass.py` compares by name: two of one name stop it."""
    code = "import tensor_schedules as t; print(*map(t.named, t.THREADS), sep='\\n')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT / "benchmarks", capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    names = done.stdout.splitlines()
    assert len({*names}) == len(names) == 8


def test_random_products_are_the_same_again_and_of_every_kind() -> None:
    cases = drawn_products(30, 0)
    assert cases == drawn_products(30, 0) != drawn_products(30, 1)
    assert {case.order for case in cases} == {"nn", "nt", "tn", "tt"}
    assert all(LEAST <= case.m * case.n * case.k <= MOST for case in cases)
    extents = [n for case in cases for n in case.sizes.values()]
    assert sum(n % 8 == 0 for n in extents) > 20
    assert sum(all(n % d for d in range(2, isqrt(n) + 1)) for n in extents) > 20


@pytest.mark.parametrize("suite", SUITES)
def test_every_case_is_a_program_of_its_bytes(suite: str) -> None:
    for case in SUITES[suite]:
        arrays = program(case).schedule(**case.sizes).plan.program.arrays
        assert case.nbytes == sum(prod(a.shape) * a.dtype.bytes for a in arrays if a.role in ("in", "out")), case.name


def on_padding(case: Case) -> int:
    """Products that count as a convolution's, and that the loops leave out."""
    if isinstance(case, Transposed):
        places = [h * case.stride + r - case.padding for h in range(case.height) for r in range(case.reach)]
        return case.flops // 2 - case.batch * case.filters * case.channels * sum(0 <= at < case.out for at in places) ** 2
    if isinstance(case, Weights):
        inside = sum(0 <= h + r - case.reach // 2 < case.height for h in range(case.height) for r in range(case.reach)) ** 2
        return case.flops // 2 - case.batch * case.filters * case.channels * inside
    if not isinstance(case, Conv):
        return 0
    inside = prod(sum(0 <= p * case.stride + r - case.padding < size for p in range(out) for r in range(reach))
                  for out, reach, size in zip(case.out, (case.rows, case.columns), (case.height, case.width), strict=True))
    return case.flops // 2 - case.batch * case.filters * (case.channels // case.groups) * inside


@pytest.mark.parametrize("case", TINIES)
def test_loops_agree_with_numpy_and_have_its_operations(case: Case) -> None:
    given, products = filled(case, 1), 0

    def watch(statement: Statement, *_: Any) -> None:
        nonlocal products
        value = statement.value
        products += isinstance(value, Call) and value.op == "mul" and value.args == (Read(0), Read(1))

    outputs = interpret(program(case).at(**case.sizes), given, exact=True, rounded=False, watch=watch).values()
    for got, right in zip(outputs, results(case, given), strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-9, atol=1e-12)
    assert products == case.flops // 2 - on_padding(case)


@pytest.mark.parametrize("case", TINIES)
def test_auto_is_right_on_the_cpu(case: Case) -> None:
    given = filled(case, 2)
    run = auto(program(case).schedule(**case.sizes), "H200").run(given, device="cpu")
    for got, right in zip(run.outputs.values(), results(case, given), strict=True):
        assert np.abs(got - right).max() <= 2e-3 * np.abs(right).max()


def test_known_counts() -> None:
    flops = {case.name: case.flops / 1e9 for case in CASES}
    assert flops["L-mm-2048"] == 2 * 2.048**3
    assert flops["r50-3x3-56"] == flops["r50-3x3-56-nhwc"] == 7.398752256
    assert flops["r50-7x7-224"] == 7.552892928
    assert flops["mbv2-dw-112"] == 0.086704128
    assert flops["bias_gelu-16384x768x3072"] == pytest.approx(77.309, abs=1e-3)
    assert flops["attn-2048-d64"] == pytest.approx(2 * flops["attn-2048-d64-causal"], rel=1e-3) == 137.438953472


def test_the_floor_of_a_product() -> None:
    done = subprocess.run([sys.executable, "benchmarks/product_floor.py", "--suites", "matmul"], cwd=ROOT, capture_output=True,
                          text=True, check=False)
    lines = done.stdout.splitlines()
    assert "| mm-8192 | 1.1e+03 | 403 | 2731 | 1391.79 | compute | 100% |" in lines, done.stderr
    assert "| L-bmm-qk-512 | 0.403 | 7.86 | 51 | 1.83 | memory | 28% |" in lines
    assert len(lines) == 4 + 1 + 18


def test_a_case_is_built_or_in_words_why_not() -> None:
    code = ("import sys; sys.path[:0] = ['benchmarks', '.']\n"
            "import building\n"
            "from product_cases import MATMULS\n"
            "made = building.prepare(('matmul', MATMULS[0].tiny), 60)\n"
            "print(len(made.module.launches), len(made.cubin) > 500, 0 < made.priced_us < 100)\n"
            "def written(*job):\n"
            "    while True: pass\n"
            "building.written = written\n"
            "print(building.prepare(('matmul', MATMULS[0]), 1))\n")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["1 True True", "TimeoutError: not ready in 1 s"], done.stderr


def test_tables_tell_rates_and_what_did_not_run() -> None:
    rows = [{"suite": "matmul", "name": "a", "ours": 100.0, "torch": 2.0, "torch_cublaslt": 1.0, "floor": 0.5, "ratio": 0.01,
             "error": 1e-4, "TFLOPs": 3.0, "peer_TFLOPs": 300.0, "schedule_s": 0.5, "launches": 1},
            {"suite": "matmul", "name": "b", "torch": 2.0, "floor": 0.5, "ratio": 0.0, "error": float("nan"),
             "peer_TFLOPs": 150.0, "problem": "TimeoutError: not ready in 60 s"}]
    assert table(rows)[2:] == ["| a | 100.00 | torch_cublaslt 1.00 | 0.01 | — | 0.50 | 3, 300 | 1 | 0.50 |",
                               "| b | — | torch 2.00 | TimeoutError | — | 0.50 | —, 150 | — | — |"]
    assert summary("matmul", rows).startswith("2 cases, 1 of them run; geometric mean 0.010")
