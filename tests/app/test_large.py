"""Large programs open like small ones: nothing in the panes grows with the sizes."""

from __future__ import annotations

import json

import pytest

from explorer.app.panes.cuda import cuda
from explorer.app.panes.loops import loop_rows
from explorer.gpu.spec import default_gpu

from .front import front, schedule


@pytest.mark.parametrize(("name", "small"), [("matmul", {"M": 64, "N": 64, "K": 64}),
                                             ("conv2d", {"B": 2, "C": 4, "K": 4, "H": 8, "W": 8, "R": 3, "S": 3})])
def test_panes_do_not_grow_with_the_sizes(name: str, small: dict[str, int]) -> None:
    start = schedule(name)
    names = [n for n, _ in start.source.sizes]
    little = front(name, **{n: small.get(n, 4) for n in names})
    large = front(name, **{n: 4096 if n not in ("R", "S") else 7 for n in names})
    for f in (little, large):
        f.ask("ready", wait=True)
    for pane in ("loops", "tree", "cuda", "head"):
        assert len(json.dumps(large.panes[pane])) < 1.3 * len(json.dumps(little.panes[pane])) + 200
    assert large.panes["head"]["large"]
    assert not little.panes["head"]["large"]


def test_rows_beyond_the_limit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.app.panes.loops.MOST", 3)
    monkeypatch.setattr("explorer.app.panes.cuda.MOST", 5)
    start = schedule("matmul")
    rows = loop_rows(start.plan)
    assert len(rows) == 4
    assert "4 more rows" in rows[-1]["label"]
    pane = cuda(start, default_gpu())
    assert len(pane["lines"]) == 5
    assert pane["truncated"].startswith("the first 5 of ")
    assert all(n <= 5 for lines in pane["nodes"].values() for n in lines)


@pytest.mark.parametrize(("size", "told"), [(1 << 20, "; the arrays take 4.4 TB, and the H200 has 141 GB"), (4096, "")])
def test_arrays_that_no_memory_holds_are_told(size: int, told: str) -> None:
    opened = front("matmul", M=size, N=size, K=64)
    opened.ask("ready", wait=True)
    assert opened.panes["head"]["large"].partition("so does a check")[2] == told
