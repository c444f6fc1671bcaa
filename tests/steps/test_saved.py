"""Schedules that travel: JSON, share strings and scripts, and what is refused of each."""

from __future__ import annotations

import base64
import dataclasses
import json
import runpy
import zlib
from pathlib import Path
from typing import Any

import pytest

import explorer as ex
from explorer.steps import saved
from explorer.steps.saved import FORMAT, VERSION, from_data, read_json, step_of
from explorer.transforms.base import catalogue

M, N = ex.sizes("M N")
SCALE = 2.5


@ex.program
def row_sum(x: ex.f32[M, N], y: ex.f32[M]):
    for i in range(M):
        y[i] = 0.0
        for k in range(N):
            y[i] += x[i, k] * SCALE


@ex.program
def row_max(x: ex.f32[M, N], y: ex.f32[M]):
    for i in range(M):
        y[i] = -ex.inf
        for k in range(N):
            y[i] = max(y[i], x[i, k])


def made() -> ex.Schedule:
    s = row_sum.schedule(M=37, N=100).split("k", 32, inner="t").tile(["i"], [4]).bind("i", "block.x")
    return s.bind("t", "thread.x", count=16).collect("y", "shuffle", loops=["t.b"])


def data(**changes: Any) -> dict[str, Any]:
    return {**json.loads(made().to_json()), **changes}


def refused(content: Any) -> ex.ReplayError:
    """What loading says, of a text or of data."""
    with pytest.raises(ex.ReplayError) as caught:
        row_sum.load(content if isinstance(content, str) else json.dumps(content))
    assert caught.value.what
    return caught.value


def test_json_says_what_it_is_and_gives_the_schedule_back(tmp_path: Path) -> None:
    s = made()
    assert data()["format"] == FORMAT
    assert data()["version"] == VERSION
    assert data()["steps"][0] == {"move": "split", "loop": "k", "factor": 32, "inner": "t"}
    for again in (row_sum.load(s.to_json()), row_sum.load(s.share()), row_sum.load(f"  {s.share()}\n"),
                  row_sum.load(s.save(tmp_path / "s.json")), row_sum.load(str(tmp_path / "s.json"))):
        assert again == s
        assert again.cuda == s.cuda


def test_a_share_string_is_one_short_line() -> None:
    text = made().share()
    assert text.startswith("ex1:")
    assert text.isascii()
    assert not set(text) & set(" \n\"'/+=")
    assert len(text) < 500


@pytest.mark.parametrize(("changes", "words"), [
    ({"format": "something"}, "not a saved schedule"),
    ({"version": VERSION + 1}, f"saved as version {VERSION + 1}"),
    ({"version": "1"}, "saved as version '1'"),
    ({"program": "row_max"}, "of the program 'row_max', not 'row_sum'"),
    ({"program": 3}, "name is damaged"),
    ({"source": "0" * 12}, "has changed since"),
    ({"sizes": [37, 100]}, "sizes are damaged"),
    ({"sizes": {"M": 37.5, "N": 1}}, "sizes are damaged"),
    ({"sizes": {"M": True, "N": 1}}, "sizes are damaged"),
    ({"sizes": {"M": 37}}, "not those of row_sum"),
    ({"sizes": {"M": 37, "N": 1, "self": 2}}, "not those of row_sum"),
    ({"steps": {"move": "split"}}, "steps are damaged"),
    ({"steps": ["split"]}, "a saved step is damaged"),
    ({"steps": [{"loop": "k"}]}, "a saved step is damaged"),
    ({"steps": [{"move": "splat", "loop": "k"}]}, "there is no move 'splat'"),
    ({"steps": [{"move": "split", "loop": "k"}]}, "split needs factor"),
    ({"steps": [{"move": "split", "loop": "k", "factor": 4, "__class__": "os"}]}, "takes no argument __class__"),
    ({"steps": [{"move": "split", "loop": ["k"], "factor": 4}]}, "loop must be a name"),
    ({"steps": [{"move": "split", "loop": "k", "factor": "4"}]}, "factor must be an integer"),
    ({"steps": [{"move": "split", "loop": "k", "factor": 4.0}]}, "factor must be an integer"),
    ({"steps": [{"move": "split", "loop": "k", "factor": True}]}, "factor must be an integer"),
    ({"steps": [{"move": "split", "loop": "k", "factor": 2**40}]}, "factor must be an integer"),
    ({"steps": [{"move": "split", "loop": "k", "factor": None}]}, "factor must be an integer"),
    ({"steps": [{"move": "split", "loop": "k", "factor": 4, "inner": "t\n#include </etc/passwd>"}]}, "inner must be a name"),
    ({"steps": [{"move": "split", "loop": "k", "factor": 4, "inner": "t */ system(\"ls\"); /*"}]}, "inner must be a name"),
    ({"steps": [{"move": "tile", "loops": ["i"], "sizes": ["4"]}]}, "sizes must be integers"),
    ({"steps": [{"move": "tile", "loops": [["i"]], "sizes": [4]}]}, "loops must be names"),
    ({"steps": [{"move": "stage", "array": "x", "at": "i", "fill": 1}]}, "fill must be True or False"),
])
def test_damage_is_refused_with_its_place(changes: dict[str, Any], words: str) -> None:
    error = refused(data(**changes))
    assert words in error.what
    if "steps" in changes and isinstance(changes["steps"], list):
        assert error.where == "step 1"


def test_steps_that_do_not_apply_are_refused_as_anywhere() -> None:
    with pytest.raises(ex.TransformError, match="there is no loop 'q'"):
        row_sum.load(json.dumps(data(steps=[{"move": "split", "loop": "q", "factor": 4}])))
    with pytest.raises(ex.ProgramError, match="the size M is -3"):
        row_sum.load(json.dumps(data(sizes={"M": -3, "N": 4})))


@pytest.mark.parametrize("text", ["{", "{}", "[]", "null", "{'format': 1}", "", "__import__('os').system('true')",
                                  "{" + '"a":' * 3 + "1}", '{"format": ' + "[" * 100_000, '{"format": 1' + "0" * 10_000 + "}"])
def test_what_is_no_schedule(text: str) -> None:
    refused(text)


def test_nothing_in_a_file_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    attack = f"__import__('pathlib').Path({str(mark)!r}).touch()"
    for changes in ({"program": attack}, {"format": attack}, {"version": attack}, {"source": attack}, {"sizes": {attack: 1}},
                    {"steps": [{"move": attack}]}, {"steps": [{"move": "split", "loop": attack, "factor": 4}]},
                    {"steps": [{"move": "split", "loop": "k", "factor": 4, "inner": attack}]},
                    {"steps": [{"move": "split", "loop": "k", "factor": attack}]}):
        with pytest.raises(ex.ExplorerError):
            row_sum.load(json.dumps(data(**changes)))
    assert not mark.exists()


def packed(raw: bytes) -> str:
    return "ex1:" + base64.urlsafe_b64encode(zlib.compress(raw)).decode().rstrip("=")


def test_damaged_share_strings() -> None:
    text = made().share()
    for damaged in (text[:-10], text[:20], "ex1:", "ex1:????", "ex1:" + "A" * 50, text[:30] + "€" + text[31:]):
        assert "damaged" in refused(damaged).what
    flipped = text[:40] + ("A" if text[40] != "A" else "B") + text[41:]
    refused(flipped)
    assert "not JSON" in refused(packed(b"not json")).what
    assert "not a saved schedule" in refused(packed(b"[1, 2]")).what
    bomb = packed(b" " * (8 << 20))
    assert len(bomb) < 20_000
    assert "more than 1 MiB" in refused(bomb).why
    with pytest.raises(ex.ReplayError, match="not a share string"):
        saved.read_share_string("hello")


def test_another_program_is_named() -> None:
    with pytest.raises(ex.ReplayError, match="of the program 'row_sum', not 'row_max'") as caught:
        row_max.load(made().share())
    assert caught.value.hint == "row_sum.load(…)"


def test_a_changed_text_is_noticed(tmp_path: Path) -> None:
    text = row_sum.schedule(M=2, N=3).script()
    (tmp_path / "changed.py").write_text(text.replace("y[i] = 0.0", "y[i] = 1.0"))
    (tmp_path / "same.py").write_text(text)
    with pytest.raises(ex.ReplayError, match="has changed since"):
        runpy.run_path(str(tmp_path / "changed.py"))["row_sum"].load(made().share())
    again = runpy.run_path(str(tmp_path / "same.py"))["row_sum"].load(made().share())
    assert again.steps == made().steps
    assert again.cuda == made().cuda


def test_every_move_goes_there_and_back() -> None:
    plain = {"loop": "k", "loops": ["k", "i"], "leaf": "S0", "array": "x", "arrays": ["x"], "int": 3, "ints": [3, 4],
             "kernel": "f",
             "node": "S0", "choice": "shared", "bool": False, "name": "t"}
    for name, kind in catalogue().items():
        fields = {f.name: plain[f.metadata["kind"]] for f in dataclasses.fields(kind)}
        step = step_of({"move": name, **fields})
        assert type(step) is kind
        (back,) = saved.to_data(row_sum.at(M=1, N=1), [step])["steps"]
        assert step_of(back) == step
        assert read_json(json.dumps(data(steps=[back])))[3] == (step,)
    assert from_data(data())[3] == made().steps


def rebuilt(script: str, folder: Path) -> ex.Schedule:
    """What a script makes, run as a file of its own."""
    path = folder / "again.py"
    path.write_text(script)
    return runpy.run_path(str(path))["s"]


@pytest.mark.parametrize("name", ex.workloads.names())
def test_a_script_rebuilds_the_schedule(name: str, tmp_path: Path) -> None:
    workload = ex.workloads.get(name)
    s = ex.strategies.default(workload.definition.schedule(**workload.tiny))
    again = rebuilt(s.script(), tmp_path)
    assert again.steps == s.steps
    assert str(again) == str(s)
    assert again.cuda == s.cuda
    assert again.share() == s.share()


def test_a_script_defines_the_names_that_the_program_mentions(tmp_path: Path) -> None:
    script = made().script()
    assert script.splitlines()[:4] == ["import explorer as ex", "", 'M, N = ex.sizes("M N")', "SCALE = 2.5"]
    assert script.endswith("s = s.collect('y', 'shuffle', loops=('t.b',))\n")
    assert rebuilt(script, tmp_path).cuda == made().cuda


def test_a_script_keeps_other_names(tmp_path: Path) -> None:
    source = '''import math
import explorer as lab
from explorer import exp as e, f32
Rows = lab.sizes("M")
Half = Rows // 2
Row = f32[Rows]
LOW, TAU = -lab.inf, math.tau
@lab.program
def odd(x: Row, y: f32[Half]):
    for i in range(Half):
        y[i] = max(LOW, e(x[i] + math.pi) * TAU)
s = odd.schedule(M=9).split("i", 2)
'''
    s = rebuilt(source, tmp_path)
    (tmp_path / "other").mkdir()
    again = rebuilt(s.script(), tmp_path / "other")
    assert again.cuda == s.cuda
    assert again.steps == s.steps
