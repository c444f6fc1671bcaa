"""The picture of an iteration space: the right instances, options, and a violating pair, at any size."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.errors import FigureError
from explorer.poly.sample import bounds
from explorer.strategies import auto
from explorer.transforms.base import catalogue
from explorer.views.figures.asked import Asked, Look
from explorer.views.figures.domain import ROOM, domain
from explorer.views.figures.domain_draw import draw, title
from explorer.views.figures.domain_pair import ends_of
from explorer.views.figures.palette import CYCLE, DARK, LIGHT
from tests.views.figures.support import SCHEDULES, walked, written


@pytest.mark.parametrize("name", SCHEDULES)
def test_cells_are_the_instances_of_the_plane(name):
    s = SCHEDULES[name]()
    everything = walked(s.plan)
    for statement, where in everything.items():
        data = domain(s, Asked({"statement": statement, "size": "large"}), Look())
        assert data.statement == statement
        fixed = dict(data.fixed)
        inside = {
            p
            for p in where
            if all(dict(zip(data.dims, p, strict=True))[d] == v for d, v in fixed.items())
            and all(
                start <= dict(zip(data.dims, p, strict=True))[d] < start + count
                for d, (start, count, _) in zip(data.axes, data.window, strict=True)
            )
        }
        assert {c.point for c in data.cells} == inside
        assert data.total == len(where)
        assert data.sampled == any(start > low or start + count - 1 < high
                                   for (start, count, _), (low, high) in zip(data.window, data.extents, strict=True))


def test_the_axes_are_those_bound_to_blocks_and_threads_and_can_be_chosen():
    s = (
        written("matmul", M=64, N=64, K=64)
        .tile(["i", "j"], (8, 8))
        .bind("i", "block.y")
        .bind("j", "block.x")
        .bind("i.i", "thread.y")
    )
    data = domain(s, Asked(), Look())
    assert (data.statement, data.axes, data.fixed) == ("S1", ("j", "i"), (("k", 0),))
    assert data.roles == ("block.x", "block.y · thread.y")
    other = domain(s, Asked({"x": "k", "y": "j", "at.i": 9, "from.k": 40}), Look())
    assert (other.axes, other.fixed, other.window[0][0]) == (("k", "j"), (("i", 9),), 40)
    cube = domain(s, Asked({"x": "i", "y": "j", "z": "k"}), Look())
    assert len(cube.axes) == 3
    assert len(cube.cells) == ROOM["small"][3][0] ** 3
    assert {t["type"] for t in draw(cube, LIGHT)["data"]} == {"scatter3d"}


def test_a_node_chooses_the_statement():
    s = written("softmax")
    assert domain(s, Asked(), Look("S0")).statement == "S0"
    below = domain(s, Asked(), Look("k_3")).statement
    assert "k_3" in s.plan.statement_of[below].dims


def test_a_buffer_chooses_a_statement_that_uses_it():
    s = auto(written("softmax", M=64, N=1000))
    assert len(s.plan.buffers) > 4
    for buffer in (b.name for b in s.plan.buffers):
        shown = domain(s, Asked(), Look(buffer)).statement
        assert any(view.buffer == buffer for leaf, _, _ in s.plan.leaves if leaf.statement == shown for _, view in leaf.views)


def test_it_opens_where_the_selected_leaf_runs():
    """The prologue of a pipeline copies the first tiles, the loop the later ones."""
    s = SCHEDULES["matmul pipelined"]()
    for node in ("a_s.pro", "a_s"):
        data = domain(s, Asked(), Look(node))
        assert data.statement == "a_s"
        assert node in {c.leaf for c in data.cells}


def test_the_whole_is_sampled_with_one_stride_for_each_axis():
    s = written("matmul", M=4096, N=4096, K=4096).tile(["i", "j"], (128, 128)).bind("i", "block.y").bind("j", "block.x")
    data = domain(s, Asked({"show": "whole", "size": "large"}), Look())
    assert data.window == ((0, 32, 128), (0, 20, 205))
    assert data.sampled
    assert {c.block for c in data.cells} == {(j, i * 205 // 128, 0) for i in range(20) for j in range(32)}
    assert data.total == 4096**3


def test_options_that_do_not_fit_are_refused_when_typed_and_forgiven_when_stale():
    s = written("matmul")
    with pytest.raises(FigureError, match="colour='pink' is not a choice"):
        domain(s, Asked({"colour": "pink"}, strict=True), Look())
    with pytest.raises(FigureError, match="outside its range"):
        domain(s, Asked({"at.i": 99}, strict=True), Look())
    forgiven = domain(s, Asked({"colour": "pink", "x": "gone", "at.i": 99}), Look())
    assert forgiven.colour == "time"
    assert dict(forgiven.fixed) == {"i": 4}


@pytest.mark.parametrize(("name", "step", "arguments"), [
    ("gauss_seidel", "bind", ("i", "block.x")), ("gauss_seidel", "reverse", ("j",)), ("three loops", "fuse", ("k", "j")),
    ("jacobi2d", "interchange", ("t", "i"))])
def test_a_refused_pair_is_drawn_where_it_is(name, step, arguments):
    s = written(name, **({"M": 4, "N": 300} if name == "three loops" else {"T": 3, "H": 70, "W": 70}))
    verdict, plan = s.try_step(catalogue()[step](*arguments))
    assert verdict.finding is not None
    data = domain(replace(s, plan=plan), Asked(), Look(finding=verdict.finding))
    source, sink = verdict.finding.source, verdict.finding.sink
    assert data.statement == source.statement
    assert (data.other is None) == (source.statement == sink.statement)
    shown = ends_of(data)
    assert [(m.name, m.first, grid.statement) for m, grid in shown] == [
        (str(source), True, source.statement), (str(sink), False, sink.statement)]
    for (mark, grid), end in zip(shown, (source, sink), strict=True):
        named = dict(zip(plan.statement_of[end.statement].dims, end.point, strict=True))
        assert mark.at == tuple(named[d] for d in grid.axes)
        assert all(
            start <= v <= start + (count - 1) * stride for v, (start, count, stride) in zip(mark.at, grid.window, strict=True)
        )
    words = [a["text"] for a in draw(data, DARK)["layout"]["annotations"]]
    assert f"<b>1  {source}</b> must run first" in words
    assert f"<b>2  {sink}</b> must run later" in words


def refused(name, step, arguments, **sizes):
    s = written(name, **sizes)
    verdict, plan = s.try_step(catalogue()[step](*arguments))
    return domain(replace(s, plan=plan), Asked(), Look(finding=verdict.finding)), verdict.finding


def test_the_words_of_a_pair_stand_apart_and_off_the_cells():
    """However near the two are: the words are lines above the cells, and the numbers look away from each other."""
    for name, step, arguments in (("gauss_seidel", "reverse", ("j",)), ("jacobi2d", "interchange", ("t", "i")),
                                  ("gauss_seidel", "bind", ("i", "block.x"))):
        data, _ = refused(name, step, arguments)
        page = draw(data, LIGHT)["layout"]
        words = [a for a in page["annotations"] if "must run" in a["text"]]
        assert [a["yref"] for a in words] == ["paper", "paper"]
        assert abs(words[0]["yshift"] - words[1]["yshift"]) >= words[0]["font"]["size"] * 1.3
        assert page["margin"]["t"] >= max(a["yshift"] for a in words) + words[0]["font"]["size"], "they have room"
        first, second = (a for a in page["annotations"] if a["text"] in ("<b>1</b>", "<b>2</b>"))
        for shift, axis, down in (("xshift", "x", 1), ("yshift", "y", -1)):
            apart = (second[axis] - first[axis]) * down
            if apart:
                assert (second[shift] - first[shift]) * apart > 0, "the numbers are further apart than the points"
        assert (first["xshift"], first["yshift"]) != (second["xshift"], second["yshift"])


def test_two_statements_have_a_grid_each_and_an_arrow_between():
    data, finding = refused("softmax", "fuse", ("k_2", "k_3"))
    assert data.other is not None
    assert data.other.statement == finding.sink.statement
    page = draw(data, LIGHT)
    grids = [t for t in page["data"] if t.get("name") == "instances"]
    assert [set(t["customdata"]) for t in grids] == [{"S3"}, {"S4"}]
    assert [t.get("xaxis", "x") for t in grids] == ["x", "x2"]
    left, right = (page["layout"][f"xaxis{n}"]["domain"] for n in ("", "2"))
    assert left[1] < right[0]
    titles = [a["text"] for a in page["layout"]["annotations"] if a["text"].startswith("<b>S")]
    assert [t[3:6] for t in titles] == ["S3:", "S4:"]
    (pointer,) = [t for t in page["data"] if t.get("xaxis") == "x3" and t["mode"] == "lines"]
    assert left[0] < pointer["x"][0] < left[1]
    assert right[0] - 0.05 < pointer["x"][-1] < right[1]
    assert max(pointer["y"]) <= 1
    assert "S3 and S4" in title(data)
    other = domain(*_again("softmax", "fuse", ("k_2", "k_3"), {"statement": "S4"}))
    assert [m.name for m, _ in ends_of(other)] == [m.name for m, _ in ends_of(data)], "the first stays first"
    assert domain(*_again("softmax", "fuse", ("k_2", "k_3"), {"statement": "S0"})).pair == ()


def _again(name, step, arguments, options):
    s = written(name)
    verdict, plan = s.try_step(catalogue()[step](*arguments))
    return replace(s, plan=plan), Asked(options), Look(finding=verdict.finding)


def test_cells_know_the_loops_they_run_in():
    """The values of a cell's loops give its point back, and one run of a loop is what shares those outside of it."""
    s = written("matmul", M=8, N=8, K=8).tile(["i", "j"], (4, 4)).cut("k", 3)
    data = domain(s, Asked({"x": "j", "y": "i"}), Look())
    above = dict(data.above)
    assert len(above) == 2
    for cell in data.cells:
        leaf, over, kernel = next(entry for entry in s.plan.leaves if entry[0].id == cell.leaf)
        assert above[cell.leaf] == (kernel.id, *(x.id for x in over))
        env = dict(zip((x.id for x in over), cell.loops, strict=True))
        named = dict(leaf.at)
        assert cell.point == tuple(named[d].evaluate(env) for d in data.dims)
    meta = next(t["meta"] for t in draw(data, LIGHT)["data"] if t.get("name") == "instances")
    assert meta["loops"] == [list(c.loops[::-1]) for c in data.cells]
    assert meta["around"] == {leaf: list(nodes[::-1]) for leaf, nodes in data.above}


def test_colours_and_words_tell_threads_and_blocks_apart():
    s = (
        written("matmul", M=8, N=8, K=2)
        .tile(["i", "j"], (4, 4))
        .bind("i", "block.y")
        .bind("j", "block.x")
        .bind("j.i", "thread.x")
    )
    data = domain(s, Asked({"colour": "thread"}), Look())
    trace = next(t for t in draw(data, LIGHT)["data"] if t.get("name") == "instances")
    at = {(x, y): (t, c) for x, y, t, c in zip(trace["x"], trace["y"], trace["text"], trace["marker"]["color"], strict=True)}
    assert all(at[x, y] == (str(x % 4), CYCLE[x % 4]) for x in range(8) for y in range(8))
    blocks = next(t for t in draw(domain(s, Asked({"colour": "block"}), Look()), LIGHT)["data"] if t.get("name") == "instances")
    assert dict(zip(zip(blocks["x"], blocks["y"], strict=True), blocks["text"], strict=True))[5.0, 1.0] == "0,1"
    border = next(t for t in draw(data, LIGHT)["data"] if t["mode"] == "lines" and t["line"]["width"] == 2)
    assert {x for x in border["x"] if x is not None} >= {3.5}


def test_the_frames_light_up_every_instance_once_in_order():
    s = written("matmul", M=2, N=3, K=30)
    data = domain(s, Asked({"x": "k", "y": "j"}), Look())
    spec = draw(data, LIGHT)
    first, *frames = spec["frames"]
    assert first["data"][0]["x"] == []
    shown = [(x, y) for f in frames for x, y in zip(f["data"][0]["x"], f["data"][0]["y"], strict=True)]
    assert sorted(shown) == sorted((float(c.point[2]), float(c.point[1])) for c in data.cells)
    assert shown == sorted(shown, key=lambda at: (at[1], at[0]))
    assert len(frames) <= 24
    assert [s["label"] for s in spec["layout"]["sliders"][0]["steps"]] == [f["name"] for f in spec["frames"]]


def test_triangles_show_only_what_is_in_the_domain():
    data = domain(written("triangular_matmul", M=10, N=4), Asked({"x": "k", "y": "i", "size": "large"}), Look())
    assert {(c.point[0], c.point[2]) for c in data.cells} == {(i, k) for i in range(10) for k in range(i + 1)}
    assert bounds(written("triangular_matmul", M=10, N=4).plan, "S1") == {"i": (0, 9), "j": (0, 3), "k": (0, 9)}
