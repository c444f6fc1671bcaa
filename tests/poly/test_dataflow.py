"""Value flow: the last write of each element, against an enumeration of the program; and that finding it takes nobody down."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import islpy
import pytest

import explorer as ex
from explorer.errors import ExplorerError
from explorer.ir.program import Program
from explorer.poly import dependence, isl
from explorer.poly.judge import judge
from explorer.strategies.auto import auto
from explorer.transforms.base import catalogue
from tests.properties.programs import define
from tests.properties.shapes import tangle
from tests.properties.values import intended
from tests.properties.writer import Writer

TANGLED = """@ex.program
def f(y: ex.i32[15, 15, 18], u: ex.i32[13, 6, 15], v: ex.i32[15, 13], w: ex.i32[15, 18], x: ex.i8[13, 13], z: ex.i8[2, 13, N]):
    for a in range(15):
        for b in range(15):
            for c in range(18):
                y[a, b, c] = 2
    for i in range(K - 1, -1, -1):
        for j in range(2, M - 1, 2):
            for k in range(2):
                for l in range(j % 3, K, 3):
                    s = ex.local(ex.i8)
                    s = 0
                    for n in range(1, N):
                        s *= ex.cast(y[i, k, j] + z[k, l, n], ex.i8)
                    y[k + 2, j, i + j] = min(x[k, l], u[i, j, k])
                    y[i, j, l] = x[i, k]
        y[i, i, i] = w[i + 2, i] * y[i, i, i]
        for p in range(i, i + 3):
            for q in range(2):
                for r in range(K + 2):
                    y[p, q, r] = v[p, i] - u[i, q, r]
                    y[i, p, r] = min(y[i, p, r], y[i, p, q] - y[3 * q + 1, i, 2])
"""
"""Legal as written; isl's own dataflow analysis writes outside its arrays on it."""


def found(program: Program) -> set[tuple]:
    """(writer, reader, slot) of every pair that the analysis gives, instances by name and point."""
    pairs: set[tuple] = set()
    for f in dependence.analyse(program).flow:
        points: list[islpy.Point] = []
        f.relation.wrap().flatten().foreach_point(points.append)
        width, depth = (len(program.statement_of[name].dims) for name in (f.source, f.sink))
        for point in points:
            values = [int(point.get_coordinate_val(islpy.dim_type.set, i).to_python()) for i in range(width + depth)]
            pairs.add(((f.source, tuple(values[:width])), (f.sink, tuple(values[width:])), f.slot))
    return pairs


def enumerated(program: Program) -> set[tuple]:
    """The same from a walk through the program, element by element."""
    return {(writer, reader, slot) for (reader, slot), writers in intended(program).items() for writer in writers}


@pytest.mark.parametrize("name", ex.workloads.names())
def test_what_is_written_once_needs_no_search(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    work = ex.workloads.get(name)
    schedule = work.definition.schedule(**work.tiny)
    analyse = dependence._analysed
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


def test_last_writes_of_tangled_programs_are_those_of_an_enumeration() -> None:
    compared = 0
    for number in range(60):
        pick = random.Random(number)
        w = Writer(pick, "i32")
        tangle(w)
        text = f"@ex.program\ndef f({', '.join(w.parameters.values())}):\n" + "\n".join(w.lines) + "\n"
        definition = define(text, f"tangle{number}.py")
        try:
            program = definition.schedule(**{s: pick.choice((2, 3, 4, 5)) for s in definition.sizes}).source
        except ExplorerError:
            continue
        assert found(program) == enumerated(program), text
        compared += bool(found(program))
    assert compared >= 30


def test_a_program_whose_writes_cross_in_many_ways() -> None:
    program = define(TANGLED, "tangled.py").schedule(M=7, N=4, K=13).source
    assert found(program) == enumerated(program)


def test_it_ends_properly_in_a_process_of_its_own() -> None:
    """At the sizes at which isl's dataflow analysis kills the process."""
    code = (f"from tests.properties.programs import define\ns = define({TANGLED!r}, 'tangled.py').schedule(M=7, N=64, K=13)\n"
            "print(s.judgement.legal, bool(s.dependences.flow))")
    root = Path(__file__).resolve().parents[2]
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=root,
                           env={**os.environ, "PYTHONPATH": str(root)}, check=False)
    assert (ended.returncode, ended.stdout.strip()) == (0, "True True"), ended.stderr[-800:]


def test_parts_of_an_odd_number_of_rows_are_analysed_at_once() -> None:
    """373 * 241 elements in 176 parts, quotients of primes."""
    from tests.strategies.test_auto import Shape, reduce, reduction

    done = reduce(reduction((373, 241, 130), (0, 1), "f16", "max"), shape=Shape(32, 16, 2, 4, 176))
    assert not done.judgement.obligations


def test_no_question_runs_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has no budget of its own ends with an error of ours, or a refusal where there is a schedule to judge."""
    definition = define(TANGLED, "tangled.py")
    start, other = (definition.schedule(M=7, N=n, K=13) for n in (5, 6))
    for module in (isl, dependence, sys.modules["explorer.poly.judge"]):
        monkeypatch.setattr(module, "LIMIT", 1000)
    with pytest.raises(ex.Undecided) as caught:
        dependence.analyse(other.source)
    assert "could not be decided" in caught.value.what
    assert caught.value.hint
    judged = judge(start.plan)
    assert not judged.legal
    assert "could not be decided" in judged.refusals[0].what
    verdict, _ = start.try_step(catalogue()["unroll"]("q"))
    assert not verdict
    assert "could not be decided" in verdict.what


def test_a_budget_within_another_gives_it_back() -> None:
    with isl.budget(5000):
        with isl.budget(70):
            assert isl.CONTEXT.get_max_operations() == 70
        assert isl.CONTEXT.get_max_operations() == 5000
    assert isl.CONTEXT.get_max_operations() == 0
