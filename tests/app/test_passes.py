"""The kernels after a pass, as the front end asks for them."""

from __future__ import annotations

import pytest

from explorer import strategies
from explorer.app.panes import cuda as pane
from explorer.app.session import Session
from explorer.kernel import emit, passes, stages

from .front import Front, schedule, text_of


@pytest.fixture
def shown() -> Front:
    f = Front(Session(strategies.auto(schedule("layernorm", M=8, N=1024))))
    f.ask("ready", wait=True)
    return f


def lines(shown: list[str]) -> list[str]:
    return [text_of(line) for line in shown]


def test_the_pane_lists_the_passes_in_order(shown: Front) -> None:
    assert [p["name"] for p in shown.panes["cuda"]["passes"]] == list(passes.names())
    assert all(p["what"].endswith(".") for p in shown.panes["cuda"]["passes"])


def test_a_pass_is_answered_with_its_lines_nodes_and_changes(shown: Front) -> None:
    found = shown.data("ir", after="vectorize")
    wanted = shown.session.schedule.ir(after="vectorize")
    assert lines(found["lines"]) == wanted.text.split("\n")
    assert tuple(found["changed"]) == wanted.changed
    assert found["change"] == f"{len(wanted.changed)} lines changed"
    own = [lines(found["lines"])[n - 1] for n in found["nodes"]["S5"]]
    assert any("rsqrtf" in line for line in own)
    assert {n for one in found["nodes"].values() for n in one} <= set(range(1, len(found["lines"]) + 1))


def test_after_the_last_pass_stand_the_kernels_of_the_text(shown: Front) -> None:
    whole, last = shown.panes["cuda"], shown.data("ir", after=passes.names()[-1])
    above = len(whole["lines"]) - len(last["lines"])
    assert last["lines"] == whole["lines"][above:]
    assert last["nodes"] == {node: [n - above for n in numbers] for node, numbers in whole["nodes"].items()}


def test_it_is_of_the_schedule_and_the_gpu_that_are_shown(shown: Front) -> None:
    before = shown.data("ir", after="place_guards")
    shown.ask("goto", state="h3")
    assert shown.data("ir", after="place_guards") != before
    shown.ask("redo")
    shown.ask("target", gpu="T4")
    assert lines(shown.data("ir", after="place_guards")["lines"]) == (
        stages.stage(shown.session.schedule.plan, "place_guards", "sm_75").text.split("\n"))


def test_texts_are_made_when_they_are_asked_for_and_once(shown: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    real = emit.emit
    monkeypatch.setattr(emit, "emit", lambda *given, **options: made.append(options["after"]) or real(*given, **options))
    stages._kernels.cache_clear()
    pane.after_pass.cache_clear()
    shown.ask("undo", wait=True)
    assert not made
    for name in ("vectorize", "first_writes", "vectorize"):
        shown.data("ir", after=name)
    assert made == ["vectorize", "batch_loads", "first_writes"]


def test_an_unknown_pass_and_an_open_obligation_are_refused(shown: Front) -> None:
    assert "there is no pass 'nothing'" in shown.problem("ir", after="nothing")["what"]
    f = Front(Session(schedule("softmax", "bind('k', 'thread.x')", M=6, N=12)))
    assert f.problem("ir", after="vectorize")["hints"]


def test_a_long_text_is_cut_and_says_so(shown: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pane, "MOST", 24)
    pane.after_pass.cache_clear()
    found = shown.data("ir", after="vectorize")
    pane.after_pass.cache_clear()
    assert len(found["lines"]) == 24
    assert found["truncated"].startswith("the first 24 of ")
    assert found["changed"]
    assert max(found["changed"]) <= 24
