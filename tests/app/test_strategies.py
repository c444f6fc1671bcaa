"""Strategies in the explorer: made in a thread, shown step by step, each step an ordinary entry of the history."""

from __future__ import annotations

import threading

import pytest

from explorer.app import planning
from explorer.app.recipes import MAKERS, recipe, replayed
from explorer.errors import ReplayError, ScheduleError, TransformError
from explorer.gpu.spec import default_gpu
from explorer.steps.calls import read_call
from explorer.strategies import auto, default, stitch

from .front import Front, front


@pytest.fixture
def shown() -> Front:
    f = front("softmax", M=6, N=64)
    f.ask("ready", wait=True)
    return f


def test_the_steps_are_those_of_the_strategy(shown: Front) -> None:
    start = shown.session.schedule
    for name, strategy in (("auto", auto), ("default", default), ("stitch", stitch)):
        shown.ask("strategy", wait=True, name=name)
        pane = shown.panes["strategy"]
        assert (pane["status"], pane["name"], pane["at"]) == ("done", name, 0)
        assert [s["call"] for s in pane["steps"]] == [str(s) for s in strategy(start).steps]
        assert all(s["words"] for s in pane["steps"])
    assert len(shown.session.history.states) == 1, "showing a strategy changes nothing"


def test_the_estimate_falls_and_rests_while_a_reduction_is_open(shown: Front) -> None:
    shown.ask("strategy", wait=True, name="auto")
    pane = shown.panes["strategy"]
    known = [s["estimate_us"] for s in pane["steps"]]
    assert known[-1] < pane["start_us"]
    for step in pane["steps"]:
        assert (step["estimate_us"] is None) == (step["open"] > 0)
    assert any(s["open"] for s in pane["steps"])
    assert any(text.startswith("requested ") for s in pane["steps"] for text in s["effects"])
    assert pane["total_us"] > 0


def test_the_model_of_a_stitching_is_shown_in_terms(shown: Front) -> None:
    shown.ask("strategy", wait=True, name="stitch")
    pane = shown.panes["strategy"]
    assert sum(us for _, us in pane["terms"]) == pytest.approx(pane["total_us"], abs=0.05)
    assert "peak, total, y" in pane["summary"]


def test_steps_forward_and_back_are_entries_of_the_history(shown: Front) -> None:
    shown.ask("strategy", wait=True, name="default")
    steps = [s["call"] for s in shown.panes["strategy"]["steps"]]
    for to in range(1, len(steps) + 1):
        shown.ask("strategy_step", to=to)
        assert [str(s) for s in shown.session.schedule.steps] == steps[:to]
        assert shown.panes["strategy"]["at"] == to
        assert shown.panes["history"]["states"][-1]["call"] == steps[to - 1]
    assert len(shown.panes["history"]["states"]) == len(steps) + 1
    shown.ask("strategy_step", to=1)
    assert shown.panes["strategy"]["at"] == 1
    shown.ask("undo")
    assert shown.panes["strategy"]["at"] == 0
    shown.ask("apply", call="split('k', 4)")
    assert shown.panes["strategy"]["at"] is None
    shown.ask("strategy_step", to=0)
    assert shown.panes["strategy"]["at"] == 0


def test_all_at_once_is_one_action(shown: Front) -> None:
    shown.ask("strategy", wait=True, name="auto")
    count = len(shown.panes["strategy"]["steps"])
    shown.ask("strategy_step", to=count, whole=True)
    assert [s["title"] for s in shown.panes["history"]["states"]][1:] == [f"auto · {count} steps"]
    assert shown.panes["head"]["undo"] == f"auto · {count} steps"
    assert shown.panes["cuda"]["lines"]
    assert shown.session.script.count("\n") >= count
    shown.ask("undo")
    assert shown.session.history.current == "h0"
    shown.ask("redo")
    assert shown.panes["strategy"]["at"] == count
    shown.ask("strategy_step", to=count - 1)
    assert len(shown.panes["history"]["states"]) == count + 1, "one has looked inside"
    shown.ask("undo")
    assert shown.panes["strategy"]["at"] == count - 2


def test_a_strategy_begins_with_the_program_as_written(shown: Front) -> None:
    shown.ask("apply", call="split('k', 4)")
    shown.ask("strategy", wait=True, name="default")
    assert shown.panes["strategy"]["at"] is None
    shown.ask("strategy_step", to=1)
    assert shown.session.history.state.parent == "h0"


def test_progress_is_told_and_it_can_be_stopped(shown: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def slow(start, name, gpu, tell):  # type: ignore[no-untyped-def]
        tell("half of it", 0.5)
        inside.set()
        assert go_on.wait(10)
        return recipe(start, name, gpu, tell)

    monkeypatch.setattr(planning, "recipe", slow)
    shown.ask("strategy", name="auto")
    assert inside.wait(10)
    assert (shown.panes["strategy"]["status"], shown.panes["strategy"]["doing"]) == ("running", "half of it")
    assert shown.panes["strategy"]["fraction"] == 0.5
    shown.ask("select", node="k")
    assert shown.panes["selection"]["node"] == "k", "the dispatcher answers meanwhile"
    shown.ask("strategy_stop")
    assert shown.panes["strategy"]["status"] == "cancelled"
    go_on.set()
    assert shown.dispatcher.wait()
    assert shown.panes["strategy"]["status"] == "cancelled"
    assert "no strategy" in shown.problem("strategy_step", to=1)["what"]


def test_what_cannot_be_is_said(shown: Front) -> None:
    assert "no strategy 'best'" in shown.problem("strategy", name="best")["what"]
    assert "no strategy has been asked for" in shown.problem("strategy_step", to=1)["what"]
    shown.ask("strategy", wait=True, name="default")
    for to in (-1, 99, "x", None, True):
        assert "no step" in shown.problem("strategy_step", to=to)["what"]
    with pytest.raises(ScheduleError, match="no strategy 'zz'"):
        recipe(shown.session.schedule, "zz", default_gpu(), lambda *_: None)


def test_a_strategy_that_fails_says_why(shown: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(start, gpu, tell):  # type: ignore[no-untyped-def]
        raise TransformError("nothing here to stitch", why="one value only", hint="default")

    monkeypatch.setitem(MAKERS, "stitch", refuse)
    shown.ask("strategy", wait=True, name="stitch")
    pane = shown.panes["strategy"]
    assert (pane["status"], pane["steps"], pane["problem"]["what"]) == ("failed", [], "nothing here to stitch")
    assert "no strategy" in shown.problem("strategy_step", to=0)["what"]
    shown.ask("strategy", wait=True, name="default")
    assert shown.panes["strategy"]["problem"] is None


def test_a_step_that_cannot_stand_alone_is_named(shown: Front) -> None:
    steps = tuple(map(read_call, ("split('k', 4)", "bind('zz', 'thread.x')")))
    with pytest.raises(ReplayError, match=r"step 2, bind\('zz', 'thread.x'\), does not apply by itself"):
        replayed(shown.session.schedule, steps, default_gpu(), lambda *_: None)
