"""The timeline: one block on the clock, copies, waits, products and stores in the order of the plan and the time of its price."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import pytest

import explorer as ex
from benchmarks.product_programs import product_nn as product
from explorer.errors import FigureError
from explorer.strategies.contraction import contraction
from explorer.strategies.contraction.shapes import Tiling
from explorer.strategies.pipelines.rates import RATES
from explorer.strategies.pipelines.terms import Step, stepped
from explorer.strategies.pipelines.trace import Trace, traced
from explorer.views.figures.asked import Asked, Look
from explorer.views.figures.gantt import Gantt, gantt
from tests.views.figures.support import matmul, written

PARTS = (("S", "product", 1.0),)


@cache
def tensor(stages: int, engine: str = "warp") -> ex.Schedule:
    t = Tiling("warp", 128, 128, 32, 2, 4, stages, 16) if engine == "warp" else Tiling("warpgroup", 128, 256, 64, 2, 1, stages)
    return contraction(product.schedule(M=4096, N=4096, K=4096), tiling=t)


def of(s: ex.Schedule, node: str | None = None, **options: object) -> Gantt:
    found = gantt(s, Asked(options), Look(node))
    assert isinstance(found, Gantt)
    return found


def steps(step: Step, blocks: int = 1, shown: int = 0) -> Trace:
    return traced(step, (("a", 0.5), ("b", 0.5)), PARTS, 256, blocks, frozenset(range(shown or step.count)))


@pytest.mark.parametrize("engine", ["warp", "warpgroup", "plain"])
@pytest.mark.parametrize("stages", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("blocks", [1, 2, 4])
def test_many_steps_take_what_the_model_says(engine: str, stages: int, blocks: int) -> None:
    for tensor_cycles, load in ((100.0, 50.0), (800.0, 100.0), (200.0, 900.0), (3000.0, 40.0)):
        step = Step(engine, 400, stages, tensor_cycles, 0.0, 0.0, load, engine == "warpgroup")
        ends = steps(step, blocks, 1).ends
        model = stepped((step,), 0.0, 132 * blocks, 256, blocks, 132, 1.0).steps[0][1].longest / step.count
        assert (ends[-1] - ends[200]) / 199 == pytest.approx(model, rel=0.02)


def test_nothing_computes_before_its_tiles_have_landed_or_the_step_before_is_over() -> None:
    trace = steps(Step("warp", 12, 3, 300.0, 0.0, 0.0, 200.0), 2)
    landed = {n: max(s.end for s in trace.spans if s.kind == "copy" and s.step == n) for n in range(12)}
    products = {s.step: s for s in trace.spans if s.kind == "product"}
    assert set(products) == set(range(12))
    assert all(s.start >= landed[n] for n, s in products.items())
    assert all(one.end <= two.start for one, two in pairwise(products.values()))


def test_a_slot_is_filled_again_when_its_last_use_is_over() -> None:
    trace = steps(Step("warpgroup", 12, 3, 300.0, 0.0, 0.0, 200.0))
    held = {(s.node, s.step): s for s in trace.spans if s.kind == "held"}
    again = [s for s in trace.spans if s.kind == "copy" and s.step >= 3]
    assert len(again) == 2 * 9
    assert all(s.start >= held[s.node, s.step - 3].end for s in again)


def test_with_one_stage_the_copy_and_the_product_take_turns() -> None:
    trace = steps(Step("warp", 6, 1, 300.0, 0.0, 0.0, 200.0))
    busy = sorted((s for s in trace.spans if s.kind in ("copy", "product") and s.node != "a"), key=lambda s: s.start)
    assert [s.kind for s in busy] == ["copy", "product"] * 6
    assert all(one.end <= two.start for one, two in pairwise(busy))


def test_each_bar_is_of_a_node_of_the_plan() -> None:
    for s in (tensor(1), tensor(3), tensor(3, "warpgroup"), matmul(stages=2), matmul()):
        data = of(s)
        assert {x.node for x in data.spans} <= s.plan.ids
        kinds = {kind: {x.node for x in data.spans if x.kind == kind} for kind in ("copy", "product", "compute", "store")}
        copies = {leaf.id for leaf, _, _ in s.plan.leaves if leaf.statement in {c.name for c in s.plan.copies}}
        assert kinds["copy"]
        assert kinds["copy"] <= copies
        assert kinds["product"] | kinds["compute"] == {"S1"}
        assert kinds["store"] == {"S2"}


def test_the_first_tiles_are_those_of_the_copies_before_the_loop() -> None:
    copies = {(x.step, x.node) for x in of(tensor(3)).spans if x.kind == "copy"}
    assert {(0, "a_s.pro"), (1, "a_s.pro"), (2, "a_s"), (1, "b_s.pro"), (2, "b_s")} <= copies
    assert "a_s.pro" not in {x.node for x in of(tensor(1)).spans}


def test_waits_are_of_the_node_that_waits() -> None:
    s = tensor(3, "warpgroup")
    waits = {x.node for x in of(s).spans if x.kind == "wait"}
    assert waits == {node.id for node in s.plan.loops["k"].body if getattr(node, "kind", "") == "wait"}


def test_first_and_last_steps_are_drawn_and_the_others_are_a_gap() -> None:
    data = of(tensor(3), steps=6)
    assert sorted({x.step for x in data.spans if x.kind == "product"}) == [0, 1, 2, 3, 126, 127]
    assert data.gap is not None
    start, stop = data.gap
    assert all(x.end <= start or x.start >= stop for x in data.spans)
    assert {x.step for x in data.spans if x.kind == "copy"} > {4, 5}, "tiles that are on their way meanwhile"
    assert of(matmul()).gap is None, "all of its three steps are drawn"


def test_it_says_what_bounds_a_step_and_takes_the_time_of_the_price() -> None:
    one, three = of(tensor(1)), of(tensor(3))
    assert (one.terms.bound, three.terms.bound) == ("latency", "tensor")
    assert three.period_us == pytest.approx(three.terms.together(RATES["warp"].norm), rel=0.02)
    total = three.rounds * (three.steps_us + three.store_us)
    assert total == pytest.approx(three.total_us, rel=0.05)


def test_a_picture_for_every_gpu_and_a_sentence_where_nothing_steps() -> None:
    small, large = (tensor(3).plot.timeline(gpu=name) for name in ("T4", "H200"))
    assert "on the T4" in small.title
    assert small.spec != large.spec
    sentence = written("softmax").plot.timeline()
    assert not sentence.spec
    assert "No loop computes in steps" in sentence.note
    with pytest.raises(FigureError, match="outside its range"):
        tensor(3).plot.timeline(steps=99)


def test_a_selected_loop_or_statement_is_the_one_that_is_followed() -> None:
    assert of(tensor(3), "S1").loop == of(tensor(3), "k").loop == of(tensor(3)).loop == "k"


def test_the_note_and_the_table_say_what_the_bars_do() -> None:
    picture = tensor(3, "warpgroup").plot.timeline()
    assert "predicted" in picture.title
    assert "3 tiles in flight" in picture.note
    assert {row[1] for row in picture.table} >= {"copy", "tile in its slot", "product", "wait", "store"}


@pytest.mark.parametrize("k", [64, 128, 192])
def test_a_step_takes_time_where_all_tiles_are_on_their_way_before_the_first(k: int) -> None:
    """A block with as few steps as stages has no step in the middle; the title said 0 µs."""
    t = Tiling("warpgroup", 128, 256, 64, 2, 1, 3 if k > 64 else 2)
    s = contraction(product.schedule(M=256, N=256, K=k), tiling=t)
    assert of(s).period_us > 0.05
    assert "· 0 " not in str(s.plot.timeline())
