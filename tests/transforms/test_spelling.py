"""Other spellings of a move's arguments are recorded in one, so that scripts and saved schedules do not depend on them."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.steps.calls import read_call
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
