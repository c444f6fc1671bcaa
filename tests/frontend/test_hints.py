"""What a refusal of the front end proposes is itself accepted: hints never lead in circles."""

from __future__ import annotations

import ast
import math
import re
import warnings

import numpy as np
import pytest

import explorer as ex
from explorer.errors import ProgramError
from tests.frontend.refused import CONDITIONS, INDICES, LOOPS, NAMES, STATEMENTS, VALUES
from tests.frontend.support import body, define

HERE = {"math": math, "np": np, "eps": 1e-5, "data": np.zeros(3)}


_BETWEEN = r", then | or (?=[a-zA-Z]+[.(\[ ])|; |, and then | before | on its own|, not |, which | as the "


def fragments(hint: str) -> list[str]:
    """The pieces of a hint that are Python with some arithmetic, access, call or assignment in them."""
    parted = re.split(_BETWEEN, hint)
    pieces = [p.strip(" `.") for p in parted]
    return [p for p in pieces if "…" not in p and "..." not in p and _code(p)]


def _code(piece: str) -> bool:
    try:
        tree = ast.parse(piece if not piece.endswith(":") else f"{piece}\n    pass")
    except SyntaxError:
        return False
    return any(isinstance(n, (ast.Call, ast.Subscript, ast.BinOp, ast.Compare, ast.Assign, ast.For)) for n in ast.walk(tree))


def error_of(text: str) -> ProgramError | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body(text, **HERE)
    except ProgramError as error:
        return error
    except SyntaxError:
        return ProgramError("this is not Python")
    return None


def applied(text: str, error: ProgramError, piece: str) -> list[str]:
    """The program with the piece in the place of what was refused: the marked text, its assignment's value, or its line."""
    lines = text.split("\n")
    number = error.line - 3
    if not 0 <= number < len(lines):
        return []
    line, (_, code, carets) = lines[number], error.where.splitlines()[:3]
    indent = line[: len(line) - len(line.lstrip())]
    start, count = len(carets) - len(carets.lstrip()), carets.count("^")
    code, at = code.strip(), start - (len(code) - len(code.lstrip()))
    forms = [code[:at] + piece + code[at + count:], piece]
    if " = " in code:
        forms.append(f"{code.split(' = ')[0]} = {piece}")
    if piece.endswith(":"):
        forms = [piece]
    else:
        forms += [f"{piece}\n{indent}{code}", f"{code.split('[')[0]}[i, j] = {piece}"]
    before, behind = lines[:number], lines[number + 1:]
    return ["\n".join([*before, *(indent * (n == 0) + row for n, row in enumerate(form.split("\n"))), *behind]) for form in forms]


CASES = [pytest.param(case[1], id=case[0]) for group in (STATEMENTS, LOOPS, NAMES, INDICES, CONDITIONS, VALUES) for case in group]
ABOUT_OTHER_THINGS = ("is never used", "writes nothing", "leaves the array", "is not declared", "unknown name", "is read before")
"""What a program may lack besides, when a piece of a hint stands in it alone."""


@pytest.mark.parametrize("text", CASES)
def test_what_a_hint_proposes_is_accepted(text: str) -> None:
    error = error_of(text)
    assert error is not None
    for piece in fragments(error.hint):
        after = [error_of(form) for form in applied(text, error, piece)]
        assert any(e is None or any(words in e.what for words in ABOUT_OTHER_THINGS) for e in after), (
            f"{error.what!r} proposes {piece!r}: {[e.what for e in after if e]}")


def test_pieces_are_found_at_all() -> None:
    assert fragments("ex.cast(x[i, j], ex.f32)") == ["ex.cast(x[i, j], ex.f32)"]
    assert fragments("a loop with +=") == []
    assert fragments("t = ex.local(ex.f32), then t = … on its own line") == ["t = ex.local(ex.f32)"]
    found = [f for case in CASES if (e := error_of(case.values[0])) for f in fragments(e.hint)]
    assert len(found) > 25


OPERATORS = [
    ("y[i, j] = x[i, j] // 2", "y[i, j] = ex.cast(x[i, j] / 2, ex.i32)"),
]


@pytest.mark.parametrize(("refused", "accepted"), OPERATORS)
def test_an_operator_proposes_one_that_is_accepted_there(refused: str, accepted: str) -> None:
    start = "for i in range(M):\n    for j in range(N):\n        "
    error = error_of(start + refused)
    assert error is not None
    assert fragments(error.hint)
    for piece in fragments(error.hint):
        assert error_of(f"{start}y[i, j] = {piece}") is None, piece
    assert error_of(start + accepted) is None


def test_a_hint_for_a_size_is_accepted() -> None:
    f = define("@ex.program\ndef f(x: ex.f32[M, N], y: ex.f32[M, N]):\n    for i in range(M):\n        y[i, 0] = x[i, 0]")
    with pytest.raises(ProgramError) as caught:
        f.at()
    assert eval(f"f{caught.value.hint}", {"f": f})
    assert ex


def test_a_plain_type_is_a_number_or_an_array() -> None:
    with pytest.raises(ProgramError) as caught:
        define("@ex.program\ndef f(alpha: float, y: ex.f32[M]):\n    y[0] = alpha")
    assert caught.value.hint == "alpha: ex.f32 for a number, alpha: ex.f32[M, N] for an array"
