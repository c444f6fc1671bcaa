"""Trimmed loops with copies that others count: bulk copies and roles are right in all sizes; ends that differ are caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import explorer as ex
from explorer.ir.expr import Expr, var
from explorer.ir.program import Statement
from explorer.ir.tree import leaves
from explorer.kernel.conditions import Condition
from explorer.kernel.launches import PlanIR, plan_ir
from explorer.kernel.nodes import For, Node
from explorer.kernel.traverse import map_bodies, walk
from explorer.kernel.validate import judged
from explorer.poly.early_end import end_of
from explorer.transforms.trim import Trim
from tests.transforms.test_trim import banded, lower

ORDERS = {
    "stage, trim": ("trim",),
    "pipeline, trim": ("pipeline", "trim"),
    "trim, pipeline": ("trim", "pipeline"),
    "roles, trim": ("specialise", "trim"),
    "trim, roles": ("trim", "specialise"),
}


def staged(of: Any, rows: int, keys: int, n: int) -> ex.Schedule:
    """Rows and columns over threads, tiles of both factors by bulk copies."""
    s = of.schedule(N=n, M=32).split("k", keys).split("i", rows)
    s = s.bind("i", "block.x").bind("i.i", "thread.y").bind("j", "thread.x").contract("s", "register")
    return s.stage("b", "k", engine="bulk").stage("a", "k", engine="bulk")


def moved(s: ex.Schedule, order: str, slots: int = 2) -> ex.Schedule:
    for name in ORDERS[order]:
        s = s.trim("k") if name == "trim" else s.pipeline("k", slots + 1) if name == "pipeline" else s.specialise("k", slots)
    return s


def last_of(s: ex.Schedule) -> Expr | str:
    kernel = s.plan.kernel_of("k")
    assert kernel is not None
    return end_of(s.plan, kernel, s.plan.loops["k"])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("of", "rows", "keys", "n"), [
    (lower, 8, 4, 28), (lower, 4, 8, 44), (banded, 8, 16, 64), (banded, 8, 4, 28)])
def test_it_is_right_and_ends_early(of: Any, rows: int, keys: int, n: int, order: str) -> None:
    s = moved(staged(of, rows, keys, n), order)
    assert s.judgement.emittable
    assert isinstance(last_of(s), Expr)
    heads = [line.strip() for line in s.cuda.splitlines() if line.strip().startswith("for (int k = 0")]
    assert len(heads) == 1 + ("roles" in order)
    assert len(set(heads)) == 1, "the producer and its consumers end alike"
    assert "i" in heads[0].replace("int", "")
    assert s.run(device="cpu", time=False, checked=True).correct


def test_copies_of_a_loop_inside_of_it() -> None:
    s = lower.schedule(N=28, M=16).split("k", 3).split("i", 2)
    s = s.bind("i", "block.x").bind("i.i", "thread.y").bind("j", "thread.x")
    s = s.stage("a", "k").stage("b", "k.i", engine="bulk").trim("k")
    assert s.judgement.emittable
    assert "k <= (2 * i + 1) / 3" in s.cuda
    assert s.run(device="cpu", time=False, checked=True).correct


def test_a_bulk_copy_that_has_landed_before_it_does_not_matter() -> None:
    @ex.program
    def scaled(a: ex.f32[28, 28], b: ex.f32[28, 16], w: ex.f32[16], c: ex.f32[28, 16]):
        for i in range(28):
            for j in range(16):
                s = ex.local(ex.f32)
                s = 0.0
                for k in range(i + 1):
                    s += a[i, k] * b[k, j] * w[j]
                c[i, j] = s

    s = scaled.schedule().split("k", 4).split("i", 4)
    s = s.bind("i", "block.x").bind("i.i", "thread.y").bind("j", "thread.x").contract("s", "register")
    s = s.stage("w", "i", engine="bulk").stage("b", "k").trim("k")
    assert str(last_of(s)) == "i"
    assert s.run(device="cpu", time=False, checked=True).correct


@pytest.mark.parametrize(("more", "why"), [(0, ""), (1, "b_s may still be in flight"), (2, "may still be in flight")])
def test_a_copy_for_an_iteration_that_does_not_run_keeps_the_loop_whole(more: int, why: str) -> None:
    """Nobody would wait for it: copies go on for more iterations than there are (`trim` puts their end behind the domain)."""
    plan = staged(lower, 8, 4, 28).pipeline("k", 3).trim("k").plan

    def later(s: Statement) -> Statement:
        *domain, end = s.domain
        return replace(s, domain=(*domain, replace(end, expr=end.expr + more))) if s.name in ("a_s", "b_s") else s

    program = replace(plan.program, statements=tuple(map(later, plan.program.statements)))
    loose = replace(plan, program=program, copies=tuple(map(later, plan.copies)))
    kernel = loose.kernel_of("k")
    assert kernel is not None
    found = end_of(loose, kernel, loose.loops["k"])
    assert why in found if isinstance(found, str) else not why


def test_what_is_counted_behind_it_keeps_the_loop_whole() -> None:
    """Bulk copies of a second loop: their groups have numbers that would be others in each block."""
    @ex.program
    def twice(a: ex.f32[64, 64], b: ex.f32[64, 32], c: ex.f32[64, 32]):
        for i in range(64):
            for j in range(32):
                s = ex.local(ex.f32)
                s = 0.0
                for k in range(i + 1):
                    s += a[i, k] * b[k, j]
                for m in range(64):
                    s += a[i, m] * b[m, j]
                c[i, j] = s

    s = twice.schedule().split("m", 8).split("k", 8).split("i", 8)
    s = s.bind("i", "block.x").bind("i.i", "thread.y").bind("j", "thread.x").contract("s", "register")
    s = s.stage("b", "k", engine="bulk")
    alone = s.trim("k")
    assert isinstance(last_of(alone), Expr)
    both = alone.stage("b", "m", engine="bulk")
    assert "behind k bulk copies are counted" in str(last_of(both))
    assert both.run(device="cpu", time=False, checked=True).correct
    verdict, _ = s.stage("b", "m", engine="bulk").try_step(Trim("k"))
    assert "behind k bulk copies are counted" in verdict.why


# -- faults of the text --------------------------------------------------------------------------------------------------


def changed(ir: PlanIR, limits: Callable[[For], tuple[Condition, ...]]) -> PlanIR:
    """The IR with the limits of the trimmed loop changed."""
    (launch,) = ir.launches
    (body,) = launch.bodies
    (chosen,) = (n for n in walk(body) if isinstance(n, For) and n.loop.trimmed)

    def among(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(map_bodies(replace(n, limits=limits(n)) if n is chosen and isinstance(n, For) else n, among) for n in nodes)

    return replace(ir, launches=(replace(launch, bodies=(among(body),)),))


def shifted(by: int) -> Callable[[For], tuple[Condition, ...]]:
    return lambda loop: tuple(replace(c, expr=c.expr + by) for c in loop.limits)


def by_thread(loop: For) -> tuple[Condition, ...]:
    return (*loop.limits, Condition(-var(loop.var) + var("i_i")))


FAULTS = {"an iteration more": shifted(1), "an iteration less": shifted(-1), "no end": lambda _: (),
          "an end of each thread": by_thread}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("order", ["trim, pipeline", "trim, roles"])
def test_another_end_is_caught(order: str, fault: str) -> None:
    ir = plan_ir(moved(staged(lower, 8, 4, 44), order).plan)
    assert not [x for launch in ir.launches for x in judged(launch)]
    wrong = changed(ir, FAULTS[fault])
    assert wrong != ir
    found = [x.what for launch in wrong.launches for x in judged(launch)]
    assert any("ends with another iteration than the trimmed loop" in x for x in found), found


def test_copies_that_end_with_their_loop_are_those_that_are_used() -> None:
    s = moved(staged(lower, 8, 4, 28), "trim, roles")
    copies = [leaf for leaf, _ in leaves(s.plan.kernels[0].body) if leaf.mechanism == "bulk"]
    assert {x.statement for x in copies} == {"a_s", "b_s"}
    assert "if (" not in s.cuda[s.cuda.index("the producer"):s.cuda.index("} else {")].split("\n", 2)[2], "the end says it"
