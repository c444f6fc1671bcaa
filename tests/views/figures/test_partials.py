"""Partial results and idle lanes: every count against an enumeration of the schedule's instances."""

from __future__ import annotations

from itertools import product

import pytest

from benchmarks.product_programs import product_nn
from explorer.errors import FigureError
from explorer.ir.plan import Plan
from explorer.ir.tree import Leaf, Loop
from explorer.poly.sites import sites
from explorer.schedule import Schedule
from explorer.strategies.auto import auto
from explorer.strategies.contraction import contraction
from explorer.strategies.contraction.shapes import Tiling
from explorer.strategies.default import default
from explorer.views.figures import picture
from explorer.views.figures.asked import Asked, Look
from explorer.views.figures.partials import Partials, distinct, partials
from tests.transforms.multiblock import NAMES, spread
from tests.views.figures.support import written

SMALL = {"softmax": {"M": 5, "N": 70}, "triangular_matmul": {"M": 9, "N": 5}}


def of(schedule: Schedule, **options: str) -> Partials:
    found = partials(schedule, Asked(options), Look())
    assert isinstance(found, Partials)
    return found


def points(plan: Plan, leaf: Leaf, above: tuple[Loop, ...]) -> list[dict[str, int]]:
    """Values of the loops for every instance of a leaf, one by one."""
    at, domain = dict(leaf.at), plan.statement_of[leaf.statement].domain
    found = []
    for values in product(*(range(x.start, x.start + x.extent) for x in above)):
        point = dict(zip((x.id for x in above), values, strict=True))
        held = {d: e.evaluate(point) for d, e in at.items()}
        if all(c.holds(held) for c in domain):
            found.append(point)
    return found


@pytest.mark.parametrize("schedule", [*(spread(name) for name in NAMES[:4]), default(written("softmax", **SMALL["softmax"])),
                                      default(written("triangular_matmul", **SMALL["triangular_matmul"]))])
def test_distinct_values_are_those_of_an_enumeration(schedule: Schedule) -> None:
    plan, compared = schedule.plan, 0
    for leaf, above, kernel in plan.leaves:
        if not plan.statement_of[leaf.statement].update:
            continue
        site = next(s for s in sites(plan)[kernel.id] if s.leaf.id == leaf.id and s.writes)
        found = points(plan, leaf, above)
        for size in range(len(above) + 1):
            names = [x.id for x in above[:size]]
            wanted = len({tuple(p[n] for n in names) for p in found})
            assert distinct(site, names) == (wanted, True)
            compared += 1
    assert compared > 2


def test_the_way_from_terms_to_results() -> None:
    data = of(spread("rows"))
    assert [(v.words, v.count) for v in data.levels] == [
        ("terms", 700), ("added over k.i, in each thread one after the other", 364), ("threads t: not joined yet", 364),
        ("blocks k: not joined yet", 364)]
    assert data.open
    done = of(spread("rows").collect("y", "cluster"))
    assert [v.count for v in done.levels] == [700, 364, 28, 7]
    assert done.levels[-1].words == "blocks k: through distributed shared memory of a cluster"
    assert not done.open


@pytest.mark.parametrize(("how", "words"), [("kernel", "in a launch of its own"),
                                            ("last_block", "by the block that finishes last"),
                                            ("grid", "behind a barrier of the grid")])
def test_who_joins_the_parts_of_blocks_is_said(how: str, words: str) -> None:
    s = spread("rows").collect("y", how)
    if s.obligations:
        s = s.collect("S1", "shuffle")
    data = of(s)
    assert data.array == "y"
    assert data.levels[-1].words.endswith(words)
    assert (data.levels[0].count, data.levels[-2].count, data.levels[-1].count) == (700, 28, 7)


def test_idle_lanes_are_counted_exactly() -> None:
    (lanes,) = of(spread("rows")).lanes
    assert (lanes.slots, lanes.active, lanes.guarded, lanes.outside) == (7 * 4 * 2 * 16, 700, 196, 0)
    assert lanes.idle == pytest.approx(196 / 896)
    last = {a.leaf: a for a in of(spread("rows").collect("y", "last_block")).lanes}["S1_combine_combine"]
    assert (last.slots, last.active, last.guarded, last.outside) == (112, 28, 0, 84)


def test_waves_are_those_of_the_gpu() -> None:
    s = written("sum_rows", M=4096, N=4096).bind("i", "block.x").bind("k", "thread.x", count=256).collect("S1", "shuffle")
    (wave,) = of(s).waves
    assert (wave.blocks, wave.threads, wave.at_once) == (4096, 256, 132 * 8)
    assert wave.rounds == pytest.approx(4096 / 1056)
    assert wave.last == pytest.approx(4096 / 1056 - 3)
    (small,) = of(s, gpu="T4").waves
    assert small.at_once == 40 * 4


def test_every_reduction_can_be_chosen() -> None:
    s = auto(written("softmax", **SMALL["softmax"]))
    assert [of(s, of=name).array for name in ("peak", "total")] == ["peak", "total"]
    with pytest.raises(FigureError, match="of='z' is not a choice"):
        s.plot.partials("z")
    near = partials(s, Asked(), Look(node="S3"))
    assert isinstance(near, Partials)
    assert near.array == "total"


def test_without_a_reduction_there_is_a_sentence() -> None:
    found = picture(written("batchnorm_apply"), "partials")
    assert found.spec == {}
    assert "no partial results" in found.note


def test_the_numbers_stand_in_words_and_in_the_table() -> None:
    shown = spread("rows").plot.partials("y")
    assert "S1 in 28 blocks: 21.9% of the lanes' slots are idle." in shown.note
    assert shown.title == "Partial results of y: 700 terms, 364 values, still open"
    cells = [row[1:] for row in shown.table]
    assert ("S1", "lanes of kernel rows.2", "700 of 896 slots add a term", "21.9% idle") in cells
    bars = [t for t in shown.spec["data"] if t["type"] == "bar"]
    assert len(bars[0]["x"]) == 4
    assert [bars[n]["x"][0] for n in (1, 2, 3)] == pytest.approx([700 / 896, 196 / 896, 0])


def test_all_lanes_of_a_warpgroup_add_the_terms_of_an_instruction() -> None:
    """Its tile's loops are none of a lane: counted as one lane's, 99.2 % of the lanes stood idle."""
    t = Tiling("warpgroup", 128, 64, 64, 2, 1, 2)
    (lanes,) = of(contraction(product_nn.schedule(M=256, N=128, K=128), tiling=t)).lanes
    assert (lanes.leaf, lanes.outside, lanes.guarded, lanes.idle) == ("S1", 0, 0, 0.0)
    assert lanes.slots == 4 * 2 * 128 * 2  # blocks, warpgroups, lanes, steps: a step of one instruction
