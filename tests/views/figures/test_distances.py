"""Distances, carrying loops and how a plan keeps the order: against all pairs of instances."""

from __future__ import annotations

from itertools import product

import pytest

from explorer.poly.dependence import analyse
from explorer.poly.distances import LOST, distances
from explorer.strategies.default import default
from explorer.transforms.base import catalogue
from explorer.workloads import get, names
from tests.views.figures.support import SCHEDULES, matmul, written


def _pairs(dependence):
    """All pairs of a relation, as points."""
    out = []
    dependence.relation.wrap().flatten().foreach_point(
        lambda p: out.append(
            tuple(int(p.get_coordinate_val(3, i).to_python()) for i in range(dependence.relation.wrap().flatten().dim(3)))
        )
    )
    return out


@pytest.mark.parametrize(
    "name", ["gauss_seidel", "jacobi2d", "matmul", "softmax", "stencil1d", "triangular_matmul", "layernorm_backward"]
)
def test_spans_and_carriers_are_those_of_all_pairs(name):
    s = written(name)
    facts = analyse(s.source)
    found = distances(s.plan)
    assert len(found) == len(facts.ordered) + len(facts.reductions)
    for d, row in zip((*facts.ordered, *facts.reductions), found, strict=True):
        n = len(s.source.statement_of[d.source].dims)
        pairs = [(p[:n], p[n:]) for p in _pairs(d)]
        assert row.first == min(pairs)
        common = len(row.dims)
        deltas = [tuple(b[i] - a[i] for i in range(common)) for a, b in pairs]
        assert row.span == tuple((min(x[i] for x in deltas), max(x[i] for x in deltas)) for i in range(common))
        carriers = {next((row.dims[i] for i in range(common) if x[i]), "") for x in deltas}
        assert set(row.carried) == carriers
        assert list(row.carried) == sorted(row.carried, key=lambda c: row.dims.index(c) if c else common)


@pytest.mark.parametrize("name", names())
def test_a_legal_plan_keeps_every_dependence_and_says_how(name):
    s = default(written(name))
    for row in distances(s.plan):
        assert row.kept, row
        assert not any(k.startswith(LOST) for k in row.kept), row


@pytest.mark.parametrize("name", SCHEDULES)
def test_other_legal_plans_too(name):
    for row in distances(SCHEDULES[name]().plan):
        assert row.kept
        assert not any(k.startswith(LOST) for k in row.kept)


def test_the_ways_are_named():
    def ways(s):
        return {(r.kind, r.source, r.sink): set(r.kept) for r in distances(s.plan)}

    staged = ways(matmul())
    assert staged["flow", "S1", "S2"] == {"earlier in the text, in the same thread"}
    assert staged["reduction", "S1", "S1"] == {"one thread makes all updates of an element"}
    seidel = written("gauss_seidel").skew("j", "i", 1)
    assert ways(seidel)["flow", "S0", "S0"] == {"an earlier t", "an earlier i", "an earlier j"}
    columns = default(written("sum_columns"))
    assert ways(columns)["flow", "S0", "S1"] == {"kernel sum_columns ends before sum_columns.2 starts"}
    hosted = ways(default(written("jacobi2d")))
    assert hosted["flow", "S0", "S0"] == {"an earlier launch of t"}
    open_ = written("sum_rows", M=4, N=64).bind("k", "thread.x")
    assert ways(open_)["reduction", "S1", "S1"] == {"k (thread.x): open, collect it"}
    closed = ways(open_.collect("S1", "shuffle"))
    assert closed["reduction", "S1", "S1"] == {"k (thread.x): combined by shuffle"}


REFUSED = [
    ("gauss_seidel", "bind", ("i", "block.x")),
    ("gauss_seidel", "bind", ("i", "thread.x")),
    ("gauss_seidel", "reverse", ("i",)),
    ("three loops", "fuse", ("k", "j")),
    ("jacobi2d", "interchange", ("t", "i")),
    ("jacobi2d", "bind", ("t", "block.x")),
]


@pytest.mark.parametrize(("name", "step", "arguments"), REFUSED)
def test_a_refused_plan_loses_the_dependence_of_its_finding(name, step, arguments):
    verdict, plan = written(name).try_step(catalogue()[step](*arguments))
    finding = verdict.finding
    assert finding is not None
    rows = [
        r
        for r in distances(plan)
        if (r.kind, r.source, r.sink, r.array) == (finding.kind, finding.source.statement, finding.sink.statement, finding.array)
    ]
    assert rows
    assert all(any(k.startswith(LOST) for k in r.kept) for r in rows)


def test_all_pairs_of_a_small_case_by_hand():
    s = written("sum_columns", M=3, N=2)
    row = next(r for r in distances(s.plan) if r.kind == "reduction")
    assert row.dims == ("i", "j_2")
    assert row.span == ((1, 2), (0, 0))
    assert row.carried == ("i",)
    assert row.first == ((0, 0), (1, 0))
    assert len(list(product(range(3), range(2)))) == 6
    assert get("sum_columns").tiny
