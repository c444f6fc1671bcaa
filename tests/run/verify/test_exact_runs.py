"""Errors that a bound of rounding lets pass, each made in a kernel's text: runs on exact inputs notice them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import explorer as ex
from explorer.kernel.emit import emit
from explorer.run import execute
from explorer.run.inputs.arguments import Inputs
from explorer.run.inputs.exact import KINDS, kinds_for, magnitude
from explorer.run.verify import ragged
from explorer.run.verify.reference import reference

M, N = ex.sizes("M N")
QUICK: dict[str, Any] = {"device": "cpu", "time": False, "ragged": False, "seeds": 1}


@ex.program
def row_sums(x: ex.f32[M, N], y: ex.f32[M]):
    for i in range(M):
        total = ex.local(ex.f32)
        total = 0.0
        for k in range(N):
            total += x[i, k]
        y[i] = total


@ex.program
def means(x: ex.f16[M, N], y: ex.f16[M]):
    for i in range(M):
        total = ex.local(ex.f32)
        total = 0.0
        for k in range(N):
            total += x[i, k]
        y[i] = total / N


@ex.program
def whole(x: ex.f32[N], y: ex.i32[N]):
    for i in range(N):
        y[i] = ex.cast(x[i] * 3.3 + 0.125, ex.i32)


@ex.program
def tenths(x: ex.f32[N], y: ex.f16[N]):
    for i in range(N):
        y[i] = 0.1 * x[i]


def layernorm(m: int = 8, n: int = 64) -> ex.Schedule:
    return ex.workloads.get("layernorm").definition.schedule(M=m, N=n)


def rows(m: int, n: int) -> ex.Schedule:
    return row_sums.schedule(M=m, N=n).bind("i", "block.x").contract("total")


Change = Callable[[str], str]


def replaced(*pairs: tuple[str, str]) -> Change:
    def change(text: str) -> str:
        for old, new in pairs:
            assert old in text, text
            text = text.replace(old, new)
        return text

    return change


NARROW = replaced(("total += x[", "total = __half2float(__float2half(total + x["), ("];  // S1", "]));  // S1"),
                  ('extern "C"', '#include <cuda_fp16.h>\nextern "C"'))
DROPPED = replaced(("k < 100000", "k < 99999"))
SWAPPED = replaced(("y[i] = total", "y[i ^ 1] = total"))
FEWER = replaced(("65.0f", "64.0f"))
NO_EPSILON = replaced((" + 1e-05f", ""))
OFF_BY_ONE = replaced(("y[i] = (int)", "y[i] = 1 + (int)"))
CUT = replaced(("__float2half(", "__float2half_rz("))


def own_rows(m: int, n: int) -> dict[str, np.ndarray]:
    """A caller's data whose rows have nearly equal sums."""
    x = np.random.default_rng(0).standard_normal((m, n)).astype(np.float32)
    return {"x": x - x.mean(axis=1, keepdims=True) + np.float32(1e-9)}


CASES = {
    "an accumulator of f16, own data": (lambda: rows(8, 3000), NARROW, lambda: own_rows(8, 3000)),
    "one of 100,000 addends": (lambda: rows(2, 100_000), DROPPED, None),
    "one of 100,000 addends, own data": (lambda: rows(2, 100_000), DROPPED, lambda: own_rows(2, 100_000)),
    "two rows with nearly equal sums": (lambda: rows(8, 3000), SWAPPED, lambda: own_rows(8, 3000)),
    "64 for 65": (lambda: means.schedule(M=8, N=65).bind("i", "block.x"), FEWER, None),
    "a layer normalisation without its epsilon": (layernorm, NO_EPSILON, None),
    "a cast that is one too large": (lambda: whole.schedule(N=200).bind("i", "block.x"), OFF_BY_ONE, None),
    "digits cut off": (layernorm, CUT, None),
}


@pytest.mark.parametrize("case", CASES)
def test_an_error_that_rounding_could_hide_is_noticed(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, change, data = CASES[case]
    arrays = data() if data else None
    assert execute.execute(make(), arrays, **QUICK).correct, "without the error"

    def wrong(plan: Any, **options: Any) -> Any:
        module = emit(plan, **options)
        return replace(module, text=change(module.text))

    monkeypatch.setattr(execute, "emit", wrong)
    run = execute.execute(make(), arrays, **QUICK)
    assert run.correct is False
    assert "WRONG" in str(run)


def test_small_integers_are_compared_bit_for_bit_and_the_result_says_so() -> None:
    run = execute.execute(rows(8, 3000), own_rows(8, 3000), **QUICK)
    assert run.correct
    assert {c.inputs for c in run.exact} == {KINDS["integers"], KINDS["negatives"]}
    assert all(c.exact == c.checked and c.max_error == 0 for c in run.exact)
    assert "on small integers: y bit for bit" in str(run)
    (tick,) = [t for t in run.evidence.ticks if t.name == "emulated"]
    assert KINDS["integers"] in tick.detail


def test_ragged_sizes_run_on_them_too() -> None:
    run = row_sums.schedule(M=8, N=64).bind("i", "block.x").contract("total").run(device="cpu", time=False, seeds=1)
    assert run.correct
    assert [{c.inputs for c in checks} for _, checks in run.ragged] == [{"", KINDS["integers"], KINDS["negatives"]}] * 2


def test_an_error_at_ragged_sizes_alone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ragged.emit

    def wrong(plan: Any, **options: Any) -> Any:
        module = real(plan, **options)
        return replace(module, text=NARROW(module.text))

    monkeypatch.setattr(ragged, "emit", wrong)
    run = row_sums.schedule(M=8, N=64).bind("i", "block.x").contract("total").run(device="cpu", time=False, seeds=1)
    assert run.correct is False
    assert "on small integers" in str(run)


@pytest.mark.parametrize(("n", "top", "every"), [(100, 1024, 1), (10**6, 16, 1), (10**8, 3, 32)])
def test_integers_are_as_large_and_as_dense_as_their_sum_stays_exact(n: int, top: int, every: int) -> None:
    size = magnitude(row_sums.at(M=1, N=n), "integers")
    assert (size.top, size.every) == (top, every)


def test_programs_get_the_inputs_that_show_something() -> None:
    names = ("matmul", "layernorm", "softmax", "max_rows")
    kinds = [kinds_for(ex.workloads.get(n).definition.at(**ex.workloads.get(n).tiny)) for n in names]
    assert kinds == [("integers", "negatives"), ("integers", "negatives", "groups"),
                     ("integers", "negatives", "groups", "peaks"), ("integers", "negatives", "peaks")]


@pytest.mark.parametrize("name", ex.workloads.names())
def test_expected_values_are_finite_and_where_nothing_rounds_exact(name: str) -> None:
    """Inputs on which results overflow would be compared as infinities, which shows nothing."""
    w = ex.workloads.get(name)
    for sizes in (w.tiny, {n: min(v, 24) for n, v in w.typical.items()}):
        p = w.definition.at(**sizes)
        rounds = name in {"adam", "batchnorm_apply", "batchnorm_statistics", "bias_gelu", "bias_residual_layernorm",
                          "cross_entropy", "gauss_seidel", "jacobi2d", "layernorm", "layernorm_backward", "rmsnorm", "softmax",
                          "attention_softmax"}  # fmt: skip
        for kind in kinds_for(p):
            held = Inputs(p, 0, kind=kind)
            found = reference(p, held.arrays, random=held.random)
            for values in found.values.values():
                assert np.isfinite(values.astype(float)).all(), kind
            assert rounds or not any(b.any() for b in found.bounds.values()), kind


def test_results_that_only_their_store_rounds_are_said_to_be_equal() -> None:
    run = execute.execute(tenths.schedule(N=64), **QUICK)
    assert run
    said = dict(run.sharp)["small integers"]
    assert said.startswith("y ")
    assert "equal after the rounding of the store (largest error " in said
    assert " 0 of the tolerance" not in str(run)
