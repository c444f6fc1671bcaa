"""Rows of a few elements that threads take whole, as many as are a whole number of vectors."""

from __future__ import annotations

import re
from math import gcd

import pytest

import explorer as ex
from benchmarks.reduction_program import reduction
from explorer.gpu.spec import gpu
from explorer.strategies.auto import auto
from explorer.strategies.choices import decisions
from explorer.strategies.default import default
from explorer.strategies.reductions import Shape, priced, problem_of, reduce, reduction_form
from explorer.strategies.reductions.families import MOST_WHOLE, candidates
from explorer.strategies.reductions.shapes import Problem
from tests.strategies.device import right

HERE = gpu("H200")
M, N = ex.sizes("M N")
CASES = {
    "one vector a row": (((330, 8), (1,), "f16", "max"), 8),
    "four rows of three": (((400, 3), (1,), "f32", "sum"), 4),
    "the last thread has fewer": (((403, 3), (1,), "f32", "sum"), 4),
    "the last thread has one row, of halves": (((409, 5), (1,), "f16", "sum"), 8),
    "two rows of halves": (((301, 20), (1,), "f16", "max"), 8),
    "narrower vectors": (((303, 6), (1,), "f32", "min"), 2),
    "rows of several axes": (((20, 16, 2, 3), (2, 3), "f32", "sum"), 4),
    "rows that come again": (((9, 52, 6), (0, 2), "f16", "sum"), 4),
    "parallel axes on both sides": (((7, 5, 12, 6), (1, 3), "f32", "max"), 4),
    "doubles": (((77, 3), (1,), "f64", "sum"), 2),
}


@ex.program
def extremes(x: ex.f32[M, N], low: ex.f32[M], high: ex.f32[M]):
    for i in range(M):
        least = ex.local(ex.f32)
        most = ex.local(ex.f32)
        least = ex.inf
        most = -ex.inf
        for k in range(N):
            least = ex.min(least, x[i, k])
            most = ex.max(most, x[i, k])
        low[i] = least
        high[i] = most


def found(case: tuple) -> list[Shape]:
    """The shapes that take rows whole, the cheapest first."""
    written = reduction(*case)
    form = reduction_form(written, written.plan.kernels[0].id)
    assert form is not None
    p = problem_of(written, form)
    return [s for s, _ in priced(written, form, HERE) if s.whole(p)]


def body(s: ex.Schedule) -> str:
    """The text behind the device library."""
    return s.cuda[s.cuda.index('extern "C"'):]


def test_as_many_rows_as_make_whole_vectors() -> None:
    for run in range(2, 140):
        p = Problem(True, run, 10_000, run, 4, beside=10_000)
        for s in candidates(p, 4, HERE):
            if s.whole(p):
                assert s.each * run % s.vector == 0
                assert s.each % (s.vector // gcd(run, s.vector)) == 0
                assert s.each * run * 4 <= MOST_WHOLE
                assert s.each <= 4  # their results are one vector
                assert s.accesses(p) == s.written_out(p) == s.run(p) == s.each * run // s.vector
                assert s.blocks(p) * s.x * s.each >= 10_000 > (s.blocks(p) - 1) * s.x * s.each
    assert not [s for s in candidates(Problem(True, 40, 9000, 5, 4, 5, 1001, 5005), 4, HERE) if s.each > 1]  # 1,001 is odd
    assert [s for s in candidates(Problem(True, 40, 9000, 5, 4, 5, 1000, 5000), 4, HERE) if s.each == s.vector == 4]


@pytest.mark.parametrize("name", CASES)
def test_every_element_is_read_once_in_vectors(name: str) -> None:
    case, vector = CASES[name]
    shapes = [s for s in found(case) if s.vector == vector]
    made = [default(reduce(reduction(*case), shape=s)) for s in dict.fromkeys([shapes[0], shapes[-1], *shapes[1:3]])]
    for s in made:
        text = body(s)
        assert re.search(rf"(vec|packed)<\w+, {vector}>\*\)&x\[", text)
        assert not re.search(r"[+=(] ?(__half2float\()?x\[", text), "an element by itself"
    right(made)


def test_results_are_written_in_vectors(golden) -> None:
    s = default(reduce(reduction((403, 3), (1,), "f32", "sum"), shape=Shape(32, 1, 4, 3, 1, True, each=4)))
    text = body(s)
    golden(text)
    assert text.count("*(vec<float, 4>*)&y[") == 1
    assert text.count("load_within") == 1  # for the last thread
    assert text.index("} else {") < text.index("load_within")


def test_several_results_share_the_vectors() -> None:
    s = extremes.schedule(M=404, N=3)
    form = reduction_form(s, "extremes")
    assert form is not None
    shape = next(x for x, _ in priced(s, form, HERE) if x.each == x.vector == 4)
    made = default(reduce(s, shape=shape))
    assert made.cuda.count("*(const vec<float, 4>*)&x[") == 1
    right([made])

    odd = extremes.schedule(M=403, N=3)
    form = reduction_form(odd, "extremes")
    assert form is not None
    assert not any(x.each > 1 for x, _ in priced(odd, form, HERE))


@pytest.mark.parametrize(("shape", "dtype"), [((4_194_304, 3), "f32"), ((4_194_304, 6), "f16"), ((6_928_203, 2), "f16")])
def test_many_short_rows_are_taken_whole(shape: tuple[int, ...], dtype: str) -> None:
    """On an H200 these took 21.1, 21.1 and 33.7 µs element by element, and 15.1, 13.5 and 10.0 so."""
    s = auto(reduction(shape, (1,), dtype, "sum"), "H200")
    assert re.search(r"(vec|packed)<\w+, [48]>\*\)&x\[", s.cuda)
    assert re.search(r"\*\(vec<\w+, [48]>\*\)&y\[", s.cuda)


def test_a_choice_says_so() -> None:
    labels = [c.label for d in decisions(reduction((40_000, 3), (1,), "f32", "sum"), HERE) for c in d.choices]
    assert any("4 whole rows a thread, " in label for label in labels), labels


def test_columns_of_a_few_rows_are_threads_alone() -> None:
    """Two rows of 16 million took 46.7 µs with two threads to a column, 43.6 so."""
    s = auto(reduction((2, 1 << 24), (0,), "f32", "sum"), "H200")
    assert "__syncthreads" not in body(s)
    assert "reduce" not in body(s).split("{", 1)[1]
