"""What a device has no number for: infinities of its type where the float64 reference goes on."""

from __future__ import annotations

import numpy as np
import pytest

import explorer as ex
from explorer.run.verify.outputs import check_outputs
from explorer.run.verify.reference import compiled

N = ex.sizes("N")


@ex.program
def logarithm(x: ex.f32[N], y: ex.f32[N]):
    for i in range(N):
        y[i] = ex.log(ex.exp(100.0 * x[i]))


@ex.program
def sigmoid(x: ex.f32[N], y: ex.f32[N]):
    for i in range(N):
        y[i] = 1.0 / (1.0 + ex.exp(-100.0 * x[i]))


@ex.program
def total(x: ex.f32[N], y: ex.f32[1]):
    for i in range(1):
        s = ex.local(ex.f32)
        s = 0.0
        for k in range(N):
            s += x[k] * 1e38
        y[i] = s * 1e-38


@ex.program
def narrow(x: ex.f16[N], y: ex.f16[N]):
    t = ex.local(ex.f16, N)
    for i in range(N):
        t[i] = x[i] * 40000.0
    for i in range(N):
        y[i] = t[i] * 0.001


@pytest.mark.parametrize("program", [logarithm, sigmoid, total, narrow], ids=lambda p: p.name)
def test_a_right_schedule_is_right(program) -> None:
    result = program.schedule(N=64).run(device="cpu", time=False)
    assert result.correct, result


def checked(program, x: list[float], y: list[float]) -> bool:  # type: ignore[no-untyped-def]
    source = program.schedule(N=len(x)).source
    kind = source.array_of["x"].dtype.numpy
    return all(check_outputs(source, {"y": np.array(y, kind)}, compiled(source, {"x": np.array(x, kind)})))


@pytest.mark.parametrize(("program", "x", "right", "wrong"), [
    (logarithm, [0.5, 2.0], [50.0, np.inf], [51.0, np.inf]),
    (sigmoid, [0.0, -2.0], [0.5, 0.0], [0.5, 1e-30]),
    (total, [1.0, 1.0, 0.5], [2.5], [2.75]),
    (total, [3.0, 3.0, -5.5], [np.inf], None),
    (narrow, [1.0, 2.0], [40.0, np.inf], [41.0, np.inf]),
])  # fmt: skip
def test_an_infinity_of_the_type_is_right_and_errors_beside_it_are_noticed(program, x, right, wrong) -> None:  # type: ignore[no-untyped-def]
    assert checked(program, x, right)
    assert wrong is None or not checked(program, x, wrong)


def test_of_a_quotient_by_what_overflows_it_is_known_that_it_is_small() -> None:
    assert not checked(sigmoid, [-2.0], [np.inf])
    assert not checked(sigmoid, [-2.0], [1.0])
