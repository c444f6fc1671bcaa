"""Every construct that is not accepted: the line, what the caret underlines, the sentence, the reason, the next step."""

from __future__ import annotations

import math

import numpy as np
import pytest

from explorer.errors import ProgramError
from tests.frontend.refused import CONDITIONS, INDICES, LOOPS, NAMES, SIGNATURES, STATEMENTS, VALUES, nest
from tests.frontend.support import body, define


def underlined(error: ProgramError) -> str:
    """The text above the carets."""
    _, code, carets = error.where.splitlines()
    start = len(carets) - len(carets.lstrip())
    return code[start : start + carets.count("^")]


CASES = [
    pytest.param(*case[1:], id=f"{group}: {case[0]}")
    for group, cases in {
        "statement": STATEMENTS,
        "loop": LOOPS,
        "name": NAMES,
        "index": INDICES,
        "condition": CONDITIONS,
        "value": VALUES,
    }.items()
    for case in cases
]


@pytest.mark.parametrize(("text", "line", "under", "what", "why", "hint"), CASES)
def test_refused_in_the_body(text, line, under, what, why, hint):
    with pytest.raises(ProgramError) as caught:
        body(text, math=math, np=np, eps=1e-5, data=np.zeros(3))
    check(caught.value, line, under, what, why, hint)


def check(error, line, under, what, why, hint):
    assert what in error.what
    assert why in error.why
    assert hint in error.hint
    assert error.hint
    assert error.line == line
    assert f":{line}\n" in error.where
    if under:
        assert underlined(error) == under


@pytest.mark.parametrize(("signature", "under", "what", "why", "hint"), SIGNATURES)
def test_refused_in_the_signature(signature, under, what, why, hint):
    with pytest.raises(ProgramError) as caught:
        body("y[0] = x[0]", signature, np=np)
    error = caught.value
    assert what in error.what
    assert why in error.why
    assert hint in error.hint
    assert underlined(error) == under
    assert error.line == 2


def test_a_program_that_writes_nothing():
    with pytest.raises(ProgramError, match="f writes nothing"):
        body("t = ex.local(ex.f32)\nt = x[0]", "x: ex.f32[N]")


@pytest.mark.parametrize(
    ("dtype", "value", "what", "hint"),
    [
        ("i32", "0.5", "a f32 cannot be stored in an i32 array", "ex.cast(0.5, ex.i32)"),
        ("i32", "-ex.inf", "a f32 cannot be stored in an i32 array", "ex.cast"),
        ("i64", "x[0] * 2", "a f32 cannot be stored in an i64 array", "ex.cast(x[0] * 2, ex.i64)"),
        ("bool_", "x[0]", "a f32 cannot be stored in a bool array", "x[0] != 0"),
        ("bool_", "1", "a i32 cannot be stored in a bool array", "1 != 0"),
    ],
)
def test_types_that_would_lose_silently(dtype, value, what, hint):
    with pytest.raises(ProgramError) as caught:
        body(f"y[0] = {value}\ny[1] = x[0] > 0" if dtype == "bool_" else f"y[0] = {value}", f"x: ex.f32[N], y: ex.{dtype}[N]")
    assert what in caught.value.what
    assert hint in caught.value.hint


def test_calling_a_program():
    f = body(nest("y[i, j] = x[i, j]"))
    with pytest.raises(ProgramError, match="f is a program, not a function") as caught:
        f(1, 2)
    assert caught.value.hint == "f.at(M=…, N=…)"


@pytest.mark.parametrize(
    ("sizes", "what", "example"),
    [
        ({}, "missing sizes M, N", "M=64, N=32"),
        ({"M": 3}, "missing size N", "M=3, N=32"),
        ({"M": 3, "N": 4, "Q": 5}, "unknown size Q", "M=3, N=4"),
        ({"M": -1, "N": 4}, "the size M is -1", "M=64, N=4"),
        ({"M": 3.0, "N": 4}, "the size M must be an integer, not 3.0", "M=64, N=4"),
        ({"M": True, "N": 4}, "the size M must be an integer, not True", "M=64, N=4"),
        ({"M": "3", "N": 4}, "the size M must be an integer, not '3'", "M=64, N=4"),
        ({"M": None, "N": 4}, "the size M must be an integer, not None", "M=64, N=4"),
    ],
)
def test_sizes(sizes, what, example):
    f = body(nest("y[i, j] = x[i, j]"))
    with pytest.raises(ProgramError, match=what) as caught:
        f.at(**sizes)
    assert "f has the sizes M, N" in caught.value.where
    assert caught.value.hint == f".at({example})"


@pytest.mark.parametrize(
    ("text", "sizes", "what", "why"),
    [
        (
            nest("y[i, j] = x[i, j + 1]"),
            {"M": 3, "N": 4},
            "the index j + 1 of x leaves the array: it reaches 4",
            "dimension 1 of x has the elements 0 … 3",
        ),
        (nest("y[i, j] = x[i, j - 1]"), {"M": 3, "N": 4}, "it reaches -1", "0 … 3"),
        (nest("y[i, j] = x[i, 7]"), {"M": 3, "N": 7}, "it reaches 7", "0 … 6"),
        (nest("y[i, j] = x[j, i]"), {"M": 3, "N": 7}, "the index j of x leaves the array: it reaches 6", "dimension 0"),
        (nest("y[i, j] = x[i, j % (N - M)]"), {"M": 4, "N": 4}, "divides by 0", "positive integer"),
        ("for i in range(0, M, M - N):\n    y[i, 0] = x[i, 0]", {"M": 4, "N": 4}, "the step of a range is 0", "advance"),
        (
            nest("t = ex.local(ex.f32, N - M)\nt[0] = x[i, j]\ny[i, j] = t[0]"),
            {"M": 4, "N": 3},
            "the extent N - M is -1",
            "at least 0",
        ),
    ],
)
def test_refused_at_some_sizes_only(text, sizes, what, why):
    f = body(text)
    with pytest.raises(ProgramError) as caught:
        f.at(**sizes)
    assert what in caught.value.what
    assert why in caught.value.why
    assert caught.value.line >= 3


def test_a_negative_extent_at_some_sizes():
    f = body("y[0] = x[0]", "x: ex.f32[N], y: ex.f32[N - M + 1]")
    f.at(M=2, N=4)
    with pytest.raises(ProgramError, match="y has a negative extent") as caught:
        f.at(M=9, N=4)
    assert caught.value.why == "with N=4, M=9"


@pytest.mark.parametrize("names", ["", "M M", "1x", "M-N", "é"])
def test_size_names(names):
    with pytest.raises(ProgramError, match="does not name sizes"):
        define(f"ex.sizes({names!r})")


@pytest.mark.parametrize(
    "line", ["ex.exp(1.0)", "ex.max(1, 2)", "ex.local(ex.f32)", "ex.f32(3)", "ex.where(True, 1, 2)", "ex.cast(1, ex.f32)"]
)
def test_the_words_mean_nothing_outside(line):
    with pytest.raises(ProgramError, match="has no value outside a program"):
        define(line)


def test_a_size_used_outside_says_what_it_is():
    with pytest.raises(ProgramError, match="the size M has no value yet"):
        define("range(M)")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("ex.program(3)", "@ex.program expects a function, not int"),
        ("class C: pass\nex.program(C)", "@ex.program expects a function, not type"),
        ("f = ex.program(lambda x: x)", "the source of <lambda> does not match the function"),
        ("@ex.program\nasync def f(x: ex.f32[N]):\n    x[0] = 1.0", "the source of f does not match the function"),
    ],
)
def test_only_functions_are_decorated(text, what):
    with pytest.raises(ProgramError) as caught:
        define(text)
    assert what in caught.value.what
    assert caught.value.hint


def test_the_message_reads_as_a_compiler_would_say_it():
    with pytest.raises(ProgramError) as caught:
        body(nest("y[i, j] = x[i * j, j]"))
    lines = str(caught.value).splitlines()
    assert lines[0] == "i * j is not affine"
    assert lines[1].endswith(".py:5")
    assert lines[2] == "    y[i, j] = x[i * j, j]"
    assert lines[3] == "                ^^^^^"
    assert lines[-1].startswith("  try: ")
    assert "1009" not in str(caught.value)
