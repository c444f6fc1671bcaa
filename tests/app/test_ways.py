"""The ways to collect a reduction, shown at its node before one is chosen, and taken as one action."""

from __future__ import annotations

from typing import Any

import pytest

from explorer.app.session import Session
from explorer.strategies.collects import ways
from tests.transforms.multiblock import spread

from .front import Front, front


def shown(name: str, node: str) -> tuple[Front, list[dict[str, Any]]]:
    f = Front(Session(spread(name)))
    f.ask("ready", wait=True)
    f.moves(node)
    return f, f.panes["moves"]["ways"]


def test_the_table_has_every_way_with_its_facts() -> None:
    _, found = shown("total", "k")
    assert [(w["target"], w["array"], w["over"], w["loops"]) for w in found] == [("S1", "y", "blocks", ["k"])]
    rows = {w["how"]: w for w in found[0]["ways"]}
    assert list(rows) == ["atomic", "kernel", "last_block", "handoff", "grid", "cluster"]
    assert not rows["atomic"]["deterministic"]
    assert rows["kernel"]["deterministic"]
    assert (rows["kernel"]["launches"], rows["kernel"]["parts"], rows["kernel"]["workspace"]) == (3, 16, "64 B")
    assert (rows["atomic"]["atomics"], rows["atomic"]["initial"]) == (16, "4 B")
    assert (rows["grid"]["launches"], rows["grid"]["barriers"]) == (1, 1)
    exact = {w.how: w for w in ways(spread("total"), "y")}
    for how, row in rows.items():
        assert dict(row["errors"])["plain"] == pytest.approx(exact[how].error, rel=0.01)
        assert [m for m, _ in row["errors"]] == ["plain", "pairwise", "kahan"]
    assert "the same bits in every run; 3 launches; 16 partial results of each element" in rows["kernel"]["label"]


def test_a_way_that_does_not_apply_says_why() -> None:
    _, (choice,) = shown("total, many blocks", "S1")
    cluster = choice["ways"][-1]
    assert (cluster["how"], cluster["applies"]) == ("cluster", False)
    assert "clusters of 63 blocks" in cluster["problem"]["what"]
    assert cluster["label"].startswith("cluster: refused. k would make clusters")


def test_what_every_order_computes_alike_is_exact_and_deterministic() -> None:
    _, (choice,) = shown("peaks", "k")
    assert choice["unit"] == ""
    assert all(w["deterministic"] and w["errors"] == [] and w["label"].endswith("; exact") for w in choice["ways"])


@pytest.mark.parametrize("node", ["i_2", "k.i", "rows"])
def test_there_is_no_table_where_nothing_is_to_be_chosen(node: str) -> None:
    assert shown("rows", node)[1] == []


def test_threads_have_their_own_ways() -> None:
    f = front("sum_rows", "split('k', 4)", "bind('k.i', 'thread.x')", M=5, N=16)
    f.ask("ready", wait=True)
    f.moves("S1")
    (choice,) = f.panes["moves"]["ways"]
    assert (choice["over"], [w["how"] for w in choice["ways"]]) == ("threads", ["shuffle", "shared", "atomic"])


@pytest.mark.parametrize("how", ["atomic", "kernel", "last_block", "handoff", "grid", "cluster"])
def test_a_way_is_one_action(how: str) -> None:
    f, (choice,) = shown("rows", "k")
    way = next(w for w in choice["ways"] if w["how"] == how)
    before = f.session.history.current
    f.ask("take", wait=True, calls=way["calls"], title=f"collect y by {how}")
    assert not f.session.schedule.obligations
    assert [str(s) for s in f.session.schedule.steps[-len(way["calls"]):]] == way["calls"]
    assert f.panes["moves"]["ways"] == []
    if len(way["calls"]) > 1:
        assert f.panes["head"]["undo"] == f"collect y by {how} · 2 steps"
    f.ask("undo")
    assert f.session.history.current == before
    f.ask("redo")
    assert not f.session.schedule.obligations


def test_steps_of_which_one_does_not_apply_change_nothing() -> None:
    f, _ = shown("rows", "k")
    count = len(f.session.history.states)
    assert "not" in f.problem("take", calls=["collect('y', 'kernel')", "collect('zz', 'shuffle')"])["what"]
    assert f.problem("take", calls=[])["what"] == "no steps were given"
    assert len(f.session.history.states) == count


def test_the_history_folds_an_action_until_one_looks_inside() -> None:
    f, (choice,) = shown("rows", "k")
    start = f.session.history.current
    calls = next(w for w in choice["ways"] if w["how"] == "kernel")["calls"]
    f.ask("take", calls=calls, title="collect")
    pane = f.panes["history"]
    last = pane["states"][-1]
    assert (last["id"], last["parent"], last["title"]) == (pane["current"], start, "collect · 2 steps")
    assert pane["path"][-2:] == [start, last["id"]]
    inner = f.session.history.state.parent
    f.ask("goto", state=inner)
    pane = f.panes["history"]
    assert [s["id"] for s in pane["states"]][-2:] == [inner, last["id"]]
    assert pane["path"][-3:] == [start, inner, last["id"]]
    assert f.panes["head"]["redo"] == "collect S1 shuffle"
