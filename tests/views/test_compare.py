"""Two schedules side by side."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.views.compare import difference
from tests.views.figures.support import matmul, written
from tests.views.pages import Page


def test_a_difference_patches_the_first_into_the_second():
    a = [f"line {i}" for i in range(40)]
    b = [*a[:10], "new", *a[10:20], *a[22:30], "other", *a[31:]]
    found = list(difference(a, b, context=100))
    assert [t for s, t in found if s in " -"] == a
    assert [t for s, t in found if s in " +"] == b
    short = list(difference(a, b, context=1))
    assert [s for s, _ in short if s != " "] == ["+", "-", "-", "-", "+"]
    assert short[0] == (" ", "⋯")
    assert short[-1] == (" ", "⋯")
    assert list(difference(a, a)) == []


def test_loops_cuda_and_facts_of_two_schedules():
    before, after = matmul(K=32), matmul(K=32, stages=2)
    found = ex.compare(before, after, names=("staged", "pipelined"))
    assert any(s == "-" and "shared a_s: f32[4, 4]" in t for s, t in found.loops)
    assert any(s == "+" and "async" in t for s, t in found.loops)
    assert any(s == "+" and "async_copy" in t for s, t in found.cuda)
    rows = {name: (x, y) for name, x, y in found.rows}
    assert rows["shared memory"] == ("128 B", "256 B")
    assert rows["steps"] == (str(len(before.steps)), str(len(after.steps)))
    assert rows["proved"] == ("yes", "yes")
    assert rows["compulsory traffic"][0] == rows["compulsory traffic"][1]
    data = found.data()
    assert set(data) == {"a", "b", "loops", "cuda", "rows"}
    assert data["rows"][0][0] == "sizes"
    assert {line["sign"] for line in data["cuda"]} == {" ", "+", "-"}


def test_the_facts_and_the_text_are_those_of_the_gpu():
    before, after = matmul(K=32), matmul(K=32, stages=2)
    large, small = ex.compare(before, after), ex.compare(before, after, gpu="T4")
    assert [name for name, *_ in large.rows if "floor" in name] == ["floor on the H200"]
    assert [name for name, *_ in small.rows if "floor" in name] == ["floor on the T4"]
    assert small.rows[-1][1] != large.rows[-1][1]
    with pytest.raises(ex.ResourceError, match="Voodoo"):
        ex.compare(before, after, gpu="Voodoo")


def test_an_open_obligation_leaves_the_cuda_out_and_says_so():
    before = written("sum_rows", M=4, N=64)
    after = before.bind("k", "thread.x")
    found = ex.compare(before, after)
    assert found.cuda == ()
    rows = {name: (x, y) for name, x, y in found.rows}
    assert rows["proved"] == ("yes", "1 obligations open")
    assert rows["kernels"] == ("1", "–")


def test_text_and_picture():
    found = ex.compare(matmul(), matmul().undo())
    text = repr(found)
    assert "before" in text
    assert "loops: " in text
    assert "\n- " in text
    page = Page(found._repr_html_())
    assert ["steps", str(len(matmul().steps)), str(len(matmul().steps) - 1)] in page.tables[0]
    assert "loops: " in page.text
    assert len(found._repr_html_()) < 60_000
    same = ex.compare(matmul(), matmul())
    assert (same.loops, same.cuda) == ((), ())
    assert "the same" in str(same)
