"""What the end of a row needs is asked for at its start, where a compiler would not do so."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.schedule import Schedule
from explorer.strategies.ahead import WORDS
from explorer.strategies.auto import auto
from explorer.strategies.rows import rows
from explorer.transforms.stage import Stage

from .stitched import run_all, written

M, N = ex.sizes("M N")


@ex.program
def pointed(x: ex.f32[M, N], to: ex.i64[M], w: ex.f32[N], y: ex.f32[M, N]):
    for i in range(M):
        total = ex.local(ex.f32)
        total = 0.0
        for k in range(N):
            total += x[i, k]
        for k in range(N):
            y[i, k] = x[i, k] - total * w[k] - w[to[i]]


@ex.program
def weighed_first(x: ex.f32[M, N], w: ex.f32[N], y: ex.f32[M, N]):
    for i in range(M):
        total = ex.local(ex.f32)
        total = 0.0
        for k in range(N):
            total += x[i, k] * w[k]
        for k in range(N):
            y[i, k] = x[i, k] - total * w[k]


def ahead(schedule: Schedule) -> list[str]:
    """Arrays that are staged at the start of a row."""
    return [step.array for step in schedule.steps if isinstance(step, Stage) and step.early]


@pytest.mark.parametrize(("m", "n"), [(8192, 32000), (64, 1213), (1747, 225)])
def test_what_says_which_element_to_load_comes_first(m: int, n: int) -> None:
    made = auto(written("cross_entropy", M=m, N=n))
    assert ahead(made) == ["target"]
    text = made.cuda
    assert text.count("target[") == 1
    assert text.index("target[") < text.index("block_reduce<reduce_max")
    assert "+ target_r]" in text[text.index("<reduce_sum, "):]


def test_an_odd_row_asks_for_its_weights_first_an_even_one_leaves_that_to_the_compiler() -> None:
    odd, even = auto(written("layernorm", M=1201, N=413)), auto(written("layernorm", M=485, N=1024))
    assert ahead(odd) == ["w", "c"]
    assert max(odd.cuda.index("w["), odd.cuda.index("c[")) < odd.cuda.index("block_reduce<")
    assert ahead(even) == []


def test_only_so_many_words_are_asked_for() -> None:
    """512 threads have 9 elements of each weight, two of which are a word: 8 hold one weight, not both."""
    made = rows(written("layernorm", M=4, N=4501), threads=512, vector=1)
    assert 5 <= WORDS < 10
    assert ahead(made) == ["w"]
    assert ahead(rows(written("layernorm", M=4, N=9001), threads=512, vector=1)) == []


def test_what_the_first_loop_reads_is_there_already() -> None:
    for keep in (None, ""):  # kept from there, or read again as asked
        assert ahead(rows(weighed_first.schedule(M=8, N=101), keep=keep)) == []
    assert ahead(rows(pointed.schedule(M=8, N=101))) == ["to", "w"]


def test_rows_that_ask_ahead_are_right() -> None:
    made = [auto(written("cross_entropy", M=5, N=n)) for n in (77, 1213)]
    made += [auto(written(name, M=5, N=413)) for name in ("layernorm", "rmsnorm", "bias_residual_layernorm")]
    made += [rows(pointed.schedule(M=5, N=101)), rows(weighed_first.schedule(M=5, N=101))]
    assert sum(map(bool, map(ahead, made))) >= 6
    run_all(made)
