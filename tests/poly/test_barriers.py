"""Barriers: the known counts, and brute force over all threads of small blocks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.ir.expr import const, var
from explorer.ir.plan import Buffer, Plan
from explorer.ir.tree import Kernel, Leaf, Sync, View
from explorer.poly.asynchronous import check_async
from explorer.poly.barriers import BUDGET, Barriers, barriers
from explorer.poly.feasible import _feasible
from explorer.transforms.vectorize import Vectorize
from tests.poly import plans
from tests.poly.brute import races
from tests.properties.programs import define
from tests.transforms.programs import matmul as product_of
from tests.transforms.storage import rewritten

STAGED = {
    "staged": {},
    "pipelined, 1 ahead": {"ahead": 1, "buffers": 2},
    "pipelined, 2 ahead": {"k": 16, "ahead": 2, "buffers": 3},
    "asynchronous, wait first": {"k": 20, "ahead": 2, "buffers": 3, "mechanism": "async"},
    "asynchronous, wait after issue": {"ahead": 1, "buffers": 2, "mechanism": "async", "wait_first": False},
    "asynchronous, not ahead": {"mechanism": "async"},
    "ragged": {"m": 7, "n": 5, "k": 10},
}


def of(plan: Plan) -> Barriers:
    return barriers(plan, plan.kernels[0])


@pytest.mark.parametrize("options", STAGED.values(), ids=STAGED)
def test_no_race_is_left_and_no_barrier_is_idle(options):
    plan = plans.matmul(**options)
    found = of(plan)
    assert not found.races
    assert found.undecided == 0
    assert not races(plan, plan.kernels[0], found.before)
    for position in found.before:
        assert races(plan, plan.kernels[0], found.before - {position}), f"{position} orders nothing"


@pytest.mark.parametrize(("options", "count"), [
    ({}, 2), ({"ahead": 1, "buffers": 2}, 1), ({"k": 16, "ahead": 2, "buffers": 3}, 1),
    ({"k": 20, "ahead": 2, "buffers": 3, "mechanism": "async"}, 1)])
def test_barriers_per_iteration(options, count):
    found = of(plans.matmul(**options))
    assert [parent for parent, _ in found.before] == ["ko"] * count


def test_sizes_do_not_change_the_answer():
    large = {"m": 1000, "n": 1000, "k": 1000, "tile": (128, 128, 16), "threads": (16, 16)}
    assert of(plans.matmul(**large)).before == of(plans.matmul()).before
    assert len(of(plans.matmul(**large, ahead=2, buffers=3)).before) == 1


def test_one_barrier_for_each_wave():
    plan = plans.wavefront()
    found = of(plan)
    assert found.before == {("w", 0)}
    assert not races(plan, plan.kernels[0], found.before)
    assert races(plan, plan.kernels[0], frozenset())


def test_the_wait_and_not_the_issue_is_the_source():
    plan = plans.matmul(ahead=1, buffers=2, mechanism="async", wait_first=False)
    wait = next(i for i, n in enumerate(plan.loops["ko"].body) if n.id == "wait")
    positions = sorted(index for _, index in of(plan).before)
    assert positions[-1] > wait
    moved = frozenset({("ko", 0), ("ko", wait)})
    assert races(plan, plan.kernels[0], moved)


def test_a_wait_at_the_end_of_the_loop_needs_a_barrier_after_it():
    """The wait of one iteration lets the next one read; the first iteration has a wait of its own before the loop."""
    plan = plans.matmul(m=4, n=4, k=20, ahead=1, buffers=3, mechanism="async", pending=0)
    wait, *rest = plan.loops["ko"].body
    plan = plan.replace_node("ko", replace(plan.loops["ko"], body=(*rest, wait)))
    start, prologue, steady, end = plan.loops["bj"].body
    block = replace(plan.loops["bj"], body=(start, prologue, Sync("wait.first", "wait"), steady, end))
    plan = plan.replace_node("bj", block)
    assert check_async(plan) == ()
    found = of(plan)
    assert not races(plan, plan.kernels[0], found.before)
    for position in found.before:
        assert races(plan, plan.kernels[0], found.before - {position})


@pytest.mark.parametrize("rows", ["block.x", "seq"])
@pytest.mark.parametrize("options", [
    {"e": "register"}, {"e": "shared"}, {"e": "shared", "turned": True}, {"e": "", "turned": True}], ids=str)
def test_softmax(rows, options):
    plan = plans.softmax(threads=4, rows=rows, **options)
    found = of(plan)
    assert not found.races
    assert not races(plan, plan.kernels[0], found.before)
    for position in found.before:
        assert races(plan, plan.kernels[0], found.before - {position})


def test_private_cells_need_no_barrier():
    assert of(plans.softmax(threads=4, e="shared")).before == frozenset()
    assert len(of(plans.softmax(threads=4, e="shared", turned=True)).before) == 1


def test_one_thread_needs_no_barrier():
    assert of(plans.softmax(e="shared")) == Barriers()


def test_a_collective_over_the_whole_block_is_a_barrier():
    """64 threads meet inside the sum, so what they wrote before it is visible after it."""
    plan = plans.softmax(k=128, threads=64, e="shared", turned=True)
    assert of(plan).before == frozenset()
    assert len(of(plans.softmax(k=64, threads=32, e="shared", turned=True)).before) == 1, "one warp meets by shuffles alone"
    assert of(plans.softmax(k=128, threads=64, e="shared", turned=True, rows="thread.y")).before, "one row of two meets alone"


def test_a_race_at_equal_time_is_reported_with_its_witness():
    plan = plans.softmax(threads=4, s="shared", collect="")
    found = of(plan)
    race = next(f for f in found.races if f.array == "s")
    assert race.question == "race"
    assert race.kind == "output"
    assert race.source is not None
    assert race.sink is not None
    pair = frozenset(((race.source.statement, race.source.point), (race.sink.statement, race.sink.point)))
    assert pair in races(plan, plan.kernels[0], found.before)
    assert dict(race.source.place)["thread.x"] != dict(race.sink.place)["thread.x"]
    assert "collect('s', 'shuffle')" in race.hints


def test_who_runs_outside_of_all_bound_loops_is_said():
    """A result in registers is made in every thread, one in memory by the first."""
    text = '''@ex.program
def f(x: ex.f32[N], y: ex.f32[N], z: ex.f32[N]):
    t = ex.local(ex.f32, N)
    for i in range(N):
        t[i] = y[i]
        y[i] = t[i] + 1
    for j in range(N):
        z[j] = x[j]
'''
    s = define(text, "outside.py").schedule(N=4).bind("j", "thread.x").contract("t")
    _, plan = s.try_step(Vectorize("i"))
    assert plan is not None
    (race,) = of(plan).races
    assert race.why == "no barrier can stand between S0[0] (every thread) and S1[0] (thread 0)"


@pytest.mark.parametrize("how", ["shuffle", "shared", "atomic"])
def test_collected_updates_do_not_race(how):
    assert not of(plans.softmax(threads=4, s="shared", collect=how)).races


def test_a_barrier_before_a_loop_is_dropped_when_the_loop_starts_with_one():
    plan = plans.matmul(ahead=1, buffers=2)
    assert of(plan).before == {("ko", 0)}, "the prologue's copies are ordered by the barrier at the top of ko"


@pytest.mark.parametrize("cells", [3, 6])
def test_two_iterations_apart_a_barrier_anywhere_will_do(cells):
    """A reader two iterations behind the writer, with cells that are used again (3) and that are not (6)."""
    i = var("i")
    s0 = plans.statement("S0", {"t": 6, "i": 4}, plans.read("u", var("t"), i), plans.Read(0), (plans.read("x", i),))
    behind = plans.read("u", var("t") - 2, const(3) - i)
    s1 = plans.statement("S1", {"t": 6, "i": 4}, plans.read("y", var("t"), i), plans.Read(0), (behind,), where=(var("t") - 2,))
    body = plans.nest([("t", 6, "seq"), ("i", 4, "thread.x")], plans.own(s0), plans.own(s1))
    arrays = (plans.array("x", 4, role="in"), plans.array("u", 6, 4), plans.array("y", 6, 4, role="out"))
    program = plans.Program("lagged", arrays, (s0, s1), (body,))
    buffer = Buffer("u", plans.F32, (cells, 4), "shared")
    views = {"S0": (1, View("u", (var("t") % cells, i))), "S1": (0, View("u", ((var("t") - 2) % cells, const(3) - i)))}
    kernel = Kernel("lagged", (body,))
    plan = Plan(program, (kernel,), buffers=(buffer,)).map_leaves(lambda leaf: replace(leaf, views=(views[leaf.id],)))
    found = of(plan)
    assert len(found.before) == 1
    assert not races(plan, plan.kernels[0], found.before)
    assert races(plan, plan.kernels[0], frozenset())


def test_no_barrier_in_a_loop_that_never_runs():
    plan = rewritten(product_of(4, 3, 0), ("distribute", "j", "k"), ("bind", "j", "thread.x"))
    found = of(plan)
    assert found.before == {("i", 1)}  # before the second nest, not in the empty sum between the two
    assert not races(plan, plan.kernels[0], found.before)
    assert races(plan, plan.kernels[0], frozenset())


def test_no_barrier_inside_a_vector_loop():
    """Two leaves in a vector loop whose threads share a cell cannot be ordered."""
    base = plans.softmax(threads=2, e="shared", fused=True)
    loop = base.loops["r.a"]
    vector = replace(loop, role="vector")
    turned = base.replace_node("r.a", vector)

    def shift(leaf: Leaf) -> Leaf:
        if leaf.id != "S2":
            return leaf
        turn = {s: View(v.buffer, (const(7) - v.index[0],)) for s, v in leaf.views if v.buffer == "e"}
        return replace(leaf, views=tuple((s, turn.get(s, v)) for s, v in leaf.views))

    found = of(turned.map_leaves(shift))
    assert found.races
    assert not any(parent in ("r.a", "t.a") for parent, _ in found.before)


def test_what_cannot_be_decided_gets_a_barrier(monkeypatch):
    monkeypatch.setattr("explorer.poly.barriers.BUDGET", 1)
    monkeypatch.setattr("explorer.poly.feasible.FEW", 1)
    _feasible.cache_clear()
    plan = plans.matmul(m=12, n=12, k=12, tile=(4, 4, 4))
    found = of(plan)
    assert BUDGET > 1
    assert found.undecided > 0
    assert not found.races
    assert not races(plan, plan.kernels[0], found.before)


TILED = (("split", "i", 4), ("split", "j", 4), ("split", "k", 2), ("interchange", "i.i", "j"), ("bind", "i", "block.x"),
         ("bind", "j", "block.y"), ("bind", "i.i", "thread.y"), ("bind", "j.i", "thread.x"), ("contract", "acc"),
         ("stage", "A", "k"), ("stage", "B", "k"))
IN_REGISTERS = (("stage", "A", "k.i", "register"), ("stage", "B", "k.i", "register"))


@pytest.mark.parametrize(("more", "count"), [
    ((), 2), ((("pipeline", "k", 2),), 1), ((("pipeline", "k", 3),), 1), ((("pipeline", "k", 2, {"asynchronous": False}),), 1),
    (IN_REGISTERS, 2), ((*IN_REGISTERS, ("pipeline", "k", 3)), 1)], ids=str)
def test_plans_that_transformations_make(more, count):
    plan = rewritten(product_of(5, 7, 9), *TILED, *more)
    found = of(plan)
    assert [parent for parent, _ in found.before] == ["k"] * count
    assert not races(plan, plan.kernels[0], found.before)
    for position in found.before:
        assert races(plan, plan.kernels[0], found.before - {position})
