"""What the last property runs have found wrong: over-refused collectives, groups of empty nests, rules without instances."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.errors import IllegalSchedule, TransformError
from explorer.poly.judge import judge
from explorer.schedule import Schedule
from explorer.transforms.bind import Bind
from explorer.transforms.join import Join
from explorer.transforms.stage import Stage

from .programs import define
from .tf32_tiles import tf32_tiles
from .witness import doubt

PEAKS = """@ex.program
def f(x: ex.f32[N, K], y: ex.f32[N, M]):
    for i in range(N):
        peak = ex.local(ex.f32)
        peak = -ex.inf
        for k in range(K):
            peak = max(peak, x[i, k])
        for j in range(M):
            y[i, j] = x[i, 0] - peak
"""
TWO_NESTS = """@ex.program
def f(x: ex.f64[M, N], t: ex.f64[M], u: ex.f64[M, K], v: ex.f64[K, N], y: ex.f64[M, N]):
    for i in range(1, M):
        for j in range(i // 2, N):
            t[i // 2] = (x[i, j] + j) / 4
    for i in range(M):
        for j in range(N):
            y[i, j] = 0
            for k in range(K):
                y[i, j] += u[i, k] * v[k, j]
"""


@pytest.mark.parametrize("how", ["shared", "shuffle"])
@pytest.mark.parametrize(("summed", "reading", "k", "m"), [
    ("thread.x", "warp", 3, 5), ("thread.x", "warp", 40, 4), ("thread.x", "lane", 3, 5), ("warp", "thread.x", 5, 40),
])
def test_every_thread_along_x_has_what_was_combined_along_it(how: str, summed: str, reading: str, k: int, m: int) -> None:
    """Also in warps that the combined loop does not reach; a private result was refused there (chain 26132:1439)."""
    s = define(PEAKS, "peaks.py").schedule(N=2, K=k, M=m)
    s = s.bind("k", summed).bind("j", reading).collect("S1", how).contract("peak")
    assert s.run(device="cpu").correct


@pytest.mark.parametrize("role", ["block.x", "block.y", "seq"])
def test_groups_of_a_nest_without_iterations_are_not_counted(role: str) -> None:
    """Bound to places it was one iteration, so that all threads waited for a phase that never ends (chain 26122:183)."""
    s: Schedule = define(TWO_NESTS, "two_nests.py").schedule(M=1, N=2, K=8)
    s = s.stage("x", "i", engine="bulk").stage("u", "k", engine="async").pipeline("k", 4).stage("u", "i_2", space="register")
    s = s if role == "seq" else s.bind("i", role)
    assert "mbarrier_wait" in s.cuda
    assert s.run(device="cpu").correct


def test_copies_by_consumers_beside_a_producer_are_a_matter_of_the_kernel() -> None:
    """The refusal names no pair of instances; its check asked for one (chain 26131:662)."""
    s = tf32_tiles(8)
    s = s.split("d", 8).reorder(("d", "i.i.3", "j.i.3", "d.i")).contract("acc")
    s = s.stage("a", "d").stage("a_s", "d", space="register").stage("b", "d").stage("b_s", "d", space="register").tensorize("S1")
    s = s.stage("a", "j", engine="bulk", swizzle=32).specialise("j", 2).stage("b", "i", swizzle=32)
    step = Stage("b", "i", engine="async")
    with pytest.raises(IllegalSchedule, match="copied by the consumers") as caught:
        s.apply(step)
    _, plan = s.try_step(step)
    assert plan is not None
    assert not doubt(plan, caught.value.finding)


MATMUL = """@ex.program
def f(a: ex.f32[M, K], b: ex.f32[K, N], c: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            acc = ex.local(ex.f32)
            acc = 0
            for k in range(K):
                acc += a[i, k] * b[k, j]
            c[i, j] = acc
"""


def test_a_slot_that_is_written_too_early_shows_in_the_releases_alone() -> None:
    """The enumerated order has the producer's copies in line with their users; the check of the witness saw no wrong value in it
    (chain 2077:19).
    """
    s = define(MATMUL, "matmul.py").schedule(M=8, K=44, N=32).tile(("i", "j"), (4, 32)).bind("i.i", "thread.y")
    s = s.bind("j.i", "thread.x").contract("acc").split("k", 16).stage("a", "k", engine="bulk").stage("b", "k", engine="bulk")
    s = s.bind("i", "block.y").bind("j", "block.x").specialise("k", 2)
    verdict, plan = s.try_step(Bind("i", "seq"))
    assert plan is not None
    assert verdict.finding is not None
    findings = judge(plan).refusals
    assert {f.kind for f in findings} == {"output", "anti"}
    assert not any(doubt(plan, f) for f in findings)
    output = next(f for f in findings if f.kind == "output")
    assert output.source is not None
    assert output.sink is not None
    waited = replace(output, sink=replace(output.source, point=(0, 0, 2, *output.source.point[3:])),
                     source=replace(output.source, point=(0, 0, 0, *output.source.point[3:])))
    assert doubt(s.plan, waited), "the second use of a slot waits for the first one's release"


def test_what_the_host_runs_in_a_loop_shares_no_launch_with_what_stands_beside_it() -> None:
    """There is no text before it is a kernel of its own, and then it is a launch behind the others (chain 2041:2996)."""
    s = define("""@ex.program
def f(x: ex.f32[M, N], y: ex.f32[M, N]):
    t = ex.local(ex.f32, M, N)
    for i in range(M):
        for j in range(N):
            t[i, j] = 2.0 * x[i, j]
    for i in range(M):
        for j in range(N):
            y[i, j] = t[i, j]
""", "hosted.py").schedule(M=6, N=3)
    s = s.compute_at("S0", "j_2").coalesce(("i_2", "j_2")).bind("i_2", "launch").precompute("S0", "x").stage("x_p", "i_2")
    s = s.precompute("S0_p", "x")
    verdict, plan = s.try_step(Bind("i.p.p", "block.y"))
    assert plan is not None
    assert not verdict
    (finding,) = judge(plan).refusals
    assert (finding.array, finding.kind) == ("x_p_2", "flow")
    assert not doubt(plan, finding)
    beside = s.launch("f", after="i.p")
    assert not beside.obligations
    assert beside.run(device="cpu", time=False).correct


def test_a_twin_of_a_product_that_is_no_instruction_keeps_the_other_from_being_one() -> None:
    """Its rows and columns are loops for each of its arrays, and one is reordered behind the other (chain 2041:2445)."""
    s = define(MATMUL.replace("ex.f32[M, K]", "ex.bf16[M, K]").replace("ex.f32[K, N]", "ex.bf16[K, N]"), "twins.py").schedule(
        M=32, K=16, N=16).tile(("i", "j"), (16, 8))
    for loop in ("j.i", "i.i"):
        s = s.distribute(loop, "S1").distribute(loop, "S0")
    s = s.split("k", 8).reorder(("k", "i.i.3", "j.i.3", "k.i")).contract("acc")
    s = s.stage("a", "k", space="register").stage("b", "k", space="register")
    twins = s.pipeline("k", 2, asynchronous=False, across="j")
    with pytest.raises(TransformError, match="S1 uses a_r, acc, b_r, too"):
        twins.tensorize("S1.2")
    both = s.tensorize("S1").pipeline("k", 2, asynchronous=False, across="j").bind("i", "block.x")
    assert both.run(device="cpu", time=False).correct


def test_a_kernel_waits_for_the_words_that_are_handed_to_it_alone() -> None:
    """The refusal names the kernel; both run in one block here, which is no reason to hand anything off (chain 2044:3102)."""
    s = define("""@ex.program
def f(g: ex.f32[M], m: ex.f32[M], w: ex.f32[M]):
    for i in range(M):
        m[i] = 0.5 * m[i] + g[i]
        w[i] -= m[i]
""", "handed.py").schedule(M=9)
    apart = s.precompute("S0", "m").launch("f", after="i.p")
    verdict, plan = apart.try_step(Join("f.2", "handoff"))
    assert not verdict
    assert plan is not None
    (finding,) = judge(plan).refusals
    assert (finding.what, finding.nodes) == ("S0_p and S0 use m, which is not handed off", ("S0_p", "S0", "f.2"))
    assert not doubt(plan, finding)
