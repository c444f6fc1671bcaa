"""Rings of copies that have stages of their own in one loop: each answers for itself, together they answer as the judge does."""

from __future__ import annotations

import pytest

from explorer.errors import FigureError, TransformError
from explorer.poly.judge import judge
from explorer.poly.ring import Ring, ring
from explorer.poly.ring_questions import Family, fails
from explorer.schedule import Schedule
from tests.transforms.test_engines import ENGINES, before

OTHERS = {"x_s": "y_s", "y_s": "x_s"}


def apart(x: str, y: str, stages: tuple[int, int]) -> Schedule:
    s = before().stage("x", "k", **ENGINES[x]).stage("y", "k", **ENGINES[y])
    for name, n in zip(("x_s", "y_s"), stages, strict=True):
        s = s.pipeline("k", n, copies=(name,)) if n > 1 else s
    return s


@pytest.mark.parametrize(("x", "y"), [("async", "async"), ("bulk", "bulk"), ("bulk", "async")])
@pytest.mark.parametrize("of", ["x_s", "y_s"])
def test_the_answers_are_that_of_the_judge(x: str, y: str, of: str) -> None:
    made = apart(x, y, (4, 2))
    found = made.pipeline_conditions("k", copies=(of,))
    different, legal = [], set[bool]()
    for s in (2, 3):
        for r in (0, 1, 2):
            for f in range(5):
                expected = found.legal(s, r, f, 5)
                if x == y == "async" and expected:  # one wait for both: the other's groups are waited for by it, too
                    both = ring(found.kin.plan(s, r, f), "k", (OTHERS[of],))
                    assert isinstance(both, Ring)
                    expected = not fails(Family(both, "copies"), both.slots, both.release_distance, f, 5)
                right = judge(found.kin.plan(s, r, f)).emittable
                legal.add(right)
                different += [(s, r, f)] if right != expected else []
    assert not different
    assert legal == {True, False}


def test_what_is_asked_is_about_one_of_them() -> None:
    s = apart("bulk", "bulk", (4, 2))
    with pytest.raises(TransformError, match="ask for one of them, copies="):
        s.pipeline_conditions("k")
    said = str(s.pipeline_conditions("k", copies=("y_s",)))
    assert "bulk copies of y_s: legal iff (in flight == 1 and release distance >= 1 and slots <= release distance + 1)" in said
    assert "this schedule: slots 2, release distance 1, in flight 1: legal for every trip count" in said
    with pytest.raises(TransformError, match="z_s"):
        s.pipeline_conditions("k", copies=("z_s",))
    with pytest.raises(TransformError, match="copies is 3"):
        s.pipeline_conditions("k", copies=3)  # type: ignore[arg-type]


def test_the_least_instance_of_one_of_them_goes_wrong_when_run() -> None:
    found = apart("async", "async", (4, 2)).pipeline_conditions("k", copies=("y_s",))
    assert found.counterexample(2, 0, 1).caught


def test_the_figure_asks_which() -> None:
    plot = apart("async", "async", (4, 2)).plot
    assert str(plot.legality(slots=3, copies="x_s")).startswith("Where pipelines of x_s in k are legal")
    assert str(plot.legality(slots=3)).startswith("Where pipelines of y_s in k are legal")
    with pytest.raises(FigureError, match="one of y_s, x_s"):
        plot.legality(copies="z_s")


def test_two_steps_of_one_loop_are_asked_about_apart() -> None:
    """The plan shows one ring; the family of one of the steps pipelines its own copies alone."""
    with pytest.raises(TransformError, match="pipelines that differ"):
        apart("async", "async", (3, 3)).pipeline_conditions("k")


def test_steps_behind_that_need_the_pipeline_or_move_its_loop_say_so() -> None:
    one = apart("async", "async", (1, 1)).pipeline("k", 3)
    assert one.pipeline_conditions("k").counterexample(2, 0, 1).caught
    with pytest.raises(TransformError, match="cannot be taken without the pipeline of k"):
        one.unroll("k.pro").pipeline_conditions("k").counterexample(2, 0, 1)
    moved = one.shift("k", 1).pipeline_conditions("k").counterexample(2, 0, 1)
    assert not moved.caught
    assert "the other steps of this schedule make no such pipeline" in str(moved)
    both = apart("async", "async", (1, 1)).pipeline("k", 4, copies=("x_s",), asynchronous=False)
    both = both.pipeline("k", 2, copies=("y_s",), asynchronous=False).bind("x_s.v.pro", "seq")
    assert "cannot be taken without the pipeline of k" in str(both.plot.legality(copies="x_s"))
