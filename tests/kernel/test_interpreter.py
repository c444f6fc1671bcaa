"""The interpreter of the IR: what any pass leaves computes what the program says, in every order; and what goes wrong is seen."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import explorer as ex
from explorer import strategies, workloads
from explorer.ir.expr import Expr
from explorer.kernel import passes
from explorer.kernel.conditions import Condition
from explorer.kernel.interpreter import Order, execute
from explorer.kernel.interpreter.order import SEQUENCES
from explorer.kernel.launches import PlanIR, plan_ir, standing
from explorer.kernel.nodes import Barrier, If, Node, Wait
from explorer.kernel.traverse import map_bodies
from explorer.run.inputs.arguments import seeded_arrays
from explorer.schedule import Schedule
from explorer.steps.calls import read_call
from explorer.strategies.default import default
from explorer.transforms.approximate import as_computed
from tests.properties import trial
from tests.properties.equal import difference
from tests.run_plan import outcome

M, N = ex.sizes("M N")
SEVERAL = (Order(), Order(sequence="descending", early=True), Order("block", "descending"), Order("warp", "shuffled", 3))
"""Orders in which the last IR runs; each other one runs in one of them."""


@pytest.mark.parametrize("make", [default, strategies.auto], ids=["default", "auto"])
@pytest.mark.parametrize("name", workloads.names())
def test_what_comes_out_of_a_pass_computes_the_program(name: str, make: object) -> None:
    workload = workloads.get(name)
    s = make(workload.definition.schedule(**workload.tiny))  # type: ignore[operator]
    arrays, wanted = seeded_arrays(s.source, 1), as_computed(s.source, s.plan)
    for number, after in enumerate(passes.names()):
        ir = plan_ir(s.plan, after=after)
        last = after == passes.names()[-1]
        for order in SEVERAL if last else (SEVERAL[number % len(SEVERAL)],):
            run = execute(ir, arrays, order)
            assert not difference(wanted, arrays, run.outputs), f"after {after}, {order}"
            assert not run.hazards, f"after {after}, {order}: {run.hazards[0]}"


class Interpreted(trial.Trial):
    """Random schedules, run as a pass drawn for each leaves them, in an order drawn for each."""

    def __init__(self, seed: int) -> None:
        super().__init__(shrinks=0)
        self.pick, self.ran, self.wrong = random.Random(seed), Counter[str](), list[str]()

    def flush(self) -> None:
        """Run what waits."""
        for accepted in self.waiting:
            s, pick = accepted.schedule, self.pick
            after, team = pick.choice(passes.names()), pick.choice(["grid", "block", "warp"])
            order = Order(team, pick.choice(SEQUENCES), pick.randrange(99), early=pick.random() < 0.5)
            arrays = seeded_arrays(s.source, 1)
            run = execute(plan_ir(s.plan, after=after), arrays, order)
            self.ran[after] += 1
            found = difference(as_computed(s.source, s.plan), arrays, run.outputs) or "".join(map(str, run.hazards))
            self.wrong += [f"{accepted.seed}, after {after}, {order}: {found}"] if found else []
        self.waiting = []


def test_random_schedules_compute_the_program_after_any_pass() -> None:
    tried = Interpreted(7)
    assert not tried.run(2077, range(40)).found
    assert not tried.wrong, "\n".join(tried.wrong)
    assert set(tried.ran) == set(passes.names())


@pytest.mark.parametrize("steps", [
    ["bind('i', 'block.x')", "bind('j', 'thread.x')", "contract('total', 'register')", "split('k', 4)", "stage('a', 'k')",
     "stage('b', 'k')", "pipeline('k', 2)"],
    ["bind('i', 'thread.y')", "bind('k', 'thread.x')", "collect('total', 'shared')"],
    ["split('k', 4)", "rfactor('total', 'k.i')"],
])
def test_one_thread_after_the_other_is_an_order_too(steps: list[str]) -> None:
    s = workloads.get("matmul").definition.schedule(M=3, N=4, K=9)
    for step in steps:
        s = s.apply(read_call(step))
    arrays = seeded_arrays(s.source, 0)
    want = arrays["a"].astype(float) @ arrays["b"].astype(float)
    for order in (Order("thread"), Order("thread", "descending", early=True), Order("thread", "shuffled", 5),
                  Order("thread", first=(("thread.x", 1),)), Order("thread", last=(("block.x", 1),))):
        run = execute(plan_ir(s.plan), arrays, order, exact=True)
        assert not run.hazards
        np.testing.assert_allclose(run.outputs["c"], want, rtol=1e-9)


# ---- orders ----


def lanes(blocks: int, threads: int) -> dict[str, np.ndarray]:
    numbers = np.arange(blocks * threads)
    return {"thread.x": numbers % threads, "block.x": numbers // threads}


def test_orders_of_threads() -> None:
    at = lanes(2, 40)
    assert [len(t) for t in Order().teams(at, 40)] == [80]
    assert [len(t) for t in Order("block").teams(at, 40)] == [40, 40]
    assert [(int(t[0]), len(t)) for t in Order("warp").teams(at, 40)] == [(0, 32), (32, 8), (40, 32), (72, 8)]
    assert [int(t[0]) for t in Order("block", "descending").teams(at, 40)] == [79, 39]
    first = Order("thread", first=(("block.x", 1), ("thread.x", 3))).lanes(at)
    assert first[:2].tolist() == [43, 0]
    last = Order("thread", last=(("thread.x", 0),)).lanes(at)
    assert last[-2:].tolist() == [0, 40]
    assert sorted(Order("thread", "shuffled", 1).lanes(at)) == list(range(80))
    assert str(Order("thread", first=(("thread.x", 3),), early=True)) == (
        "thread after thread, ascending, first thread.x=3, asynchronous copies landing at once")


# ---- what goes wrong ----


@ex.program
def shifted(x: ex.f32[N], y: ex.f32[N]) -> None:
    t = ex.local(ex.f32, N)
    for i in range(N):
        t[i] = x[i]
    for j in range(N):
        y[j] = t[N - 1 - j]


def apart() -> Schedule:
    """Threads that read in shared memory what others wrote there."""
    s = shifted.schedule(N=40).bind("i", "thread.x").bind("j", "thread.x")
    return s.contract("t", "shared")


def without(*_: object) -> object:
    return type("None_", (), {"before": frozenset(), "races": ()})()


def test_a_missing_barrier_is_a_race_and_shows_in_an_order() -> None:
    plan = apart().plan
    arrays = {"x": np.arange(1, 41, dtype=np.float32)}
    ir = plan_ir(plan, barriers=without)
    run = execute(ir, arrays, Order())
    found = next(h for h in run.hazards if h.kind == "race")
    assert (found.array, found.element) == ("t", (39,))
    assert (str(found.source), str(found.sink)) == ("S0[39]", "S1[0]")
    assert found.source
    assert found.source.place == (("thread.x", 39),)
    assert (run.outputs["y"] == arrays["x"][::-1]).all(), "all threads together write before they read"
    early = execute(ir, arrays, Order("thread"))
    assert np.isnan(early.outputs["y"][0]), "the first thread reads before the last one writes"
    right = execute(plan, arrays, Order("thread"))
    assert not right.hazards
    assert (right.outputs["y"] == arrays["x"][::-1]).all()


def test_unwritten_elements_and_their_reader_are_named() -> None:
    run = execute(plan_ir(apart().plan, barriers=without), {"x": np.ones(40, np.float32)}, Order("thread"))
    found = next(h for h in run.hazards if h.kind == "uninitialised")
    assert (found.array, found.element, str(found.sink)) == ("t", (39,), "S1[0]")


def test_a_lost_update_is_a_race_of_two_instances() -> None:
    plan = workloads.get("sum_rows").definition.schedule(M=1, N=64).plan
    plan = read_call("bind('k', 'thread.x', count=32)").rewrite(plan)
    held = {"x": np.ones((1, 64), np.float32)}
    several = [outcome(plan, held, seed) for seed in range(4)]
    assert any(run.outputs["y"][0] != 64 for run in several)
    assert all("race" in {h.kind for h in run.hazards} for run in several)


@ex.program
def flags(x: ex.f32[N], y: ex.bool_[N]) -> None:
    for i in range(N - 1):
        y[i + 1] = x[i] > 0.0


def test_what_nothing_has_written_has_all_bits_set() -> None:
    run = execute(flags.schedule(N=3).plan, {"x": np.array([1, -1, 1], np.float32)})
    assert run.outputs["y"].view(np.uint8).tolist() == [255, 1, 0]


def changed(ir: PlanIR, change: Callable[[Node], tuple[Node, ...]]) -> PlanIR:
    """The IR with nodes in place of some that stand directly in a kernel's body."""
    bodies = [tuple(tuple(new for node in body for new in change(node)) for body in launch.bodies) for launch in ir.launches]
    return replace(ir, launches=tuple(replace(x, bodies=b) for x, b in zip(ir.launches, bodies, strict=True)))


@pytest.mark.parametrize("team", ["grid", "warp", "thread"])
def test_a_barrier_that_some_threads_do_not_reach_is_reported(team: str) -> None:
    ir = plan_ir(apart().plan)
    name = ir.launches[0].lows[0].role_name["thread.x"]
    some = Condition(Expr(((name, -1),), 19))

    def under(node: Node) -> tuple[Node, ...]:
        return (If((some,), (node,)),) if isinstance(node, Barrier) else (node,)

    run = execute(changed(ir, under), {"x": np.ones(40, np.float32)}, Order(team))
    assert "barrier" in {h.kind for h in run.hazards}
    assert any("threads of its block that do not come" in h.what for h in run.hazards)
    assert not execute(ir, {"x": np.ones(40, np.float32)}, Order(team)).hazards


def test_a_copy_that_is_used_before_its_wait_is_in_flight() -> None:
    s = workloads.get("matmul").definition.schedule(M=2, N=3, K=12)
    for step in ("bind('i', 'block.x')", "bind('j', 'thread.x')", "contract('total', 'register')", "split('k', 4)",
                 "stage('a', 'k')", "pipeline('k', 2)"):
        s = s.apply(read_call(step))
    ir, arrays = plan_ir(s.plan), seeded_arrays(s.source, 0)

    def without_waits(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(map_bodies(n, without_waits) for n in nodes if not isinstance(n, Wait))

    late = execute(changed(ir, lambda n: without_waits((n,))), arrays)
    assert "in flight" in {h.kind for h in late.hazards}
    want = execute(ir, arrays).outputs["c"]
    assert not np.allclose(late.outputs["c"], want)
    early = execute(changed(ir, lambda n: without_waits((n,))), arrays, Order(early=True))
    assert "in flight" in {h.kind for h in early.hazards}, "whenever it lands"
    np.testing.assert_allclose(early.outputs["c"], want)


def test_an_access_outside_of_its_array_is_named() -> None:
    """Of a buffer that is smaller than what is written there."""
    plan = apart().plan
    smaller = replace(plan, buffers=tuple(replace(b, shape=(39,)) for b in plan.buffers))
    run = execute(plan_ir(smaller, barriers=standing), {"x": np.ones(40, np.float32)})
    found = next(h for h in run.hazards if h.kind == "bounds")
    assert (found.array, found.element, str(found.sink)) == ("t", (39,), "S0[39]")
