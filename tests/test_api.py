"""What users hold: a schedule's moves, its history, other sizes, and what it says when it is asked for the wrong thing."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

import explorer as ex
from explorer.transforms.base import catalogue
from explorer.transforms.bind import Bind
from explorer.transforms.split import Split
from tests.programs import row_sum

M, N = ex.sizes("M N")


@ex.program
def running(x: ex.f32[N], y: ex.f32[N]):
    y[0] = x[0]
    for k in range(1, N):
        y[k] = y[k - 1] + x[k]


def start() -> ex.Schedule:
    return row_sum.schedule(M=37, N=100)


def made() -> ex.Schedule:
    return start().split("k", 32).bind("i", "block.x").bind("k.i", "thread.x").collect("y", "shuffle")


def test_every_move_is_a_method_with_its_documentation() -> None:
    s = start()
    for name, kind in catalogue().items():
        assert name in dir(s)
        assert getattr(s, name).__name__ == name
        assert getattr(s, name).__doc__ == kind.__doc__
        for alias in kind.aliases:
            assert getattr(s, alias).__name__ in catalogue()


def test_a_move_makes_a_new_schedule() -> None:
    s = start()
    new = s.split("k", 32)
    assert type(new) is ex.Schedule
    assert s.steps == ()
    assert new.steps == (Split("k", 32),)
    assert set(new.plan.loops) == {"i", "k", "k.i"}
    assert set(s.plan.loops) == {"i", "k"}
    assert s.split(loop="k", factor=32) == s.split("k", factor=32) == s.apply(Split("k", 32)) == new
    assert new.definition is s.definition is row_sum
    assert s.tile(["i"], [4]) == s.tile(("i",), (4,))


@pytest.mark.parametrize(("word", "near"), [("spilt", "split"), ("splitt", "split"), ("unrol", "unroll"), ("kernal", "kernel")])
def test_a_misspelt_move_is_answered_with_the_nearest(word: str, near: str) -> None:
    with pytest.raises(AttributeError, match=f"no move or attribute '{word}'; did you mean .*{near}"):
        getattr(start(), word)
    assert not hasattr(start(), "zzzzzz")
    assert not hasattr(start(), "_split")


@pytest.mark.parametrize(("args", "kwargs", "words"), [
    ((), {}, "missing 2 required positional arguments: 'loop' and 'factor'"),
    (("k",), {}, "missing 1 required positional argument: 'factor'"),
    (("k", 4, "t", True, 9), {}, "takes from 3 to 5 positional arguments but 6 were given"),
    (("k", 4), {"foo": 1}, "unexpected keyword argument 'foo'"),
    (("k", 4), {"factor": 4}, "multiple values for argument 'factor'"),
])
def test_wrong_arguments_are_a_sentence(args: tuple, kwargs: dict, words: str) -> None:
    with pytest.raises(ex.TransformError, match="split was called with the wrong arguments") as caught:
        start().split(*args, **kwargs)
    assert words in caught.value.why
    assert caught.value.hint == "split(loop, factor, inner, aligned)"


@pytest.mark.parametrize("move", [
    lambda s: s.split("q", 4), lambda s: s.split("k", 0), lambda s: s.interchange("i", "k"), lambda s: s.bind("i", "nowhere"),
    lambda s: s.coalesce(("i", "k")), lambda s: s.collect("y", "shuffle"), lambda s: s.unroll("S0"),
])
def test_a_refused_move_leaves_the_schedule_as_it_was(move) -> None:
    s = start()
    before = (str(s), s.steps, s.plan, s.cuda)
    with pytest.raises(ex.TransformError) as caught:
        move(s)
    assert caught.value.what
    assert (str(s), s.steps, s.plan, s.cuda) == before


def test_an_illegal_move_names_the_instances_and_leaves_the_schedule_as_it_was() -> None:
    s = running.schedule(N=10)
    before = str(s)
    with pytest.raises(ex.IllegalSchedule) as caught:
        s.bind("k", "thread.x")
    finding = caught.value.finding
    assert (str(finding.source), str(finding.sink)) == ("S0[]", "S1[1]") or finding.source.statement == "S1"
    assert finding.array == "y"
    assert caught.value.where.startswith("source line")
    assert caught.value.program is s.source
    assert str(s) == before


def test_undo_takes_back_steps() -> None:
    s = made()
    assert s.undo() == s.undo(1)
    assert s.undo().steps == s.steps[:-1]
    assert s.undo(0) == s
    assert s.undo(4) == start()
    with pytest.raises(ex.TransformError, match="takes back more steps than there are"):
        s.undo(99)
    assert s.undo(2).bind("k.i", "thread.x").collect("y", "shuffle") == s
    assert type(s.undo()) is ex.Schedule


def test_replay_applies_the_steps_to_the_program_as_written() -> None:
    s = made()
    assert start().replay(s.steps) == s
    assert s.replay(()) == start()
    assert s.replay(s.steps[:2]).steps == s.steps[:2]
    with pytest.raises(ex.TransformError, match=r"there is no loop 'k\.i'"):
        s.replay(s.steps[2:])


def test_other_sizes() -> None:
    s = made()
    other = s.at(M=5, N=1000)
    assert other.steps == s.steps
    assert dict(other.source.sizes) == {"M": 5, "N": 1000}
    assert other.plan.loops["k"].extent == 32
    assert s.at(M=5).source.sizes == (("M", 5), ("N", 100))
    assert s.at() == s
    assert other.at(M=37, N=100) == s
    with pytest.raises(ex.TransformError, match="at most 1024 places"):
        start().bind("k", "thread.x").at(N=2000)
    bare = ex.Schedule.of(s.source)
    with pytest.raises(ex.ReplayError, match="without its definition"):
        bare.at(M=4)


def test_what_a_schedule_says_of_itself() -> None:
    s = made()
    assert repr(s).splitlines()[0] == "row_sum(M=37, N=100), 4 steps"
    assert repr(start().split("k", 32)).splitlines()[0].endswith("1 step")
    assert str(s).startswith("kernel row_sum")
    assert str(s) in repr(s)
    assert s.judgement.legal
    assert s.obligations == ()
    opened = s.undo()
    assert [f.question for f in opened.obligations] == ["obligation"]
    with pytest.raises(ex.IllegalSchedule, match="would race"):
        _ = opened.cuda
    assert {d.array for d in s.dependences.ordered} == {"y"}


def test_text_and_its_lines() -> None:
    s = made()
    module = s.module()
    assert module.text == s.cuda
    assert module.launches[0].grid == (37, 1, 1)
    assert module.launches[0].block == (32, 1, 1)
    (first, last), *_ = module.source_map["S0"]
    assert any("// S0" in line for line in module.text.splitlines()[first - 1: last])
    assert module.nodes_at(last)[0] == "S0"
    assert s.kernel("A100-40GB").gpu.name == "A100-40GB"
    assert s.module("sm_80").text
    assert "sectors" in str(s.facts)


def test_schedules_are_values() -> None:
    s = made()
    assert s == made()
    assert len({s.plan, made().plan}) == 1
    assert copy.copy(s) == s
    assert pickle.loads(pickle.dumps(s.plan)) == s.plan
    with pytest.raises(AttributeError):
        s.steps = ()  # type: ignore[misc]


def test_files(tmp_path: Path) -> None:
    s = made()
    assert row_sum.load(s.save(tmp_path / "row_sum.json")) == s
    assert s.export(tmp_path / "row_sum").name == "row_sum.cu"
    text = (tmp_path / "row_sum.cu").read_text()
    assert "s = s.split('k', 32)" in text
    assert "int main" in text


def test_a_refused_move_can_be_run() -> None:
    s = row_sum.schedule(M=3, N=8)
    found = s.counterexample("bind", "k", "thread.x")
    assert found.caught
    assert found.array == "y"
    assert found.got != found.expected
    assert s.counterexample(Bind("k", "thread.x")).caught
    with pytest.raises(ex.TransformError, match="no move 'bound'"):
        s.counterexample("bound", "k")
