"""Steps as text: what is read, what is refused, and that nothing is ever evaluated."""

from __future__ import annotations

from typing import Any

import pytest

from explorer.errors import TransformError
from explorer.steps.calls import calls_in, construct, find, read_call, title_of
from explorer.transforms.split import Split
from explorer.transforms.tile import Tile


@pytest.mark.parametrize(("text", "step"), [
    ("split('k', 4)", Split("k", 4)),
    ("s.split('k', factor=4)", Split("k", 4)),
    (".split(loop='k', factor=4, inner='kk')", Split("k", 4, "kk")),
    ("divide('k', 4)", Split("k", 4)),
    ("tile(['i', 'j'], (8, 16))", Tile(("i", "j"), (8, 16))),
])
def test_calls_are_read(text: str, step: Any) -> None:
    assert read_call(text) == step
    assert read_call(str(step)) == step


@pytest.mark.parametrize(("text", "words"), [
    ("__import__('os').system('true')", "not a step"),
    ("split(__import__('os'), 4)", "name in quotes"),
    ("split('k', 2 + 2)", "name in quotes"),
    ("split('k', [x for x in 'ab'])", "name in quotes"),
    ("split('k', f'{1}')", "name in quotes"),
    ("split(*['k', 4])", "name in quotes"),
    ("split(**{'loop': 'k'})", "without **"),
    ("split('k', 4, 5, 6, 7)", "at most 4"),
    ("split('k', 4, factor=5)", "twice"),
    ("split('k', 0)", "at least 1"),
    ("split('k')", "wrong arguments"),
    ("split('k', '4; import os')", "wrong arguments"),
    ("bind('k', 'moon')", "wrong arguments"),
    ("frobnicate('k')", "no move"),
    ("exec('1')", "no move"),
    ("split('k', 4) or 1", "not a step"),
    ("lambda: 1", "not a step"),
    ("", "not a step"),
    ("(" * 3000, "not a step"),
    ("split('k', 4)" + " " * 5000, "too long"),
])
def test_everything_else_is_refused(text: str, words: str) -> None:
    with pytest.raises(TransformError) as caught:
        read_call(text)
    assert words in caught.value.what + caught.value.why


def test_each_field_has_its_own_sentence() -> None:
    with pytest.raises(TransformError) as caught:
        construct(find("split"), {"loop": "", "factor": "x", "other": 1})
    assert caught.value.details["errors"] == {"loop": "needed", "factor": "an integer, not 'x'",
                                              "other": "split takes no argument other"}


def test_forms_send_text() -> None:
    assert construct(find("tile"), {"loops": "i, j", "sizes": "8 16"}) == Tile(("i", "j"), (8, 16))
    assert construct(find("split"), {"loop": "k", "factor": "32", "inner": ""}) == Split("k", 32)
    assert construct(find("split"), {"loop": "k", "factor": 32.0}) == Split("k", 32)


def test_steps_are_found_in_sentences() -> None:
    found = list(calls_in("bind('k', 'seq') makes it an ordinary loop again; or split('k', 8), or launch('x', after=…)"))
    assert [str(step) for step in found] == ["bind('k', 'seq')", "split('k', 8)"]


def test_titles_are_short() -> None:
    assert title_of(read_call("split('k', 4, inner='kk')")) == "split k 4 inner=kk"
    assert title_of(read_call("tile(('i', 'j'), (8, 16))")) == "tile i,j 8,16"
