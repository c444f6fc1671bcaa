"""Roles of loops and strides of accesses, held against the addresses that the loops' values give."""

from __future__ import annotations

from itertools import product

import pytest

from explorer.app.panes.walks import strides, walks
from explorer.ir.expr import ZERO
from explorer.poly.sites import sites
from explorer.strategies import auto
from tests.app.front import front, schedule

CASES = {
    "sum_columns": [], "matmul": ["tile(('i', 'j'), (4, 2))"], "softmax": ["split('k', 5)", "bind('i', 'block.x')"],
    "gauss_seidel": ["skew('j', 'i')"], "depthwise_conv2d": [], "layernorm": ["bind('i', 'block.x')"],
}


@pytest.mark.parametrize("name", CASES)
def test_strides_are_the_differences_of_addresses(name: str) -> None:
    plan = schedule(name, *CASES[name]).plan
    compared = 0
    for found in sites(plan).values():
        for site in found:
            if site.leaf.view(site.slot) or any(e is None for e in site.cell):
                continue
            shape = plan.array_of[site.storage].shape

            def address(values: dict[str, int], site=site, shape=shape) -> int:  # type: ignore[no-untyped-def]
                total = 0
                for e, extent in zip(site.cell, shape, strict=True):
                    total = total * extent + (e or ZERO).evaluate(values)
                return total

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
    import explorer as ex

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
