"""What an asynchronous copy is: judged in one place, and written as judged."""

from __future__ import annotations

from dataclasses import replace

import pytest

import explorer as ex
from explorer.errors import ScheduleError
from explorer.ir.plan import Plan
from explorer.ir.tree import Loop, Sync
from explorer.kernel import passes
from explorer.kernel.accesses import instance
from explorer.kernel.architecture import for_arch
from explorer.kernel.emit import emit
from explorer.kernel.lower import Context
from explorer.kernel.nodes import Copy, Node
from explorer.kernel.traverse import map_bodies
from explorer.poly.asynchronous import check_async
from explorer.poly.judge import judge
from explorer.poly.mechanism import Moved, Never, asynchronous
from explorer.schedule import Schedule
from tests.properties.programs import define

M, N = ex.sizes("M N")
COPY = """@ex.program
def f(x: ex.{dtype}[M, N], y: ex.{dtype}[M, N]):
    for a in range(M):
        for j in range(N):
            y[a, j] = x[a, N - 1 - j]
"""


def schedule(dtype: str = "f32", m: int = 4, n: int = 32) -> Schedule:
    return define(COPY.replace("{dtype}", dtype), "mechanism.py").schedule(M=m, N=n).bind("j", "thread.x", count=8)


def answer(plan: Plan, name: str = "x_s") -> Moved | Never:
    leaf, above, _ = next(e for e in plan.leaves if e[0].id == name)
    return asynchronous(plan, leaf, above)


@pytest.mark.parametrize(("dtype", "vector", "lanes", "nbytes"), [
    ("f32", 1, 1, 4), ("f32", 4, 4, 16), ("f64", 1, 1, 8), ("f64", 2, 2, 16), ("f16", 2, 2, 4), ("f16", 8, 8, 16),
    ("i8", 4, 4, 4), ("i8", 8, 8, 8), ("i8", 16, 16, 16), ("bf16", 4, 4, 8), ("i64", 1, 1, 8), ("f16", 1, 0, 0), ("i8", 2, 0, 0)])
def test_bytes(dtype: str, vector: int, lanes: int, nbytes: int) -> None:
    s = schedule(dtype, n=128).stage("x", "a", vector=vector)
    found = answer(s.plan)
    assert ((found.lanes, found.nbytes) if isinstance(found, Moved) else (0, 0)) == (lanes, nbytes)
    if lanes:
        assert f"async_copy<{nbytes}>(" in s.pipeline("a", 2).cuda
    else:
        with pytest.raises(ScheduleError, match="asynchronous=False"):
            s.pipeline("a", 2)


@pytest.mark.parametrize("change", [
    lambda s: s.bind("x_s.v", "seq"), lambda s: s.bind("x_s.v.pro", "seq").bind("x_s.v", "seq"),
    lambda s: s.bind("x_s.v", "seq").unroll("x_s.v")])
def test_lanes_that_are_a_loop_again_copy_nothing_that_is_too_small(change) -> None:
    s = schedule("f16").stage("x", "a", vector=4).pipeline("a", 2)
    with pytest.raises(ScheduleError) as refused:
        change(s)
    assert "copies asynchronously and cannot" in refused.value.what
    assert change(schedule("f32").stage("x", "a", vector=4).pipeline("a", 2)).cuda.count("async_copy<4>(") > 0


def test_another_source_makes_a_copy_plain() -> None:
    s = schedule().stage("x", "a", vector=2).pipeline("a", 2)
    assert isinstance(answer(s.plan), Moved)
    s = s.stage("x", "x_s.r")
    assert isinstance(answer(s.plan), Never)
    assert [(leaf.id, leaf.mechanism) for leaf, _, _ in s.plan.leaves if leaf.statement == "x_s"] == [
        ("x_s.pro", "async"), ("x_s", "plain")]


def test_what_is_written_otherwise_is_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = schedule().stage("x", "a").pipeline("a", 2).plan


    def plain(body: tuple[Node, ...], context: Context) -> tuple[Node, ...]:
        found = (map_bodies(n, lambda inner: plain(inner, context)) for n in body)
        return tuple(instance(context.low, n.site) if isinstance(n, Copy) else n for n in found)

    monkeypatch.setattr(passes, "PASSES", (*passes.PASSES, plain))
    with pytest.raises(ScheduleError, match="was judged to copy asynchronously, and its text copies plainly"):
        emit(plan)
    unjudged = plan.map_leaves(lambda leaf: replace(leaf, mechanism="async") if leaf.id == "S0" else leaf)
    with pytest.raises(ScheduleError, match="is to copy asynchronously and cannot"):
        emit(unjudged)


def test_a_gpu_without_asynchronous_copies_is_asked_about_its_own_barriers() -> None:
    plan = schedule().stage("x", "a").pipeline("a", 2).plan
    plain = for_arch(plan, "sm_75")
    assert {leaf.mechanism for leaf, _, _ in plain.leaves} == {"plain"}
    assert judge(plain).emittable
    assert emit(plan, arch="sm_75").text == emit(plain, arch="sm_90").text
    assert for_arch(plan, "sm_80") is plan


REUSED = """@ex.program
def f(x: ex.f32[M, N], y: ex.f32[M, N]):
    for a in range(M):
        for j in range(N):
            y[a, j] = x[a, j]
        for i in range(N):
            x[a, i] = 1.0 * a
"""


def test_the_source_is_not_written_before_the_copy_has_read_it() -> None:
    s = define(REUSED, "mechanism.py").schedule(M=5, N=8).bind("j", "thread.x").bind("i", "thread.x")
    plan = s.stage("x", "a").pipeline("a", 2).plan
    assert not check_async(plan)
    loop = plan.loops["a"]
    kinds = {n.kind if isinstance(n, Sync) else n.id: n for n in loop.body}
    read, write, copy = kinds["j"], kinds["i"], next(n for n in loop.body if isinstance(n, Loop) and n.id not in "ij")
    late = Sync("a.wait", "wait", 1)
    moved = plan.replace_node("a", replace(loop, body=(copy, kinds["commit"], write, late, read)))
    first, finding = check_async(moved)  # of the prologue's copy, and of the loop's
    assert finding.source is not None
    assert finding.sink is not None
    assert (finding.kind, finding.source.statement, finding.sink.statement) == ("anti", "x_s", "S1")
    assert "may write x[0, 0]" in first.what
    assert "may write x[1, 0]" in finding.what
    assert finding.hints == ("a.wait with at most 0 pending groups instead of 1",)
    early = plan.replace_node("a", replace(loop, body=(copy, kinds["commit"], Sync("a.wait", "wait", 1), write, read)))
    assert not check_async(early)
