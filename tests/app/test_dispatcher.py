"""Requests and answers, each held against the protocol's types by the front end of the tests."""

from __future__ import annotations

from typing import Any

import pytest

from explorer.app.protocol import PANES

from .front import Front, front, shown_code, text_of


@pytest.fixture
def shown() -> Front:
    f = front("softmax", M=6, N=12)
    f.ask("ready", wait=True)
    return f


def texts(rows: list[dict[str, Any]]) -> list[str]:
    return [shown_code(r["html"]) for r in rows]


def test_ready_sends_every_pane(shown: Front) -> None:
    assert set(shown.panes) == set(PANES)
    assert texts(shown.panes["loops"])[:4] == ["kernel softmax", "for i in 0 … 6", "S0\u2002peak[i] = -inf", "for k in 0 … 12"]
    assert shown.panes["selection"]["node"] == shown.panes["moves"]["node"] == "i"
    assert shown.panes["head"]["signature"] == "f16 · M = 6 · N = 12"
    assert [b["state"] for b in shown.panes["head"]["badges"]] == ["earned", "open", "open", "open", "open"]


def test_rows_of_the_tree_have_the_nodes_of_the_loops(shown: Front) -> None:
    shown.ask("apply", call="split('k', 4)")
    rows = shown.panes["tree"]
    assert {"i", "k", "k.i", "S1"} <= {r["node"] for r in rows}
    assert [r["kind"] for r in rows[:4]] == ["domain", "mark", "band", "sequence"]
    assert "S1(i, k) where 0 ≤ i ≤ 5 and 0 ≤ k ≤ 11" in texts(rows)[0]
    band = next(t for r, t in zip(rows, texts(rows), strict=True) if r["kind"] == "band" and r["node"] == "k.i")
    assert band == "band S1(i, k) → (k % 4)"


def test_the_cuda_pane_maps_nodes_to_their_lines(shown: Front) -> None:
    cuda = shown.panes["cuda"]
    lines = [text_of(line) for line in cuda["lines"]]
    assert any("__global__" in line for line in lines)
    assert all("exp" in lines[n - 1] for n in cuda["nodes"]["S4"])
    assert cuda["problem"] is None


def test_an_open_obligation_has_no_text_but_the_step_that_collects(shown: Front) -> None:
    shown.ask("apply", call="bind('k', 'thread.x')")
    assert shown.panes["cuda"]["lines"] == []
    hints = shown.panes["cuda"]["problem"]["hints"]
    assert {"text": "collect('peak', 'shuffle')", "call": "collect('peak', 'shuffle')"} in hints
    assert shown.panes["head"]["obligations"][0]["hints"] == hints
    assert shown.panes["history"]["states"][-1]["obligations"] == 1
    shown.ask("apply", call=hints[0]["call"])
    assert shown.panes["cuda"]["lines"]


def test_a_selection_is_answered_before_its_moves(shown: Front) -> None:
    answers = shown.ask("select", node="k_2")
    assert answers[0]["panes"]["moves"]["pending"]
    assert answers[0]["panes"]["selection"]["node"] == "k_2"
    assert shown.dispatcher.wait()
    assert shown.panes["moves"]["node"] == "k_2"
    assert not shown.panes["moves"]["pending"]
    again = shown.ask("select", node="i") and shown.ask("select", node="k_2")
    assert not again[0]["panes"]["moves"]["pending"], "kept"


def test_the_newest_selection_wins(shown: Front) -> None:
    for node in ("k", "k_2", "k_3", "S1", "k_3"):
        shown.ask("select", node=node)
    assert shown.dispatcher.wait()
    assert shown.panes["moves"]["node"] == "k_3"
    complete = [m["panes"]["moves"]["node"] for m in shown.messages if not m["panes"].get("moves", {"pending": True})["pending"]]
    assert complete == ["k_3"]


def test_preview_says_what_would_change_and_changes_nothing(shown: Front) -> None:
    found = shown.data("preview", call="bind('i', 'block.x')")
    assert found["applies"]
    assert {"sign": "-", "text": "    for i in 0…6"} in found["diff"]
    assert {"sign": "+", "text": "    for i in 0…6  block.x"} in found["diff"]
    assert "blocks 1 → 6" in found["effects"]
    assert len(shown.session.history.states) == 1


def test_preview_of_a_refused_step_has_the_pair_and_the_difference(shown: Front) -> None:
    found = shown.data("preview", call="fuse('k_2', 'k_3')")
    assert not found["applies"]
    assert found["diff"]
    witness = found["problem"]["finding"]
    assert (witness["question"], witness["array"]) == ("order", "total")
    assert (witness["source"], witness["sink"]) == ("S3[0, 1]", "S4[0, 0]")
    assert witness["source_order"] == "time (0, 1)"
    assert "total +=" in found["problem"]["where"]


def test_check_reads_the_form(shown: Front) -> None:
    assert shown.data("check", name="split", arguments={"loop": "k", "factor": "4"})["call"] == "split('k', 4)"
    wrong = shown.data("check", name="split", arguments={"loop": "k", "factor": "0"})
    assert wrong["errors"] == {"factor": "at least 1"}
    assert not wrong["applies"]


def test_apply_by_name_undo_redo_goto_rename(shown: Front) -> None:
    shown.ask("apply", name="split", arguments={"loop": "k", "factor": "4"})
    assert shown.panes["head"]["undo"] == "split k 4"
    assert shown.panes["head"]["redo"] is None
    shown.ask("undo")
    assert (shown.panes["head"]["undo"], shown.panes["head"]["redo"]) == (None, "split k 4")
    shown.ask("redo")
    shown.ask("rename", state="h1", title="tiles")
    assert shown.panes["history"]["states"][1]["title"] == shown.panes["head"]["undo"] == "tiles"
    shown.ask("goto", state="h0")
    assert shown.panes["history"] | {"states": []} == {"states": [], "current": "h0", "path": ["h0", "h1"]}


def test_a_refused_script_is_shown_with_its_error_at_its_line(shown: Front) -> None:
    text = shown.panes["script"]["text"] + "# x\ns = s.fuse('k_2', 'k_3')\n"
    shown.ask("script", text=text)
    pane = shown.panes["script"]
    assert (pane["text"], pane["error"]["line"]) == (text, 3)
    assert pane["error"]["problem"]["finding"]["array"] == "total"
    assert shown.panes["history"]["current"] == "h0"
    shown.ask("apply", call="reverse('i')")
    assert shown.panes["script"]["error"] is None


@pytest.mark.parametrize(("kind", "fields", "words"), [
    ("apply", {"call": "fuse('k_2', 'k_3')"}, "not legal"), ("apply", {"call": "import os"}, "not a step"),
    ("apply", {}, "no move"), ("apply", {"name": "split", "arguments": "k"}, "wrong arguments"),
    ("undo", {}, "nothing to undo"), ("redo", {}, "nothing to redo"), ("compare", {"a": "h0", "b": "h9"}, "no state"),
    ("goto", {"state": "h7"}, "no state"), ("rename", {"state": None, "title": "x"}, "no state"),
    ("select", {"node": "zz"}, "no node"), ("select", {"node": 3}, "no node"), ("sizes", {"sizes": {"M": -3}}, "size M"),
    ("sizes", {"sizes": {"Q": 3}}, "unknown size"), ("sizes", {}, "no sizes"), ("device", {"device": "abacus"}, "no device"),
    ("export", {"what": "exe"}, "no export"), ("ptx", {"arch": "sm_1"}, "no architecture"),
    ("figure", {"name": "mona lisa", "options": {}}, "mona lisa"), ("nonsense", {}, "no request"), ("__init__", {}, "no request"),
    ("counterexample", {"call": "x"}, "not a step"),
])
def test_what_cannot_be_done_is_a_problem_and_changes_nothing(shown: Front, kind: str, fields: dict, words: str) -> None:
    before = (shown.session.script, shown.session.selected, len(shown.session.history.states))
    assert words in shown.problem(kind, **fields)["what"]
    assert (shown.session.script, shown.session.selected, len(shown.session.history.states)) == before


@pytest.mark.parametrize("message", [None, 3, "ready", [], {}, {"kind": None}, {"kind": {"a": 1}, "serial": "x"}])
def test_messages_that_are_none_are_answered(shown: Front, message: Any) -> None:
    shown.messages.clear()
    shown.dispatcher.handle(message)
    assert [m["kind"] for m in shown.messages] == ["problem"]


def test_a_defect_is_shown_and_logged_and_not_raised(shown: Front, monkeypatch: pytest.MonkeyPatch,
                                                     caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("explorer.app.dispatcher.preview", broken)
    assert "the explorer itself failed: ZeroDivisionError: oops" in shown.problem("preview", call="reverse('i')")["what"]
    assert "ZeroDivisionError" in caplog.text


def test_exports(shown: Front) -> None:
    shown.ask("apply", call="split('k', 4)")
    found = {what: shown.data("export", what=what) for what in ("cu", "json", "script", "share")}
    assert found["cu"]["filename"] == "softmax.cu"
    assert "int main" in found["cu"]["text"]
    assert '"move": "split"' in found["json"]["text"]
    assert found["script"]["text"].endswith("s = s.split('k', 4)\n")
    assert found["share"]["text"].startswith("ex1:")


def test_plotly_travels_as_one_buffer(shown: Front) -> None:
    shown.ask("plotly", wait=True)
    assert len(shown.buffers) == 1
    assert b"Plotly" in shown.buffers[0][:200_000]


def test_changes_from_a_cell_reach_the_front_end(shown: Front) -> None:
    shown.messages.clear()
    shown.session.apply("split('k', 4)")
    assert shown.panes["head"]["undo"] == "split k 4"
    shown.session.undo()
    assert shown.panes["head"]["undo"] is None


def test_only_what_has_changed_is_sent(shown: Front) -> None:
    assert "run" not in shown.ask("apply", call="reverse('i')")[0]["panes"]
    assert shown.ask("device", device="cpu")[0]["panes"] == {}
    assert set(shown.ask("ready")[0]["panes"]) == set(PANES)


@pytest.mark.parametrize("name", ["domain", "memory", "fragments", "pipeline", "timeline", "roles", "ablation", "legality",
                                  "roofline", "price", "occupancy", "partials", "dependences"])  # fmt: skip
def test_every_figure_is_data(shown: Front, name: str) -> None:
    shown.ask("apply", call="bind('i', 'block.x')")
    found = shown.data("figure", name=name, options={"theme": "dark", "no such control": 3})
    assert found["name"] == name
    assert found["spec"] or found["note"]
    assert all(len(row) == len(found["header"]) + 1 for row in found["table"])


def test_a_figure_of_a_refused_step_shows_its_pair(shown: Front) -> None:
    legal = shown.data("figure", name="domain", options={})
    refused = shown.data("figure", name="domain", options={}, call="fuse('k_2', 'k_3')")
    assert "order would be lost" in refused["note"]
    assert "order would be lost" not in legal["note"]


def test_a_figure_that_the_front_end_has_is_not_sent_again(shown: Front) -> None:
    first = shown.data("figure", name="domain", options={})
    same = shown.data("figure", name="domain", options={}, have=first["sign"])
    assert same == {"sign": first["sign"]}
    dark = shown.data("figure", name="domain", options={"theme": "dark"}, have=first["sign"])
    assert dark["spec"]
    assert dark["sign"] != first["sign"]


def test_two_states_are_compared(shown: Front) -> None:
    shown.ask("apply", call="split('k', 4)")
    found = shown.data("compare", a="h0", b="h1")
    assert found["rows"][0] == ["", "softmax  M=6, N=12", "split k 4"]
    assert {"sign": "+", "text": "            for k.i in 0…4"} in found["loops"]
    assert (found["a"], found["b"]) == ("h0", "h1")


def test_ptx_or_why_there_is_none(shown: Front) -> None:
    found = shown.data("ptx", arch="sm_90")
    assert ".entry softmax" in found["text"]
    assert [b for b in shown.panes["head"]["badges"] if b["name"] == "compiled"] == [
        {"name": "compiled", "state": "earned", "detail": "sm_90"}]
    shown.ask("apply", call="bind('k', 'thread.x')")
    assert "would race" in shown.data("ptx", arch="sm_90")["why"]
