"""Rings: the answer for all trip counts and stages is that of the judge, size by size, and its least instance really fails."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from explorer.errors import IllegalSchedule, TransformError
from explorer.ir.plan import Plan
from explorer.poly.judge import judge
from explorer.poly.ring import Ring, ring
from explorer.poly.ring_questions import Family, Flight, fails, least
from explorer.poly.ring_text import ALWAYS, NEVER, condition, trip_counts
from explorer.strategies.pipelines.family import Kin, Way, overlap_of
from explorer.transforms.pipeline import Pipeline
from explorer.transforms.specialise import Specialise
from tests.hazards.corpus import TWICE, rows, tiles
from tests.kernel.bulk_schedules import tiled_product
from tests.transforms.test_overlap import tiled

PLAIN = Pipeline("k", 2, asynchronous=False)
CASES: dict[str, tuple[Callable[[int], Plan], Way, Flight]] = {
    "cp.async": (lambda k: rows(TWICE, "x", K=k).plan, Pipeline("k", 2), "copies"),
    "threads": (lambda k: tiles(K=4 * k - 1).plan, PLAIN, "copies"),
    "bulk": (lambda k: tiled_product(1, c=16 * k - 8 if k > 1 else 16).plan, Pipeline("k", 2), "copies"),
    "products in flight": (lambda k: tiled(1, M=64, N=64, K=64 * k).plan, Pipeline("k", 2), "products"),
    "roles": (lambda k: tiled(1, M=64, N=64, K=64 * k).plan, Specialise("k", 2), "products"),
}
SAID = {
    "cp.async": "release distance + in flight <= slots - 1 and release distance >= 1",
    "threads": "release distance >= 1",
    "bulk": "release distance + in flight + 1 == slots and release distance >= 1",
    "products in flight": "in flight <= release distance and release distance <= slots - 1",
    "roles": "in flight <= release distance and release distance <= slots - 1",
}


def kin(name: str, trips: int) -> Kin:
    base, way, flight = CASES[name]
    plan = base(trips)
    return Kin(plan, way, overlap_of(plan, plan.loops["k"]) if flight == "products" else None, flight)


def family(name: str, trips: int = 4) -> Family:
    found = ring(kin(name, trips).plan(3, 1, 1), "k")
    assert isinstance(found, Ring)
    return Family(found, CASES[name][2])


@pytest.mark.parametrize("name", CASES)
def test_the_answer_for_all_sizes_is_that_of_the_judge_for_each(name: str) -> None:
    known, different, legal = family(name), [], set[bool]()
    for trips in (1, 3, 4, 5):
        made = kin(name, trips)
        for s in (1, 2, 3, 4):
            for r in range(s + 1):
                for f in range(3 if made.varies else 1):
                    plan = made.plan(s, r, f)
                    right = judge(plan).emittable
                    legal.add(right)
                    if right == fails(known, s, r, f, trips):
                        different.append((s, r, f, trips))
                    here = ring(plan, "k")
                    assert isinstance(here, Ring)
                    assert here.shape == known.ring.shape
                    assert (here.slots, here.release_distance, here.trips) == (s, r, trips)
    assert not different
    assert legal == {True, False}


@pytest.mark.parametrize("name", CASES)
def test_the_condition_in_words(name: str) -> None:
    found = condition(family(name))
    assert found.always == SAID[name]
    assert found.otherwise == "trip count <= slots"


@pytest.mark.parametrize("name", CASES)
def test_the_least_trip_count_is_the_least(name: str) -> None:
    known = family(name)
    for s in (1, 2, 3, 4, 7):
        for r in range(s + 1):
            worst, said = least(known, S=s, R=r, F=1), trip_counts(known, s, r, 1)
            wrong = [k for k in range(1, 12) if fails(known, s, r, 1, k)]
            assert (worst.K if worst else None) == (wrong[0] if wrong else None)
            assert (said == ALWAYS) == (not wrong)
            assert (said == NEVER) == (bool(wrong) and wrong[0] == 1)


def test_a_refusal_has_the_condition_and_the_least_trip_count() -> None:
    with pytest.raises(IllegalSchedule) as refused:
        rows(TWICE, "x").pipeline("k", 4, buffers=3)
    assert "k is legal iff release distance + in flight <= slots - 1 and release distance >= 1" in refused.value.finding.why
    assert "it fails first for K = 4: x_s brings tile 3 into the slot of tile 0 before S0 of iteration 0" in str(refused.value)


def test_a_part_that_runs_later_needs_a_longer_distance() -> None:
    with pytest.raises(IllegalSchedule, match="legal iff release distance >= 2"):
        tiles().pipeline("k", 2, asynchronous=False).shift("k", 1, of="k.i")


def test_a_wait_for_what_comes_behind_it_is_refused() -> None:
    (refusal,) = judge(kin("roles", 4).plan(3, 3, 0)).refusals
    assert refusal.what == "k.acquire waits for a release that comes 1 behind it: it would wait for ever"


def test_what_a_user_asks() -> None:
    found = rows(TWICE, "x").pipeline("k", 3).pipeline_conditions("k")
    assert str(found.condition).startswith(f"legal iff {SAID['cp.async']}")
    assert found.own == {"S": 3, "R": 1, "F": 1}
    assert found.legal(3, 1, 1)
    assert found.legal(3, 0, 1, trips=3)
    assert not found.legal(3, 0, 1, trips=4)
    assert "this schedule: slots 3, release distance 1, in flight 1: legal for every trip count" in str(found)
    assert {c.trips for c in found.grid()} == {ALWAYS, NEVER, "K == 1", *(f"K <= {n}" for n in range(2, 6))}
    with pytest.raises(TransformError, match="release_distance"):
        found.legal(3, 4)
    with pytest.raises(TransformError, match="no loop"):
        rows(TWICE, "x").pipeline_conditions("q")


@pytest.mark.parametrize(("place", "trips"), [((3, 0, 1), 4), ((3, 1, 2), 1), ((2, 0, 1), 3)])
def test_the_least_instance_is_wrong_on_the_cpu_device(place: tuple[int, int, int], trips: int) -> None:
    shown = rows(TWICE, "x").pipeline("k", 3).pipeline_conditions("k").counterexample(*place)
    assert shown.caught
    assert dict(shown.sizes)["K"] == trips
    assert shown.shown_by == "the emitted text on the CPU device"


def test_a_producer_that_waits_for_what_comes_behind_it_blocks_on_the_cpu_device() -> None:
    found = tiled(1, M=64, N=64, K=128).specialise("k", 2).pipeline_conditions("k")
    shown = found.counterexample(2, 2)
    assert shown.caught
    assert "never ends" in shown.verdict


@pytest.mark.parametrize("stages", [2, 3])
def test_what_is_asked_by_default_is_what_pipeline_obeys(stages: int) -> None:
    """A loop of a warpgroup's products without a pipeline: behind `overlap` alone a copy may take the slot that is read now."""
    bare = tiled(1, M=64, N=64, K=64 * 5)
    asked = bare.pipeline_conditions("k")
    assert asked.kin.flight == "copies"
    verdict, _ = bare.try_step(Pipeline("k", stages, buffers=stages - 1))
    assert not verdict
    assert not asked.legal(stages - 1, 0, stages - 2)
    assert bare.pipeline_conditions("k", in_flight="products").legal(stages, 0, 0)
