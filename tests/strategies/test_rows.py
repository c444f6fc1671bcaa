"""Chains of rows: what the model knows of them, what it prefers, and that every spread is right."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

import explorer as ex
from benchmarks import fused_programs
from explorer.strategies.auto import auto
from explorer.strategies.rows import kept_words, rows, spread_of, spreads
from explorer.strategies.rows.form import row_form, vector_width
from explorer.strategies.rows.model import H200 as CONSTANTS
from explorer.strategies.rows.model import RowSpread, RowWork, row_us, row_work

from .stitched import run_all, written

H200 = ex.gpu("H200")


def work_of(name: str, **sizes: int) -> RowWork:
    schedule = written(name, **sizes)
    form = row_form(schedule, schedule.plan.kernels[0].id)
    assert form is not None
    return row_work(schedule, form)


def chosen(name: str, **sizes: int) -> RowSpread:
    schedule = written(name, **sizes)
    form = row_form(schedule, schedule.plan.kernels[0].id)
    assert form is not None
    return spread_of(row_work(schedule, form), vector_width(schedule, form), H200)


def test_the_work_of_a_chain() -> None:
    assert work_of("softmax", M=7, N=10) == RowWork(7, 10, 2 * 7 * 10 * 2, 2, 2, 2, 2, 2, 7)
    norm = work_of("layernorm", M=7, N=10)
    assert (norm.streams, norm.sums, norm.kept, norm.again) == (4, 2, 2, 2)  # x once, two weights, y
    assert norm.nbytes == 2 * (2 * 70 + 2 * 10)
    loss = work_of("cross_entropy", M=7, N=10)
    assert (loss.streams, loss.sums, loss.kept) == (1, 2, 2)
    residual = work_of("bias_residual_layernorm", M=7, N=10)
    assert (residual.kept, residual.again) == (4, 0)  # the row that is computed: no copy of an array


def test_reductions_of_parts_are_reductions() -> None:
    """A loop that was split walks the elements of a part: its result does not move with it, though its index divides."""
    schedule = written("cross_entropy", M=3, N=4096).split("k", 1024, inner="kq")
    form = row_form(schedule, schedule.plan.kernels[0].id)
    assert form is not None
    assert row_work(schedule, form).sums == 2
    made = auto(written("cross_entropy", M=20, N=16384))  # parts of a row, joined in a second launch
    assert len(made.plan.kernels) == 2
    assert made.module().launches[0].block[0] < 1024
    assert len(auto(written("cross_entropy", M=107, N=16384)).plan.kernels) == 1  # most multiprocessors have a row


@pytest.mark.parametrize(("p", "width"), [(1327, 1), (1326, 2), (1328, 4)])
def test_a_row_of_several_runs_is_read_in_vectors_of_a_run(p: int, width: int) -> None:
    """A channel of four images is 5,308 floats, which four divides, in runs of 1,327: 12.6 µs instead of 8.1."""
    schedule = written("batchnorm_relu", B=4, C=5, P=p)
    form = row_form(schedule, schedule.plan.kernels[0].id)
    assert form is not None
    assert vector_width(schedule, form) == width
    assert ("vec<float" in auto(schedule).cuda) == (width > 1)


def test_rows_that_fit_are_not_cut() -> None:
    """The model of stitching asks the one of rows: 1,024 rows of 16,384 took 17.8 µs in one kernel and 26.6 cut."""
    assert len(auto(written("softmax", M=1024, N=16384)).plan.kernels) == 1
    assert len(auto(written("layernorm", M=2000, N=50000)).plan.kernels) == 1


@pytest.mark.parametrize(("name", "m", "n", "threads"), [
    ("softmax", 8192, 115, (8, 32)), ("cross_entropy", 37659, 185, (4, 16)), ("rmsnorm", 120640, 107, (8, 32)),
    ("layernorm", 58978, 733, (32, 64)), ("softmax", 1048576, 64, (2, 8)), ("softmax", 16384, 1024, (32, 64)),
    ("layernorm", 32768, 4096, (64, 256)), ("softmax", 4096, 32000, (512, 512)), ("softmax", 50, 8192, (256, 1024))])  # fmt: skip
def test_threads_of_a_row(name: str, m: int, n: int, threads: tuple[int, int]) -> None:
    """Within a factor of two of the fastest that was measured on an H200."""
    assert threads[0] <= chosen(name, M=m, N=n).threads <= threads[1]


def test_short_rows_share_a_block() -> None:
    """The GPU starts blocks one by one: a block for each of many short rows took up to 3.7 times as long."""
    spread = chosen("cross_entropy", M=37659, N=185)
    work = work_of("cross_entropy", M=37659, N=185)
    assert spread.side(work) > 1
    assert row_us(work, RowSpread(64, 1, 256), H200) > 2 * row_us(work, spread, H200)
    assert row_us(work, RowSpread(64, 1, 256), H200) > work.count * CONSTANTS.block / 1e3  # 24.6 µs were measured


def test_few_threads_of_a_row_touch_many_lines() -> None:
    """Rows of 107 f32, 120,640 of them, took 56.8 µs with 4 threads each and 25.6 with 16."""
    work = RowWork(120640, 107, 2 * 120640 * 107 * 4, 4, 4, 4, 3, 1, 4)
    assert row_us(work, RowSpread(4, 1, 64), H200) > 1.5 * row_us(work, RowSpread(16, 1, 64), H200)


@pytest.mark.parametrize(("n", "shared"), [(32000, False), (40000, True), (50000, True), (65536, False), (81920, False)])
def test_long_rows_lie_where_a_multiprocessor_holds_two(n: int, shared: bool) -> None:
    spread = chosen("softmax", M=2000, N=n)
    assert spread.shared == shared
    made = auto(written("softmax", M=200, N=n))
    assert len(made.plan.kernels) == 1
    assert {b.space for b in made.plan.buffers if b.name.startswith("x_")} == {"shared" if shared else "register"}


def test_what_a_thread_keeps_fits_its_registers() -> None:
    rng = random.Random(5)
    for _ in range(300):
        again = rng.choice((0, 2, 4, 6))
        work = RowWork(rng.randrange(1, 100000), rng.randrange(1, 40000), 1 << 24, again + rng.choice((0, 4)), again, 2,
                       rng.randrange(1, 6), rng.randrange(0, 4), rng.randrange(0, 30))
        offered = spreads(work, rng.choice((1, 2, 4, 8)), H200)
        assert [us for _, us in offered] == sorted(us for _, us in offered)
        for s, us in offered:
            block = s.threads * s.side(work)
            assert s.words(work) <= kept_words(block, work.streams, H200) <= H200.registers_per_sm // block
            assert s.row_bytes(work) * 2 <= H200.shared_bytes_per_sm
            assert us > 0
            assert block <= 1024


def test_no_rows_have_no_spread() -> None:
    nothing = replace(work_of("softmax", M=4, N=8), count=0)
    assert spreads(nothing, 8, H200) == ()
    assert spread_of(nothing, 8, H200).threads == 1


def test_more_work_takes_longer() -> None:
    work, spread = work_of("softmax", M=8192, N=1000), RowSpread(32, 8, 256)
    base = row_us(work, spread, H200)
    for more in ({"count": 16384, "nbytes": 2 * work.nbytes}, {"sums": 3}, {"operations": 20}, {"streams": 12}):
        assert row_us(replace(work, **more), spread, H200) >= base, more
    assert row_us(replace(work, count=16384, nbytes=2 * work.nbytes), spread, H200) > 1.3 * base


def test_what_is_given_is_taken() -> None:
    source = written("softmax", M=64, N=96)
    assert rows(source, threads=8).module().launches[0].block[0] == 8
    narrow = rows(source, threads=8, vector=2, block=64)
    assert narrow.module().launches[0].block == (8, 8, 1)
    assert {a.width_bytes for a in narrow.facts.accesses if a.space == "global"} == {4}
    assert len(rows(source, keep="").plan.buffers) < len(rows(source, keep="register").plan.buffers)


def test_spreads_are_right() -> None:
    """Some of what is offered, odd lengths among them, on the checked device."""
    made = []
    for name in ("softmax", "layernorm", "cross_entropy"):
        for n in (115, 24, 770):
            source = getattr(fused_programs, name).schedule(M=5, N=n)
            form = row_form(source, source.plan.kernels[0].id)
            assert form is not None
            work = row_work(source, form)
            offered = [s for s, _ in spreads(work, vector_width(source, form), H200)]
            for s in offered[:: max(1, len(offered) // 4)]:
                made.append(rows(source, threads=s.threads, vector=s.vector, block=s.block))
    run_all(made)


def test_long_rows_in_shared_memory_are_right() -> None:
    run_all([auto(written("softmax", M=3, N=40000)), rows(written("layernorm", M=3, N=4001), threads=512, keep="shared")])
