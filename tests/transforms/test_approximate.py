"""Approximate: special-function units instead of library functions; the tolerance knows."""

from __future__ import annotations

import numpy as np

import explorer as ex
from explorer.ir.plan import initial
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


def test_double_precision_has_no_approximations() -> None:
    verdict, _ = ratio_in_double.schedule(N=3).try_step(Approximate("S0"))
    assert "nothing in f32" in verdict.what


def test_refusals() -> None:
    assert "nothing in f32" in refusal(copy(), ("approximate", "S0"))
    assert "there is no statement" in refusal(copy(), ("approximate", "Q"))
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
