"""The statement graph's editor: every scheme on every edge with its reason or price, and choices made with ordinary steps."""

from __future__ import annotations

from typing import Any

import pytest

from explorer.strategies.stitch import edges, stitching
from explorer.strategies.stitching.graph import SCHEMES

from .front import Front, front


@pytest.fixture
def shown() -> Front:
    f = front("softmax", M=64, N=1024)
    f.ask("ready", wait=True)
    return f


def asked(f: Front) -> dict[str, Any]:
    f.ask("stitching", wait=True)
    return f.panes["stitching"]


def test_nothing_is_tried_before_it_is_asked_for(shown: Front) -> None:
    pane = shown.panes["stitching"]
    assert (pane["status"], pane["edges"], pane["model"]) == ("idle", [], None)
    assert [name for name, _ in pane["schemes"]] == list(SCHEMES)


def test_the_edges_are_those_of_the_strategy(shown: Front) -> None:
    pane = asked(shown)
    assert pane["status"] == "done"
    known = {e.id: e for e in edges(shown.session.schedule)}
    assert [(e["id"], e["kind"], e["producer"], e["consumer"]) for e in pane["edges"]] == [
        (e.id, e.kind, e.producer, e.consumer) for e in known.values()]
    for edge in pane["edges"]:
        for given, option in zip(edge["options"], known[edge["id"]].options, strict=True):
            assert (given["scheme"], given["applies"]) == (option.scheme, bool(option.verdict))
            if given["applies"]:
                assert given["total_us"] == pytest.approx(option.total_us)
                assert (given["saved_bytes"], given["saved_launches"]) == (option.saved_bytes, option.saved_launches)
                assert "against a cut here" in given["words"]
            else:
                assert given["problem"]["what"]
                assert given["total_us"] is None
    model = stitching(shown.session.schedule)
    assert pane["model"]["chosen"] == model.chosen
    assert pane["model"]["steps"] == len(model.schedule.steps)


def test_edges_come_one_by_one(shown: Front) -> None:
    shown.ask("stitching", wait=True)
    told = [m["panes"]["stitching"] for m in shown.messages if m["kind"] == "panes" and "stitching" in m["panes"]]
    known = [sum(bool(e["options"]) for e in pane["edges"]) for pane in told]
    assert known == sorted(known)
    assert {0, 1, 2, 3} <= set(known)
    assert told[-1]["status"] == "done"
    assert all(pane["status"] == "running" for pane in told[:-1])
    assert any("peak → y: trying 7 schemes" in pane["doing"] for pane in told)


def test_a_choice_is_priced_and_others_follow(shown: Front) -> None:
    found = shown.data("stitch_price", choices={"peak->total": "cut"})
    assert found["chosen"]["peak->total"] == "cut"
    assert set(found["chosen"]) == {"peak->total", "peak->y", "total->y"}
    assert len(found["groups"]) == 2
    assert sum(us for _, us in found["terms"]) == pytest.approx(found["total_us"], abs=0.1)
    assert not shown.session.schedule.steps


def test_illegal_choices_say_why_and_what_fits(shown: Front) -> None:
    problem = shown.problem("stitch_price", choices={"peak->total": "recompute"})
    assert "peak->total cannot be 'recompute'" in problem["what"]
    assert "shuffle" in problem["hints"][0]["text"]
    assert "no edge 'q->r'" in shown.problem("stitch_price", choices={"q->r": "cut"})["what"]
    assert "no scheme 'glue'" in shown.problem("stitch_price", choices={"peak->total": "glue"})["what"]
    assert shown.problem("stitch_price", choices=["cut"])["what"] == "no choices were given"


def test_apply_makes_ordinary_steps_in_one_action(shown: Front) -> None:
    choices = {"peak->total": "shared", "total->y": "shared"}
    shown.ask("stitch_apply", wait=True, choices=choices)
    made = stitching(shown.session.history.get("h0").schedule, choices)
    assert shown.session.schedule.plan == made.schedule.plan
    count = len(made.schedule.steps)
    assert shown.panes["head"]["undo"] == f"stitch · {count} steps"
    assert shown.panes["strategy"]["at"] == count
    assert shown.panes["script"]["text"].count("collect(") >= 2
    shown.ask("undo")
    assert shown.session.history.current == "h0"


def test_illegal_choices_are_not_applied(shown: Front) -> None:
    shown.ask("stitch_apply", wait=True, choices={"peak->total": "recompute"})
    assert shown.panes["strategy"]["status"] == "failed"
    assert "cannot be 'recompute'" in shown.panes["strategy"]["problem"]["what"]
    assert len(shown.session.history.states) == 1


def test_other_sizes_are_another_graph(shown: Front) -> None:
    asked(shown)
    shown.ask("apply", call="split('k', 4)")
    assert shown.panes["stitching"]["status"] == "done", "a step changes no edge"
    shown.ask("sizes", sizes={"M": 8})
    assert (shown.panes["stitching"]["status"], shown.panes["stitching"]["edges"]) == ("idle", [])
    assert len(asked(shown)["edges"]) == 3


def test_a_program_without_edges_says_so() -> None:
    f = front("batchnorm_apply")
    f.ask("ready", wait=True)
    pane = asked(f)
    assert (pane["status"], pane["edges"]) == ("failed", [])
    assert "nothing to stitch" in pane["problem"]["what"]


def test_it_can_be_stopped(shown: Front) -> None:
    shown.ask("stitching")
    shown.ask("stitch_stop")
    assert shown.dispatcher.wait()
    assert shown.panes["stitching"]["status"] in ("cancelled", "done")
    assert asked(shown)["status"] == "done"
