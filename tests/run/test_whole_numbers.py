"""`//` and `%` of integers that are data: rounded down, as in Python, in the interpreter, the reference and the text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import explorer as ex
from explorer.errors import ProgramError
from explorer.ir.interpret import interpret
from tests.frontend.support import define

N = ex.sizes("N")
EDGES = (0, 1, -1, 2, -2, 3, -3, 5, -7, 12, 100, -100, 2**31 - 1, -(2**31), 2**31 - 2, -(2**31) + 1)


@ex.program
def whole(x: ex.i32[N], d: ex.i32[N], s: ex.i8[N], p: ex.i64[N], e: ex.i64[N], y: ex.i32[N], r: ex.i32[N], z: ex.i64[N],
          w: ex.i64[N], u: ex.i8[N], v: ex.i32[N]):
    for i in range(N):
        y[i] = x[i] // d[i]
        r[i] = x[i] % d[i]
        z[i] = p[i] // e[i] - p[i] % x[i]
        w[i] = p[i] % e[i]
        u[i] = s[i] % -5
        u[i] //= 2
        v[i] = (i - 9) % x[i] + x[i] % 3 * 2 - (s[i] // -3 + x[i] // 4 % 7)


@ex.program
def chosen(x: ex.i32[N], v: ex.f32[N], y: ex.f32[N]):
    for i in range(N):
        if x[i] % 2 == 0:
            y[i] = math.exp(v[i]) + np.sqrt(np.maximum(v[i], 0.5)) * math.fabs(v[i]) - math.pi
        else:
            y[i] = np.where(v[i] > 0, v[x[i] % N], -math.inf)


def arrays() -> dict[str, np.ndarray]:
    x, d = (a.ravel() for a in np.meshgrid(EDGES, EDGES))
    p, e = x.astype(np.int64), d.astype(np.int64)
    p, e = np.where(p == -(2**31), -(2**63), p), np.where(e == 2**31 - 1, 2**62, e)
    return {"x": x.astype(np.int32), "d": d.astype(np.int32), "s": (x % 200 - 100).astype(np.int8), "p": p, "e": e}


def wanted(a: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """By Python's integers: 0 where the divisor is 0, wrapped where the result does not fit."""
    def each(op: Any, left: Any, right: Any, kind: Any) -> Any:
        found = [op(int(n), int(m)) if m else 0 for n, m in zip(left, right, strict=True)]
        bits = 8 * np.dtype(kind).itemsize
        return np.array([(n + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1) for n in found], kind)

    def div(left: Any, right: Any, kind: Any = np.int32) -> Any:
        return each(lambda n, m: n // m, left, right, kind)

    def mod(left: Any, right: Any, kind: Any = np.int32) -> Any:
        return each(lambda n, m: n % m, left, right, kind)

    x, d, s, p, e = (a[name] for name in "xdspe")
    i = np.arange(len(x)) - 9
    return {"y": div(x, d), "r": mod(x, d), "z": div(p, e, np.int64) - mod(p, x, np.int64), "w": mod(p, e, np.int64),
            "u": (mod(s, [-5] * len(s)) // 2).astype(np.int8),
            "v": mod(i, x) + x % 3 * 2 - (s.astype(np.int32) // -3 + x // 4 % 7)}


def test_the_interpreter_means_what_python_means() -> None:
    program, given = whole.at(N=len(EDGES) ** 2), arrays()
    found = interpret(program, given)
    for name, value in wanted(given).items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_a_kernel_and_the_reference_mean_the_same() -> None:
    given = arrays()
    schedule = whole.schedule(N=len(EDGES) ** 2).split("i", 32).bind("i", "block.x").bind("i.i", "thread.x")
    result = schedule.run(given, device="cpu")
    assert result.correct
    for name, value in wanted(given).items():
        np.testing.assert_array_equal(result.outputs[name], value, err_msg=name)


def test_functions_of_math_and_numpy_are_the_operations() -> None:
    schedule = chosen.schedule(N=33).bind("i", "thread.x")
    given = {"x": np.arange(-16, 17, dtype=np.int32), "v": np.linspace(-2, 2, 33, dtype=np.float32)}
    result = schedule.run(given, device="cpu")
    assert result.correct
    v, x = given["v"], given["x"]
    even = np.exp(v) + np.sqrt(np.maximum(v, 0.5)) * np.abs(v) - math.pi
    np.testing.assert_allclose(result.outputs["y"], np.where(x % 2 == 0, even, np.where(v > 0, v[x % 33], -np.inf)), rtol=1e-5)


@pytest.mark.parametrize(("value", "words"), [
    ("x[i] % 2", "`%` takes integers, not f32"),
    ("x[i] // x[i]", "`//` takes integers, not f32"),
    ("math.gamma(x[i])", "abs, argmax_index"),
    ("np.cumsum(x[i])", "not an operation of programs"),
    ("math.log(x[i], 2)", "log takes 1 argument"),
])
def test_what_there_is_not(value: str, words: str) -> None:
    text = f"@ex.program\ndef f(x: ex.f32[8], y: ex.f32[8]):\n    for i in range(8):\n        y[i] = {value}\n"
    with pytest.raises(ProgramError) as caught:
        define(text, "whole.py", math=math, np=np)
    assert words in str(caught.value)
