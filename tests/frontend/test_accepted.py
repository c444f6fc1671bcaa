"""Every accepted form means what Python means by it: the interpreter's result is that of executing the same text."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.errors import ProgramWarning
from explorer.ir.expr import Expr, const, var
from explorer.ir.interpret import interpret
from explorer.ir.program import Indirect
from explorer.ir.scalar import Call, Cast, IndexValue, Literal, Read
from explorer.ir.tree import Leaf, Loop, walk
from tests.frontend.refused import nest
from tests.frontend.support import agrees, body, define

SIZES = {"M": 5, "N": 7, "K": 3, "T": 2}

LOOPS = {
    "rectangle": nest("y[i, j] = x[i, j]"),
    "triangle": "for i in range(M):\n    for j in range(i, M):\n        y[i, j] = x[j, i] + y[i, j]",
    "triangle below": "for i in range(M):\n    for j in range(i + 1):\n        y[i, j] = x[i, j] + y[i, j]",
    "triangle of a triangle": "for i in range(M):\n    for j in range(i + 1):\n        for k in range(j, i + 1):\n"
    "            y[i, j] += x[i, k]",
    "start": "for i in range(1, M - 1):\n    y[i, 0] = x[i - 1, 0] + x[i + 1, 2] + y[i, 0]",
    "step": "for i in range(0, M, 2):\n    y[i, 0] = x[i, 1] + y[i, 0]",
    "step and start": "for i in range(1, N, 3):\n    y[0, i] = x[1, i] + y[0, i]",
    "step from a loop": "for i in range(M):\n    for j in range(i, N, 2):\n        y[i, j] = x[i, j] + y[i, j]",
    "step to a loop": "for i in range(M):\n    for j in range(0, i + 1, 2):\n        y[i, j] = x[i, j] + y[i, j]",
    "step of a size": "for i in range(0, N, K):\n    for j in range(i, min(i + K, N)):\n        y[0, j] += x[0, j]",
    "step within a step": "for i in range(0, M, 2):\n    for j in range(i, N, 2):\n        y[i, j] += x[i, j]",
    "backwards": "for i in range(M - 1, -1, -1):\n    y[i, 0] = x[i, 0] + y[i, 0]",
    "backwards in order": "for i in range(N - 2, -1, -1):\n    y[0, i] += y[0, i + 1] * x[0, i]",
    "backwards by two": "for i in range(N - 1, 0, -2):\n    y[0, i] = x[0, i] + y[0, i]",
    "forwards in order": "for i in range(1, N):\n    y[0, i] += y[0, i - 1] * x[0, i]",
    "clamped, moved": "for i in range(M):\n    for j in range(max(2, i) - 2, 1 + min(N, i + 2) - 1):\n        y[i, j] += x[i, j]",
    "clamped": "for i in range(M):\n    for j in range(max(0, i - 1), min(N, i + 2)):\n        y[i, j] += x[i, j]",
    "quotient bound": "for i in range(N // 2):\n    y[0, i] = x[0, 2 * i + 1] + y[0, i]",
    "remainder bound": "for i in range(M):\n    for j in range(i % 3 + 1):\n        y[i, j] += x[i, j]",
    "empty": "for i in range(M, 2):\n    y[i, 0] += x[i, 0]\nfor i in range(M):\n    y[i, 0] += x[i, 1]",
    "two loops of one name": "for i in range(M):\n    y[i, 0] = x[i, 0] + y[i, 0]\nfor i in range(N):\n    y[0, i] = x[1, i]",
    "imperfect": "for i in range(M):\n    y[i, 0] += 1.0\n    for j in range(1, N):\n        y[i, j] += y[i, 0]\n"
    "    y[i, 0] *= x[i, 0]",
    "no loop": "y[0, 0] = x[0, 1] + y[0, 2]",
    "pass": "for i in range(M):\n    pass\n    y[i, 0] = x[i, 0] + y[i, 1]",
    "docstring": '"""What it does."""\ny[0, 0] = x[0, 0] + y[0, 1]',
}

CONDITIONS = {
    "one": nest("if i < j:\n    y[i, j] = x[i, j] + y[i, j]"),
    "and": nest("if i < j and j < 4:\n    y[i, j] += x[i, j]"),
    "chain": nest("if 1 <= i + j < 6:\n    y[i, j] += x[i, j]"),
    "equal": nest("if i == j:\n    y[i, j] += x[i, j]"),
    "else": nest("if i + 1 <= j:\n    y[i, j] += x[i, j]\nelse:\n    y[i, j] -= x[i, j]"),
    "elif": nest("if i < 2:\n    y[i, j] += x[i, j]\nelif j < 3:\n    y[i, j] *= x[i, j]\nelse:\n    y[i, j] -= x[i, j]"),
    "not": nest("if not i < j:\n    y[i, j] += x[i, j]"),
    "not or": nest("if not (i < j or j > 3):\n    y[i, j] += x[i, j]"),
    "not at the edge": nest("if i != 0:\n    y[i, j] += x[i - 1, j]"),
    "not at the other edge": nest("if j != N - 1:\n    y[i, j] += x[i, j + 1]\nelse:\n    y[i, j] *= 2.0"),
    "else of the edge": nest("if i == 0:\n    y[i, j] += 1.0\nelse:\n    y[i, j] += x[i - 1, j]"),
    "parity": nest("if (i + j) % 2 == 0:\n    y[i, j] += x[i, j]\nelse:\n    y[i, j] *= x[i, j]"),
    "sizes": nest("if N > 3:\n    y[i, j] += x[i, j]\nelse:\n    y[i, j] *= 0.0"),
    "flag": nest("if FLAG:\n    y[i, j] += x[i, j]\nelse:\n    y[i, j] *= 0.0"),
    "not flag": nest("if not FLAG:\n    y[i, j] *= 0.0\nelse:\n    y[i, j] += x[i, j]"),
    "around a loop": "for i in range(M):\n    if i % 2 == 1:\n        for j in range(N):\n            y[i, j] += x[i, j]",
}

VALUES = {
    "arithmetic": "x[i, j] * 2 - x[i, 0] / 3 + (-y[i, j])",
    "power": "(x[i, j] + 3.0) ** 2 + abs(x[i, j]) ** 0.5",
    "functions": "ex.exp(x[i, j]) + ex.log(x[i, j] + 3) + ex.sqrt(abs(x[i, j])) + ex.tanh(x[i, j]) + ex.erf(x[i, j])",
    "rsqrt": "ex.rsqrt(x[i, j] + 3.0) + ex.pow(2.0, x[i, j])",
    "extremes": "max(x[i, j], y[i, j], 0.5) + min(x[i, j], 0.0, y[i, j]) + ex.max(x[i, j], 0)",
    "conditional": "x[i, j] if x[i, j] > y[i, j] else -x[i, j]",
    "where": "ex.where(x[i, j] >= 0, 1.0, x[i, j])",
    "truth": "1.0 if x[i, j] > 0 and not y[i, j] < 0 or x[i, j] == 1 else 0.0",
    "chain": "1.0 if -1 < x[i, j] <= 1 != 3 else 0.0",
    "bits": "1.0 if (x[i, j] > 0) & (y[i, j] > 0) | (x[i, j] < -1) else 0.0",
    "index": "x[i, j] + i - 2 * j",
    "index product": "x[i, j] * (i * j + 1)",
    "index ratio": "x[i, j] * (i / N) + j // 2 + (i + j) % 3",
    "sizes": "x[i, j] / N + 1 / M + 2 ** K",
    "constant": "x[i, j] * EPS + 2 * EPS",
    "infinity": "max(-ex.inf, x[i, j]) + min(ex.inf, y[i, j])",
    "cast": "ex.cast(x[i, j] * 3, ex.i32) + ex.cast(i, ex.f32)",
    "several elements": "x[i, j] + x[i, j // 2] + x[i % 2, (i + j) % N] + x[M - 1 - i, N - 1 - j]",
    "linear index": "x[i, j] + flat[i * N + j] + flat[(i * N + j) // 3] + flat[(i * N + j) % 11]",
}

UPDATES = {
    "+=": ("y[i, 0] += x[i, j]", "sum"),
    "-=": ("y[i, 0] -= x[i, j] * 2", "sum"),
    "*=": ("y[i, 0] *= x[i, j]", "prod"),
    "/=": ("y[i, 0] /= x[i, j] + 3", None),
    "**=": ("y[i, 1] **= x[i, j] * 0 + 2", None),
    "x = x + e": ("y[i, 0] = y[i, 0] + x[i, j]", "sum"),
    "x = e + x": ("y[i, 0] = x[i, j] + y[i, 0]", "sum"),
    "x = a + x - b": ("y[i, 0] = x[i, j] + y[i, 0] - x[i, 0]", "sum"),
    "x = x - e": ("y[i, 0] = y[i, 0] - x[i, j]", "sum"),
    "x = a * x * b": ("y[i, 0] = x[i, j] * y[i, 0] * x[i, 0]", "prod"),
    "max": ("y[i, 0] = max(y[i, 0], x[i, j])", "max"),
    "max of three": ("y[i, 0] = max(x[i, j], y[i, 0], x[i, 0])", "max"),
    "min": ("y[i, 0] = ex.min(x[i, j], y[i, 0])", "min"),
    "other element": ("y[i, 0] += y[i, 1] * x[i, j]", "sum"),
    "own element": ("y[i, 0] += y[i, 0] * x[i, j]", None),
    "own element, subtracted": ("y[i, 0] -= y[i, 0] * x[i, j]", None),
    "own element, multiplied": ("y[i, 0] *= y[i, 0] - x[i, j]", None),
    "twice": ("y[i, 0] = y[i, 0] + y[i, 0] + x[i, j]", None),
    "negative": ("y[i, 0] = x[i, j] - y[i, 0]", None),
    "inside": ("y[i, 0] = max(0.5 * y[i, 0], x[i, j])", None),
    "scaled": ("y[i, 0] = 0.5 * y[i, 0] + x[i, j]", None),
}

TEMPORARIES = {
    "one at the top": "t = ex.local(ex.f32)\nt = x[0, 0]\nfor i in range(M):\n    y[i, 0] = t + y[i, 0]",
    "one in a loop": "for i in range(M):\n    t = ex.local(ex.f32)\n    t = 0.0\n    for j in range(N):\n        t += x[i, j]\n"
    "    y[i, 0] = t + y[i, 0]",
    "a row": "for i in range(M):\n    row = ex.local(ex.f32, N)\n    for j in range(N):\n        row[j] = x[i, j] * 2\n"
    "    for j in range(N):\n        y[i, j] = row[N - 1 - j] + y[i, j]",
    "a plane": "q = ex.local(ex.f32, M, N + 1)\n"
    + nest("q[i, j + 1] = x[i, j] + y[i, j]")
    + "\n"
    + nest("y[i, j] = q[i, j + 1]"),
    "a plane by its shape": "q = ex.local(ex.f32, (M, N + 1))\n"
    + nest("q[i, j + 1] = x[i, j] + y[i, j]")
    + "\n"
    + nest("y[i, j] = q[i, j + 1]"),
    "a row by its list": "for i in range(M):\n    row = ex.local(ex.f32, [N])\n    for j in range(N):\n        row[j] = x[i, j]\n"
    "    for j in range(N):\n        y[i, j] = row[N - 1 - j] + y[i, j]",
    "one by its empty shape": "t = ex.local(ex.f32, ())\nt = x[0, 0]\nfor i in range(M):\n    y[i, 0] = t + y[i, 0]",
    "in a triangle": "for i in range(2, M):\n    for j in range(i, N):\n        t = ex.local(ex.f32)\n        t = x[i, j]\n"
    "        y[i, j] += t",
    "in a strided loop": "for i in range(1, N, 2):\n    t = ex.local(ex.f32)\n    t = x[0, i]\n    y[0, i] += t",
    "of one name": "for i in range(M):\n    t = ex.local(ex.f32)\n    t = x[i, 0]\n    y[i, 0] += t\nfor i in range(N):\n"
    "    t = ex.local(ex.f32, 2)\n    t[1] = x[0, i]\n    y[0, i] += t[1]",
    "under a condition": nest("if i < j:\n    t = ex.local(ex.f32)\n    t = x[i, j]\n    y[i, j] += t"),
    "truth": "for i in range(M):\n    seen = ex.local(ex.bool_)\n    seen = False\n    for j in range(N):\n"
    "        seen = seen or x[i, j] > 1.5\n    y[i, 0] = 1.0 if seen else y[i, 0]",
    "all": "for i in range(M):\n    seen = ex.local(ex.bool_)\n    seen = True\n    for j in range(N):\n"
    "        seen &= x[i, j] < 1.5\n    y[i, 0] = 1.0 if seen else y[i, 0]",
    "counting": "for i in range(M):\n    n = ex.local(ex.i32)\n    n = 0\n    for j in range(N):\n"
    "        n += 1 if x[i, j] > 0 else 0\n    y[i, 0] += n",
}


SPELLINGS = {
    "shape": "for i in range(x.shape[0] - M):\n    for j in range(len(x)):\n        y[i, j] += x[i, j] / x.shape[1]",
    "brackets": nest("y[i][j] += x[i][j] * x[i + 1][0]"),
    "shifts": nest("y[i, j] += x[i >> 1, j & 3] + x[(i << 1) & 7, 0] + (i >> 1)"),
    "continue": nest("if i == j:\n    continue\ny[i, j] += x[i, j]"),
    "continue after something": nest("if i == j:\n    y[i, j] *= 2.0\n    continue\nif j > 3:\n    continue\ny[i, j] += x[i, j]"),
    "continue on data": "for i in range(M):\n    s = 0.0\n    for j in range(N):\n        if x[i, j] < 0:\n            continue\n"
    "        s += x[i, j]\n    y[i, 0] += s",
    "a masked read": nest("v = x[i - 1, j] if i > 0 else 0.0\ny[i, j] += v"),
    "two masked reads": nest("y[i, j] += (x[i - 1, j] if i > 0 else 0.0) * 2 - (x[i, j - 1] if j > 0 else x[i, j])"),
    "a clamped index": nest("y[i, j] += x[min(i + 1, M - 1), max(j - 1, 0)] + x[abs(i - 2), 0]"),
    "a chosen index": nest("k = i - 1 if i > 0 else 0\ny[i, j] += x[k, j] + x[i if i < 3 else 0, j]"),
}


@pytest.mark.parametrize("text", [pytest.param(t, id=k) for k, t in {**LOOPS, **CONDITIONS, **TEMPORARIES, **SPELLINGS}.items()])
@pytest.mark.parametrize("sizes", [SIZES, {"M": 1, "N": 3, "K": 1, "T": 1}, {"M": 7, "N": 11, "K": 4, "T": 3}], ids=str)
def test_statements(text, sizes):
    definition = body(text, "x: ex.f32[N + M, N + M], y: ex.f32[N + M, N + M]", FLAG=True)
    agrees(definition, {**sizes}, FLAG=True)


@pytest.mark.parametrize("value", [pytest.param(v, id=k) for k, v in VALUES.items()])
def test_values(value):
    text = nest(f"y[i, j] = {value}" + ("" if "flat" in value else " + flat[0]"))
    definition = body(text, "x: ex.f32[M, N], flat: ex.f32[M * N], y: ex.f32[M, N]", EPS=1e-5)
    agrees(definition, SIZES, EPS=1e-5)


@pytest.mark.parametrize(("line", "name"), [pytest.param(*v, id=k) for k, v in UPDATES.items()])
def test_updates(line, name):
    program = agrees(body(nest(line)), SIZES)
    (statement,) = program.statements
    assert statement.update == name
    assert statement.target.kind == ("update" if name else "write")
    assert not name or statement.target not in statement.reads
    assert program.array_of["y"].role == "inout"


@pytest.mark.parametrize(
    "sizes", [{"M": 0, "N": 4}, {"M": 4, "N": 0}, {"M": 0, "N": 0}, {"M": 1, "N": 1}, {"M": 13, "N": 17}], ids=str
)
def test_any_size(sizes):
    definition = body(nest("y[i, j] = x[i, j] + x[i, 0]"))
    agrees(definition, sizes)


def test_a_divisor_of_zero_in_a_loop_that_never_runs():
    definition = body(nest("y[i, j] = x[i, (i + j) % N]"))
    agrees(definition, {"M": 3, "N": 0})
    agrees(definition, {"M": 3, "N": 4})


def test_huge_sizes_are_only_numbers():
    program = body(nest("y[i, j] = x[i, j]")).at(M=2**20, N=2**20)
    assert program.array_of["x"].size == 2**40


def test_index_values_beyond_32_bits_are_wide():
    program = body("for i in range(M):\n    y[i] = i * N + x[i]", "x: ex.f32[M], y: ex.f64[M]").at(M=2**16, N=2**16)
    cast = program.statements[0].value.args[0]
    assert isinstance(cast, Cast)
    assert (cast.dtype.name, cast.arg) == ("i64", IndexValue(var("i") * 2**16))


def test_data_dependent_reads():
    text = "for i in range(M):\n    y[i] = x[i, at[i]] + x[i, at[at[i]] + 1]"
    definition = body(text, "x: ex.f32[M, N], at: ex.i32[M], y: ex.f32[M]")
    program = agrees(definition, {"M": 5, "N": 7})
    (statement,) = program.statements
    slots = [r for r in statement.reads if not r.affine]
    assert {r.array for r in slots} == {"x", "at"}
    assert all(isinstance(r.index[-1], Indirect) for r in slots)
    assert program.array_of["at"].role == "in"


def test_scalar_parameters():
    definition = body(
        "for i in range(N):\n    y[i] = a * x[i] + y[i]\n    count += 1", "a: ex.f32, x: ex.f32[N], y: ex.f32[N], count: ex.i32"
    )
    program = definition.at(N=4)
    assert program.array_of["a"].shape == ()
    x = np.arange(4, dtype=np.float32)
    got = interpret(program, {"a": np.float32(2), "x": x, "y": x, "count": np.int32(5)})
    assert got["y"].tolist() == (3 * x).tolist()
    assert got["count"] == 9


def test_roles():
    program = body(
        "for i in range(N):\n    y[i] = x[i]\n    z[i] = z[i] * x[i]\n    w[i] += x[i]\n    v[i] = 0.0\n    v[i] += y[i]",
        "x: ex.f32[N], y: ex.f32[N], z: ex.f32[N], w: ex.f32[N], v: ex.f32[N]",
    ).at(N=3)
    assert {a.name: a.role for a in program.arrays} == {"x": "in", "y": "out", "z": "inout", "w": "inout", "v": "out"}


def test_the_tree_and_its_names():
    program = body(
        "for k in range(M):\n    for j in range(k, N):\n        y[k, j] = x[k, j]\nfor k in range(1, N, 2):\n    y[0, k] = 1.0\n"
        "for k_2 in range(M):\n    y[k_2, 0] = 2.0"
    ).at(M=4, N=9)
    loops = [n for n in walk(program.body) if isinstance(n, Loop)]
    assert [(n.id, n.start, n.extent, n.role) for n in loops] == [
        ("k", 0, 4, "seq"),
        ("j", 0, 9, "seq"),
        ("k_3", 0, 4, "seq"),
        ("k_2", 0, 4, "seq"),
    ]
    leaves = [n for n in walk(program.body) if isinstance(n, Leaf)]
    assert [n.id for n in leaves] == [s.name for s in program.statements] == ["S0", "S1", "S2"]
    assert all(n.at == tuple((d, var(d)) for d in program.statement_of[n.statement].dims) for n in leaves)
    first, second, _ = program.statements
    assert [c.text for c in first.domain] == ["k >= 0", "k < M", "j >= k", "j < N"]
    assert [c.expr for c in first.domain] == [var("k"), 3 - var("k"), var("j") - var("k"), 8 - var("j")]
    assert second.target.index == (const(0), 2 * var("k_3") + 1)
    assert [c.text for c in second.domain] == ["k >= 1", "k < N"]
    assert (first.line, first.text) == (5, "y[k, j] = x[k, j]")


def test_conditions_keep_the_user_s_words():
    program = body(nest("if 0 <= i - 1 and j != 0:\n    y[i, j] = x[i - 1, j]")).at(M=3, N=4)
    assert [c.text for c in program.statements[0].domain[4:]] == ["0 <= i - 1", "j != 0"]


def test_a_temporary_has_one_dimension_per_loop():
    program = body(
        "for i in range(2, M):\n    for j in range(N):\n        t = ex.local(ex.f64, K)\n        t[1] = x[i, j]\n"
        "        y[i, j] = t[1]"
    ).at(M=6, N=3, K=2)
    t = program.array_of["t"]
    assert (t.shape, t.given, t.dtype.name, t.role) == ((4, 3, 2), 1, "f64", "temporary")
    assert program.statements[0].target.index == (var("i") - 2, var("j"), const(1))


def test_an_element_read_twice_is_one_read():
    program = body(nest("y[i, j] = x[i, j] * x[i, j] + x[i, 0]")).at(M=2, N=3)
    assert len(program.statements[0].reads) == 2


def test_literals_take_the_type_of_their_surroundings():
    def value(line, dtype):
        return body(line, f"x: ex.{dtype}[N], y: ex.{dtype}[N]").at(N=3).statements[0].value

    assert value("y[0] = 0.1 * x[0]", "f64") == Call("mul", (literal(0.1, "f64"), Read(0)))
    assert value("y[0] = 2 * x[0]", "f16") == Call("mul", (literal(2.0, "f32"), Read(0)))
    assert value("y[0] = x[0] + 1 / 3", "f64") == Call("add", (Read(0), literal(1 / 3, "f64")))
    assert value("y[0] = x[0] if x[0] > 0 else -1", "f64") == Call(
        "where", (Call("gt", (Read(0), literal(0.0, "f64"))), Read(0), literal(-1.0, "f64"))
    )
    assert value("y[0] = x[0] * 2", "i64") == Call("mul", (Read(0), literal(2, "i64")))
    assert value("y[1] = x[0]\ny[0] = -ex.inf", "f32") == Read(0)


def literal(value, dtype):
    from explorer.ir.dtype import DTYPES

    return Literal(value, DTYPES[dtype])


def test_weak_expressions_take_the_type_of_the_target():
    program = body("for i in range(N):\n    y[i] = (i + 0.5) / N", "y: ex.f64[N]").at(N=3)
    assert interpret(program, {})["y"].tolist() == [0.5 / 3, 1.5 / 3, 2.5 / 3]


def test_sizes_in_order_of_appearance():
    assert body("for t in range(T):\n    y[0] = x[0] * K", "x: ex.f32[N * M], y: ex.f32[M]").sizes == ("N", "M", "T", "K")
    assert define("P = (N - 1) // 2\n@ex.program\ndef f(x: ex.f32[P]):\n    for i in range(P):\n        x[i] = 1.0").at(
        N=9
    ).array_of["x"].shape == (4,)


def test_the_same_sizes_give_the_same_program():
    f = body(nest("y[i, j] = x[i, j]"))
    assert f.at(M=3, N=4) is f.at(N=np.int64(4), M=3)
    assert f.at(M=3, N=4) is not f.at(M=4, N=4)
    assert f.at(M=3, N=4).sizes == (("M", 3), ("N", 4))


def test_constants_are_those_of_the_definition():
    names = {"EPS": 1.5}
    f = body("y[0] = x[0] * EPS", "x: ex.f32[N], y: ex.f32[N]", **names)
    names["EPS"] = 3.0
    assert interpret(f.at(N=1), {"x": np.ones(1, np.float32)})["y"][0] == 1.5


def test_numpy_numbers_are_constants():
    f = body("y[0] = x[0] * A\ny[B] = 1.0", "x: ex.f32[N], y: ex.f32[N]", A=np.float32(0.5), B=np.int32(1))
    assert interpret(f.at(N=2), {"x": np.ones(2, np.float32)})["y"].tolist() == [0.5, 1.0]


def test_the_definition_shows_its_text():
    f = body('"""Copies."""\ny[0] = x[0] < 1', "x: ex.f32[N], y: ex.bool_[N]")
    assert str(f).startswith("@ex.program\ndef f(x: ex.f32[N], y: ex.bool_[N]):\n")
    assert "x[0] &lt; 1" in f._repr_html_()
    assert f.doc == "Copies."
    assert [str(p) for p in f.parameters] == ["x: f32[N]", "y: bool_[N]"]


def test_quotients_are_simplified_by_the_ranges():
    program = body(
        "for i in range(M):\n    for j in range(4):\n        y[(4 * i + j) // 4, (4 * i + j) % 4] = x[i, j]",
        "x: ex.f32[M, 4], y: ex.f32[M, 4]",
    ).at(M=3)
    assert program.statements[0].target.index == (var("i"), var("j"))
    assert isinstance(program.statements[0].target.index[0], Expr)


@pytest.mark.parametrize(("word", "near"), [("i16", "i32"), ("float32", "f32"), ("int", "i32"), ("bool", "bool_")])
def test_a_type_there_is_not_names_those_there_are(word, near):
    import explorer

    with pytest.raises(AttributeError, match=f"has no {word}: the element types are f16 bf16 .*; try {near}$"):
        getattr(explorer, word)
    with pytest.raises(AttributeError, match="no attribute 'sqr'; did you mean sqrt"):
        explorer.sqr  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(explorer, "zzz")


def test_an_unused_temporary_is_left_out_with_a_warning() -> None:
    text = nest("t = ex.local(ex.f32)\ny[i, j] = x[i, j]")
    with pytest.warns(ProgramWarning, match="the temporary t is never used") as said:
        program = body(text)
    assert said[0].lineno == 5
    assert len(said) == 1
    assert "t" not in program.at(M=2, N=3).array_of
