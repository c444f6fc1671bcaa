"""Numbers from outside: elements of tuples, lists, dicts and arrays at constant places are constants, as plain names are."""

from __future__ import annotations

import linecache
import re
from collections import namedtuple
from enum import Enum, IntEnum
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import explorer as ex
from explorer.errors import ProgramError
from explorer.frontend.preamble import decorated
from tests.frontend.support import define

TEXT = """@ex.program
def f(x: ex.f32[16], y: ex.f32[16]):
    for i in range({bound}):
        y[i] = x[i] * {factor}
"""


class Settings:
    tile, weights = 8, [0.25, 0.5]


GIVEN: dict[str, Any] = {"SIZES": (16, 4), "TABLE": {"n": 8, "w": (0.5, 0.75)}, "WEIGHTS": np.array([0.5, 0.25], np.float32),
                         "Settings": Settings, "DEEP": [[1.5], [2.5]], "LAST": 1, "KEY": "n", "GRID": np.array([[3.0, 4.0]]),
                         "WORD": {"a": "b", "none": None}, "NONE": {}}


@pytest.mark.parametrize(("bound", "factor", "trips", "value"), [
    ("SIZES[0]", "2.0", 16, 2.0), ("SIZES[-1] * 2", "2.0", 8, 2.0), ("TABLE['n']", "TABLE['w'][1]", 8, 0.75),
    ("SIZES[LAST]", "WEIGHTS[LAST - 1]", 4, 0.5),
    ("TABLE[KEY]", "TABLE['w'][-LAST]", 8, 0.75), ("len(WEIGHTS)", "GRID[0, LAST]", 2, 4.0),
    ("len(SIZES)", "WEIGHTS[1]", 2, 0.25), ("Settings.tile", "Settings.weights[0]", 8, 0.25), ("16", "DEEP[1][0]", 16, 2.5),
])
def test_an_element_at_a_constant_place_is_a_constant(bound: str, factor: str, trips: int, value: float) -> None:
    definition = define(TEXT.format(bound=bound, factor=factor), **GIVEN)
    s = definition.schedule()
    assert f"in 0…{trips}" in str(s)
    assert f"x[i] * {value}" in str(s)
    assert s.run(device="cpu", time=False).correct


@pytest.mark.parametrize(("factor", "what", "why"), [
    ("SIZES[i]", "SIZES[i] is not a number", "SIZES is a tuple from outside"),
    ("SIZES[2]", "there is no SIZES[2]", "SIZES has 2 elements"),
    ("TABLE['m']", "there is no TABLE['m']", "TABLE has the keys 'n', 'w'"),
    ("NONE['m']", "there is no NONE['m']", "NONE has 0 elements"),
    ("WORD['a']", "WORD['a'] is not a number", "it is str"), ("WORD['none']", "WORD['none'] is not a number", "it is NoneType"),
    ("SIZES[1.0]", "there is no SIZES[1.0]", "SIZES has 2 elements"),
    ("SIZES[i + LAST]", "SIZES[i + LAST] is not a number", "a tuple"),
])
def test_what_is_no_constant_is_refused_with_what_there_is(factor: str, what: str, why: str) -> None:
    with pytest.raises(ProgramError) as refused:
        define(TEXT.format(bound="16", factor=factor), **GIVEN)
    assert what in refused.value.what
    assert why in refused.value.why


def test_a_script_defines_them() -> None:
    """The values are written above the program, and the script gives the same schedule."""
    sizes = ex.sizes("P Q")
    text = TEXT.format(bound="PAIR[0]", factor="TABLE['w'][1]").replace("16]", "PAIR[0]]")
    s = define(text, PAIR=sizes, TABLE=GIVEN["TABLE"]).schedule(P=8).split("i", 4)
    script, space = s.script(), dict[str, Any]()
    assert "PAIR = (P, Q)" in script
    linecache.cache["script.py"] = (len(script), None, script.splitlines(keepends=True), "script.py")
    exec(compile(script, "script.py", "exec"), space)
    assert str(space["s"]) == str(s)


def again(script: str) -> Any:
    """The schedule that a script makes."""
    space = dict[str, Any]()
    linecache.cache["again.py"] = (len(script), None, script.splitlines(keepends=True), "again.py")
    exec(compile(script, "again.py", "exec"), space)
    return space["s"]


Pair = namedtuple("Pair", "low high")


class Plain:
    def __init__(self) -> None:
        self.n, self.inner = 3, [0.5, {"deep": 0.25}]

    @property
    def broken(self) -> int:
        raise RuntimeError


class Mode(IntEnum):
    A = 3


class Other(Enum):
    TEN = 10


def recursive() -> list[Any]:
    made: list[Any] = [1.5]
    made.append(made)
    return made


@pytest.mark.parametrize(("factor", "given"), [
    ("C.n", Plain()), ("C.inner[1]['deep']", Plain()), ("C['nan']", {"nan": float("nan")}), ("C[0]", [float("inf"), 2.0]),
    ("C[1]", np.array([1.0, 2.0], np.float32)), ("C[0, 1]", np.array([[1, 2]])), ("(C.low + C[1])", Pair(1, 2)),
    ("C.tile", Settings), ("C.A", Mode), ("C.TEN.value", Other), ("C", np.array(3.0)),
    ("C['a']", {"a": 2, "other": object(), 3: Other.TEN}),
    ("ex.cast(C.wide, C.kind)", SimpleNamespace(wide=2.0, kind=ex.f32)),
    ("C.e(2.0)", SimpleNamespace(e=ex.exp)), ("C[0]", recursive()),
    ("C[0][0]", [[1.5]] * 2), ("C[1][0]", [[1.5]] * 2),
])
def test_a_script_gives_every_value_that_the_program_reads(factor: str, given: Any) -> None:
    s = define(TEXT.format(bound="16", factor=factor), C=given).schedule().split("i", 4)
    assert str(again(s.script())) == str(s)


FUNCTIONS = """
def make(c):
    @ex.function
    def g(a):
        return a * c
    return g

def plain(a):
    return a + c[0]

c = [7.0]
three, two, added = make(3), make(2), ex.function(plain)
c = 5

@ex.function
def g(a):
    return two(a) - c

class Held:
    f = three

def nothing(f):
    return f

@nothing
@ex.program
def p(x: ex.f32[N], y: ex.f32[N]):
    for i in range(N):
        y[i] = {value}
"""


@pytest.mark.parametrize("value", ["two(x[i]) + three(x[i])", "g(x[i]) + c", "three(g(x[i])) * two(x[i]) + g(x[i])",
                                   "added(x[i]) + c",
                                   "Held.f(x[i]) + two(x[i])", "added(x[i]) * g(x[i])"])
def test_a_script_gives_each_function_its_own_values(value: str) -> None:
    """Functions of one name, and constants of one name with other values: each text finds what it had where it was defined."""
    s = define(FUNCTIONS.format(value=value)).schedule(N=9).split("i", 4)
    assert str(again(s.script())) == str(s)
    assert s.run(device="cpu", time=False, ragged=False).correct


def test_what_changes_behind_a_definition_does_not_change_the_program() -> None:
    """At new sizes the program is parsed again; its constants are those of its definition, and so are those of its script."""
    class Mode:
        factor = 5.0

    given: dict[str, Any] = {"table": {"n": 2, "w": [0.5]}, "array": np.array([3.0]), "plain": Plain(), "Mode": Mode}
    text = """
@ex.program
def f(x: ex.f32[N], y: ex.f32[N]):
    for i in range(N - table["n"]):
        y[i] = x[i] * table["w"][0] * array[0] * plain.n * Mode.factor * len(table["w"])
"""
    definition = define(text, **given)
    given["table"]["n"] = 7
    given["table"]["w"][0], given["array"][0], given["plain"].n, Mode.factor = 8.0, 9.0, 10, 11.0
    given["table"]["w"].append(1.0)
    s = definition.schedule(N=9)
    assert "in 0…7" in str(s)
    assert "x[i] * 0.5 * 3.0 * 3.0 * 5.0 * 1.0" in str(s)
    assert str(again(s.script())) == str(s)


class Guarded(dict[str, int]):
    def __getitem__(self, key: str) -> int:
        raise RuntimeError


@pytest.mark.parametrize("factor", ["C['m']", "C.broken"])
def test_what_raises_where_it_is_read_is_no_traceback(factor: str) -> None:
    with pytest.raises(ProgramError) as refused:
        define(TEXT.format(bound="16", factor=factor), C=Guarded(n=2) if "[" in factor else Plain())
    assert factor in refused.value.what


def test_an_element_from_outside_is_not_written() -> None:
    text = TEXT.format(bound="16", factor="2.0") + "        DEEP[0][0] = x[i]\n"
    with pytest.raises(ProgramError, match="DEEP") as refused:
        define(text, **GIVEN)
    assert "1.5" not in refused.value.what


@pytest.mark.parametrize("wrong", ["ex.inout(ex.f32[16])", "ex.f32(16)"])
def test_a_type_with_round_brackets_is_told_of_the_others(wrong: str) -> None:
    with pytest.raises(ProgramError) as refused:
        define(TEXT.format(bound="16", factor="2.0").replace("ex.f32[16]", wrong, 1))
    assert "[M, N]" in refused.value.hint


@pytest.mark.parametrize(("number", "held"), [("1e40", "INFINITY"), ("-1e300", "-INFINITY"), ("10**400", "INFINITY"),
                                              ("1e-50", "0.0f"), ("3.4e38", "3.4e+38f")])
def test_numbers_that_the_type_does_not_hold_are_what_it_holds(number: str, held: str) -> None:
    """The kernel multiplies by an infinity there, and so does its reference."""
    s = define(TEXT.format(bound="16", factor=number)).schedule()
    assert held in s.cuda
    assert s.run({"x": np.linspace(-0.02, 0.02, 16, dtype=np.float32)}, device="cpu", time=False, ragged=False).correct
    wide = define(TEXT.format(bound="16", factor="1e40").replace("f32", "f64")).schedule()
    assert "1e+40" in wide.cuda


@pytest.mark.parametrize(("value", "what"), [
    ("x[i] * 10**40", "1e+40 does not fit i64"), ("max(x[i], 2**63)", "does not fit i64"),
    ("x[i] + (-2**63 - 1)", "does not fit i64"),
    ("x[i] if i < 10**400 else 0", "an integer of 1329 bits does not fit i64"),
    ("ex.cast(2**64, ex.i32) + x[i]", "any integer type"),
    ("x[i] << 10**400", "an integer of 1329 bits"),
])
def test_integers_that_no_type_holds_are_refused(value: str, what: str) -> None:
    """The text would hold a constant that no compiler takes."""
    with pytest.raises(ProgramError, match=re.escape(what)):
        define(f"@ex.program\ndef f(x: ex.i32[16], y: ex.i32[16]):\n    for i in range(16):\n        y[i] = {value}\n")
    with pytest.raises(ProgramError, match="1e\\+40 does not fit u64"):
        define("@ex.program\ndef f(x: ex.u64[16], y: ex.u64[16]):\n    for i in range(16):\n        y[i] = x[i] & 10**40\n")


def test_a_function_has_its_decorator_alone_in_its_script() -> None:
    assert decorated("@other\n@e.program\n@third(\n    3)\ndef f(x):\n    pass\n") == "@e.program\ndef f(x):\n    pass"
    assert decorated("@other\ndef f(x):\n    pass\n", "function") == "@other\ndef f(x):\n    pass"
    assert decorated("def f(x):\n    pass\n") == "@ex.program\ndef f(x):\n    pass"
    assert decorated("@ex.program\ndef f(x):\n    pass\n") == "@ex.program\ndef f(x):\n    pass"


def test_a_name_of_the_program_hides_one_from_outside() -> None:
    text = """
@ex.program
def f(SIZES: ex.f32[16], y: ex.f32[16]):
    for i in range(16):
        y[i] = SIZES[0]
"""
    assert "y[i] = SIZES[0]" in str(define(text, **GIVEN).schedule())
