"""The way back after a restart: text that needs no other cell, and what the front end asks for when the kernel has gone."""

from __future__ import annotations

import base64
import json
import re
from html import unescape

import pytest

import explorer as ex
from explorer.app.picture import static_html, static_text
from explorer.app.resume import brought_back, opened
from explorer.app.session import Session
from explorer.app.whole_script import whole_script
from explorer.errors import ReplayError
from tests.app.front import schedule

SCALE = 3


def scaled() -> ex.Schedule:
    N = ex.sizes("N")

    @ex.program
    def scaled_copy(x: ex.f32[N], y: ex.f32[N]):  # type: ignore[no-untyped-def]
        for i in range(N):
            y[i] = x[i] * SCALE

    return scaled_copy.schedule(N=64)  # type: ignore[attr-defined]


def session() -> Session:
    made = Session(scaled())
    made.write(f"{made.script}# blocks of four\ns = s.split('i', 4)\ns = s.bind('i', 'block.x')\n")
    return made


def test_the_whole_script_needs_no_other_cell() -> None:
    text = whole_script(session())
    names: dict[str, object] = {}
    found = brought_back(text, selected="i.i")
    assert "SCALE = 3" in text, "constants of the notebook go with it"
    assert [str(s) for s in found.schedule.steps] == ["split('i', 4)", "bind('i', 'block.x')"]
    assert found.schedule.source.source == session().schedule.source.source
    assert "# blocks of four" in found.script
    assert found.session.selected == "i.i"
    assert whole_script(found.session) == text, "it comes back again and again"
    assert not names


@pytest.mark.parametrize("comment", ['# """ in quotes', "# a \\ backslash", "# Σ and \U0001f600"])
def test_a_comment_survives_whatever_stands_in_it(comment: str) -> None:
    made = Session(scaled())
    made.write(f"{made.script}{comment}\ns = s.split('i', 4)\n")
    assert comment in brought_back(whole_script(made)).script


def test_the_front_end_gets_the_new_widget_and_its_picture() -> None:
    data = json.loads(base64.b64decode(opened(whole_script(session()), target="T4")))
    assert data["view"]["application/vnd.jupyter.widget-view+json"]["model_id"] == data["widget"]
    assert "ex-static" in data["still"]["text/html"]


@pytest.mark.parametrize("text", ["", "x = 1", "1 + 1"])
def test_a_text_that_opens_nothing_says_so(text: str) -> None:
    with pytest.raises(ReplayError, match="does not open an explorer"):
        brought_back(text)


def test_the_picture_holds_the_whole_way_back_and_nothing_of_it_is_cut() -> None:
    made = Session(schedule("softmax"))
    for n in range(120):
        made.write(f"{made.script}# {'a long remark that fills its line ' * 6}{n}\n")
    html = static_html(made)
    shown = unescape(re.sub(r"<[^>]*>", "", html[html.index("to go on after a restart") :]))
    for line in whole_script(made).splitlines():
        assert line in shown
    assert "more lines" not in shown
    assert "new cell" in shown, "running the explorer's own cell again would take the picture away"
    assert "user-select:all" in html
    assert whole_script(made) in static_text(made)


def test_steps_that_were_one_action_are_one_again() -> None:
    made = session()
    made.take(["s.split('i.i', 2)", "s.unroll('i.i')"], "two at once")
    actions = json.dumps(made.history.actions())
    assert json.loads(actions) == [[2, 4, "two at once"]]
    found = brought_back(whole_script(made), actions=actions).session
    assert found.history.action(found.history.current) == "two at once · 2 steps"
    assert len(found.undo().schedule.steps) == 2
    assert len(brought_back(whole_script(made)).session.undo().schedule.steps) == 3  # nobody said that they were one


def test_undo_goes_back_to_what_was_shown() -> None:
    """A strategy begins at the program as written; undo went there, and what had been shown was found in the history alone."""
    made = session()
    was, start = made.history.current, Session(scaled()).schedule
    one = made.follow(start, [(s, d) for s, d in [(made.step("s.split('i', 8)"), start.split("i", 8))]], "another way")
    assert made.undo().id == was
    assert made.redo().id == one.id
    other = made.follow(start, [(made.step("s.split('i', 2)"), start.split("i", 2))], "a third")
    assert made.follow(start, [(made.step("s.split('i', 8)"), start.split("i", 8))], "another way").id == one.id
    assert made.undo().id == other.id
    assert made.undo().id == "h0"  # the way back from the third is forgotten: it would lead in a circle
    assert made.history.before("h0") is None


def test_ways_back_end_at_the_program() -> None:
    """A session hung, or undo went in a circle, where an action ended on the way to what was shown."""
    start = Session(scaled()).schedule
    whole = [start.split("i", 8)]
    whole.append(whole[0].unroll("i.i"))
    steps = [(s.steps[-1], s) for s in whole]
    made = Session(scaled())
    first = made.follow(start, steps, "a strategy").id
    made.apply("s.bind('i', 'block.x')")
    assert made.follow(start, steps, "a strategy").id == first  # what is shown comes after its end
    assert made.undo().id == "h0"
    made = Session(scaled())
    made.follow(start, steps, "a strategy")
    inside = made.follow(start, steps[:1], "a search").id  # the end is inside of the action before
    seen = [inside]
    while made.history.before(seen[-1]) is not None:
        seen.append(made.undo().id)
        assert len(seen) < 5
    assert seen[-1] == "h0"
    made = Session(scaled())
    made.apply("s.bind('i', 'block.x')")
    made.follow(start, steps[:1], "a strategy")
    made.goto("h0")
    made.follow(start, steps[:1], "a strategy")
    assert made.undo().id == "h0"  # and not to what was shown when it was taken first
