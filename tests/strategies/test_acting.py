"""Roles on the clock: a prediction has the pieces of the kernel's own text, in an order that waits allow, in the model's time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import explorer as ex
from benchmarks.product_programs import attention as attention_program
from benchmarks.product_programs import causal_attention
from explorer.strategies.attention import attention
from explorer.strategies.attention.moves import Tiling
from explorer.strategies.pipelines.acting import Acted, acted
from explorer.strategies.pipelines.facts import steppings
from explorer.strategies.pipelines.rates import RATES
from explorer.strategies.price import clock_of, price
from tests.kernel.test_stamps import KINDS, made

H200 = ex.gpu("H200")


def told(kind: str, **sizes: int) -> dict[str, Acted]:
    return {a.role: a for a in acted(made(kind, **sizes).plan, H200)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_prediction_has_the_pieces_of_a_measurement(kind: str) -> None:
    """Of the run on the CPU device: the same marks in the same iterations, in the same order, for each role."""
    by = told(kind)
    kept = made(kind).stamps(device="cpu").kept
    assert {k.log.role for k in kept} == set(by)
    for k in kept:
        assert [(p.mark, p.iteration) for p in k.pieces] == [(p.mark, p.iteration) for p in by[k.log.role].pieces]


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_follow_each_other(kind: str) -> None:
    for role in told(kind).values():
        assert role.pieces[0].start == 0.0
        assert all(p.end >= p.start for p in role.pieces)
        assert all(a.end == b.start for a, b in pairwise(role.pieces))


def test_consumers_wait_for_the_producer_and_it_for_them() -> None:
    by = told("roles", k=1024)
    producer, consumers = by["producer"].pieces, by["consumers"].pieces
    asked = {p.iteration: p.end for p in producer if p.kind == "issue"}
    latency = min(p.end - asked[p.iteration] for p in consumers if p.kind == "wait")
    assert latency > 0.5, "no tile is there sooner than its latency behind its issue"
    released = [p.end for p in consumers if p.kind == "release"]
    acquired = [p.end for p in producer if p.kind == "acquire"]
    slots = 1  # two stages: the consumers hold one more
    assert all(a >= r for a, r in zip(acquired[slots:], released, strict=False))
    assert by["consumers"].groups == 2


def test_a_step_takes_as_long_where_other_blocks_end_early() -> None:
    took = list[list[float]]()
    for program in (attention_program, causal_attention):
        plan = attention(program.schedule(B=1, H=4, L=1024, D=64), tiling=Tiling(128, 8, 128, 2, 2)).plan
        (consumers,) = (a for a in acted(plan, H200) if a.role == "consumers")
        took.append([p.end - p.start for p in consumers.pieces if p.kind == "product"])
    assert took[0] == pytest.approx(took[1], rel=0.01)
    assert len(took[0]) == 16, "two products of each of 8 tiles of keys: the first block with a diagonal has most"


def test_copies_run_ahead_of_results_on_their_way_out() -> None:
    """A producer fills the next tile's slots while the consumers store."""
    by = told("roles", k=1024)
    store = next(p for p in by["consumers"].pieces if p.kind == "store")
    ahead = [p for p in by["producer"].pieces if p.kind == "issue" and dict(p.iteration)["j"] == 1 and p.end <= store.start]
    assert ahead


@pytest.mark.parametrize("kind", KINDS)
def test_the_steps_take_what_the_price_says(kind: str) -> None:
    """From the middle of a long loop on, a step takes what the model's times take together."""
    s = made(kind, k=8192)
    (stepping,) = steppings(s.plan, s.plan.kernels[0])
    (priced,) = price(s.plan, H200).kernels
    assert priced.steps is not None
    (step, _), = priced.steps.steps
    wanted = step.times(1, priced.counts.threads).together(RATES[step.engine].norm) / step.count / clock_of(H200)
    pieces = next(a for a in acted(s.plan, H200) if a.role != "producer").pieces
    starts = [p.start for p in pieces if p.kind == "wait" and dict(p.iteration).get("j", 0) == 0]
    half = len(starts) // 2
    period = (starts[-1] - starts[half]) / (len(starts) - 1 - half)
    assert stepping.loop == "k"
    assert period == pytest.approx(wanted, rel=0.03)


def test_other_blocks_have_their_own_tiles() -> None:
    """4 tiles for three blocks: block 0 takes two; block 1 one, whose second turn has no tile left to store."""
    first, second = ({a.role: a for a in acted(made("roles").plan, H200, block)} for block in (0, 1))
    kept: Any = made("roles").stamps(device="cpu", blocks=(1,)).kept
    assert [(p.mark, p.iteration) for p in second["consumers"].pieces] == [(p.mark, p.iteration) for p in kept[1].pieces]
    assert len(first["consumers"].pieces) >= len(second["consumers"].pieces)


def test_kernels_without_steps_have_no_prediction() -> None:
    n = ex.sizes("N")

    @ex.program
    def twice(x: ex.f32[n], y: ex.f32[n]):
        for i in range(n):
            y[i] = x[i] * 2.0

    assert acted(twice.schedule(N=40).bind("i", "thread.x").plan, H200) == ()


def test_a_producer_that_brings_queries_ahead_has_its_times_too() -> None:
    plan = attention(attention_program.schedule(B=1, H=1, L=256, D=32),
                     tiling=Tiling(64, 4, 64, 2, 1, through=True, persistent=2)).plan
    assert {a.role for a in acted(plan, H200)} == {"producer", "consumers"}
