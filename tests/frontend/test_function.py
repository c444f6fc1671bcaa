"""Functions of programs: written out where they are called, refused at their own line and with the line of the call."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

import explorer as ex
from explorer.app.script import read_script, subject_of
from explorer.errors import ProgramError
from tests.frontend.support import define

M, N = ex.sizes("M N")
SLOPE = 0.25


@ex.function
def leaky(x, slope=SLOPE):
    """Leaky ReLU."""
    return x if x > 0 else slope * x


@ex.function
def gelu(x):
    inner = 0.7978845608 * (x + 0.044715 * x**3)
    half = 0.5 * x
    return half * (1.0 + ex.tanh(inner))


@ex.function
def bucket(value: ex.f32, low: ex.f32, high: ex.f32):
    width = high - low
    width /= N
    if value < low:
        return 0.0
    elif value >= high:
        return N - 1.0
    else:
        place = (value - low) / width
    return leaky(place, slope=0.0)


@ex.function
def flat(i, j):
    row = i * N
    return row + (j + 1) % N


@ex.program
def applied(x: ex.f32[M, N], v: ex.f32[M * N], y: ex.f32[M, N], z: ex.f32[M, N], w: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            y[i, j] = gelu(x[i, j] + 1) + leaky(x[i, j])
            z[i, j] = bucket(x[i, j], -1.0, high=1.0) * leaky(i - j, 0.5)
            w[i, j] = v[flat(i, j)] if flat(i, j) != 3 else 0.0


def numpy_result(x, v):
    m, n = x.shape
    x = x.astype(np.float64)
    t = x + 1
    y = 0.5 * t * (1 + np.tanh(0.7978845608 * (t + 0.044715 * t**3))) + np.where(x > 0, x, 0.25 * x)
    place = (x + 1) / (2 / n)
    z = np.where(x < -1, 0, np.where(x >= 1, n - 1, np.where(place > 0, place, 0)))
    i, j = np.indices((m, n))
    z = z * np.where(i - j > 0, i - j, 0.5 * (i - j))
    at = i * n + (j + 1) % n
    return y, z, np.where(at != 3, v[at], 0)


def test_a_call_means_its_body() -> None:
    assert set(applied.sizes) == {"M", "N"}
    schedule = applied.schedule(M=5, N=7)
    rng = np.random.default_rng(0)
    x, v = rng.normal(size=(5, 7)).astype(np.float32), rng.normal(size=35).astype(np.float32)
    for s in (schedule, ex.strategies.default(schedule)):
        run = s.run({"x": x, "v": v}, device="cpu")
        assert run.correct
        for name, expected in zip("yzw", numpy_result(x, v), strict=True):
            np.testing.assert_allclose(run.outputs[name], expected, rtol=1e-5, atol=1e-5, err_msg=name)
    assert schedule.run(device="cpu").correct
    assert [r.array for r in schedule.source.statements[0].reads] == ["x"]


def test_a_script_stands_alone(tmp_path) -> None:
    schedule = applied.schedule(M=5, N=7).bind("i", "block.x")
    text = schedule.script()
    assert text.index("def leaky") < text.index("def bucket") < text.index("def applied")
    path = tmp_path / "alone.py"
    path.write_text(text)
    space: dict[str, object] = {}
    linecache.checkcache()
    exec(compile(text, str(path), "exec"), space)
    assert str(space["s"]) == str(schedule)
    assert read_script(text, subject_of(schedule)).sizes == {"M": 5, "N": 7}


PROGRAM = "@ex.program\ndef f(x: ex.f32[N], y: ex.f32[N]):\n    for i in range(N):\n"


def test_a_saved_schedule_knows_the_functions() -> None:
    text = f"@ex.function\ndef half(x):\n    return x {{}} 2\n{PROGRAM}        y[i] = half(x[i])"
    saved = define(text.format("/")).schedule(N=4).to_json()
    assert define(text.format("/")).load(saved)
    with pytest.raises(ex.ReplayError, match="has changed"):
        define(text.format("*")).load(saved)


def test_each_argument_is_written_out_with_its_own_type() -> None:
    text = f"@ex.function\ndef twice(a):\n    return 2 * a\n{PROGRAM}        y[i] = twice(x[i]) + twice(0.1)"
    text = text.replace("f32", "f64")
    x = np.array([1 / 3])
    run = define(text).schedule(N=1).run({"x": x}, device="cpu")
    assert run.outputs["y"][0] == 2 * x[0] + 0.2


BODIES = [
    ("return a @ 2", "h(x[i])", "`@` is not accepted"),
    ("return b", "h(x[i])", "unknown name b"),
    ("return h(a - 1)", "h(x[i])", "h calls itself"),
    ("return a", "h()", "h needs a"),
    ("return a", "h(x[i], 2)", "h takes 1 arguments, not 2"),
    ("return a", "h(x[i], a=2)", "h got a twice"),
    ("return a", "h(b=2)", "h has no argument b"),
    ("return a", "h(x)", "x has 1 dimension, not 0"),
    ("return y[0] + a", "h(x[i])", "unknown name y"),
    ("return a if a else 1", "h(x[i])", "a truth value is expected"),
]


@pytest.mark.parametrize(("lines", "call", "what"), BODIES)
def test_a_refusal_names_both_places(lines: str, call: str, what: str) -> None:
    with pytest.raises(ProgramError) as caught:
        define(f"@ex.function\ndef h(a):\n    {lines}\n\n{PROGRAM}        y[i] = {call}")
    error = caught.value
    assert what in error.what
    assert error.hint
    assert error.line == 8
    assert f"y[i] = {call}" in error.where
    if "a truth" in what or "`@`" in what or "unknown" in what:
        assert ":3\n" in error.where
        assert "called at" in error.where


@pytest.mark.parametrize(("lines", "what"), [
    ("for k in range(3):\n        a += 1\n    return a", "a loop in a function"),
    ("a[0] = 1\n    return a", "a[0] cannot be assigned in a function"),
    ("return a, a", "a function returns one number"),
    ("return", "a function returns one number"),
    ("b = a", "h has a path without a value"),
    ("if a > 0:\n        return a", "h has a path without a value"),
    ("print(a)\n    return a", "this line does nothing"),
    ("import math\n    return a", "an import inside"),
])
def test_refused_where_it_is_defined(lines: str, what: str) -> None:
    with pytest.raises(ProgramError) as caught:
        define(f"@ex.function\ndef h(a):\n    {lines}\n")
    assert what in caught.value.what
    assert caught.value.hint
    assert caught.value.line >= 2


def test_a_plain_python_function_says_what_it_lacks() -> None:
    with pytest.raises(ProgramError) as caught:
        define("def h(a):\n    return a\n@ex.program\ndef f(x: ex.f32[N], y: ex.f32[N]):\n    y[0] = h(x[0])")
    assert caught.value.hint == "@ex.function above `def h`"


def test_it_is_never_executed() -> None:
    with pytest.raises(ProgramError, match="leaky is a function of programs"):
        leaky(3.0)


def test_an_explosion_is_refused() -> None:
    calls = "x[i]"
    for _ in range(12):
        calls = f"cube({calls})"
    with pytest.raises(ProgramError, match="too large when written out"):
        define(f"@ex.function\ndef cube(a):\n    return a * a * a\n{PROGRAM}        y[i] = {calls}")
