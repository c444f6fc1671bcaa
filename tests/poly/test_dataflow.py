"""Value flow: where nothing is overwritten, the ordered writes are what isl's dataflow analysis finds."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.poly import dependence
from explorer.strategies.auto import auto


@pytest.mark.parametrize("name", ex.workloads.names())
def test_both_ways_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    work = ex.workloads.get(name)
    schedule = work.definition.into(ex.Definition).schedule(**work.tiny)
    analyse = dependence.analyse.__wrapped__
    for program in (schedule.plan.program, auto(schedule).plan.program):
        short = {(f.source, f.sink, f.slot): f.relation for f in analyse(program).flow}
        with monkeypatch.context() as patch:
            patch.setattr(dependence, "_written_once", lambda *_: False)
            exact = {(f.source, f.sink, f.slot): f.relation for f in analyse(program).flow}
        assert short.keys() == exact.keys()
        assert all(short[key].is_equal(exact[key]) for key in exact)


def test_an_overwritten_element_takes_the_last_write() -> None:
    n = ex.sizes("n")

    @ex.program
    def twice(x: ex.f32[n], y: ex.f32[n]):
        for i in range(n):
            t = ex.local(ex.f32)
            t = x[i]
            t = x[i] * 2.0
            y[i] = t

    flow = dependence.analyse(twice.schedule(n=4).plan.program).flow
    assert {(f.source, f.sink) for f in flow if f.array == "t"} == {("S1", "S2")}


def test_parts_of_an_odd_number_of_rows_are_analysed_at_once() -> None:
    """373 * 241 elements in 176 parts: isl's dataflow analysis does not end on the quotients of primes."""
    from tests.strategies.test_auto import Shape, reduce, reduction

    done = reduce(reduction((373, 241, 130), (0, 1), "f16", "max"), shape=Shape(32, 16, 2, 4, 176))
    assert not done.judgement.obligations
