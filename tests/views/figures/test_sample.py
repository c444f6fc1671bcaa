"""Where and when instances run, and what links them: against walking every loop of every thread."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest

from explorer.ir.expr import Expr
from explorer.ir.plan import block_extents, grid_extents
from explorer.poly.sample import EVERYWHERE, bounds, first_point, links, locate
from tests.views.figures.support import SCHEDULES, all_points, matmul, walked, written


@pytest.mark.parametrize("name", SCHEDULES)
def test_place_and_time_are_those_of_the_walk(name):
    plan = SCHEDULES[name]().plan
    everything = walked(plan)
    assert everything
    for statement, where in everything.items():
        found = locate(plan, statement, all_points(plan, statement, bounds(plan, statement)))
        assert {tuple(p) for p in found.points.tolist()} == set(where)
        times = sorted({time for _, time in where.values()})
        kernel_of = {leaf.id: k for leaf, _, k in plan.leaves}
        for point, leaf, place, thread, step in zip(
            found.points.tolist(), found.leaf, found.place.tolist(), found.thread, found.step, strict=True
        ):
            who, time = where[tuple(point)]
            kernel = kernel_of[found.leaves[leaf]]
            size = block_extents(kernel)
            blocks = product(
                *([b] if b != EVERYWHERE else range(n) for b, n in zip(place[:3], grid_extents(kernel), strict=True))
            )
            threads = product(*([t] if t != EVERYWHERE else range(n) for t, n in zip(place[3:], size, strict=True)))
            numbers = [x + size[0] * (y + size[1] * z) for x, y, z in threads]
            assert who == {(b, t) for b in blocks for t in numbers}, (statement, point)
            assert thread == (numbers[0] if len(numbers) == 1 else EVERYWHERE)
            assert step == times.index(time)
        assert found.steps == len(times)


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_box_holds_every_instance_and_the_first_point_is_the_smallest(name):
    plan = SCHEDULES[name]().plan
    for statement, where in walked(plan).items():
        box = list(bounds(plan, statement).values())
        assert all(low <= v <= high for point in where for v, (low, high) in zip(point, box, strict=True))
        assert first_point(plan, statement) == min(where)


def test_a_large_domain_costs_only_the_points_asked_for():
    plan = written("matmul", M=1 << 20, N=1 << 20, K=1 << 20).split("i", 128).bind("i", "block.x").plan
    found = locate(plan, "S1", np.array([[999_999, 5, 7], [1 << 20, 0, 0], [0, 0, 0]]))
    assert found.points.tolist() == [[999_999, 5, 7], [0, 0, 0]]
    assert found.place[:, 0].tolist() == [999_999 // 128, 0]
    assert found.step.tolist() == [1, 0]


def _touching(statement, points: list[tuple[int, ...]]) -> set[tuple[int, int]]:
    """All pairs of instances, first earlier, that touch one element of the target, one writing."""
    def cells(point: tuple[int, ...]) -> tuple[set, tuple]:
        at = dict(zip(statement.dims, point, strict=True))
        inside = all(c.holds(at) for c in statement.inside)
        read = {tuple(e.evaluate(at) for e in use.index if isinstance(e, Expr)) for use in statement.reads
                if use.array == statement.target.array and inside}
        return read, tuple(e.evaluate(at) for e in statement.target.index if isinstance(e, Expr))

    found = set()
    for a, b in product(range(len(points)), repeat=2):
        if points[a] < points[b]:
            (reads_a, write_a), (reads_b, write_b) = cells(points[a]), cells(points[b])
            if write_a == write_b or write_a in reads_b or write_b in reads_a:
                found.add((a, b))
    return found


@pytest.mark.parametrize(
    ("name", "statement"),
    [
        ("gauss_seidel", "S0"),
        ("jacobi2d", "S0"),
        ("matmul", "S1"),
        ("triangular_matmul", "S1"),
        ("stencil1d", "S0"),
        ("sum_columns", "S1"),
    ],
)
def test_links_are_few_and_imply_every_dependence(name, statement):
    plan = written(name).plan
    s = plan.statement_of[statement]
    points = locate(plan, statement, all_points(plan, statement, bounds(plan, statement))).points
    wanted = _touching(s, [tuple(p) for p in points.tolist()])
    found, count = links(plan, statement, points, 10**6)
    assert count == len(found)
    direct = {(x.source, x.sink) for x in found}
    assert direct <= wanted
    reach = {a: {b for x, b in direct if x == a} for a, _ in direct}
    for a in sorted(reach, key=lambda row: tuple(points[row]), reverse=True):
        reach[a] |= {c for b in tuple(reach[a]) for c in reach.get(b, ())}
    assert wanted <= {(a, b) for a, ends in reach.items() for b in ends}
    assert not s.update or {x.kind for x in found} == {"reduction"}


def test_links_pass_over_instances_that_are_not_shown_and_stop_at_the_cap():
    plan = written("sum_columns", M=64, N=2).plan
    every_fourth = np.array([[i, 0] for i in range(0, 64, 4)])
    found, count = links(plan, "S1", every_fourth, 5)
    assert count == 15
    assert [(x.source, x.sink) for x in found] == [(i, i + 1) for i in range(5)]


def test_copies_of_a_schedule_have_no_order_of_the_program():
    plan = matmul().plan
    assert "a_s" in plan.statement_of
    assert links(plan, "a_s", all_points(plan, "a_s", bounds(plan, "a_s")))[1] == 0
    assert prod(high - low + 1 for low, high in bounds(plan, "a_s").values()) == 8 * 12 * 2
