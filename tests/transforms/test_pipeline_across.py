"""The prologue of a pipeline in registers, made by the last iterations for the next tile."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

import explorer as ex
from explorer.errors import IllegalSchedule, TransformError
from explorer.ir.text import loops_text
from explorer.ir.tree import Sync, walk
from explorer.poly.judge import judge
from explorer.schedule import Schedule
from explorer.strategies.contraction.form import product_form
from explorer.strategies.contraction.moves import build
from explorer.strategies.contraction.shapes import Tiling
from explorer.transforms._carried_prologue import fewest_slots
from tests.strategies.products import product
from tests.transforms.programs import matmul
from tests.transforms.storage import agree, right, step
from tests.transforms.test_pipeline import PLAIN, REGISTERS, TILES

ACROSS = {"asynchronous": False, "across": "k"}


def tiles(steps: int, depth: int = 21) -> tuple:
    return matmul(5, 7, depth), *(("split", "k", steps) if t == ("split", "k", 2) else t for t in TILES), *REGISTERS


def started(*calls: tuple, steps: int = 4) -> Schedule:
    program, *before = tiles(steps)
    s = Schedule.of(program)
    for call in (*before, *calls):
        s = s.apply(step(call))
    return s


def test_the_last_iterations_copy_for_the_next_tile(golden) -> None:
    plan = right(*tiles(4), ("pipeline", "k", 3), ("pipeline", "k.i", 2, ACROSS))
    golden(loops_text(plan))
    assert [n.pending for n in walk(plan.kernels[0].body) if isinstance(n, Sync) and n.kind == "wait"] == [1, 1]


@pytest.mark.parametrize("stages", [2, 3, 5])
@pytest.mark.parametrize(("steps", "ahead"), [(4, 1), (4, 2), (6, 3)])
def test_stages_of_both_levels(stages: int, steps: int, ahead: int) -> None:
    slots = {"buffers": steps if steps % (ahead + 1) else 0}
    plan = right(*tiles(steps, 31), ("pipeline", "k", stages), ("pipeline", "k.i", ahead + 1, {**ACROSS, **slots}))
    assert [plan.loops[name].extent for name in ("k.i", "k.i.2")] == [steps - ahead, ahead]
    for name in ("k.wait", "k.wait.pro"):
        assert judge(plan.replace_node(name)).refusals


def test_a_wait_for_less_is_not_enough() -> None:
    plan = right(*tiles(4), ("pipeline", "k", 3), ("pipeline", "k.i", 2, ACROSS))
    for name in ("k.wait", "k.wait.pro"):
        late = plan.replace_node(name, Sync(name, "wait", 2))
        assert judge(late).refusals
        with pytest.raises(AssertionError):
            agree(late)


def test_the_text_waits_before_the_last_steps() -> None:
    s = started(("pipeline", "k", 3), ("pipeline", "k.i", 2, ACROSS))
    assert s.run(device="cpu").correct
    loop = s.cuda[s.cuda.index("for (int k = 0"):]
    assert loop.index("acc +=") < loop.index("async_wait<1>();") < loop.index("A_r[0] = A_s[(k + 1) % 3]") < loop.rindex("acc +=")
    assert loop.count("__syncthreads") == 1


def test_slots_that_a_tile_does_not_fill_evenly() -> None:
    with pytest.raises(IllegalSchedule) as refused:
        started(("pipeline", "k", 3), ("pipeline", "k.i", 2, ACROSS), steps=3)
    assert "A_r" in refused.value.what


@pytest.mark.parametrize(("steps", "stages", "slots"), [(3, 2, 3), (7, 2, 4), (10, 3, 5), (13, 3, 5)])
def test_a_refusal_proposes_the_fewest_slots(steps: int, stages: int, slots: int) -> None:
    with pytest.raises(IllegalSchedule) as refused:
        started(("pipeline", "k", 2), ("pipeline", "k.i", stages, ACROSS), steps=steps)
    assert f"buffers={slots}, across='k')" in refused.value.hint
    assert fewest_slots(steps, stages - 1) == slots
    for fewer in range(stages, slots):
        with pytest.raises(IllegalSchedule):
            started(("pipeline", "k", 2), ("pipeline", "k.i", stages, {**ACROSS, "buffers": fewer}), steps=steps)
    assert started(("pipeline", "k", 2), ("pipeline", "k.i", stages, {**ACROSS, "buffers": slots}), steps=steps).judgement.legal


def test_the_next_tile_has_to_be_there() -> None:
    with pytest.raises(IllegalSchedule) as refused:
        started(("pipeline", "k.i", 2, ACROSS))
    assert "A_s" in refused.value.what
    assert "pipeline('k', 2) first" in refused.value.hint


def test_a_loop_divided_since_has_conditions_without_it() -> None:
    s = started(("pipeline", "k", 3, PLAIN), ("pipeline", "k.i", 2, ACROSS), ("split", "k", 2))
    with pytest.raises(TransformError, match="no copies into shared memory are made"):
        s.pipeline_conditions("k.i")


@pytest.mark.parametrize(("how", "words"), [
    ({"across": "k"}, "groups of asynchronous copies are counted in each run of a loop"),
    ({"across": "q", "asynchronous": False}, "there is no loop 'q'"),
    ({"across": "j", "asynchronous": False}, "k.i does not stand in the body of j"),
    ({"across": "k", "asynchronous": False, "stages": 5}, "k.i runs 4 times"),
])
def test_refusals(how: dict, words: str) -> None:
    with pytest.raises(TransformError) as refused:
        started(("pipeline", "k", 3)).pipeline("k.i", **{"stages": 2, **how})
    assert words in str(refused.value)


def test_a_producer_has_no_tile_behind_the_last_one() -> None:
    s = started()
    made = replace(s, plan=s.plan.replace_node("k", replace(s.plan.loops["k"], body=(Sync("k.acquire", "acquire", 1),
                                                                                      *s.plan.loops["k"].body))))
    verdict, _ = made.try_step(step(("pipeline", "k.i", 2, ACROSS)))
    assert "k has a producer" in str(verdict)


def test_plain_copies_ahead_as_well() -> None:
    plan = right(*tiles(4), ("pipeline", "k", 2, PLAIN), ("pipeline", "k.i", 2, ACROSS))
    assert not [n for n in walk(plan.kernels[0].body) if isinstance(n, Sync)]


@pytest.mark.parametrize("stages", [2, 3])
def test_fragments_of_tensor_cores(stages: int) -> None:
    """A step of 32 is two instructions deep: the last one loads the fragments of the next step."""
    written = product(ex.f16, ex.f32, "n", "n").schedule(M=50, N=40, K=104)
    form = product_form(written, written.plan.kernels[0].id)
    assert form is not None
    s = build(written, form, Tiling("warp", 32, 32, 32, 2, 2, stages))
    above = [x.id for x in s.plan.resolve("x_r")[1]]  # type: ignore[index]
    inner, outer = next((i, o) for o, i in pairwise(above) if s.plan.loops[o].extent == 4)
    s = s.pipeline(inner, 2, copies=("x_r", "y_r"), asynchronous=False, across=outer)
    loop = s.cuda[s.cuda.index(f"for (int {outer} = 0"):]
    assert loop.count("__syncthreads") == 1
    assert loop.index("mma_") < loop.index("async_wait") < loop.rindex("load_matrix<") < loop.rindex("mma_")
    assert s.run(device="cpu", time=False).correct
