"""The script pane both ways, and hostile text."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from explorer.app.script import ScriptProblem
from explorer.app.session import Session

from .front import schedule

FIRST = "s = softmax.schedule(M=6, N=12)\n"


def session(*steps: str) -> Session:
    return Session(schedule("softmax", *steps, M=6, N=12))


def test_every_state_has_its_line() -> None:
    s = session("split('k', 4)", "reverse('i')")
    written = s.written()
    lines = written.text.splitlines()
    assert lines == ["s = softmax.schedule(M=6, N=12)", "s = s.split('k', 4)", "s = s.reverse('i')"]
    assert written.lines == (("h0", 1), ("h1", 2), ("h2", 3))


def test_an_edit_keeps_the_common_states_and_branches() -> None:
    s = session("split('k', 4)", "reverse('i')")
    s.write(s.script.replace("reverse('i')", "split('i', 2)"))
    assert [x.id for x in s.history.line()] == ["h0", "h1", "h3"]
    assert set(s.history.states) == {"h0", "h1", "h2", "h3"}
    s.write(FIRST)
    assert s.history.current == "h0"


def test_chains_parentheses_keywords_and_names() -> None:
    s = session()
    s.write("best = (softmax.schedule(M=6, N=12)\n  .split('k', factor=4)\n  .reverse('i'))\nbest = best.split('i', 2)\nbest\n")
    assert [str(x) for x in s.schedule.steps] == ["split('k', 4)", "reverse('i')", "split('i', 2)"]


def test_comments_stay_where_they_are() -> None:
    text = "# start\n" + FIRST + "# why\n# indeed\ns = s.split('k', 4)  # by 4\n# the end\n"
    s = session()
    s.write(text)
    assert s.script == text
    s.apply("reverse('i')")
    assert s.script == text + "s = s.reverse('i')\n"
    s.write(s.script.replace("by 4", "by four"))
    assert "# by four" in s.script
    assert len(s.history.states) == 3, "a comment makes no new state"


def test_a_whole_script_is_accepted_if_its_program_is_this_one() -> None:
    s = session("split('k', 4)")
    text = s.schedule.script()
    assert "def softmax" in text
    fresh = session()
    fresh.write(text)
    assert fresh.schedule.plan == s.schedule.plan
    with pytest.raises(ScriptProblem, match="not the program that is explored"):
        fresh.write(text.replace("range(N)", "range(M)"))


def test_other_sizes_in_the_script() -> None:
    s = session("split('k', 4)")
    s.write("s = softmax.schedule(M=3, N=8)\ns = s.split('k', 4)\n")
    assert dict(s.schedule.source.sizes) == {"M": 3, "N": 8}


@pytest.mark.parametrize(("tail", "line", "words"), [
    ("s = s.fuse('k_2', 'k_3')\n", 2, "not legal"),
    ("s = s.split('zz', 2)\n", 2, "no loop 'zz'"),
    ("s = s.splt('k', 2)\n", 2, "no move 'splt'"),
    ("\n# x\ns = s.split('k')\n", 4, "wrong arguments"),
    ("t = s.split('k', 2)\n", 2, "called s, not t"),
    ("s = t.split('k', 2)\n", 2, "taken on t"),
    ("import os\n", 2, "only schedule steps"),
    ("os.system('true')\n", 2, "only schedule steps"),
    ("s = s.split('k', eval('2'))\n", 2, "name in quotes"),
    ("s = s.split('k', (lambda: 2)())\n", 2, "name in quotes"),
    ("s = s.split('k', 10**9)\n", 2, "name in quotes"),
    ("s = __import__('os')\n", 2, "not a chain"),
    ("s = s.source\n", 2, "not a chain"),
    ("s = s.__class__()\n", 2, "no move"),
    ("s = s.split('k', 2\n", 2, "not Python"),
    ("for x in ():\n    pass\n", 2, "only schedule steps"),
    ("s += 1\n", 2, "only schedule steps"),
    ("(s := s.split('k', 2))\n", 2, "only schedule steps"),
    ("@s.x\ndef f(): pass\n", 3, "only schedule steps"),
])
def test_errors_are_at_their_line_and_change_nothing(tail: str, line: int, words: str) -> None:
    s = session()
    with pytest.raises(ScriptProblem) as caught:
        s.write(FIRST + tail)
    assert words in caught.value.what + caught.value.why
    assert abs(caught.value.line - line) <= ("not Python" in words)
    assert s.rejected is not None
    assert s.rejected.text == FIRST + tail
    assert list(s.history.states) == ["h0"]
    s.write(s.script)
    assert s.rejected is None


@pytest.mark.parametrize("text", [
    "", "\n\n", "# nothing\n", "softmax", "s = matmul.schedule(M=1)\n", "s = softmax.schedule(6, 12)\n",
    "s = softmax.schedule(M=6)\n",
    "s = softmax.schedule(M=6, N=None)\n", "s = softmax.schedule(M=6, N=True)\n", "s = softmax.schedule(**{'M': 6})\n",
    "s = softmax.schedule(M=-6, N=12)\n", "import os\n" + FIRST, "from sys import exit\n" + FIRST, "\0", "s = " + "(" * 500,
    "a\ud800",
    "s = softmax.schedule(M=6, N=12)" + ".reverse('i')" * 3000, "x" * 300_000, "s = softmax.split('k', 2)\n",
    "M = sizes(__import__('os').getcwd())\n" + FIRST, "def softmax(): pass\n" + FIRST, "class A: pass\n" + FIRST,
])
def test_scripts_that_are_none(text: str) -> None:
    s = session()
    with pytest.raises(ScriptProblem) as caught:
        s.write(text)
    assert 1 <= caught.value.line <= text.count("\n") + 1
    assert list(s.history.states) == ["h0"]


def test_nothing_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    s = session()
    hostile = [f"__import__('pathlib').Path({str(mark)!r}).touch()", f"open({str(mark)!r}, 'w')",
               f"exec('open({str(mark)!r}, \"w\")')"]
    for code in hostile:
        for text in (code + "\n" + FIRST, FIRST + code + "\n", f"s = softmax.schedule(M=6, N=({code}, 12)[1])\n",
                     FIRST + f"s = s.split('k', ({code}, 2)[1])\n", f"@{code}\ndef softmax(): pass\n" + FIRST,
                     f"M = sizes({code})\n" + FIRST, f"import explorer.{code.split('(')[0].strip('_')}\n{FIRST}s = 1\n"):
            before = set(sys.modules)
            with pytest.raises(ScriptProblem):
                s.write(text)
            assert not mark.exists()
            assert not set(sys.modules) - before
    assert os.listdir(tmp_path) == []
