"""Approximate: special-function units instead of library functions; the tolerance knows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import explorer as ex
from explorer.ir.operations import FUSED, OPERATIONS
from explorer.ir.plan import initial
from explorer.ir.scalar import Call, Read, walk
from explorer.transforms.approximate import Approximate, as_computed
from tests.transforms.nests import copy, softmax
from tests.transforms.storage import refusal, right

N = ex.sizes("N")


@ex.program
def ratio(x: ex.f32[N], y: ex.f32[N]):
    for i in range(N):
        y[i] = ex.exp(x[i]) / (ex.log(x[i]) + 1.0)


@ex.program
def ratio_in_double(x: ex.f64[N], y: ex.f64[N]):
    for i in range(N):
        y[i] = ex.exp(x[i]) / x[i]


def test_the_text_names_the_intrinsics() -> None:
    text = ratio.schedule(N=5).approximate("S0").cuda
    assert "__fdividef(__expf(x[i]), __logf(x[i]) + 1.0f)" in text
    assert "exp(" not in text.replace("__expf(", "")


@ex.program
def weights(x: ex.f32[N], y: ex.f32[N], z: ex.f32[N]):
    peak = ex.local(ex.f32)
    scaled = ex.local(ex.f32, N)
    peak = -ex.inf
    for i in range(N):
        scaled[i] = 0.3 * x[i]
    for i in range(N):
        peak = max(peak, scaled[i])
    for i in range(N):
        y[i] = ex.exp(scaled[i] - peak)
    for i in range(N):
        z[i] = ex.exp(-x[i]) + ex.exp(x[i] - x[0]) / 3.0


def test_the_fused_form_takes_scale_and_difference() -> None:
    s = weights.schedule(N=70).inline("scaled")
    weight = next(x.name for x in s.plan.program.statements if x.target.array == "y")
    made = s.approximate(weight, fused=True).approximate("z", fused=True)
    assert "fused_exp(x[i_3], 0.3f, peak[0])" in made.cuda
    assert "fused_exp(-x[i_4], 1.0f, 0.0f) + __fdividef(fused_exp(x[i_4], 1.0f, x[0]), 3.0f)" in made.cuda
    assert "ex2.approx.ftz" in made.cuda
    assert made.run(device="cpu", time=False).correct
    computed = as_computed(made.source, made.plan)
    assert FUSED in {n.op for n in walk(computed.statement_of[weight].value) if isinstance(n, Call)}


def test_the_fused_tolerance_is_of_the_terms() -> None:
    """Of 40 - 40 as of two products rounded: an error that exp of the difference has not, of the size that the bound says."""
    s = weights.schedule(N=3).inline("scaled")
    x = np.array([133.3, 133.1, 132.9], np.float32)
    single = s.approximate("y")
    fused = s.approximate("y", fused=True)
    runs = [m.run({"x": x}, device="cpu", time=False, ragged=False) for m in (single, fused)]
    assert all(r.correct for r in runs)
    widths = [next(c for c in r.checks if c.array == "y").tolerance.absolute for r in runs]
    assert 2 * 2 * 40 * 1.4e-7 < widths[1] < 4 * (2 * 2 * 40 * 1.4e-7)
    small = np.array([0, -np.inf, -400], np.float32)  # masked, and below the normal numbers
    assert not fused.run({"x": small}, device="cpu", time=False, ragged=False).outputs["y"][1:].any()


def test_a_wrong_scale_of_a_fused_exponential_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    s = weights.schedule(N=70).inline("scaled").approximate("y", fused=True)
    row = OPERATIONS["fused_exp"]
    off = {**row.cuda, "f32": "fused_exp({0}, {1} * 1.00001f, {2})"}
    monkeypatch.setitem(OPERATIONS, "fused_exp", replace(row, cuda=off))
    assert not s.run(device="cpu", time=False, ragged=False).correct


def test_every_statement_keeps_its_order() -> None:
    right(softmax(3, 5), ("approximate", "S3"))


def test_the_tolerance_grows_with_the_argument() -> None:
    x = np.full(3, 80.0, np.float32)
    plain = ratio.schedule(N=3)
    exact, fast = (s.run({"x": x}, time=False, ragged=False) for s in (plain, plain.approximate("S0")))
    assert exact.correct
    assert fast.correct
    assert fast.checks[0].tolerance.absolute > 3 * exact.checks[0].tolerance.absolute


def test_the_reference_stays_the_users_program_elsewhere() -> None:
    plain = ratio.schedule(N=3)
    assert as_computed(plain.source, plain.plan) is plain.source


M, K = ex.sizes("M K")


@ex.program
def scaled_rows(a: ex.f32[M], x: ex.f32[M, K], b: ex.f32[K], y: ex.f32[M]):
    for i in range(M):
        y[i] = 0.0
        for k in range(K):
            y[i] += a[i] * x[i, k] * b[k]


FACTORS_MOVED = {
    "rearranged": (("rearrange", "x", (1, 0)),),
    "skewed": (("split", "k", 2), ("skew", "k.i", "k", 2)),
    "shifted": (("shift", "k", 2),),
}


@pytest.mark.parametrize("moves", FACTORS_MOVED.values(), ids=FACTORS_MOVED)
def test_short_factors_are_known_again_behind_other_moves(moves: tuple[tuple[object, ...], ...]) -> None:
    """What is cut off is what the plan multiplies, wherever its arrays and indices have gone: the other factor stays whole."""
    s = scaled_rows.schedule(M=5, K=37).factor_out("S1")
    for name, *arguments in moves:
        s = getattr(s, str(name))(*arguments)
    s = s.approximate("S1", factors="tf32")
    value = as_computed(s.source, s.plan).statement_of["S1"].value
    assert {n.args[0] for n in walk(value) if isinstance(n, Call) and n.op == "tf32"} == {Read(1), Read(2)}
    assert s.run(device="cpu", time=False).correct


@ex.program
def doubled(x: ex.f32[N], y: ex.f32[N]):
    for i in range(N):
        t = ex.local(ex.f32)
        t = ex.exp(x[i])
        y[i] = t * 2.0


def test_what_is_inlined_counts_where_it_is_computed() -> None:
    s = doubled.schedule(N=7).inline("t").approximate("y")
    values = [x.value for x in as_computed(s.source, s.plan).statements]
    assert "fast_exp" in {n.op for n in walk(values[0]) if isinstance(n, Call)}


def test_double_precision_has_no_approximations() -> None:
    verdict, _ = ratio_in_double.schedule(N=3).try_step(Approximate("S0"))
    assert "nothing in f32" in verdict.what


def test_refusals() -> None:
    assert "nothing in f32" in refusal(copy(), ("approximate", "S0"))
    assert "there is no statement" in refusal(copy(), ("approximate", "Q"))
    assert "different statements" in refusal(softmax(3, 5), ("approximate", "S3", "tf32", True))
    verdict, _ = weights.schedule(N=5).approximate("y", fused=True).try_step(Approximate("y", fused=True))
    assert "nothing in f32" in verdict.what
    assert not Approximate.offers(initial(copy()), "S0")


@ex.program
def matmul(x: ex.f32[N, N], y: ex.f32[N, N], z: ex.f32[N, N]):
    for i in range(N):
        for j in range(N):
            s = ex.local(ex.f32)
            s = 0
            for k in range(N):
                s += x[i, k] * y[j, k]
            z[i, j] = s


def test_factors_of_a_product_become_tf32() -> None:
    plain = matmul.schedule(N=5)
    short = plain.approximate("S1", factors="tf32")
    assert "s[i, j] += tf32(x[i, k]) * tf32(y[j, k])" in str(short)
    x = np.random.default_rng(1).standard_normal((5, 5)).astype(np.float32)
    cut = (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    done = short.run({"x": x, "y": x}, device="cpu", time=False, ragged=False)
    assert done.correct
    assert np.allclose(done.outputs["z"], cut @ cut.T, rtol=1e-6)
    assert not np.allclose(done.outputs["z"], x.astype(np.float64) @ x.T.astype(np.float64), rtol=1e-6)
    assert done.checks[0].tolerance.absolute < 1e-5  # what is cut off is known, and no error


def test_tf32_by_hand_is_the_same_product() -> None:
    @ex.program
    def short(x: ex.f32[N, N], y: ex.f32[N, N], z: ex.f32[N, N]):
        for i in range(N):
            for j in range(N):
                s = ex.local(ex.f32)
                s = 0
                for k in range(N):
                    s += ex.tf32(x[i, k]) * ex.tf32(y[j, k])
                z[i, j] = s

    made = matmul.schedule(N=5).approximate("S1", factors="tf32")
    assert short.schedule(N=5).plan.statement_of["S1"].value == made.plan.statement_of["S1"].value


def test_factors_that_cannot_be_tf32() -> None:
    assert "no sum of products" in refusal(softmax(3, 5), ("approximate", "S3", "tf32"))
    verdict, _ = matmul.schedule(N=5).try_step(Approximate("S1", "tf16"))
    assert "no type of factors" in verdict.what
    again, _ = matmul.schedule(N=5).approximate("S1", "tf32").try_step(Approximate("S1", "tf32"))
    assert "no sum of products" in again.what


@pytest.mark.parametrize(("name", "slope"), [("erf", 2 / math.sqrt(math.pi)), ("tanh", 1.0)])
def test_a_fast_function_keeps_small_arguments_and_ends(name: str, slope: float) -> None:
    """Two terms of the series near 0: a quotient by it stays what it is."""
    n, function = ex.sizes("N"), getattr(ex, name)

    @ex.program
    def ratio(x: ex.f32[n], y: ex.f32[n], z: ex.f32[n]):
        for i in range(n):
            y[i] = function(x[i])
            z[i] = x[i] / function(x[i])

    s = ratio.schedule(N=9).approximate("S0").approximate("S1")
    x = np.array([1e-30, -1e-20, 3e-8, -1e-4, 0.04999, -0.05001, 1.5, -44.5, np.inf], np.float32)
    r = s.run({"x": x}, device="cpu", time=False, ragged=False)
    assert f"fast_{name}" in s.cuda
    assert r.correct
    assert np.allclose(r.outputs["z"][:4], 1 / slope, rtol=1e-6)
    assert list(r.outputs["y"][-2:]) == [-1.0, 1.0]


def test_a_fast_hyperbolic_tangent_is_within_its_bound() -> None:
    """At 20,000 places; the bound is not ten times too wide either."""
    n = ex.sizes("N")

    @ex.program
    def bent(x: ex.f32[n], y: ex.f32[n]):
        for i in range(n):
            y[i] = ex.tanh(x[i])

    x = np.concatenate([np.geomspace(1e-6, 12.0, 10_000), -np.linspace(0.001, 3.0, 10_000)]).astype(np.float32)
    r = bent.schedule(N=x.size).approximate("S0").run({"x": x}, device="cpu", time=False, ragged=False)
    exact = np.tanh(x.astype(np.float64))
    off = np.abs(r.outputs["y"] - exact)
    assert (off <= np.minimum(4.6e-7, 9e-6 * np.abs(exact)) + 2.0**-23 * np.abs(exact)).all()
    assert off.max() > 4.6e-8
    assert (off / np.abs(exact)).max() > 9e-7


ROOT_HALF, ROOT_2 = 2**-0.5, 2**0.5

@ex.function
def gelu(x):
    return 0.5 * x * (1.0 + ex.erf(x * ROOT_HALF))


@ex.function
def gelu_in_another_order(x):
    return (ex.erf(x / ROOT_2) + 1.0) * (x * 0.5)


@ex.function
def gelu_with_a_constant_in_two_parts(x):
    return 0.25 * (2.0 * x) * (1.0 + ex.erf(ROOT_HALF * x))


@ex.function
def another_scale(x):
    return 0.5 * x * (1.0 + ex.erf(x * 0.7))


@ex.function
def another_constant(x):
    return 0.4 * x * (1.0 + ex.erf(x * ROOT_HALF))


@ex.function
def another_sum(x):
    return 0.5 * x * (2.0 + ex.erf(x * ROOT_HALF))


@ex.function
def no_factor(x):
    return 0.5 * (1.0 + ex.erf(x * ROOT_HALF))


@ex.function
def a_square(x):
    return 0.5 * x * x * (1.0 + ex.erf(x * ROOT_HALF))


@ex.function
def a_difference(x):
    return 0.5 * x * (1.0 - ex.erf(x * ROOT_HALF))


def applied(value: Any, dtype: Any, size: int) -> ex.Schedule:
    """A program of one statement."""
    n = ex.sizes("N")

    @ex.program
    def each(x: dtype[n], y: dtype[n]):
        for i in range(n):
            y[i] = value(x[i])

    return each.schedule(N=size)


@ex.function
def gelu_by_two(x):
    return x * (1.0 + ex.erf(x / ROOT_2)) / 2.0


@pytest.mark.parametrize("formula", [gelu, gelu_in_another_order, gelu_with_a_constant_in_two_parts, gelu_by_two],
                         ids=lambda f: f.name)
def test_a_gelu_is_one_operation_and_within_its_bound(formula: Any) -> None:
    x = np.concatenate([np.linspace(-9.0, 9.0, 20_000), [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e-40, 1e38, -1e38]])
    s = applied(formula, ex.f32, x.size).approximate("S0")
    assert "y[i] = fast_gelu(x[i]);" in s.cuda
    r = s.run({"x": x.astype(np.float32)}, device="cpu", time=False, ragged=False)
    assert r.correct
    single = x.astype(np.float32).astype(np.float64)
    with np.errstate(invalid="ignore"):
        exact = 0.5 * single * (1.0 + np.vectorize(math.erf)(single * ROOT_HALF))
        off = np.abs(r.outputs["y"] - exact)
    held = np.isfinite(exact)
    assert (off[held] <= 1.9e-7 * np.abs(single[held]) + 1e-44).all()
    assert (off[held] > 1.9e-8 * np.abs(single[held])).any()
    assert list(np.isnan(r.outputs["y"])) == list(np.isnan(exact))


@pytest.mark.parametrize("formula", [another_scale, another_constant, another_sum, no_factor, a_square, a_difference],
                         ids=lambda f: f.name)
def test_what_is_no_gelu(formula: Any) -> None:
    s = applied(formula, ex.f32, 8).approximate("S0")
    assert "fast_gelu" not in s.cuda
    assert "fast_erf" in s.cuda
    assert s.run(device="cpu", time=False, ragged=False).correct


def test_a_gelu_of_f16_is_computed_in_f32_and_one_of_f64_stays() -> None:
    s = applied(gelu, ex.f16, 16).approximate("S0")
    assert "fast_gelu(__half2float(x[i]))" in s.cuda
    assert s.run(device="cpu", time=False, ragged=False).correct
    verdict, _ = applied(gelu, ex.f64, 16).try_step(Approximate("S0"))
    assert "computes nothing in f32" in verdict.what


def test_a_gelu_whose_error_function_is_approximate_already() -> None:
    """In a reduction, too: the schedule's script makes the same again."""
    n, m = ex.sizes("N M")

    @ex.program
    def total(x: ex.f32[m, n], y: ex.f32[m]):
        for i in range(m):
            for k in range(n):
                y[i] += 0.5 * (x[i, k] + 1.0) * (1.0 + ex.erf((x[i, k] + 1.0) * ROOT_HALF))

    s = total.schedule(M=3, N=40).approximate("S0")
    assert "fast_gelu(x[" in s.cuda
    assert s.run(device="cpu", time=False).correct


def test_a_scale_that_log2_e_takes_beyond_f32_is_not_fused() -> None:
    n = ex.sizes("N")

    @ex.program
    def steep(x: ex.f32[n], y: ex.f32[n]):
        for i in range(n):
            y[i] = ex.exp(x[i] * 3e38 - 30.0)

    s = steep.schedule(N=2).approximate("S0", fused=True)
    assert "fused_exp(x[i] * 3" in s.cuda
    r = s.run({"x": np.array([1e-37, 0], np.float32)}, device="cpu", time=False, ragged=False)
    assert r.correct
    assert abs(r.outputs["y"][0] - 1.0) < 1e-4


def test_a_fast_sigmoid_is_within_its_bound() -> None:
    """At 20,000 places and the ends; the bound is not ten times too wide either."""
    places = np.geomspace(1e-6, 86.0, 10_000)
    x = np.concatenate([places, -places, [0.0, 1e3, np.inf, -1e3, -np.inf, np.nan]])
    s = applied(ex.sigmoid, ex.f32, x.size).approximate("S0")
    assert "y[i] = fast_sigmoid(x[i]);" in s.cuda
    r = s.run({"x": x.astype(np.float32)}, device="cpu", time=False, ragged=False)
    assert r.correct
    single = x[:20_000].astype(np.float32).astype(np.float64)
    exact = 1.0 / (1.0 + np.exp(-single))
    off = np.abs(r.outputs["y"][:20_000] - exact) / exact
    assert (off <= 5e-7 + 8e-8 * np.abs(single)).all()
    assert (off > 5e-8 + 8e-9 * np.abs(single)).any()
    assert list(r.outputs["y"][20_000:-1]) == [0.5, 1.0, 1.0, 0.0, 0.0]
    assert np.isnan(r.outputs["y"][-1])


ROOT = math.sqrt(2 / math.pi)


@ex.function
def gelu_tanh(x):
    return 0.5 * x * (1.0 + ex.tanh(ROOT * (x + 0.044715 * x * x * x)))


@ex.function
def gelu_tanh_in_another_order(x):
    return (ex.tanh((x + 0.044715 * x * x * x) * ROOT) + 1.0) * (x / 2.0)


@ex.function
def without_a_weight(x):
    return (1.0 + ex.tanh(x)) / 2.0


@ex.function
def three_halves(x):
    return 1.5 * x * (1.0 + ex.tanh(x))


@ex.function
def less_tanh(x):
    return 0.5 * x * (1.0 - ex.tanh(x))


@ex.function
def two_and_tanh(x):
    return 0.5 * x * (2.0 + ex.tanh(x))


@pytest.mark.parametrize(("formula", "text"), [
    (gelu_tanh, "fast_sigmoid(1.5957692f * (x[i] + 0.044715f * x[i] * x[i] * x[i])) * x[i]"),
    (gelu_tanh_in_another_order, "fast_sigmoid(1.5957692f * (x[i] + 0.044715f * x[i] * x[i] * x[i])) * x[i]"),
    (without_a_weight, "fast_sigmoid(2.0f * x[i])"),
    (three_halves, "1.5f * x[i] * (1.0f + fast_tanh(x[i]))"),
    (less_tanh, "0.5f * x[i] * (1.0f - fast_tanh(x[i]))"),
    (two_and_tanh, "0.5f * x[i] * (2.0f + fast_tanh(x[i]))"),
], ids=lambda f: getattr(f, "name", ""))
def test_half_of_one_and_a_hyperbolic_tangent_is_a_sigmoid(formula: Any, text: str) -> None:
    x = np.concatenate([np.linspace(-12.0, 12.0, 2_000), [0.0, -0.0, 1e-30, 1e10, -1e10, np.nan]]).astype(np.float32)
    s = applied(formula, ex.f32, x.size).approximate("S0")
    assert f"y[i] = {text};" in s.cuda
    assert s.run({"x": x}, device="cpu", time=False, ragged=False).correct
    assert not Approximate("S0").check(s.plan)
