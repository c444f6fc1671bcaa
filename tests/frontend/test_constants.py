"""Numbers from outside: elements of tuples, lists, dicts and arrays at constant places are constants, as plain names are."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import explorer as ex
from explorer.errors import ProgramError
from explorer.steps.saved import decorated
from tests.frontend.support import define

TEXT = """@ex.program
def f(x: ex.f32[16], y: ex.f32[16]):
    for i in range({bound}):
        y[i] = x[i] * {factor}
"""


class Settings:
    tile, weights = 8, [0.25, 0.5]


GIVEN: dict[str, Any] = {"SIZES": (16, 4), "TABLE": {"n": 8, "w": (0.5, 0.75)}, "WEIGHTS": np.array([0.5, 0.25], np.float32),
                         "Settings": Settings, "DEEP": [[1.5], [2.5]]}


@pytest.mark.parametrize(("bound", "factor", "trips", "value"), [
    ("SIZES[0]", "2.0", 16, 2.0), ("SIZES[-1] * 2", "2.0", 8, 2.0), ("TABLE['n']", "TABLE['w'][1]", 8, 0.75),
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


def test_a_function_without_decorator_gets_one_in_its_script() -> None:
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
