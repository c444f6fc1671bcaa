"""Copies of what the program writes: cells that no reader wants are not read; run on the CPU device."""

from __future__ import annotations

import pytest

from explorer.errors import IllegalSchedule
from explorer.poly.judge import judge
from explorer.schedule import Schedule

from .programs import define
from .test_copies import Case, run

TRIANGLE = """@ex.program
def f(x: ex.f32[N], y: ex.f32[N]):
    t = ex.local(ex.f32, N)
    for a in range(N):
        t[a] = x[a] + 1.0
    for i in range(N):
        y[i] = 0.0
        for j in range(i + 1):
            y[i] += t[j]
"""
WINDOW = """@ex.program
def f(x: ex.f32[N], y: ex.f32[N]):
    t = ex.local(ex.f32, N)
    for a in range(N):
        t[a] = x[a] + 1.0
    for i in range(N):
        y[i] = 0.0
        for j in range(2, i):
            y[i] += t[N - 1 - j] * t[N - 3 - j + 2]
"""
GAPS = """@ex.program
def f(x: ex.f32[N], y: ex.f32[N]):
    t = ex.local(ex.f32, N)
    for a in range(N):
        t[a] = x[a] + 1.0
    for i in range(N):
        y[i] = 0.0
        for j in range(i + 1):
            for k in range(2):
                y[i] += t[(j + k) // 2]
"""
SIZES = (("N", 11),)


@pytest.mark.parametrize("text", [TRIANGLE, WINDOW], ids=["triangle", "reversed"])
def test_cells_that_no_reader_wants_are_masked(text: str) -> None:
    run(Case("shared", text, lambda s: s.stage("t", "i"), SIZES),
        Case("unwritten", text, lambda s: s.stage("t", "i", fill=False), SIZES),
        Case("register", text, lambda s: s.stage("t", "i", space="register"), SIZES),
        Case("threads", text, lambda s: s.split("j", 4).bind("j.i", "thread.x").collect("y", "shuffle").stage("t", "i"), SIZES),
        Case("again", text, lambda s: s.stage("t", "i").stage("t_s", "j", space="register"), SIZES))


def test_a_copy_beside_its_writer_reads_what_is_written_so_far() -> None:
    run(Case("fused", TRIANGLE, lambda s: s.fuse("a", "i").stage("t", "a"), SIZES))


def test_copies_that_need_no_mask_have_none() -> None:
    def guards(s: Schedule) -> list[int]:
        return [len(c.inside) for c in s.plan.copies]

    s = define(TRIANGLE, "masks.py").schedule(N=11)
    assert guards(s.stage("t", "f")) == [0]
    assert guards(s.stage("t", "i")) == [1]
    assert guards(define(TRIANGLE.replace("t[j]", "x[j]"), "masks.py").schedule(N=11).stage("x", "i")) == [0]


def test_what_no_condition_of_the_readers_tells_is_refused() -> None:
    s = define(GAPS, "masks.py").schedule(N=11)
    with pytest.raises(IllegalSchedule, match="which no reader of the copy wants"):
        s.stage("t", "i")
    assert judge(s.plan).legal


SUFFIX = TRIANGLE.replace("range(i + 1)", "range(i, N)")
BAND = TRIANGLE.replace("range(i + 1)", "range(i, N)").replace("y[i] += t[j]", "y[i] += t[j] if j < 2 * i + 3 else 0.0")
MIDDLE = TRIANGLE.replace("for i in range(N)", "for i in range(5, N)")
WIDE = (("N", 16),)


@pytest.mark.parametrize("text", [TRIANGLE, SUFFIX, BAND, MIDDLE], ids=["triangle", "suffix", "band", "middle"])
@pytest.mark.parametrize("vector", [2, 4])
def test_vectors_of_a_masked_copy(text: str, vector: int) -> None:
    """A vector is moved as a whole where all of its lanes are wanted; else each lane by itself."""
    def spread(s: Schedule) -> Schedule:
        return s.split("j", 8).bind("j.i", "thread.x").collect("y", "shuffle")

    run(Case("shared", text, lambda s: s.stage("t", "i", vector=vector), WIDE),
        Case("unwritten", text, lambda s: s.stage("t", "i", vector=vector, fill=False), WIDE),
        Case("register", text, lambda s: s.stage("t", "i", "register", vector), WIDE),
        Case("own", text, lambda s: s.stage("t", "i", "register", vector, fill=False), WIDE),
        Case("one", text, lambda s: s.stage("t", "i", vector=vector, threads=False), WIDE),
        Case("threads", text, lambda s: spread(s).stage("t", "i", vector=vector), WIDE),
        Case("again", text, lambda s: s.stage("t", "f", vector=4).stage("t_s", "i", "register", vector), WIDE),
        Case("pipelined", text, lambda s: s.stage("t", "i", vector=vector).pipeline("i", 2), WIDE))
