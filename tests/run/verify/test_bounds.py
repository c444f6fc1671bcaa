"""Bounds of rounding errors beside values that are infinite or zero: a bound is never lost, so no right value is called wrong."""

from __future__ import annotations

import numpy as np
import pytest

import explorer as ex
from explorer import program
from explorer.frontend import exp, f32, inf, local, log, pow, rsqrt, sizes, sqrt, tanh, where
from explorer.run.verify.reference import reference

M, N = sizes("M N")
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 3.5, -87.0, 1e-30, 1e30, np.inf, -np.inf, np.nan], np.float32)


@program
def masked_softmax(x: f32[M, N], y: f32[M, N]):
    for i in range(M):
        scale = local(f32)
        scale = rsqrt(x[i, 0] * x[i, 0] + 3.0)
        peak = local(f32)
        peak = -inf
        for k in range(N):
            peak = max(peak, (x[i, k] if k <= i else -inf) * scale)
        total = local(f32)
        total = 0.0
        for k in range(N):
            total += exp((x[i, k] if k <= i else -inf) * scale - peak)
        for k in range(N):
            y[i, k] = exp((x[i, k] if k <= i else -inf) * scale - peak) / total


@program
def powers(x: f32[N], y: f32[1]):
    mean = local(f32)
    mean = 0.0
    for k in range(N):
        mean += x[k] / N
    y[0] = 0.0
    for k in range(N):
        y[0] += pow(max(x[k] - mean, 0.0), 1.5)


@program
def every_operation(a: f32[N], b: f32[M], u: f32, v: f32, y: f32[12, N, M]):
    for i in range(N):
        for j in range(M):
            p = local(f32)
            q = local(f32)
            p = a[i] * u  # of inexact values
            q = b[j] * v
            y[0, i, j] = tanh(p + q)
            y[1, i, j] = tanh(p - q)
            y[2, i, j] = tanh(p * q)
            y[3, i, j] = tanh(p / q)
            y[4, i, j] = exp(-abs(p * q))
            y[5, i, j] = tanh(log(abs(p)))
            y[6, i, j] = tanh(sqrt(abs(p)) * q)
            y[7, i, j] = tanh(rsqrt(abs(p)) * q)
            y[8, i, j] = tanh(pow(abs(p), q))
            y[9, i, j] = tanh(max(p, q))
            y[10, i, j] = tanh(where(p < q, p, q))
            y[11, i, j] = 1.0 / (1.0 + exp(p) + exp(q))


def test_no_bound_is_lost_whatever_the_values() -> None:
    size = len(SPECIAL)
    arrays = {"a": SPECIAL, "b": SPECIAL, "u": np.float32(1.1), "v": np.float32(0.7)}
    found = reference(every_operation.at(N=size, M=size), arrays)
    lost = np.isnan(found.bounds["y"]) & np.isfinite(found.values["y"])
    assert not lost.any(), [(int(n), SPECIAL[i], SPECIAL[j]) for n, i, j in np.argwhere(lost)[:8]]


@pytest.mark.parametrize("approximate", [False, True])
def test_elements_masked_by_an_infinity_cost_no_tolerance(approximate: bool) -> None:
    s = masked_softmax.schedule(M=33, N=33)
    if approximate:
        s = s.approximate("total").approximate("y")
    arrays = {"x": np.random.default_rng(0).standard_normal((33, 33)).astype(np.float32)}
    bounds = reference(s.plan.program, arrays).bounds["y"]
    assert np.isfinite(bounds).all()
    assert (bounds[1:][:, 0] > 0.0).all()
    assert bounds.max() < 1e-5


def test_a_root_at_zero_keeps_the_bound_of_the_sum() -> None:
    arrays = {"x": np.random.default_rng(0).standard_normal(100).astype(np.float32)}
    bound = reference(powers.at(N=100), arrays).bounds["y"]
    assert 0.0 < bound[0] < 1e-3


CANCELLED = ("tanh", "erf", "erfc", "exp", "expm1", "sigmoid", "log", "log1p", "sqrt", "rsqrt", "sin", "cos")


@pytest.mark.parametrize("name", CANCELLED)
def test_a_right_result_behind_a_cancellation_is_no_mistake(name: str) -> None:
    """The argument is a small difference of large products, and its error as large as itself."""
    n, function = ex.sizes("N"), getattr(ex, name)

    @ex.program
    def bent(a: ex.f32[n], b: ex.f32[n], c: ex.f32[n], y: ex.f32[n]):
        for i in range(n):
            y[i] = function(a[i] * b[i] - c[i])

    rng = np.random.default_rng(0)
    a, b = (rng.uniform(5e3, 1e4, 500).astype(np.float32) for _ in "ab")
    c = (a.astype(np.float64) * b + rng.uniform(-10, 10, 500)).astype(np.float32)
    assert bent.schedule(N=500).run({"a": a, "b": b, "c": c}, device="cpu", time=False, ragged=False).correct


def test_a_rounded_temporary_in_front_of_a_bent_function() -> None:
    """1026 is 1024 in bf16: the hyperbolic tangent of 1, where the loops in float64 have that of 3; 0.5 is wrong."""
    n = ex.sizes("N")

    @ex.program
    def bent(a: ex.f32[n], c: ex.f32[n], y: ex.f32[n]):
        for i in range(n):
            h = ex.local(ex.bf16)
            h = a[i]
            y[i] = ex.tanh(h - c[i])

    given = {"a": np.array([1026], np.float32), "c": np.array([1023], np.float32)}
    r = bent.schedule(N=1).run(given, device="cpu", time=False, ragged=False)
    assert r.correct
    assert abs(r.outputs["y"][0] - np.tanh(1.0)) < 1e-6
    assert bent.schedule(N=1000).run(device="cpu", time=False, ragged=False).correct
