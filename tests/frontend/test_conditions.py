"""Conditions: on loop variables they choose instances, on data they choose values; both mean what Python means by them."""

from __future__ import annotations

import numpy as np
import pytest

import explorer as ex
from explorer.ir.expr import var
from explorer.ir.inequality import any_of, cases
from explorer.ir.interpret import interpret
from explorer.strategies import default
from tests.frontend.support import body, by_python

AFFINE = {
    "or": """
for i in range(M):
    for j in range(N):
        if i < 2 or j > 3:
            y[i, j] += x[i, j]
""",
    "or eq": """
for i in range(M):
    for j in range(N):
        if i == 0 or j == 0 or i == M - 1 or j == N - 1:
            y[i, j] = 0.0
        else:
            y[i, j] = x[i - 1, j] + x[i + 1, j] + x[i, j-1]
""",
    "ne": """
for i in range(M):
    for j in range(N):
        if i != j:
            y[i, j] += x[i, j]
        else:
            y[i, j] = 1.0
""",
    "and else": """
for i in range(M):
    for j in range(N):
        if i > 1 and j > 2:
            y[i, j] = x[i, j]
        else:
            y[i, j] = -x[i, j]
""",
    "chain else": """
for i in range(M):
    for j in range(N):
        if 1 <= j < 4:
            y[i, j] = x[i, j]
        elif i != 2:
            y[i, j] = -x[i, j]
        else:
            y[i, j] = 7.0
""",
    "in": """
for i in range(M):
    for j in range(N):
        if i in (0, 2) and j not in (1, 3):
            y[i, j] += x[i, j]
""",
    "not or": """
for i in range(M):
    for j in range(N):
        if not (i == j or i + j == 4):
            y[i, j] += x[i, j]
""",
    "nested or": """
for i in range(M):
    for j in range(N):
        if (i < 2 and j < 3) or (i > 3 and j > 2) or i == j:
            y[i, j] += x[i, j]
""",
    "mod or": """
for i in range(M):
    for j in range(N):
        if i % 2 == 0 or j % 3 == 1:
            y[i, j] += x[i, j]
        else:
            y[i, j] *= 2
""",
}

DATA = {
    "data": """
for i in range(M):
    for j in range(N):
        if x[i, j] > 0:
            y[i, j] = 1.0
""",
    "data else": """
for i in range(M):
    for j in range(N):
        if x[i, j] > 0:
            y[i, j] = 1.0
        else:
            y[i, j] = 2.0
""",
    "data elif": """
for i in range(M):
    for j in range(N):
        if x[i, j] > 1:
            y[i, j] = 1.0
        elif x[i, j] > 0:
            y[i, j] = 2.0
        else:
            y[i, j] = 3.0
""",
    "data sum": """
for i in range(M):
    s = ex.local(ex.f32)
    s = 0.0
    for j in range(N):
        if x[i, j] > 0:
            s += x[i, j]
        else:
            s -= 2 * x[i, j]
    y[i, 0] = s
""",
    "data max": """
for i in range(M):
    s = ex.local(ex.f32)
    s = -ex.inf
    for j in range(N):
        if x[i, j] < 0:
            s = max(s, x[i, j])
    y[i, 0] = s
""",
    "running": """
for i in range(M):
    s = ex.local(ex.f32)
    s = 0.0
    for j in range(N):
        if x[i, j] > s:
            s = x[i, j]
    y[i, 0] = s
""",
    "capped": """
for i in range(M):
    s = ex.local(ex.f32)
    s = 0.0
    for j in range(N):
        if s < 2:
            s += x[i, j]
    y[i, 0] = s
""",
    "changes": """
for i in range(M):
    for j in range(N):
        if y[i, j] > 0:
            y[i, j] = -1.0
            y[i, j] *= x[i, j]
        else:
            y[i, j] = 5.0
""",
    "swap": """
for i in range(M):
    for j in range(N):
        if y[i, j] > x[i, j]:
            t = ex.local(ex.f32)
            t = y[i, j]
            y[i, j] = x[i, j]
            x[i, j] = t
""",
    "mixed and": """
for i in range(M):
    for j in range(N):
        if i > 0 and x[i - 1, j] > 0:
            y[i, j] = 1.0
        else:
            y[i, j] = 2.0
""",
    "mixed or": """
for i in range(M):
    for j in range(N):
        if i == 0 or x[i - 1, j] > 0:
            y[i, j] = 1.0
        else:
            y[i, j] += 2.0
""",
    "mixed not": """
for i in range(M):
    for j in range(N):
        if not (i == 0 or x[i - 1, j] > 0):
            y[i, j] = 1.0
        else:
            y[i, j] += 2.0
""",
    "mixed chain": """
for i in range(M):
    for j in range(N):
        if 0 <= i < p[j]:
            y[i, j] = 1.0
        else:
            y[i, j] += 2.0
""",
    "around loops": """
for i in range(M):
    if x[i, 0] > 0:
        for j in range(N):
            y[i, j] = x[i, j]
    else:
        for j in range(N):
            if x[i, j] < -1:
                y[i, j] += 3.0
""",
    "gather": """
for i in range(M):
    for j in range(N):
        if p[j] >= 0 and p[j] < N:
            y[i, j] = x[i, p[j]]
""",
    "two": """
for i in range(M):
    for j in range(N):
        if x[i, j] > 0:
            y[i, j] = 1.0
            x[i, j] = 0.0
        else:
            x[i, j] = 4.0
""",
    "local both": """
for i in range(M):
    for j in range(N):
        t = ex.local(ex.f32)
        if x[i, j] > 0:
            t = x[i, j]
        else:
            t = 0.5
        y[i, j] = t
""",
    "if data nested affine": """
for i in range(M):
    for j in range(N):
        if x[i, j] > 0:
            if i != j:
                y[i, j] = 1.0
            else:
                y[i, j] = 2.0
""",
    "in data": """
for i in range(M):
    for j in range(N):
        if p[j] in (1, 2):
            y[i, j] = 1.0
""",
}

SIZES = ({"M": 5, "N": 7}, {"M": 4, "N": 4}, {"M": 1, "N": 2})


def made(text: str) -> ex.Definition:
    signature = {"x": "x: ex.f32[M, N]", "p": "p: ex.i32[N]", "y": "y: ex.f32[M, N]"}
    return body(text, ", ".join(s for name, s in signature.items() if f"{name}[" in text))


def given(program, seed: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    some = {"float": lambda shape: rng.uniform(-2, 2, shape), "int": lambda shape: rng.integers(0, 2, shape)}
    return {a.name: some[a.dtype.kind](a.shape).astype(a.dtype.numpy) for a in program.parameters}


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("text", [pytest.param(t, id=k) for k, t in {**AFFINE, **DATA}.items()])
def test_a_condition_means_what_python_means(text, sizes):
    definition = made(text)
    program = definition.schedule(**{k: v for k, v in sizes.items() if k in definition.sizes}).source
    arrays = given(program)
    expected = by_python(definition, sizes, arrays)
    for name, value in interpret(program, arrays, exact=True).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("text", [pytest.param({**AFFINE, **DATA}[k], id=k) for k in (
    "or eq", "nested or", "mod or", "data sum", "changes", "swap", "mixed or", "gather", "around loops")])
def test_it_runs(text):
    definition = made(text)
    schedule = definition.schedule(**{k: v for k, v in {"M": 5, "N": 7}.items() if k in definition.sizes})
    assert default(schedule).run(device="cpu").correct


def test_a_disjunction_is_one_statement_in_the_user_s_order():
    s = made(AFFINE["or eq"]).schedule(M=37, N=50)
    assert len(s.source.statements) == 2
    assert s.source.statements[0].domain[-1].text == "i == 0 or j == 0 or i == M - 1 or j == N - 1"
    assert "y[i, j] = 0.0  # where (i < 1 or j < 1 or i >= 36 or j >= 49)" in str(s)
    assert "if ((i < 1 || j < 1 || i >= 36 || j >= 49))" in s.cuda
    t = s.tile("i", "j", 8).bind("i", "block.y").bind("j", "block.x").bind("i.i", "threadIdx.y").bind("j.i", "threadIdx.x")
    assert "(8*i + i.i < 1 or 8*j + j.i < 1 or 8*i + i.i >= 36 or 8*j + j.i >= 49)" in str(t)
    assert t.run(device="cpu").correct


def test_one_statement_chooses_between_two_branches():
    program = made(DATA["data elif"]).schedule(M=2, N=3).source
    assert len(program.statements) == 1
    assert program.array_of["y"].role == "out"
    assert program.statements[0].line == 6
    assert program.statements[0].text == "y[i, j] = 1.0 if x[i, j] > 1 else 2.0 if x[i, j] > 0 else 3.0"


def test_a_masked_statement_says_its_test():
    program = made(DATA["data"]).schedule(M=2, N=3).source
    assert program.statements[0].text == "if x[i, j] > 0: y[i, j] = 1.0"
    assert program.array_of["y"].role == "inout"


@pytest.mark.parametrize("value", ["x[i - 1, j] if i > 0 else 0.0", "0 if i == 0 else x[i - 1, j]"])
@pytest.mark.parametrize("sign", ["+", "-"])
def test_a_masked_factor_adds_nothing_elsewhere(value, sign):
    """As a convolution's padding: one statement, and the same numbers."""
    masked = made(f"for i in range(M):\n    for j in range(N):\n        y[i, j] {sign}= 2.5 * ({value}) * x[i, j]")
    s = masked.schedule(M=4, N=3)
    assert len(s.source.statements) == 1
    rng = np.random.default_rng(1)
    x, y = (rng.random((4, 3)).astype(np.float32) for _ in "xy")
    wanted = y.copy()
    wanted[1:] += np.float32(2.5 if sign == "+" else -2.5) * x[:-1] * x[1:]
    assert np.allclose(s.run({"x": x, "y": y}, device="cpu").outputs["y"], wanted)


def test_nan_takes_the_other_branch():
    definition = made("for i in range(M):\n    if not x[i, 0] > 0:\n        y[i, 0] = 1.0\n    else:\n        y[i, 0] = 2.0")
    run = definition.schedule(M=3, N=1).run({"x": np.array([[np.nan], [1], [-1]], np.float32)}, device="cpu")
    assert run.outputs["y"][:, 0].tolist() == [1, 2, 1]


@pytest.mark.parametrize("seed", range(20))
def test_a_disjunction_as_one_inequality(seed):
    rng = np.random.default_rng(seed)
    ranges = {"a": (int(rng.integers(-9, 1)), int(rng.integers(1, 9))), "b": (0, int(rng.integers(1, 12)))}
    parts = [var("a") * int(rng.integers(-3, 4)) + var("b") * int(rng.integers(-3, 4)) + int(rng.integers(-9, 9))
             for _ in range(int(rng.integers(2, 4)))]
    whole = any_of(parts, ranges)
    either = cases(whole, ranges)
    for a in range(ranges["a"][0], ranges["a"][1] + 1):
        for b in range(ranges["b"][1] + 1):
            at = {"a": a, "b": b}
            assert (whole.evaluate(at) >= 0) == any(p.evaluate(at) >= 0 for p in parts)
            assert not either or (whole.evaluate(at) >= 0) == any(e.evaluate(at) >= 0 for e in either)
