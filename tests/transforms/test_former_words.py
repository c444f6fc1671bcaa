"""Arguments under the words of the version before: accepted in calls, scripts and saved files, and written nowhere."""

from __future__ import annotations

import pytest

from explorer.steps.calls import read_call
from explorer.steps.saved import read_json, to_json
from explorer.transforms.collect import Collect
from explorer.transforms.join import Join
from tests.transforms.multiblock import spread

FORMER = (("ticket", "last_block"), ("signal", "handoff"))
"""Words of the version before, and what they are now."""


@pytest.mark.parametrize(("word", "now"), FORMER)
def test_calls_take_the_words_of_the_version_before(word: str, now: str) -> None:
    """In Python and in a script's text; what is recorded and offered has the new words."""
    s = spread("total")
    assert s.collect("y", word).steps == s.collect("y", now).steps
    assert read_call(f"collect('y', '{word}')") == Collect("y", now)
    assert str(Join("total.c", word)) == f"join('total.c', '{now}')"
    assert not [m for m in s.moves("S1") if word in str(m.step)]


@pytest.mark.parametrize(("word", "now"), FORMER)
def test_saved_files_take_the_words_of_the_version_before(word: str, now: str) -> None:
    """They are written with the new words."""
    made = spread("total").collect("y", now)
    text = to_json(made.source, made.steps)
    saved_before = text.replace(f'"{now}"', f'"{word}"')
    assert saved_before != text
    assert read_json(saved_before)[3] == made.steps
    assert to_json(made.source, read_json(saved_before)[3]) == text
