"""Loading ends: in a schedule, or in an error of ours that says how far it got; whatever the file holds, however long it is."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

import explorer as ex
from explorer.app.explore import session_of
from explorer.app.session import Session
from explorer.ir.expr import Expr
from explorer.schedule.step import DEEPEST
from explorer.steps import saved
from explorer.steps.replay import progress_line
from tests.programs import row_sum


def many(count: int, step: dict[str, Any]) -> str:
    data = json.loads(row_sum.schedule(M=5, N=8).to_json())
    return json.dumps({**data, "steps": [step] * count})


SPLITS = {"move": "split", "loop": "k", "factor": 1}


# -- long files --------------------------------------------------------------------------------------------------


def test_time_ends_loading_and_keeps_what_was_made() -> None:
    reached: list[tuple[int, int]] = []
    with pytest.raises(ex.ReplayError) as caught:
        row_sum.load(many(200, SPLITS), seconds=0.05, progress=lambda done, total: reached.append((done, total)))
    error = caught.value
    assert error.what == f"the steps take too long: {error.done} of 200 were made in 0.05 s"
    assert error.where == f"step {error.done + 1}, split('k', 1)"
    assert "error.schedule" in error.hint
    assert len(error.schedule.steps) == error.done == len(reached)
    assert reached[-1] == (error.done, 200)
    assert error.schedule.apply(error.left[0]).steps == error.schedule.steps + error.left[:1]


def test_a_step_that_does_not_apply_keeps_those_before_it() -> None:
    data = json.loads(many(2, SPLITS))
    data["steps"] += [{"move": "reverse", "loop": "q"}, SPLITS]
    with pytest.raises(ex.TransformError, match="there is no loop 'q'") as caught:
        row_sum.load(json.dumps(data))
    assert len(caught.value.schedule.steps) == caught.value.done == 2
    assert len(caught.value.left) == 2


def test_loops_in_loops_end() -> None:
    """Python's stack and every compiler have an end; so has a nest."""
    with pytest.raises(ex.TransformError, match=f"would stand in {DEEPEST + 1} loops") as caught:
        row_sum.load(many(3 * DEEPEST, SPLITS))
    made = caught.value.schedule
    assert made.cuda
    assert str(made)
    assert made.judgement.legal


def test_a_step_costs_about_the_same_at_the_end() -> None:
    """Work, not time: the terms that are substituted while a loop of one iteration is split again and again."""
    counted = 0
    substitute = Expr.substitute

    def counting(self: Expr, *args: Any, **kwargs: Any) -> Expr:
        nonlocal counted
        counted += len(self.terms)
        return substitute(self, *args, **kwargs)

    work = []
    s = row_sum.schedule(M=6, N=11)  # sizes of its own: steps that have been taken are remembered
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Expr, "substitute", counting)
        for number in range(1, 161):
            s = s.split("k", 1)
            if number in (80, 160):
                work.append(counted)
    assert work[0] > 0
    assert work[1] < 4.5 * work[0], work


def test_progress_is_one_line_and_only_where_it_takes_long(capsys: pytest.CaptureFixture[str]) -> None:
    row_sum.load(many(3, SPLITS))
    assert capsys.readouterr() == ("", "")
    say = progress_line("row_sum", after=0.0)
    for done in range(1, 4):
        say(done, 3)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("row_sum: 3 of 3 steps\n")
    assert err.count("\n") == 1


def test_the_explorer_loads_by_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    text = many(3, SPLITS)
    assert len(session_of(row_sum, text).history.line()) == 4
    session = Session(row_sum.schedule(M=5, N=8))
    session.write(row_sum.load(text).script())
    assert len(session.schedule.steps) == 3
    monkeypatch.setattr("explorer.app.session.LOADING", -1.0)
    with pytest.raises(ex.ExplorerError, match="0 of 3 were made"):
        Session(row_sum.schedule(M=5, N=8)).write(row_sum.load(text).script())


# -- numbers and files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [10**3999, -(10**3999), 10**40, -1, 2**63])
def test_absurd_sizes(value: int) -> None:
    data = json.loads(many(0, SPLITS))
    text = json.dumps({**data, "sizes": {"M": value, "N": 4}})
    for load in (lambda: row_sum.load(text), lambda: row_sum.schedule(M=value, N=4)):
        with pytest.raises(ex.ProgramError, match="the size M is") as caught:
            load()
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize("call", [
    lambda: row_sum.schedule(M=-(10**6000), N=4), lambda: row_sum.schedule(M=10**6000, N=4),
    lambda: row_sum.schedule(M=5, N=8).split("k", 10**6000), lambda: row_sum.schedule(M=5, N=8).split("k", [10**6000]),
    lambda: row_sum.schedule(M=5, N=8).replay(10**6000), lambda: row_sum.schedule(M=5, N=8).apply(10**6000),
    lambda: row_sum.load(10**6000), lambda: row_sum.schedule(M=5, N=8).bind("i", "block.x", count=10**6000),
], ids=range(8))
def test_numbers_that_python_does_not_print(call: Any) -> None:
    with pytest.raises(ex.ExplorerError) as caught:
        call()
    assert len(str(caught.value)) < 500


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(ex.ReplayError, match="cannot read"):
            row_sum.load(path)
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(saved.LARGEST + 1)
    with pytest.raises(ex.ReplayError, match="is no saved schedule"):
        row_sum.load(large)


# -- damage at random --------------------------------------------------------------------------------------------

ODD: tuple[Any, ...] = (None, True, 0, -1, 3.5, 1e300, float("nan"), float("inf"), 10**25, 10**4000, "", "k", "k.i", "\x00",
                        "é" * 99, "x" * 5000, [], [[]], [None], ["k"], [1, "k"], {}, {"move": "split"}, "split", "__class__",
                        [1] * 500)


def nested(depth: int) -> Any:
    out: Any = 1
    for _ in range(depth):
        out = [out]
    return out


def damaged(data: Any, pick: random.Random) -> Any:
    """The data with one or two of its places changed, removed, renamed or doubled."""
    data = json.loads(json.dumps(data))
    for _ in range(pick.choice((1, 1, 2))):
        place, parent = data, None
        while isinstance(place, dict | list) and place and (parent is None or pick.random() < 0.75):
            key = pick.choice(list(place) if isinstance(place, dict) else range(len(place)))
            parent, place = (place, key), place[key]
        if parent is None:
            return pick.choice(ODD)
        holder, key = parent
        what = pick.random()
        if what < 0.6:
            holder[key] = pick.choice((*ODD, nested(60)))
        elif what < 0.75:
            del holder[key]
        elif what < 0.9 and isinstance(holder, dict):
            holder[pick.choice(("extra", "", "move", "loop", "factor", "\n"))] = pick.choice(ODD)
        elif isinstance(holder, list):
            holder += holder[:]
    return data


def test_damaged_files_give_errors_of_ours() -> None:
    pick = random.Random(5)
    s = row_sum.schedule(M=37, N=100).split("k", 32, inner="t").tile(["i"], [4]).bind("i", "block.x")
    s = s.bind("t", "thread.x", count=16).collect("y", "shuffle", loops=["t.b"])
    whole, refused, loaded, longest = s.to_json(), 0, 0, 0
    for number in range(1200):
        text = json.dumps(damaged(json.loads(whole), pick))
        if number % 4 == 0:
            at = pick.randrange(len(text))
            text = pick.choice((text[:at], text[at:], text[:at] + pick.choice('{}[]",:0e\\') + text[at + 1 :]))
        if number % 7 == 0:
            text = saved_as_string(text)
        try:
            row_sum.load(text, seconds=20, progress=lambda *_: None)
            loaded += 1
        except ex.ExplorerError as error:
            refused += 1
            longest = max(longest, len(str(error)))
    assert longest < 4000
    assert refused > 900
    assert loaded > 5


def saved_as_string(text: str) -> str:
    import base64
    import zlib

    return "ex1:" + base64.urlsafe_b64encode(zlib.compress(text.encode())).decode().rstrip("=")
