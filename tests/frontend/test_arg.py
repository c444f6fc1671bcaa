"""``argmax`` and ``argmin``: what they stand for, that Python and NumPy agree, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.errors import ProgramError
from explorer.ir.interpret import interpret
from explorer.ir.scalar import Call
from tests.frontend.support import agrees, body

MATRIX = "x: ex.f32[M, N], y: ex.i32[M]"
ROW = "for i in range(M):\n    y[i] = {}"

FORMS = {
    "rows": (MATRIX, ROW.format("ex.argmax(x[i, k] for k in range(N))")),
    "columns": ("x: ex.f32[M, N], y: ex.i32[N]", "for j in range(N):\n    y[j] = ex.argmin(x[i, j] for i in range(M))"),
    "all of a vector": ("x: ex.f32[N], y: ex.i64[1]", "y[0] = ex.argmin(x[k] for k in range(N))"),
    "computed": (MATRIX, ROW.format("ex.argmax(abs(x[i, k] - x[i, 0]) for k in range(N))")),
    "integers": ("x: ex.i32[M, N], y: ex.i32[M]", ROW.format("ex.argmin(x[i, k] - k for k in range(N))")),
    "double": ("x: ex.f64[M, N], y: ex.i32[M]", ROW.format("ex.argmax(-x[i, k] for k in range(N))")),
    "long": ("x: ex.i64[M, N], y: ex.i64[M]", ROW.format("ex.argmin(x[i, k] for k in range(N))")),
    "twice": (MATRIX, "for i in range(M):\n    y[i] = ex.argmax(x[i, k] for k in range(N))\nfor i in range(M):\n"
              "    if i > 1:\n        y[i] = ex.argmin(x[i, k] for k in range(N))"),
    "into a temporary": ("x: ex.f32[M, N], y: ex.f32[M]", "for i in range(M):\n    at = ex.local(ex.i32)\n"
                         "    at = ex.argmax(x[i, k] for k in range(N))\n    y[i] = x[i, at] + at"),
}  # fmt: skip


@pytest.mark.parametrize(("signature", "text"), [pytest.param(*v, id=k) for k, v in FORMS.items()])
def test_forms_mean_what_python_means(signature: str, text: str) -> None:
    for seed in range(3):
        agrees(body(text, signature), {"M": 5, "N": 7}, seed)
        agrees(body(text, signature), {"M": 4, "N": 1}, seed)


@pytest.mark.parametrize(("span", "first"), [("2, N", 2), ("1, N, 3", 1), ("N - 1, -1, -1", 0), ("i, N", 0)])
def test_the_index_is_the_value_of_the_variable(span: str, first: int) -> None:
    program = body(ROW.format(f"ex.argmax(x[i, k] for k in range({span}))"), MATRIX).at(M=3, N=9)
    x = np.random.default_rng(2).standard_normal((3, 9)).astype(np.float32)
    got = interpret(program, {"x": x})["y"]
    for i in range(3):
        places = list(eval(f"range({span})", {"N": 9, "i": i}))
        assert got[i] == max(places, key=lambda k: x[i, k])
        assert min(places) >= first


def test_a_condition_may_say_that_there_are_elements() -> None:
    text = "for i in range(M):\n    y[i] = -1\n    if i > 1:\n        y[i] = ex.argmax(x[i, k] for k in range(i - 1))"
    agrees(body(text, "x: ex.f32[M, M], y: ex.i32[M]"), {"M": 6})
    with pytest.raises(ProgramError, match="may be empty"):
        body(text.replace("i > 1", "i > 0"), "x: ex.f32[M, M], y: ex.i32[M]").at(M=6)


def test_it_is_three_plain_statements_at_the_users_line() -> None:
    program = body(ROW.format("ex.argmax(x[i, k] for k in range(N))"), MATRIX).at(M=3, N=9)
    start, update, end = program.statements
    assert [a.name for a in program.arrays] == ["x", "y", "y_key"]
    assert program.array_of["y_key"].dtype.name == "i64"
    assert (start.update, update.update, end.update) == (None, "max", None)
    assert isinstance(update.value, Call)
    assert update.value.op == "argmax_key"
    assert {s.line for s in program.statements} == {4}
    assert program.array_of["y"].role == "out"


def test_values_of_64_bits_take_two_passes() -> None:
    program = body(FORMS["double"][1], FORMS["double"][0]).at(M=3, N=9)
    assert [(s.target.array, s.update) for s in program.statements] == [
        ("y_peak", None), ("y_peak", "max"), ("y_first", None), ("y_first", "min"), ("y", None)]  # fmt: skip
    x = np.zeros((3, 9))
    x[0, 4], x[0, 6], x[1, 3], x[1, 5], x[2] = np.nan, np.nan, -1, -1, np.inf
    assert list(interpret(program, {"x": x})["y"]) == [4, 3, 0]


def test_temporaries_get_free_names() -> None:
    text = "for i in range(M):\n    y_key = ex.local(ex.f32)\n    y_key = x[i, 0]\n" \
           "    y[i] = ex.argmax(x[i, k] + y_key for k in range(N))"  # fmt: skip
    program = agrees(body(text, MATRIX), {"M": 3, "N": 4})
    assert {a.name for a in program.arrays} == {"x", "y", "y_key", "y_key_2"}


REFUSED = [
    ("no generator", "ex.argmax(x[i, 0])", "ex.argmax(x[i, 0])", "argmax takes elements and their range", "for k in range(N)"),
    ("two ranges", "ex.argmax(x[j, k] for j in range(M) for k in range(N))", "ex.argmax", "runs over one range", "ex.argmax_key"),
    ("a condition", "ex.argmin(x[i, k] for k in range(N) if k > 2)", "ex.argmin", "an `if` in argmin", "ex.where"),
    ("not a range", "ex.argmax(v for v in x)", "x", "x is not a range", "range(N)"),
    ("inside a value", "1 + ex.argmax(x[i, k] for k in range(N))", "ex.argmax", "stands on a line of its own", "and then y[i]"),
    ("may be empty", "ex.argmax(x[i, k] for k in range(i))", "range(i)", "over a range that may be empty: the loop k",
     "is -1 where"),
    ("its own loop's name", "ex.argmax(x[i, i] for i in range(N))", "i", "already the variable of a loop around", "another name"),
    ("NumPy's", "np.argmax(x[i, 0])", "np.argmax", "np.argmax is not an operation", "ex.argmax(x[i, k] for k in range(N))"),
    ("an index of data", "ex.argmax_index(ex.argmax_key(x[i, 0], x[i, 1]))", "x[i, 1]", "the index in a key is an i32, not f32",
     "a loop variable"),
    ("not a key", "ex.argmin_index(x[i, 0])", "x[i, 0]", "argmin_index takes a key, an i64, not f32", "ex.argmin_key"),
    ("a comprehension", "ex.cast(max(x[i, k] for k in range(N)), ex.i32)", "(x[i, k] for k", "a comprehension is not accepted",
     "max"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "under", "what", "hint"), [pytest.param(*case[1:], id=case[0]) for case in REFUSED])
def test_refused(value: str, under: str, what: str, hint: str) -> None:
    with pytest.raises(ProgramError) as caught:
        body(ROW.format(value), MATRIX, np=np).at(M=5, N=7)
    error = caught.value
    assert what in error.what
    assert hint in error.hint
    assert error.line == 4
    row, carets = error.where.split("\n")[1:3]
    assert row[len(carets) - len(carets.lstrip()):].startswith(under)


def test_a_computed_double_is_refused_and_a_cast_is_not() -> None:
    signature = "x: ex.f64[M, N], y: ex.i32[M]"
    with pytest.raises(ProgramError, match="argmax of a computed f64") as caught:
        body(ROW.format("ex.argmax(x[i, k] * x[i, k] for k in range(N))"), signature)
    assert "ex.cast(…, ex.f32)" in caught.value.hint
    agrees(body(ROW.format("ex.argmax(ex.cast(x[i, k] * x[i, k], ex.f32) for k in range(N))"), signature), {"M": 3, "N": 4})
    with pytest.raises(ProgramError, match="a value of type f64 does not fit a key"):
        body(ROW.format("ex.argmax_index(ex.argmax_key(x[i, 0], i))"), signature)


def test_an_index_beyond_32_bits_is_refused_in_a_key() -> None:
    text = "key = ex.local(ex.i64)\nkey = -2**63\nfor k in range(N):\n    key = max(key, ex.argmax_key(x[k], k))\n" \
           "y[0] = ex.argmax_index(key)"  # fmt: skip
    definition = body(text, "x: ex.f32[N], y: ex.i32[1]")
    assert definition.at(N=2**31 - 1)
    with pytest.raises(ProgramError, match="the index in a key is an i32, not i64"):
        definition.at(N=2**32)
    wide = body("y[0] = ex.argmax(x[k] for k in range(N))", "x: ex.f32[N], y: ex.i64[1]")
    assert [a.dtype.name for a in wide.at(N=2**32).temporaries] == ["f32", "i64"]
