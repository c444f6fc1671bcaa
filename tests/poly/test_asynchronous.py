"""Waits and groups: every pending count on small pipelines, against a count of the groups thread by thread."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.ir.plan import Plan
from explorer.ir.tree import Loop, Sync
from explorer.poly.asynchronous import check_async
from explorer.poly.groups import closed_before, path_to
from tests.poly import plans
from tests.poly.brute import reads_in_flight, thread_runs
from tests.properties.programs import define


def agree(plan: Plan) -> bool:
    """Whether the plan is accepted, after brute force has confirmed the answer and every witness."""
    found, early = check_async(plan), reads_in_flight(plan, plan.kernels[0])
    assert bool(found) == bool(early)
    for f in found:
        assert (f.sink.statement, f.sink.point) in early
        assert f.question == "flow"
        assert "before it has landed" in f.what
    return not found


@pytest.mark.parametrize("pending", range(5))
@pytest.mark.parametrize("wait_first", [True, False])
@pytest.mark.parametrize("ahead", range(4))
def test_pending_groups(ahead, wait_first, pending):
    plan = plans.matmul(m=4, n=4, k=20, ahead=ahead, buffers=ahead + 1, mechanism="async", wait_first=wait_first, pending=pending)
    allowed = ahead - 1 if wait_first and ahead else ahead
    assert agree(plan) == (pending <= allowed)


def test_the_smallest_pair_and_what_to_try():
    plan = plans.matmul(ahead=2, buffers=3, mechanism="async", pending=2)
    finding = check_async(plan)[0]
    assert (str(finding.source), str(finding.sink)) == ("As[0, 0, 0, 0, 0]", "S1[0, 0, 0]")
    assert finding.hints == ("wait with at most 1 pending groups instead of 2",)


def test_no_wait_at_all():
    plan = plans.matmul(m=4, n=4, ahead=1, buffers=2, mechanism="async")
    without = plan.replace_node("wait")
    assert not agree(without)
    assert "a commit after the copies" in check_async(without)[0].hints[0]


def test_a_prologue_without_commits_shifts_every_group():
    plan = plans.matmul(m=4, n=4, k=16, ahead=2, buffers=3, mechanism="async")
    assert agree(plan)
    assert not agree(plan.replace_node("commit.pro"))


def test_one_commit_for_the_whole_prologue():
    """Two tiles in one group need one pending group less."""
    plan = plans.matmul(m=4, n=4, k=16, ahead=2, buffers=3, mechanism="async", pending=1)
    block = plan.loops["bj"]
    start, prologue, steady, end = block.body
    assert isinstance(prologue, Loop)
    copies = replace(prologue, body=prologue.body[:2])
    joined = plan.replace_node("bj", replace(block, body=(start, copies, Sync("commit.all", "commit"), steady, end)))
    assert not agree(joined)
    assert agree(joined.replace_node("wait", Sync("wait", "wait", 0)))


def test_a_wait_at_the_end_of_the_loop_covers_the_next_iteration_only():
    plan = plans.matmul(m=4, n=4, k=16, ahead=1, buffers=2, mechanism="async", pending=0)
    loop = plan.loops["ko"]
    wait, *rest = loop.body
    late = plan.replace_node("ko", replace(loop, body=(*rest, wait)))
    assert not agree(late), "the first iteration reads the prologue's tile before any wait"
    block = late.loops["bj"]
    start, prologue, steady, end = block.body
    assert agree(late.replace_node("bj", replace(block, body=(start, prologue, Sync("wait.first", "wait"), steady, end))))


def test_commit_numbers_are_affine_in_the_loops():
    """The affine count equals the number of commits that a thread has really run."""
    plan = plans.matmul(m=4, n=4, k=20, ahead=2, buffers=3, mechanism="async")
    kernel, done = plan.kernels[0], 0
    number = {leaf.id: closed_before(path_to(kernel, leaf.id)) for leaf, _, _ in plan.leaves}
    for run in thread_runs(plan, kernel, (0, 0, 0), 0):
        done += run.sync is not None and run.sync.kind == "commit"
        if run.leaf is not None:
            assert number[run.leaf.id].evaluate(dict(run.env)) == done


def test_asynchronous_copies_go_to_shared_memory():
    plan = plans.matmul(mechanism="async")
    private = replace(plan, buffers=tuple(replace(b, space="register") if b.name == "As" else b for b in plan.buffers))
    (finding,) = check_async(private)
    assert "from global memory to registers" in finding.what
    assert "from global to shared memory" in finding.why


def test_plain_copies_need_no_wait():
    assert check_async(plans.matmul(ahead=2, buffers=3)) == ()


def test_large_sizes_answer_alike():
    large = {"m": 1000, "n": 1000, "k": 1000, "tile": (128, 128, 16), "threads": (16, 16), "mechanism": "async"}
    assert check_async(plans.matmul(**large, ahead=3, buffers=4)) == ()
    assert check_async(plans.matmul(**large, ahead=3, buffers=4, pending=3))


def test_what_is_under_way_has_landed_where_a_launch_ends() -> None:
    """The cells of the next launch are others: what the last one left open in its own is nothing to it."""
    source = '''@ex.program
def f(x: ex.f32[N], y: ex.f32[K, M, N]):
    for n in range(K):
        for h in range(M):
            for w in range(N):
                y[n, h, w] = x[w]
'''
    s = define(source, "launches.py").schedule(K=2, M=3, N=4).bind("w", "thread.y").stage("x", "h", pad=1).pipeline("h", 3)
    assert s.bind("n", "launch").run(device="cpu").correct
