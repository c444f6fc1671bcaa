"""How reductions are spread: clusters where the GPU has them, narrow accesses where little is read, and what each term costs."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, pairwise

import pytest

from benchmarks.reduction_fit import SWEEP, Sweep, measured
from benchmarks.reduction_program import reduction
from explorer.gpu.spec import Gpu, gpu
from explorer.kernel.emit import emit
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from explorer.strategies.reductions import Shape, choose, priced, reduce, reduction_form
from explorer.strategies.reductions.families import SMALL, candidates
from explorer.strategies.reductions.model import H200, cost, timed
from explorer.strategies.reductions.shapes import Problem
from explorer.strategies.reductions.work import FURTHER, together, work
from tests.properties.equal import difference

HERE = gpu("H200")
ROWS = Problem(True, 4096, 64, 4096, 4)
COLUMNS = Problem(False, 4096, 256, 256, 4)


def shapes(case: tuple, on: Gpu = HERE) -> list[Shape]:
    written = reduction(*case)
    form = reduction_form(written, written.plan.kernels[0].id)
    assert form is not None
    return [shape for shape, _ in priced(written, form, on)]


def times(p: Problem, s: Shape, **constants: float) -> float:
    return cost(p, s, HERE, replace(H200, **constants)).total


# -- what there is to choose from ----------------------------------------------------------------------------------


def test_a_small_sum_is_joined_in_a_cluster_where_there_are_clusters() -> None:
    case = (65536,), (0,), "f32", "sum"
    assert shapes(case)[0].joins_in_cluster
    older = gpu("A100")
    assert older.max_cluster_blocks == 1
    assert not any(s.joins_in_cluster for s in shapes(case, older))
    assert all(2 <= s.parts <= 16 for s in shapes(case) if s.joins_in_cluster)


def test_narrow_accesses_are_for_little() -> None:
    def vectors(p: Problem) -> set[int]:
        return {s.vector for s in candidates(p, 4, HERE) if not s.flat}

    assert vectors(COLUMNS) == {1, 2, 4}
    assert vectors(replace(COLUMNS, length=SMALL // 1024 + 1)) == {4}
    assert vectors(replace(ROWS, run=4095, length=4095)) == {1, 4}  # in whole vectors, or as the length allows


CLUSTERED = {
    "columns": ((384, 96), (0,), "f32", "sum", lambda s: not s.flat and s.y > 1),
    "columns in lanes": ((384, 96), (0,), "f32", "max", lambda s: not s.flat and s.vector == 4),
    "one row": ((3, 2000), (1,), "f16", "max", lambda s: not s.flat),
    "flat": ((31, 8, 3, 17), (0, 2), "f16", "sum", lambda s: s.flat and s.y > 1),
    "flat, one row of threads": ((31, 8, 3, 17), (0, 2), "f16", "sum", lambda s: s.flat and s.y == 1),
    "rows side by side": ((40, 16, 23, 3), (0, 2, 3), "f32", "sum", lambda s: not s.flat and s.y > 1),
    "inner axes alone": ((40, 6, 16, 8), (0, 2, 3), "f32", "min", lambda s: s.nested),
    "doubles": ((200, 19), (0,), "f64", "sum", lambda s: True),
    "batches": ((5, 200, 33), (1,), "f32", "min", lambda s: not s.flat),
}


def test_every_family_of_clusters_is_right() -> None:
    """And none leaves its multiprocessors: there is no workspace."""
    made = {}
    for name, (*case, wanted) in CLUSTERED.items():
        written = reduction(*case)
        shape = next(s for s in shapes(tuple(case)) if s.joins_in_cluster and wanted(s))
        made[name] = reduce(written, shape=shape)
        assert made[name].plan.kernels[-1].join == "cluster", name
        assert not [b for b in emit(made[name].plan).buffers if b.kind == "workspace"], name
    device = CpuDevice(seeds=3)
    for (name, s), built in zip(made.items(), device.build_many([emit(s.plan) for s in made.values()]), strict=True):
        arrays = seeded_arrays(s.source, 5)
        for results in device.run_seeds(built, arrays):
            assert not difference(s.source, arrays, results), name


def test_room_for_the_loads_of_a_batch() -> None:
    """64 words and 28 registers besides leave room for two blocks of 256 threads; where nothing is gained, nothing is asked."""
    assert [Shape(256, 1, 4, n, 1).room(ROWS, HERE) for n in (2, 4, 8, 16)] == [0, 5, 5, 5]  # rows of 4,096: four accesses
    long = Problem(True, 1 << 20, 1, 1 << 20, 4)
    assert [Shape(256, 1, 4, n, 1).room(long, HERE) for n in (2, 4, 8, 16)] == [0, 5, 4, 2]
    assert Shape(256, 1, 8, 16, 1).room(replace(long, itemsize=2), HERE) == 2
    assert Shape(1024, 1, 4, 16, 1).room(long, HERE) == 1  # half of its words, which is more than without
    assert [Shape(1024, 1, 4, n, 1).in_flight(long, HERE) for n in (2, 8, 16)] == [2, 8, 9]


def test_blocks_that_do_not_fit_with_more_registers_ask_for_none() -> None:
    """64 words and 28 registers: a multiprocessor holds two blocks of 256 threads; it is to hold all that it gets."""
    long = Problem(True, 1 << 24, 1, 1 << 24, 4)
    made = {parts: Shape(256, 1, 4, 16, parts) for parts in (132, 264, 396, 5 * 132, 8 * 132, 9 * 132)}
    assert {n: s.room(long, HERE) for n, s in made.items()} == {132: 2, 264: 2, 396: 3, 660: 5, 1056: 0, 1188: 0}
    assert {n: s.in_flight(long, HERE) for n, s in made.items()} == {132: 16, 264: 16, 396: 14, 660: 5, 1056: 3, 1188: 3}


def test_the_first_launch_asks_for_the_registers() -> None:
    written = reduction((1 << 20,), (0,), "f32", "sum")
    for join in ("launch", "handoff", "cluster"):
        plain, roomy = (reduce(written, shape=Shape(256, 1, 4, n, 16, join=join)) for n in (2, 16))
        assert [k.resident for k in plain.plan.kernels] == [0, 0]
        assert [k.resident for k in roomy.plan.kernels] == [2, 0]
        assert roomy.judgement.emittable
        assert "__launch_bounds__(256, 2)" in roomy.cuda


# -- what it costs -------------------------------------------------------------------------------------------------


def test_the_terms_of_a_cluster() -> None:
    near, far = Shape(128, 1, 4, 2, 8, join="cluster"), Shape(128, 1, 4, 2, 8, join="handoff")
    assert times(ROWS, near, cluster=H200.cluster + 1) == pytest.approx(times(ROWS, near) + 1)
    assert times(ROWS, near, cluster_part=H200.cluster_part + 1) == pytest.approx(times(ROWS, near) + 8)
    assert times(ROWS, near, part=9.0, partial=9.0, handoff=9.0) == times(ROWS, near)  # nothing passes through memory
    assert times(ROWS, far, part=9.0) > times(ROWS, far)
    assert times(ROWS, near, crowd=9.0) > times(ROWS, near)
    assert times(ROWS, far, crowd=9.0) == times(ROWS, far)
    wide = replace(near, parts=16)
    assert times(ROWS, wide, crowd_power=3.0) == times(ROWS, wide)  # what 16 blocks cost is where it is measured from
    assert times(ROWS, near, crowd_power=3.0) < times(ROWS, near)


def test_short_pieces_read_whole_sectors() -> None:
    """Pieces of 4 bytes of every 512: eight times as much comes through the cache as is used."""
    short = Problem(True, 4096, 128, 1, 4, inner=1, beside=128)
    s = Shape(256, 1, 1, 4, 1)
    slow = H200.cache / 1e3  # where the cache alone decides
    at = [cost(p, s, HERE, replace(H200, cache=slow)).memory for p in (short, replace(short, run=8), replace(short, run=4096))]
    assert at[0] == pytest.approx(8 * at[2], rel=0.02)
    assert at[1] == pytest.approx(at[2], rel=0.02)


def test_what_shuffles_leave_of_a_group() -> None:
    """Of 16 lanes one value is left, of 64 two; 15 have no half: 15 values meet one after the other, 17 in two steps of 5."""
    def left(x: int, y: int) -> float:
        s = Shape(x, y, 1, 4, 1)
        return times(ROWS, s, row_member=1.0) - times(ROWS, s, row_member=0.0)

    assert [round(left(x, 8)) for x in (16, 15, 17, 24, 64)] == [1, 15, 10, 3, 2]
    assert left(17, 1) == 0  # one row has a way of its own

    def stay(x: int, y: int, lanes: int) -> float:
        s = Shape(x, y, lanes, 4, 1)
        return times(COLUMNS, s, column_member=1.0) - times(COLUMNS, s, column_member=0.0)

    assert [round(stay(x, 16, 1)) for x in (32, 8, 2, 3)] == [16, 4, 1, 16]
    assert round(stay(8, 16, 4)) == 16


def test_lanes_in_rows_of_their_own_have_a_price_for_their_lines() -> None:
    flat, across = Problem(True, 64, 4096, 16, 4, inner=16), Shape(32, 4, 1, 4, 1)
    assert times(flat, replace(across, flat=True), line_flat=9.0) > times(flat, replace(across, flat=True))
    assert times(flat, across, line_flat=9.0) == times(flat, across)


def test_rows_that_begin_inside_of_a_vector_take_one_more() -> None:
    """511 elements and up to three before them are 129 vectors: four for each of 32 threads are not enough."""
    odd, alone = Problem(True, 511, 3069, 511, 4), Problem(True, 511, 1, 511, 4)
    assert Shape(32, 8, 4, 4, 1).accesses(odd) == 5
    assert Shape(32, 8, 4, 4, 1).accesses(alone) == Shape(32, 8, 4, 4, 1).accesses(replace(odd, length=512, run=512)) == 4
    assert Shape(32, 8, 2, 4, 1).shifted(replace(odd, length=510, run=510)) == 0
    found = [s for s in candidates(odd, 4, HERE) if (s.x, s.y, s.vector, s.flat) == (32, 8, 4, False)]
    assert {s.unroll for s in found} >= {4, 5}
    text = reduce(reduction((3069, 511), (1,), "f32", "sum"), shape=Shape(32, 8, 4, 5, 1)).cuda
    assert "vec<float, 4> x_r1_v[5];" in text
    assert "for (int r1 = 0" not in text


def test_long_rows_in_parts_of_whole_batches() -> None:
    """Each part is 4 or 8 accesses of each thread, or twice or four times so many; then every batch is full but one."""
    rows, odd, few = (Problem(True, n, m, n, 4) for n, m in ((1 << 20, 64), (21128 * 768, 1), (1 << 18, 1)))
    found = {(s.x, s.parts) for s in candidates(rows, 4, HERE) if s.y == 1 and not s.joins_in_cluster}
    assert {(512, 128), (512, 64), (512, 32), (1024, 16)} <= found
    assert {496, 991} <= {s.parts for s in candidates(odd, 4, HERE) if (s.x, s.join) == (512, "handoff")}
    assert [Shape(512, 1, 4, 8, n).accesses(odd) for n in (496, 991)] == [16, 8]
    assert max(s.parts for s in candidates(few, 4, HERE)) < 1024  # so many blocks would be a fraction of those that fit at once
    shape = shapes(((64, 1 << 20), (1,), "f32", "sum"))[0]
    assert shape.blocks(rows) >= 4096
    assert shape.accesses(rows) % shape.unroll == 0


def test_the_price_of_an_odd_end_and_of_further_rounds() -> None:
    row = Problem(True, 4097, 1, 4097, 2)
    rows, once, twice = replace(row, results=64), Shape(128, 1, 8, 5, 1), Shape(128, 1, 8, 3, 1)  # five accesses of a thread
    assert work(row, once, HERE).ragged == work(rows, once, HERE).ragged / 2 == pytest.approx(8 / 5)
    assert work(rows, twice, HERE).ragged == pytest.approx(2 * work(rows, once, HERE).ragged)  # ends may be in either batch
    p, kept = Problem(True, 373120, 7, 55, 2, 55, 7, 385), Shape(385, 1, 4, 14, 128, period=4, kept=True)
    assert kept.sums(p).rounds == 7
    assert work(p, kept, HERE).second_stage_value == kept.sums(p).alone + 6 * FURTHER


def test_rows_that_begin_anywhere_are_read_in_one_batch() -> None:
    """3001 rows of 4097 halves took 10.4 µs by 128 threads in two batches of three loads, 7.6 by 32 in two of nine."""
    p = Problem(True, 4097, 3001, 4097, 2)
    assert cost(p, Shape(32, 1, 8, 9, 1), HERE).total < cost(p, Shape(128, 1, 8, 3, 1), HERE).total
    crowded = Problem(True, 3267, 6025, 3267, 2)  # 26.8 µs: with 40 registers, its 13 loads were spilled
    assert Shape(32, 8, 8, 13, 1).room(crowded, HERE) == 0
    assert Shape(32, 8, 8, 13, 1).room(replace(crowded, length=3264, run=3264), HERE) > 0


def test_the_choice_is_the_cheapest() -> None:
    written = reduction((4096, 300), (0,), "f32", "sum")
    form = reduction_form(written, written.plan.kernels[0].id)
    assert form is not None
    found = priced(written, form, HERE)
    assert choose(written, form, HERE) == found[0][0]
    assert all(later - us > -0.011 for (_, us), (_, later) in pairwise(found))  # hundredths are not told apart


def test_a_block_beside_others_stays_small_enough() -> None:
    """Phases of one launch share a block, along each axis as wide as the widest of them."""
    written = reduction((16384, 768), (0,), "f32", "sum")
    form = reduction_form(written, written.plan.kernels[0].id)
    assert form is not None
    free = choose(written, form, HERE)
    assert 256 * free.y > 1024
    beside = choose(written, form, HERE, beside=(256, 1))
    assert max(beside.x, 256) * beside.y <= 1024
    assert choose(written, form, HERE, beside=(2048, 1)) == free  # nothing fits: the join says what does not


def test_many_spreads_at_once_cost_what_each_does_alone() -> None:
    interleaved = Problem(True, 600, 500, 20, 2, inner=20), Problem(True, 6000, 50, 200, 2, inner=200)
    found = [(p, s) for p in (ROWS, COLUMNS, *interleaved) for s in candidates(p, 4, HERE)]
    assert len({s.join for _, s in found}) == 3
    assert {s.flat for _, s in found} == {s.nested for _, s in found} == {True, False}
    at_once = timed(together(work(p, s, HERE) for p, s in found)).total
    assert at_once == pytest.approx([cost(p, s, HERE).total for p, s in found], rel=1e-12)


def test_among_measured_spreads_the_choice_is_near_the_fastest() -> None:
    """Every fifth problem of the sweep; without any one of the terms below, choices are clearly worse."""
    sweep = Sweep.of_measured(islice(measured(SWEEP), 0, None, 5))
    assert len(sweep.problems) > 100

    def behind(**constants: float) -> float:
        return float(sweep.regrets(replace(H200, **constants)).mean())

    assert behind() < 0.04
    for name in ("code", "batch", "cluster", "join", "handoff", "threads", "access"):
        assert behind(**{name: 0.0}) > 1.15 * behind(), name
