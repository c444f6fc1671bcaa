"""Other spellings of a move's arguments are recorded in one, so that scripts and saved schedules do not depend on them."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

import numpy as np
import pytest

import explorer as ex
from explorer.errors import TransformError
from explorer.steps.calls import construct, read_call
from explorer.transforms.base import catalogue, misfit
from explorer.transforms.bind import Bind
from explorer.transforms.coalesce import Coalesce
from explorer.transforms.reorder import Reorder
from explorer.transforms.tile import Tile

M, N = ex.sizes("M N")


@ex.program
def copied(x: ex.f32[M, N], y: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            y[i, j] = x[i, j]


SPELLINGS = [
    ("tile(('i', 'j'), 16)", "tile(('i', 'j'), (16, 16))"),
    ("tile(['i', 'j'], [16])", "tile(('i', 'j'), (16, 16))"),
    ("tile('i', 'j', 16)", "tile(('i', 'j'), (16, 16))"),
    ("tile('i', 'j', 16, 8)", "tile(('i', 'j'), (16, 8))"),
    ("tile('j', 16)", "tile(('j',), (16,))"),
    ("reorder('j', 'i')", "reorder(('j', 'i'))"),
    ("coalesce('i', 'j')", "coalesce(('i', 'j'))"),
    ("bind('i', 'blockIdx.x')", "bind('i', 'block.x')"),
    ("bind('j', 'threadIdx.y', 8)", "bind('j', 'thread.y', count=8)"),
]


@pytest.mark.parametrize(("written", "recorded"), SPELLINGS)
def test_a_call_is_recorded_in_one_spelling(written: str, recorded: str) -> None:
    start = copied.schedule(M=64, N=48)
    new = eval(f"s.{written}", {"s": start})
    assert [str(step) for step in new.steps] == [recorded]
    assert new == eval(f"s.{recorded}", {"s": start})
    assert copied.load(new.to_json()) == new
    assert read_call(written) == new.steps[0]


def test_a_step_made_by_its_class_is_the_same_value() -> None:
    assert Tile(("i", "j"), 16) == Tile(("i", "j"), (16, 16))  # type: ignore[arg-type]
    assert Bind("i", "threadIdx.x") == Bind("i", "thread.x")
    assert Reorder("i") == Reorder(("i",))  # type: ignore[arg-type]
    assert Coalesce("i.i") == Coalesce(("i.i",))  # type: ignore[arg-type]


@pytest.mark.parametrize(("written", "words"), [
    ("tile(('i', 'j'), (16, 8, 4))", "2 loops cannot be tiled by 3 sizes"),
    ("reorder('j', 16)", "wrong arguments"),
    ("bind('i', 'blockDim.x')", "there is no place 'blockDim.x'"),
    ("bind('i', 'threadIdx.w')", "there is no place 'threadIdx.w'"),
])
def test_what_is_not_a_spelling_is_refused(written: str, words: str) -> None:
    with pytest.raises(ex.TransformError) as caught:
        eval(f"s.{written}", {"s": copied.schedule(M=64, N=48)})
    assert words in str(caught.value)


@pytest.mark.parametrize(("written", "hint"), [
    ("unroll('i', 4)", "unroll takes the whole loop: split('i', 4).unroll('i.i')"),
    ("vectorize('j', 4)", "split('j', 4).vectorize('j.i')"),
    ("bind(('i', 'j'), ('block.x', 'thread.x'))", "bind('i', 'block.x').bind('j', 'thread.x')"),
])
def test_what_was_meant_is_said_of_text_too(written: str, hint: str) -> None:
    with pytest.raises(ex.TransformError) as caught:
        read_call(written)
    assert hint in caught.value.hint
    with pytest.raises(ex.TransformError) as caught:
        eval(f"s.{written}", {"s": copied.schedule(M=64, N=48)})
    assert hint in caught.value.hint


@pytest.mark.parametrize(("call", "hint"), [
    (lambda s: s.split("j", 2.5), "split('j', 2)"),
    (lambda s: s.split("j", 4.0), "split('j', 4)"),
    (lambda s: s.split("j", np.float32(3.7), "q"), "split('j', 4, inner='q')"),
    (lambda s: s.split("j", "4"), "split('j', 4)"),
    (lambda s: s.split("j", 0.2), "split('j', 1)"),
    (lambda s: s.tile(("i", "j"), (8.0, 2.5)), "tile(('i', 'j'), (8, 2))"),
    (lambda s: s.tile("i", "j", 2.5), "tile(('i', 'j'), (2, 2))"),
    (lambda s: s.bind("j", "thread.x", 7.9), "bind('j', 'thread.x', count=8)"),
    (lambda s: s.shift("j", -0.4), "shift('j', -1)"),
    (lambda s: s.pipeline("j", 99.5), "pipeline('j', 8)"),
    (lambda s: s.counterexample("split", "j", 2.5), "split('j', 2)"),
    (lambda s: s.split("j", 0), "split('j', 2), or another integer"),
    (lambda s: s.split("j", float("nan")), "split(loop, factor, inner, aligned)"),
    (lambda s: s.split("j", 1e300), "split(loop, factor, inner, aligned)"),
    (lambda s: s.split(3, 2.5), "split(loop, factor, inner, aligned)"),
])
def test_a_number_that_is_none_is_answered_with_the_nearest(call: Any, hint: str) -> None:
    with pytest.raises(TransformError) as caught:
        call(copied.schedule(M=64, N=48))
    assert caught.value.hint == hint


GIVEN: dict[str, Any] = {"loops": ("i", "j"), "ints": (8, 4), "int": 4, "bool": True}
NUMBERS = [(kind, f.name) for kind in catalogue().values() for f in fields(kind) if f.metadata["kind"] in ("int", "ints")]


def made_with(kind: Any, number: str, wrong: float) -> dict[str, Any]:
    """What a move needs, and a number of it that is no integer."""
    several = next(f for f in fields(kind) if f.name == number).metadata["kind"] == "ints"
    given = {f.name: f.metadata["choices"][0] if f.metadata["kind"] == "choice" else GIVEN.get(f.metadata["kind"], "j")
             for f in fields(kind) if f.default is MISSING}
    return {**given, number: (wrong, 8) if several else wrong}


def check_proposed(kind: Any, hint: str) -> None:
    step = read_call(hint)
    assert type(step) is kind
    assert not any(misfit(f, getattr(step, f.name)) for f in fields(kind))


@pytest.mark.parametrize(("kind", "number"), NUMBERS, ids=[f"{kind.name}.{number}" for kind, number in NUMBERS])
def test_every_number_of_every_move(kind: Any, number: str) -> None:
    for wrong in (2.5, 4.0):
        with pytest.raises(TransformError) as caught:
            getattr(copied.schedule(M=64, N=48), kind.name)(**made_with(kind, number, wrong))
        check_proposed(kind, caught.value.hint)


@pytest.mark.parametrize(("kind", "number"), NUMBERS, ids=[f"{kind.name}.{number}" for kind, number in NUMBERS])
def test_every_number_in_text_and_in_a_form(kind: Any, number: str) -> None:
    """Both have one kind of number: 4.0 is 4, and 2.5 is answered."""
    def text(wrong: float) -> str:
        return f"{kind.name}({', '.join(f'{n}={value!r}' for n, value in made_with(kind, number, wrong).items())})"

    with pytest.raises(TransformError) as caught:
        read_call(text(2.5))
    check_proposed(kind, caught.value.hint)
    with pytest.raises(TransformError) as caught:
        construct(kind, {n: str(v) if n == number else v for n, v in made_with(kind, number, 2.5).items()})
    check_proposed(kind, caught.value.hint)
    assert getattr(read_call(text(4.0)), number) in (4, (4, 8))
