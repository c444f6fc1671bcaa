"""The grid of legality: each cell is the answer for its sizes, and a refused one says why."""

from __future__ import annotations

import pytest

from explorer.run.counterexample.pipelines import pipeline_conditions
from tests.hazards.corpus import TWICE, rows
from tests.transforms.test_engines import ENGINES, before
from tests.transforms.test_overlap import tiled
from tests.views.figures.support import written


def test_each_cell_is_the_answer_for_its_sizes() -> None:
    s = rows(TWICE, "x").pipeline("k", 3)
    shown, data = s.plot.legality(slots=4), s.pipeline_conditions("k")
    assert len(shown.table) == sum(n + 1 for n in range(1, 5)) * 4
    for _, stages, distance, flight, trips, least, why in shown.table:
        cell = data.cell(int(stages or 0), int(distance or 0), int(flight or 0))
        assert (trips, why) == (cell.trips, cell.why_not)
        assert bool(why) == bool(least) == (not cell.legal)
    assert "legal iff release distance + in flight <= slots - 1" in shown.note


def test_products_that_are_waited_for_at_once_are_none_in_flight() -> None:
    s = tiled(3, M=64, N=64, K=256)
    assert s.pipeline_conditions("k", in_flight="products").own == {"S": 3, "R": 1, "F": 0}
    assert s.overlap("k").pipeline_conditions("k").own == {"S": 3, "R": 1, "F": 1}


def test_a_schedule_beyond_the_grid_is_said_not_to_be_framed() -> None:
    s = tiled(3, M=64, N=64, K=256)
    assert "framed: the schedule that is shown" in s.plot.legality(slots=3).note
    assert s.plot.legality(slots=2).note.endswith("the schedule that is shown is not drawn: it has 3 slots.")


def test_what_is_shown_is_framed_and_marked() -> None:
    shown = tiled(3, M=64, N=64, K=256).overlap("k").plot.legality(theme="dark")
    assert len([x for x in shown.spec["layout"]["shapes"] if x["line"]["width"] == 4]) == 1
    words = [x["text"] for x in shown.spec["layout"]["annotations"]]
    assert {"✓", "✗", "≤3", "3 slots"} <= set(words)
    hover = [cell for row in shown.spec["data"][0]["text"] for cell in row]
    assert any("(this schedule)" in cell and "right for every trip count" in cell for cell in hover)
    assert any("x_s brings tile 3 into the slot of tile 0 before S1 of iteration 0 is complete" in cell for cell in hover)


def test_nothing_to_ask_is_a_sentence() -> None:
    shown = written("softmax").plot.legality()
    assert not shown.spec
    assert "No loop computes in steps" in shown.note
    assert isinstance(pipeline_conditions(written("softmax"), "i"), str)


@pytest.mark.parametrize(("x", "y"), [(("bulk", 4), ("bulk", 2)), (("async", 2), ("async", 5)), (("bulk", 3), ("async", 5)),
                                      (("async", 3), ("bulk", 0))])
def test_beside_other_pipelines_the_condition_is_that_of_every_cell(x: tuple[str, int], y: tuple[str, int]) -> None:
    """Groups are committed in another order where they run further ahead than the others; or wait behind the copies."""
    s = before().stage("x", "k", **ENGINES[x[0]]).stage("y", "k", **ENGINES[y[0]])
    for name, stages in (("x_s", x[1]), ("y_s", y[1])):
        s = s.pipeline("k", stages, copies=(name,)) if stages else s
    for name in ("x_s", "y_s"):
        data = s.pipeline_conditions("k", copies=(name,))
        code = data.condition.always.replace("release distance", "R").replace("in flight", "F").replace("slots", "S")
        cells = data.grid(6, 7)
        assert [eval(code, {"S": c.slots, "R": c.release_distance, "F": c.in_flight}) for c in cells] == [c.legal for c in cells]
        assert any(c.legal for c in cells)
        worst = data.least()
        assert data.cell(worst.S, worst.R, worst.F).least == worst
