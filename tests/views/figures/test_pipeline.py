"""The timeline of a pipelined loop: who copies what when, which slot holds it how long, and what goes wrong if it is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.transforms.base import catalogue
from explorer.views.figures.asked import Asked, Look
from explorer.views.figures.palette import LIGHT
from explorer.views.figures.pipeline import Pipeline, pipeline
from explorer.views.figures.pipeline_draw import draw, make
from tests.transforms.test_specialise import ONE, made
from tests.views.figures.support import matmul, written


def _of(s, look: Look = Look(), **options: object) -> Pipeline:  # noqa: B008
    data = pipeline(s, Asked(options), look)
    assert isinstance(data, Pipeline)
    return data


def test_a_staged_loop_copies_then_uses():
    data = _of(matmul())
    assert (data.loop, data.extent, data.ahead, data.asynchronous) == ("k", 3, 0, False)
    assert [(b.kind, b.node, b.iteration) for b in data.bars] == [
        (kind, node, k) for k in range(3) for kind, node in (("copy", "a_s"), ("copy", "b_s"), ("compute", "S1"))
    ]
    assert {m.kind for m in data.marks} == {"barrier"}
    assert len([m for m in data.marks if m.runs == 1]) == 2, "before the copies overwrite, and before they are read"
    assert data.alive == 1
    assert data.phases == ()


@pytest.mark.parametrize("stages", [2, 3])
def test_copies_run_ahead_and_tiles_live_from_copy_to_last_use(stages):
    data = _of(matmul(K=32, stages=stages), iterations=8)
    assert (data.ahead, data.slots, data.asynchronous) == (stages - 1, (("a_s", stages), ("b_s", stages)), True)
    copies = {(b.statements[0], b.iteration): b for b in data.bars if b.kind == "copy"}
    uses = {b.iteration: b for b in data.bars if b.kind == "compute"}
    assert set(copies) == {(n, k) for n in ("a_s", "b_s") for k in range(8)}
    for (_, k), copy in copies.items():
        assert (copy.phase == "prologue") == (k < stages - 1)
        assert copy.runs == (k if k < stages - 1 else k - stages + 1)
        assert copy.landed is not None
        assert copy.end <= copy.landed <= uses[k].start
    lives = {(x.buffer, x.iteration): x for x in data.lives}
    for (name, k), life in lives.items():
        assert (life.slot, life.start, life.end) == (k % stages, copies[name, k].start, uses[k].end)
    assert data.alive == stages
    assert [name for name, _, _ in data.phases] == ["prologue", "steady state", "epilogue"]
    assert not any(b.wrong for b in data.bars)
    kinds = [m.kind for m in data.marks if m.runs == 3]
    assert kinds[0] == "wait"
    assert kinds[-1] == "commit"


def test_plain_copies_land_at_once_and_need_no_waits():
    data = _of(matmul(K=32, stages=2, asynchronous=False))
    assert not data.asynchronous
    assert {m.kind for m in data.marks} <= {"barrier"}
    assert all(b.landed == b.end for b in data.bars)


def test_iterations_left_out_do_not_change_what_is_drawn():
    whole, part = (_of(matmul(K=48, stages=3), iterations=n) for n in (12, 6))
    assert (whole.shown, part.shown, len(whole.gaps), len(part.gaps)) == (12, 6, 0, 1)
    drawn = {(b.kind, b.node, b.iteration) for b in part.bars}
    assert drawn < {(b.kind, b.node, b.iteration) for b in whole.bars}
    slots = {(x.buffer, x.iteration): x.slot for x in whole.lives}
    assert {(x.buffer, x.iteration): x.slot for x in part.lives}.items() <= slots.items()
    assert not any(b.wrong for b in part.bars)
    assert {b.iteration for b in part.bars if b.kind == "compute"} == {0, 1, 2, 3, 10, 11}
    held = {x.iteration: x for x in part.lives if x.buffer == "a_s"}
    assert held[10].start < part.gaps[0][1], "copied while nothing is drawn"
    assert held[10].read
    long = {x.iteration: x for x in _of(matmul(K=256, stages=3), iterations=6).lives if x.buffer == "a_s"}
    assert not long[5].read, "in an iteration that is not followed"
    assert long[63].read


def test_a_refused_pipeline_shows_the_tile_that_is_overwritten():
    s = matmul(K=32)
    verdict, plan = s.try_step(catalogue()["pipeline"]("k", 3, buffers=2))
    assert not verdict
    data = _of(replace(s, plan=plan), Look(finding=verdict.finding))
    k = verdict.finding.source.point[2]
    wrong = {(b.kind, b.iteration) for b in data.bars if b.wrong}
    assert wrong == {("copy", k), ("compute", k), ("copy", k + 2)}
    spec = draw(data, LIGHT)
    red = [t for t in spec["data"] if t["type"] == "bar" and LIGHT.bad in t["marker"]["line"].get("color", ())]
    assert red
    assert "✗" in str(spec["data"])


def test_a_wait_that_lets_too_much_fly_is_seen():
    s = matmul(K=32, stages=3)
    loop = s.plan.loops["k"]
    wait = next(n for n in loop.body if getattr(n, "kind", "") == "wait")
    lax = s.plan.replace_node(wait.id, replace(wait, pending=2))
    wrong = [b for b in _of(replace(s, plan=lax)).bars if b.wrong]
    assert wrong
    assert {b.kind for b in wrong} == {"compute"}


def test_the_row_of_an_iteration_holds_its_copies_and_its_use():
    data = _of(matmul(K=32, stages=2), iterations=8)
    spec = draw(data, LIGHT)
    bars = [t for t in spec["data"] if t["type"] == "bar" and "yaxis" not in t]
    rows = {(node, y) for t in bars for node, y in zip(t["customdata"], t["y"], strict=True)}
    assert {node for node, y in rows if y == 5} == {"a_s", "b_s", "S1"}
    assert {node for node, y in rows if y == 0} == {"a_s.pro", "b_s.pro", "S1"}
    assert spec["layout"]["yaxis"]["ticktext"][5] == "k=5"
    slots = next(t for t in spec["data"] if t.get("yaxis") == "y2")
    assert set(slots["customdata"]) == {"a_s"}, "b_s lives alike and shares the rows"
    assert spec["layout"]["yaxis2"]["ticktext"] == ["a_s, b_s slot 0", "a_s, b_s slot 1"]


def test_without_copies_there_is_a_sentence():
    assert "Nothing is staged" in pipeline(written("softmax"), Asked(), Look())
    s = written("matmul", M=8, N=8, K=8).bind("i", "block.x").bind("j", "thread.x").stage("b", "i")
    assert "copied once" in pipeline(s, Asked(), Look())


def test_copies_of_a_warp_of_its_own_do_not_wait_for_a_pipeline():
    s = made(ONE)
    drawing = make(s, Asked({}), Look())
    assert not isinstance(drawing, str)
    assert "copied by a warp of its own" in drawing.title
    assert "A warp of its own copies, as far ahead of the others as slots are released" in drawing.note
    assert "pipeline it" not in drawing.note
    assert "pipeline it" in make(matmul(), Asked({}), Look()).note
