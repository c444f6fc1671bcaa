"""One request of a warp counted by hand, its means against the analysis, and footprints against walking the loops."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from examples.matmul import schedule
from explorer.ir.expr import Expr, var
from explorer.ir.plan import Plan, block_extents
from explorer.poly.request import find_site, free_loops, touched, warp_request
from explorer.poly.traffic import traffic
from tests.poly.test_traffic import copy
from tests.views.figures.support import SCHEDULES, matmul, written


@pytest.mark.parametrize(("index", "sectors", "fewest"), [
    (var("i"), (0, 1, 2, 3), 4), (var("i") + 1, (0, 1, 2, 3, 4), 4), (var("i") * 2, tuple(range(8)), 4),
    (var("i") * 8, tuple(range(32)), 4), (var("i") * 0 + 9, (1,), 1), (var("i") // 2, (0, 1), 2)], ids=str)
def test_sectors_of_f32_by_hand(index: Expr, sectors, fewest):
    request = warp_request(copy(index, 512), "S0", 0, 0, {})
    assert request.sectors == sectors
    assert request.fewest == fewest
    assert [x.lane for x in request.lanes] == list(range(32))
    assert [x.first for x in request.lanes] == [4 * index.evaluate({"i": i}) for i in range(32)]


def test_a_vector_load_is_one_wide_access():
    request = warp_request(copy(var("i"), 128, n=128, vector=4), "S0", 0, 0, {})
    assert {x.width for x in request.lanes} == {16}
    assert request.sectors == tuple(range(16))


def test_the_last_warp_has_the_threads_that_exist():
    request = warp_request(copy(var("i"), 40, n=40), "S0", 0, 1, {})
    assert [(x.lane, x.thread, x.index) for x in request.lanes] == [(i, 32 + i, (32 + i,)) for i in range(8)]
    assert request.sectors == (4,)


@pytest.mark.parametrize(("pad", "passes"), [(0, 4), (4, 2)])
def test_bank_conflicts_of_a_column_by_hand(pad, passes):
    """Rows 0, 4, 8, 12 of 8 words begin at words 0, 32, 64, 96: one bank; of 12 words at 0, 48, 96, 144: banks 0 and 16."""
    plan = schedule(stages=1, pad=pad).plan
    assert find_site(plan, "S1", 0)[0].space == "shared"
    request = warp_request(plan, "S1", 0, 0, {})
    words = {x.first // 4 for x in request.lanes}
    degree = max(Counter(w % 32 for w in words).values())
    assert request.passes(0) == degree
    assert degree == passes
    assert max(len(w) for w in request.words(0).values()) == degree


def test_wide_shared_accesses_are_served_in_quarters():
    request = warp_request(schedule(stages=1).plan, "a_s", 1, 0, {})
    assert {x.width for x in request.lanes} == {16}
    assert request.served == tuple(tuple(range(i, i + 8)) for i in range(0, 32, 8))
    assert [request.passes(g) for g in range(4)] == [1, 1, 1, 1]


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_mean_over_all_requests_is_what_the_analysis_says(name):
    plan = SCHEDULES[name]().plan
    seen = 0
    for facts in traffic(plan):
        if facts.sampled or not facts.requests:
            continue
        site, kernel = find_site(plan, facts.leaf, facts.slot)
        if any(e is None for e in site.cell):
            continue
        x, y, z = block_extents(kernel)
        loops = free_loops(site) if not any(v.role == "vector" for v in site.above) else ()
        if not loops and free_loops(site):
            continue
        requests = [
            warp_request(plan, facts.leaf, facts.slot, warp, dict(zip([v.id for v in loops], at, strict=True)))
            for warp in range(-(-x * y * z // 32))
            for at in product(*(range(v.start, v.start + v.extent) for v in loops))
        ]
        busy = [r for r in requests if r.lanes]
        if facts.space == "global":
            assert sum(len(r.sectors) for r in busy) / len(busy) == pytest.approx(facts.sectors_per_request)
            assert sum(r.fewest for r in busy) / len(busy) == pytest.approx(facts.minimum)
        else:
            groups = [r.passes(g) for r in busy for g in range(len(r.served)) if r.words(g)]
            assert sum(groups) / len(groups) == pytest.approx(facts.conflicts)
        seen += 1
    assert seen


def _walk(plan: Plan, leaf_id: str, slot: int, fixed: dict[str, int]) -> Counter:
    """Element to touches, one iteration at a time."""
    site, _ = find_site(plan, leaf_id, slot)
    found: Counter = Counter()
    ranges = [range(x.start, x.start + x.extent) if x.id not in fixed else [fixed[x.id]] for x in site.above]
    for values in product(*ranges):
        env = dict(zip([x.id for x in site.above], values, strict=True))
        point = {d: e.evaluate(env) for d, e in site.leaf.at}
        held = (*site.statement.domain, *(() if site.writes else site.statement.inside))
        if all(c.holds(point) for c in held):
            found[tuple(e.evaluate(env) for e in site.cell if e is not None) or (0,)] += 1
    return found


@pytest.mark.parametrize("name", SCHEDULES)
def test_footprints_are_those_of_the_walk(name):
    plan = SCHEDULES[name]().plan
    checked = 0
    for leaf, above, _ in plan.leaves:
        for slot in range(len(plan.statement_of[leaf.statement].accesses)):
            site, _ = find_site(plan, leaf.id, slot)
            for count in range(len(site.above) + 1):
                fixed = {x.id: x.start + (x.extent - 1) // 2 for x in above[:count]}
                wanted, found = _walk(plan, leaf.id, slot, fixed), touched(plan, leaf.id, slot, fixed)
                assert not found.cut
                assert (found.elements, found.touches) == (len(wanted), sum(wanted.values())), (leaf.id, slot, fixed)
                if wanted and len(found.shape) == 2:
                    times, distinct = found.binned((0, 1), (0, 0), (1, 1), found.shape)
                    assert {
                        (r, c): times[r, c] for r in range(found.shape[0]) for c in range(found.shape[1]) if distinct[r, c]
                    } == wanted
                checked += 1
    assert checked > 4


def test_large_footprints_are_exact_where_dimensions_are_apart_and_say_so_where_not():
    plan = matmul(M=4096, N=4096, K=4096, depth=8).plan
    tile = touched(plan, "b_s", 0, {"i": 0, "j": 0})
    assert (tile.elements, tile.cut) == (4096 * 4, ())
    plain = written("matmul", M=4096, N=4096, K=4096).plan
    whole = touched(plain, "S1", 0, {})
    assert (whole.elements, whole.touches, whole.cut) == (4096**2, 4096**3, ())
    diagonal = written("triangular_matmul", M=4096, N=8).plan
    part = touched(diagonal, "S1", 0, {})
    assert part.cut
    assert 0 < part.elements <= 4096**2


@pytest.mark.parametrize(("pad", "text"), [(0, "reads a_s[4*i.i + i.i.i.2, k.i]"), (4, "reads a_s[4*i.i + i.i.i.2, k.i]")])
def test_a_staged_array_opens_on_the_access_that_wastes_most(pad, text):
    """With padding the copy has the worse efficiency, but the product's reads are made far more often."""
    s = schedule(stages=1, pad=pad)
    waste = {(f.leaf, f.slot): f.requests * (f.conflicts - 1) for f in traffic(s.plan) if f.storage == "a_s"}
    worst = max(waste, key=lambda key: waste[key])
    assert worst == ("S1", 0)
    for node in ("a", "a_s", "S1"):
        assert s.plot.memory(node).title.startswith(f"Warp 0 {text}")
    assert s.plot.memory("c").title.startswith("Warp 0 writes c")
    assert {row[0] for row in s.plot.memory("b").table} == {"S1"}
