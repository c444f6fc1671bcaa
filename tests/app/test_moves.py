"""The palette: every transformation on several workloads, through the panes' data alone."""

from __future__ import annotations

from typing import Any

import pytest

from explorer.app.panes import problems
from explorer.steps.calls import read_call
from explorer.transforms.base import catalogue
from explorer.transforms.vectorize import Vectorize
from tests.properties.programs import define

from .front import Front, front

STARTS = {
    "softmax": [],
    "matmul": ["split('k', 4)", "bind('i', 'block.x')", "bind('j', 'thread.x')", "stage('a', 'k')"],
    "gauss_seidel": [],
    "sum_rows": ["bind('i', 'block.x')", "split('k', 4)", "bind('k.i', 'thread.x')"],
    "layernorm": ["contract('mean', 'register')"],
}


def walk(name: str) -> tuple[Front, dict[str, list[dict[str, Any]]]]:
    """The moves at every selectable row of the loops."""
    f = front(name, *STARTS[name])
    f.ask("ready", wait=True)
    nodes = dict.fromkeys(r["node"] for r in f.panes["loops"] if r["node"])
    return f, {node: f.moves(node) for node in nodes}


@pytest.mark.parametrize("name", STARTS)
def test_every_transformation_is_there_and_does_what_it_says(name: str) -> None:
    f, found = walk(name)
    start = f.session.history.current
    applied: set[str] = set()
    for node, moves in found.items():
        assert {m["name"] for m in moves} == set(catalogue()), f"at {node} some transformation is not shown"
        for move in moves:
            if not move["applies"]:
                assert_explained(move)
            elif move["name"] not in applied:
                applied.add(move["name"])
                answers = f.ask("apply", call=move["call"])
                assert answers[0]["kind"] == "panes", f"{move['call']} was offered as legal: {answers}"
                assert f.panes["history"]["states"][-1]["call"] == move["call"] or f.panes["history"]["current"] != start
                f.ask("goto", state=start)
    assert len(applied) >= 5


def assert_explained(move: dict[str, Any]) -> None:
    problem = move["problem"]
    assert problem
    assert problem["what"]
    if problem["finding"] and problem["finding"]["question"] in ("order", "cover", "flow"):
        assert problem["why"]
        assert problem["finding"]["source"] or problem["finding"]["nodes"]


@pytest.mark.parametrize("name", ["softmax", "sum_rows", "matmul"])
def test_a_hint_that_is_a_button_applies(name: str) -> None:
    f, found = walk(name)
    start = f.session.history.current
    calls = {h["call"] for moves in found.values() for m in moves if m["problem"] for h in m["problem"]["hints"] if h["call"]}
    for call in calls:
        assert f.ask("apply", call=call)[0]["kind"] == "panes", call
        f.ask("goto", state=start)
    assert calls, "no refusal offers a way on"


def test_a_step_of_the_past_is_no_button() -> None:
    """Taken on what there is now, the factor that an earlier split should have had would divide the loop again."""
    copy = define("@ex.program\ndef f(x: ex.f32[M, N], y: ex.f32[M, N]):\n    for i in range(M):\n        for j in range(N):\n"
                  "            y[i, j] = x[i, j]", "past.py")
    s = copy.schedule(M=6, N=48).split("j", 3)
    verdict, _ = s.try_step(Vectorize("j.i"))
    assert problems.of_verdict(verdict, s)["hints"] == [{"text": "split('j', 4) in place of split('j', 3)", "call": None}]


@pytest.mark.parametrize("name", ["softmax", "matmul"])
def test_the_first_entry_of_a_name_has_a_form_that_makes_its_call(name: str) -> None:
    f, found = walk(name)
    for moves in found.values():
        formed = {}
        for move in moves:
            assert bool(move["form"]) == (move["name"] not in formed)
            formed.setdefault(move["name"], move)
        for move in formed.values():
            if move["applies"]:
                arguments = {field["name"]: field["value"] for field in move["form"]}
                assert read_call(f.data("check", name=move["name"], arguments=arguments)["call"]) == read_call(move["call"])


def test_forms_come_from_the_fields() -> None:
    f = front("softmax", M=6, N=12)
    moves = {m["name"]: m for m in reversed(f.moves("k"))}
    form = {field["name"]: field for field in moves["split"]["form"]}
    assert form["loop"]["kind"] == "loop"
    assert form["loop"]["value"] == "k"
    assert "k_2" in form["loop"]["choices"]
    assert (form["factor"]["kind"], form["factor"]["min"], form["factor"]["required"]) == ("int", 1, True)
    assert form["inner"]["required"] is False
    assert form["loop"]["help"] == "the loop to split"
    assert moves["split"]["title"] == "Split one loop into two"
    assert moves["stage"]["form"][2]["choices"] == ["shared", "register"]


def test_a_buffer_has_moves_that_speak_of_it() -> None:
    f = front("matmul", *STARTS["matmul"])
    f.ask("ready")
    buffers = [r["node"] for r in f.panes["loops"] if r["kind"] == "buffer"]
    assert buffers == ["a_s"]
    moves = f.moves("a_s")
    assert {m["name"] for m in moves} == set(catalogue())
    assert {m["name"] for m in moves if m["applies"]} == {"pipeline"}, "the copies of its loop can run ahead"
    f = front("softmax", "contract('peak', 'register')", M=6, N=12)
    moves = f.moves("peak")
    assert {m["name"] for m in moves} == set(catalogue())
    assert "contract('peak', space='global')" in [m["call"] for m in moves if m["applies"]]


def test_equal_reasons_are_said_once() -> None:
    f = front("softmax", M=6, N=12)
    refused = [(m["name"], m["problem"]["what"], m["problem"]["why"]) for m in f.moves("i") if not m["applies"]]
    shifts = [r for r in refused if r[0] == "shift"]
    assert len(shifts) == len({why for _, _, why in shifts})
