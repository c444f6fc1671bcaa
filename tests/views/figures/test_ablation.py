"""The ablation: each cell is a plan that a user can make, with its price; a refused one says why; times stand in their cells."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

import explorer as ex
from explorer.app.history import History
from explorer.errors import FigureError
from explorer.run.search.result import Trial
from explorer.run.timing import Samples, Timing
from explorer.strategies.contraction import contraction
from explorer.strategies.contraction.shapes import Tiling
from explorer.strategies.price import price
from explorer.transforms.overlap import Overlap
from explorer.transforms.pipeline import Pipeline
from explorer.views.figures.ablation import Ablation, ablation, key, timed
from explorer.views.figures.asked import Asked, Look
from explorer.views.figures.picture import Picture
from explorer.views.figures.registry import picture
from tests.views.figures.support import matmul, written
from tests.views.figures.test_timeline import product, tensor

H200 = ex.gpu("H200")


def of(s: ex.Schedule, look: Look = Look(), **options: object) -> Ablation:  # noqa: B008
    found = ablation(s, Asked(options), look)
    assert isinstance(found, Ablation)
    return found


def priced(data: Ablation) -> dict[tuple[int, int], float | None]:
    return {(c.stages, c.level): c.predicted_us for c in data.cells}


@cache
def in_tiles(stages: int) -> ex.Schedule:
    """Small enough for three slots, not for four."""
    t = Tiling("warpgroup", 128, 256, 64, 2, 1, stages, through=True)
    return contraction(product.schedule(M=4096, N=4096, K=4096), tiling=t)


@pytest.mark.parametrize("engine", ["warp", "warpgroup"])
def test_each_cell_is_the_price_of_the_schedule_with_these_stages(engine: str) -> None:
    found = priced(of(tensor(3, engine), stages=4))
    for stages in (2, 3, 4):
        own = tensor(stages, engine)
        level = int(any(isinstance(step, Overlap) for step in own.steps))
        assert found[stages, level] == pytest.approx(price(own.plan, H200).total_us, rel=1e-6)


def test_all_schedules_of_an_ablation_have_the_same_cells() -> None:
    assert priced(of(tensor(1))) == priced(of(tensor(3))) == priced(of(tensor(3).pipeline("k.i", 2, asynchronous=False)))


def test_the_schedule_that_is_shown_is_framed() -> None:
    assert [(c.stages, c.level) for c in of(tensor(3)).cells if c.here] == [(3, 0)]
    assert [(c.stages, c.level) for c in of(tensor(3).pipeline("k.i", 2, asynchronous=False)).cells if c.here] == [(3, 1)]
    assert [(c.stages, c.level) for c in of(tensor(3, "warpgroup")).cells if c.here] == [(3, 1)]
    assert [(c.stages, c.level) for c in of(matmul(K=32)).cells if c.here] == [(1, 0)]


def test_stages_and_levels_are_worth_what_they_hide() -> None:
    found = priced(of(tensor(1)))
    assert found[1, 0] > found[2, 0] >= found[5, 0]  # type: ignore[operator]
    assert all(found[n, 1] == pytest.approx(found[n, 0], rel=0.01) for n in range(1, 6)), "a compiler orders both texts alike"


def test_what_is_refused_says_why() -> None:
    cells = {(c.stages, c.level): c for c in of(in_tiles(3)).cells}
    assert "bytes of shared memory" in cells[4, 0].why_not
    assert "would be lost" in cells[1, 1].why_not
    assert cells[3, 1].predicted_us is not None
    assert not cells[3, 1].why_not
    shown = in_tiles(3).plot.ablation()
    assert "the table says why" in shown.note
    assert any("bytes of shared memory" in row[-1] for row in shown.table)


def test_a_loop_without_tensor_instructions_has_one_level() -> None:
    data = of(matmul(K=32, stages=2), stages=4)
    assert data.levels == ("arithmetic",)
    assert [c.stages for c in data.cells] == [1, 2, 3, 4]
    assert all(c.predicted_us for c in data.cells)


def test_nothing_to_vary_is_a_sentence() -> None:
    shown = written("softmax").plot.ablation()
    assert not shown.spec
    assert "No loop computes in steps" in shown.note


def test_schedules_that_differ_elsewhere_are_told_apart() -> None:
    one, two = tensor(2), tensor(3)
    assert key(one.steps, "k")[0] == key(two.steps, "k")[0]
    assert (key(one.steps, "k")[1:], key(two.steps, "k")[1:]) == ((2, 0), (3, 0))
    assert key(tensor(2, "warpgroup").steps, "k")[0] != key(two.steps, "k")[0]


def test_a_loop_with_a_producer_keeps_it_with_other_stages() -> None:
    plain = contraction(product.schedule(M=4096, N=4096, K=4096), tiling=Tiling("warpgroup", 128, 128, 64, 2, 1, 1))
    data = of(plain.specialise("k", 3), stages=4)
    assert [(c.stages, c.level) for c in data.cells if c.here] == [(3, 0)]
    found = priced(data)
    assert found[1, 0] == pytest.approx(price(plain.plan, H200).total_us)
    assert found[4, 0] == pytest.approx(price(plain.specialise("k", 4).plan, H200).total_us)
    assert key(plain.specialise("k", 3).steps, "k")[0] != key(plain.pipeline("k", 3).steps, "k")[0]


def times(us: float) -> Timing:
    return Timing.of(Samples((us + x for x in range(-3, 4)), l2="cold"))


def with_times(us: dict[int, float]) -> Picture:
    """The picture where these stages have been measured, and another tiling."""
    trials = [Trial(f"{n} stages", tensor(n).steps, 1.0, times(t)) for n, t in us.items()]
    trials.append(Trial("others", tensor(2, "warpgroup").steps, 1.0, times(1.0)))
    trials.append(Trial("wrong", tensor(4).steps, 1.0, times(1.0), problem="wrong outputs"))
    return picture(tensor(3), "ablation", measured=timed(trials))


def test_times_stand_in_the_cells_of_their_schedules() -> None:
    shown = with_times({2: 457.0, 3: 445.0})
    assert {(row[1], row[2]): row[4] for row in shown.table if row[4]} == {
        ("2", "fragments in turn"): "457 µs", ("3", "fragments in turn"): "445 µs"}
    assert shown.title.endswith("predicted and measured")
    assert "<b>445 µs</b><br>(412 µs)" in [note["text"] for note in shown.spec["layout"]["annotations"]]
    assert "nothing of it is measured" not in shown.note.lower()
    assert "nothing of it is measured" in tensor(3).plot.ablation().note.lower()


def test_runs_in_the_history_are_times_of_their_gpu() -> None:
    start = matmul(stages=2)
    history = History(start)
    run = start.run(device="cpu", time=False)
    history.change(history.current, run=replace(run, device="H200", timings={"cold": times(12.0)}))
    assert history.times("H200") == ((start.steps, 12.0),)
    assert history.times("A100") == ()
    history.change(history.current, run=run)
    assert history.times("H200") == (), "it has not been timed there"


def test_what_is_measured_is_what_a_search_gives() -> None:
    with pytest.raises(FigureError, match="measured is a SearchResult"):
        tensor(3).plot.ablation(measured=3)  # type: ignore[arg-type]


def test_every_cell_can_be_made_by_hand() -> None:
    base = tensor(1)
    for c in of(base, stages=3).cells:
        now = base if c.stages == 1 else base.apply(Pipeline("k", c.stages))
        now = now.apply(Pipeline("k.i", 2, asynchronous=False)) if c.level else now
        assert price(now.plan, H200).total_us == pytest.approx(c.predicted_us)
        assert replace(now).judgement.emittable


def test_more_stages_than_iterations_have_their_place() -> None:
    """The schedule that is shown was in no cell."""
    s = matmul(K=8)
    loop = of(s).loop
    trips = s.plan.loops[loop].extent
    deep = s.pipeline(loop, trips + 1, asynchronous=False)
    assert [(c.stages, c.level) for c in of(deep).cells if c.here] == [(trips + 1, 0)]
