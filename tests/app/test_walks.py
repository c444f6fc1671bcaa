"""Roles of loops and strides of accesses, held against the addresses that the loops' values give."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

import explorer as ex
from explorer.app.panes.loops import loop_rows
from explorer.app.panes.walks import steps, strides, walks
from explorer.ir.expr import ZERO
from explorer.ir.plan import Plan
from explorer.poly.sites import Site, sites
from explorer.strategies import auto
from tests.app.front import front, schedule, text_of

CASES = {
    "sum_columns": [], "matmul": ["tile(('i', 'j'), (4, 2))"], "softmax": ["split('k', 5)", "bind('i', 'block.x')"],
    "gauss_seidel": ["skew('j', 'i')"], "depthwise_conv2d": [], "layernorm": ["bind('i', 'block.x')"],
}


def address_of(plan: Plan, site: Site) -> Callable[[dict[str, int]], int]:
    """The element that an access takes for some values of the loops, counted in the whole array."""
    def address(values: dict[str, int]) -> int:
        total = 0
        for e, extent in zip(site.cell, plan.array_of[site.storage].shape, strict=True):
            total = total * extent + (e or ZERO).evaluate(values)
        return total

    return address


@pytest.mark.parametrize("name", CASES)
def test_strides_are_the_differences_of_addresses(name: str) -> None:
    plan = schedule(name, *CASES[name]).plan
    compared = 0
    for found in sites(plan).values():
        for site in found:
            if site.leaf.view(site.slot) or any(e is None for e in site.cell):
                continue
            address = address_of(plan, site)
            boxes = {x.id: range(x.start, x.start + min(x.extent, 4)) for x in site.above}
            for loop, stride in strides(plan, site).items():
                other = [dict(zip(boxes, values, strict=True)) for values in product(*boxes.values())]
                steps = {address({**v, loop: v[loop] + 1}) - address(v) for v in other}
                assert steps == {stride} or stride is None
                compared += stride is not None
    assert compared > 2


def test_a_reduction_has_parallel_and_reduced_loops() -> None:
    found = walks(schedule("matmul").plan)
    assert found["S1"]["loops"] == {"i": "parallel", "j": "parallel", "k": "reduced"}
    a = next(x for x in found["S1"]["accesses"] if x["array"] == "a")
    size = schedule("matmul").plan.array_of["a"].shape[1]
    assert a["strides"] == {"i": size, "j": 0, "k": 1}
    assert a["marks"] == {"k": "contiguous"}


def test_loops_that_carry_an_order_are_not_called_parallel() -> None:
    assert set(walks(schedule("gauss_seidel").plan)["S0"]["loops"].values()) == {"ordered"}


def test_neighbouring_threads_far_apart_and_what_would_help() -> None:
    steps = ["launch('sum_columns', after='j')", "interchange('i', 'j_2')", "bind('j_2', 'block.x')", "split('i', 4)",
             "bind('i.i', 'thread.x')"]
    walk = walks(schedule("sum_columns", *steps, M=16, N=64).plan)["S1"]
    x = next(a for a in walk["accesses"] if a["array"] == "x")
    assert x["marks"] == {"i.i": "apart", "j_2": "contiguous"}
    assert x["strides"]["i.i"] == 64
    assert walk["notes"] == ["neighbouring threads are 64 elements of x apart along i.i, while j_2 is contiguous: bind j_2 to "
                             "the threads, or transpose x on the way through shared memory (stage)"]
    good = walks(schedule("sum_columns", "launch('sum_columns', after='j')", "interchange('i', 'j_2')",
                          "bind('j_2', 'thread.x')", M=16, N=64).plan)["S1"]
    assert next(a for a in good["accesses"] if a["array"] == "x")["marks"] == {"j_2": "coalesced"}
    assert good["notes"] == []


def test_where_no_loop_is_contiguous_a_transposed_copy_would_be() -> None:
    n = ex.sizes("N")

    @ex.program
    def first_column(x: ex.f32[n, 8], y: ex.f32[n]):  # type: ignore[no-untyped-def]
        for i in range(n):
            y[i] = x[i, 0]

    walk = walks(first_column.schedule(N=16).plan)["S0"]
    assert walk["notes"] == ["no loop walks x contiguously (the nearest, i, steps over 8 elements): a transposed copy of x with "
                             "i along its last axis would"]


def test_an_index_that_wraps_has_no_one_stride() -> None:
    plan = schedule("matmul", "coalesce(('i', 'j'))").plan
    a = next(x for x in walks(plan)["S1"]["accesses"] if x["array"] == "a")
    assert a["strides"]["i"] is None


A, B, C, D = ex.sizes("A B C D")


@ex.program
def alternating(x: ex.f32[A, B, C, D], y: ex.f32[B, D]) -> None:
    for p in range(B):
        for q in range(D):
            y[p, q] = 0.0
            for a in range(A):
                for c in range(C):
                    y[p, q] += x[a, p, c, q]


def flat(*more: str, **sizes: int) -> ex.Schedule:
    """Parallel loops as one, reduced loops as one."""
    s = alternating.schedule(**{"A": 4, "B": 3, "C": 8, "D": 32, **sizes}).distribute("q", after="S0").distribute("p", after="q")
    s = s.coalesce(("a", "c")).coalesce(("p.2", "q.2"))
    for call in more:
        s = eval(f"s.{call}", {"s": s})
    return s


def test_coalesced_loops_have_the_stride_of_each_index_in_them() -> None:
    walk = walks(flat().plan)["S1"]
    x, y = (next(a for a in walk["accesses"] if a["array"] == name) for name in "xy")
    assert x["strides"] == {"p.2": None, "a": None}
    assert x["indices"] == {"p.2": [(1, 32), (256, 3)], "a": [(32, 8), (768, 4)]}
    assert x["marks"] == {"p.2": "contiguous"}
    assert (y["strides"], y["indices"]) == ({"p.2": 1, "a": 0}, {}), "one index again in memory"


def test_lanes_along_several_indices_in_one() -> None:
    def mark(schedule: ex.Schedule, loop: str) -> str:
        return next(a["marks"][loop] for a in walks(schedule.plan)["S1"]["accesses"] if a["array"] == "x")

    assert mark(flat("bind('p.2', 'thread.x')"), "p.2") == "coalesced"
    assert mark(flat("bind('p.2', 'thread.x')", D=20), "p.2") == "varies", "a warp takes the end of one row and the next"
    assert mark(flat("bind('a', 'thread.x')"), "a") == "apart"


def test_loops_that_share_a_quotient_have_no_stride() -> None:
    plan = flat("split('p.2', 20)").plan
    x = next(a for a in walks(plan)["S1"]["accesses"] if a["array"] == "x")
    assert (x["strides"]["p.2"], x["strides"]["p.2.i"]) == (None, None)
    assert set(x["indices"]) == {"a"}


@pytest.mark.parametrize("sizes", [{"A": 2, "B": 3, "C": 5, "D": 7}, {"A": 4, "B": 2, "C": 8, "D": 32},
                                   {"A": 3, "B": 5, "C": 1, "D": 4}])
@pytest.mark.parametrize("more", [(), ("split('p.2', 4)",), ("split('a', 5)",), ("split('p.2', 7)", "split('a', 2)"),
                                  ("reverse('a')",), ("split('p.2', 8)", "split('p.2.i', 2)")])
def test_the_strides_of_indices_are_the_differences_of_addresses(sizes: dict[str, int], more: tuple[str, ...]) -> None:
    plan = flat(*more, **sizes).plan
    several = 0
    for found in sites(plan).values():
        for site in found:
            address = address_of(plan, site)
            boxes = {x.id: range(x.start, x.start + x.extent) for x in site.above}
            for loop in site.above:
                pairs = steps(plan, site)[loop.id]
                several += len(pairs) > 1
                for values in product(*boxes.values()) if pairs else ():
                    at = dict(zip(boxes, values, strict=True))
                    left, wanted = at[loop.id] - loop.start, 0
                    for n, (step, count) in enumerate(pairs):
                        left, digit = divmod(left, count) if n < len(pairs) - 1 else (0, left)
                        wanted += step * digit
                    assert address(at) - address({**at, loop.id: loop.start}) == wanted
    assert several or more or sizes["C"] == 1


def test_vector_accesses_of_neighbouring_threads_are_coalesced() -> None:
    plan = auto(schedule("sum_columns", M=4096, N=4096)).plan
    x = next(a for walk in walks(plan).values() for a in walk["accesses"] if a["array"] == "x")
    threads = next(name for name, loop in plan.loops.items() if loop.role == "thread.x" and x["strides"].get(name, 1) != 1)
    assert (x["strides"][threads] or 0) > 1
    assert x["marks"][threads] == "coalesced"


def test_rows_of_statements_have_their_walk_and_no_others() -> None:
    f = front("sum_rows", M=4, N=64)
    f.ask("ready", wait=True)
    row = next(r for r in f.panes["loops"] if r["node"] == "S1")
    assert row["walk"]["loops"] == {"i": "parallel", "k": "reduced"}
    assert all("walk" not in r for r in f.panes["loops"] if r["kind"] != "statement")


def test_a_condition_of_a_loop_is_said_once() -> None:
    plan = auto(schedule("sum_columns", M=512, N=300)).plan
    shown = [text_of(row["html"]) for row in loop_rows(plan) if row["kind"] == "loop"]
    bounds = [one.partition("where ")[2] for one in shown if "<" in one]
    assert bounds
    assert all(len(set(one.split(" and "))) == len(one.split(" and ")) for one in bounds)
