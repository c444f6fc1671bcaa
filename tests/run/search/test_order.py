"""Which variants a search measures: favourites, some at random, then steps to where the times lead; the test says the times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import inf
from typing import Any

import pytest

from benchmarks.reduction_program import reduction
from explorer.gpu.spec import default_gpu
from explorer.run.search import order as orders
from explorer.run.search.order import Hill, Order
from explorer.strategies.auto import auto
from explorer.strategies.choices import Decision, Variant
from explorer.strategies.kernel_choices import Choice
from explorer.strategies.neighbours import free_choices
from tests.programs import two_sums

WRITTEN = reduction((512, 256), (1,), "f32", "sum")
SIDES, DEPTHS, WAYS = (8, 16, 32, 64, 128, 256, 512), (1, 2, 3, 4, 5, 6, 7, 8), ("ij", "ji")
Landscape = Callable[[dict[str, Any]], float]


def turn(kernel: str) -> Decision:
    """Ways with a tile, a depth and an order; the model finds small tiles and few stages cheapest."""
    points = [{"tile": side, "stages": depth, "order": way} for side, depth, way in product(SIDES, DEPTHS, WAYS)]
    return Decision("spread", kernel, tuple(
        Choice("spread", kernel, f"{p['tile']} x {p['stages']} {p['order']}", 1.0 + n, lambda s: s, free_choices(**p))
        for n, p in enumerate(points)))


def spaces(monkeypatch: pytest.MonkeyPatch, *found: Decision) -> None:
    """Searches have these decisions."""
    gpu = default_gpu()

    def listed(*_args: object, **_options: object) -> Iterator[Variant]:
        yield Variant("auto", WRITTEN, gpu)
        yield from (Variant(f"{d.kernel}: {c.label}", WRITTEN, gpu, (c,)) for d in found for c in d.choices[1:])

    monkeypatch.setattr(orders, "decisions", lambda *_args: found)
    monkeypatch.setattr(orders, "variants", listed)


def walked(order: Order, land: Landscape) -> list[tuple[Variant, float]]:
    """All that is measured, with times by the free choices of what differs from the start, or of the start's own."""
    starts = {hill.decision.kernel: hill.decision.choices[0] for hill in order.hills}
    out: list[tuple[Variant, float]] = []

    def measure(v: Variant) -> None:
        taken = {**starts, **{c.kernel: c for c in v.changes}}
        out.append((v, sum(land({**dict(c.free), "kernel": c.kernel}) for c in taken.values())))

    for v in order.first:
        measure(v)
    for _ in range(order.steps):
        if (v := order.beside(out)) is None:
            break
        measure(v)
    return out


def best(measured: Sequence[tuple[Variant, float]]) -> float:
    """The least time."""
    return min(us for _, us in measured)


def bowl(tile: int, stages: int, way: str) -> Landscape:
    """Larger by one with each step from the best."""
    return lambda p: (10 + abs(SIDES.index(p["tile"]) - SIDES.index(tile)) + abs(p["stages"] - stages) + (p["order"] != way))


@pytest.mark.parametrize("seed", range(6))
def test_the_best_is_found_three_steps_from_what_the_model_favours(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Of 30 trials 14 are the model's, all of one tile, and 14 are steps: so many at random meet the best once in seven times."""
    spaces(monkeypatch, turn("a"))
    order = Order.of(WRITTEN, default_gpu(), 30, seed)
    assert (len(order.first), order.steps, order.combined, order.most) == (16, 14, 0, 30)
    favoured = [dict(c.free) for v in order.first[:14] for c in v.changes]
    land = bowl(64, 1, "ji")
    assert min(land(p) for p in favoured) == 13
    found = walked(order, land)
    assert len(found) == 30
    assert best(found) == 10


def test_a_step_goes_to_the_cheapest_neighbour_by_the_model_and_on_when_one_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    spaces(monkeypatch, turn("a"))
    every = Order.of(WRITTEN, default_gpu(), 1000, 0)
    at = {v.label: v for v in every.first}
    order = Order((every.first[0], at["a: 64 x 4 ij"]), every.hills, 20)
    times = {"auto": 20.0, "a: 64 x 4 ij": 10.0, "a: 64 x 3 ij": 9.0}
    measured = [(v, times[v.label]) for v in order.first]
    labels = []
    for _ in range(7):
        v = order.beside(measured)
        assert v is not None
        labels.append(v.label)
        measured.append((v, times.get(v.label, inf)))
    assert labels == ["a: 32 x 4 ij", "a: 64 x 3 ij", "a: 32 x 3 ij", "a: 64 x 2 ij", "a: 64 x 3 ji", "a: 128 x 3 ij",
                      "a: 16 x 3 ij"]  # the last: all neighbours are measured, so the nearest of the others


def test_kernels_take_turns_and_each_is_climbed_from_its_own_best(monkeypatch: pytest.MonkeyPatch) -> None:
    spaces(monkeypatch, turn("a"), turn("b"))
    order = Order.of(WRITTEN, default_gpu(), 42, 0)
    assert order.combined == 2
    lands = {"a": bowl(64, 1, "ij"), "b": bowl(8, 8, "ji")}
    found = walked(order, lambda p: lands[p["kernel"]](p))
    steps = [v.changes[0].kernel for v, _ in found[len(order.first):]]
    assert steps[:6] == ["a", "b"] * 3
    assert abs(steps.count("a") - steps.count("b")) <= 1


def test_every_variant_is_measured_once_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    spaces(monkeypatch, turn("a"))
    few = Order.of(WRITTEN, default_gpu(), 200, 0)
    assert (len(few.first), few.steps) == (len(SIDES) * len(DEPTHS) * len(WAYS), 0)
    order = Order(few.first[:1], few.hills, 1000)
    found = walked(order, bowl(64, 4, "ij"))
    assert len(found) == len({v.label for v, _ in found}) == len(few.first)


@pytest.mark.parametrize("trials", [1, 2, 3, 5, 12, 40, 111, 112, 113])
def test_there_are_never_more_trials_than_asked_for(monkeypatch: pytest.MonkeyPatch, trials: int) -> None:
    for found in ([turn("a")], [turn("a"), turn("b")]):
        spaces(monkeypatch, *found)
        for schedule in (WRITTEN, auto(WRITTEN)):
            order = Order.of(schedule, default_gpu(), trials, 0)
            assert order.most <= trials
            assert order.first[0].label == "auto"
            assert ("as given" in [v.label for v in order.first]) == (bool(schedule.steps) and trials > 1)
            assert len(walked(order, bowl(64, 4, "ij"))) == len(order.first) + order.steps


def test_ones_own_schedule_is_not_taken_for_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    spaces(monkeypatch, turn("a"))
    order = Order.of(auto(WRITTEN), default_gpu(), 12, 0)
    times = [20.0, 1.0] + [9.0 if v.label == "a: 8 x 2 ji" else 10.0 for v in order.first[2:]]
    following = order.beside([*zip(order.first, times, strict=True)])
    assert following is not None
    assert {"8 x 2 ij", "8 x 1 ji", "8 x 3 ji", "16 x 2 ji"} >= {following.changes[0].label}


def test_the_same_seed_and_times_lead_to_the_same_variants(monkeypatch: pytest.MonkeyPatch) -> None:
    spaces(monkeypatch, turn("a"))
    runs = [[v.label for v, _ in walked(Order.of(WRITTEN, default_gpu(), 40, seed), bowl(*at))]
            for seed, at in ((0, (64, 4, "ij")), (0, (64, 4, "ij")), (1, (64, 4, "ij")), (0, (8, 8, "ji")))]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]
    assert runs[0] != runs[3]
    labels = [Order.of(WRITTEN, default_gpu(), trials, 0).labels for trials in (40, 40, 30)]
    assert labels[0] == labels[1] != labels[2]


def test_of_a_real_program_each_kernel_has_its_steps() -> None:
    order = Order.of(two_sums.schedule(M=48, N=96), default_gpu(), 20, 0)
    assert len(order.hills) == 2
    assert all(isinstance(hill, Hill) for hill in order.hills)
    found = walked(order, lambda p: float(len(str(sorted(p.items())))))
    steps = [v for v, _ in found[len(order.first):]]
    assert len(steps) == order.steps > 2
    assert {v.changes[0].kernel for v in steps} == {hill.decision.kernel for hill in order.hills}
    assert len({v.label for v, _ in found}) == len(found)
