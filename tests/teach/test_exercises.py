"""Exercises: each goal is reached by one schedule and missed by another, and a check never raises for a learner's mistake."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import explorer as ex
from explorer.run.result import Run
from explorer.teach import exercises
from explorer.teach.exercises import Exercise, Goal

M, N = ex.sizes("M N")


@ex.program
def scale(x: ex.f32[M, N], y: ex.f32[M, N]) -> None:
    for i in range(M):
        for j in range(N):
            y[i, j] = 2.0 * x[i, j]


@ex.program
def row_sum(x: ex.f32[M, N], y: ex.f32[M]) -> None:
    for i in range(M):
        y[i] = 0.0
        for k in range(N):
            y[i] += x[i, k]


@ex.program
def chain(x: ex.f32[N], y: ex.f32[N]) -> None:
    t = ex.local(ex.f32, N)
    for i in range(N):
        t[i] = x[i] + 1.0
    for j in range(N):
        y[j] = t[j] * t[j]


def near() -> ex.Schedule:
    return scale.schedule(M=8, N=64).bind("i", "block.x").bind("j", "thread.x")


def far() -> ex.Schedule:
    return scale.schedule(M=64, N=8).bind("j", "block.x").bind("i", "thread.x")


def wide() -> ex.Schedule:
    return scale.schedule(M=8, N=64).bind("i", "block.x").split("j", 4).bind("j", "thread.x").vectorize("j.i")


def tiles(pad: int = 0) -> ex.Schedule:
    s = row_sum.schedule(M=64, N=96).split("i", 32).bind("i", "block.x").bind("i.i", "thread.x").split("k", 32)
    return s.stage("x", "k", pad=pad)


def fused() -> ex.Schedule:
    return chain.schedule(N=64).fuse("i", "j").contract("t").bind("i", "thread.x")


def collected(how: str) -> ex.Schedule:
    return row_sum.schedule(M=8, N=64).bind("i", "block.x").bind("k", "thread.x").collect("y", how)


CASES: list[tuple[Goal, Callable[[], ex.Schedule], Callable[[], ex.Schedule], str]] = [
    (exercises.sectors("x", 4), near, far, "32"),
    (exercises.lanes(0.9), near, lambda: scale.schedule(M=4, N=40).bind("j", "thread.x"), "62%"),
    (exercises.wide("x", 16), wide, near, "4 bytes"),
    (exercises.bank_passes(1), lambda: tiles(1), tiles, "at worst 32"),
    (exercises.bank_passes(1), lambda: tiles(1), near, "no shared memory is used"),
    (exercises.traffic(1.0), near, far, "8 times"),
    (exercises.kernels(1), near, lambda: chain.schedule(N=64).launch("chain", after="i"), "2"),
    (exercises.blocks(8), near, lambda: scale.schedule(M=8, N=64).bind("j", "thread.x"), "1"),
    (exercises.threads(64), near, wide, "16"),
    (exercises.off_global("t"), fused, lambda: chain.schedule(N=64), "2 accesses"),
    (exercises.moves(1.0), fused, lambda: chain.schedule(N=64), "2 times"),
    (exercises.priced(4.0, M=1024, N=1024), near, far, "5.26 µs"),
    (exercises.priced(2.0), near, lambda: scale.schedule(M=512, N=64), "5.11 ms"),
    (exercises.launched(1), near, lambda: chain.schedule(N=64).launch("chain", after="i"), "2"),
    (exercises.unstored("t"), lambda: chain.schedule(N=64).inline("t"), fused, "stored by S0"),
    (exercises.deterministic(), lambda: collected("shuffle"), lambda: collected("atomic"), "atomic: S1"),
    (exercises.slots("x_s", 2), lambda: tiles().pipeline("k", 2), tiles, "1"),
    (exercises.slots("x_s", 1), tiles, lambda: tiles().pipeline("k", 3), "3"),
    (exercises.slots("x_s", 1), tiles, near, "there is no copy x_s"),
    (exercises.asynchronous("x_s"), lambda: tiles().pipeline("k", 2), tiles, "plain copies"),
    (exercises.asynchronous("x_s", 16), lambda: row_sum.schedule(M=64, N=96).bind("i", "thread.x").split("k", 32)
     .stage("x", "k", vector=4).pipeline("k", 2), lambda: tiles().pipeline("k", 2), "asynchronous, 4 bytes each"),
    (exercises.barriers(1), lambda: tiles().pipeline("k", 2), tiles, "2"),
]


@pytest.mark.parametrize(("goal", "reached", "missed", "found"), CASES, ids=[f"{c[0].text}, not {c[3]}" for c in CASES])
def test_a_goal_is_reached_and_missed(goal: Goal, reached: Callable[[], ex.Schedule], missed: Callable[[], ex.Schedule],
                                      found: str) -> None:
    assert goal.measure(reached())[0] is True
    assert goal.measure(missed()) == (False, found)


def test_a_solution_is_proved_run_and_measured() -> None:
    task = Exercise(scale.schedule(M=8, N=64), exercises.sectors("x", 4), exercises.threads(64))
    report = task.check(near())
    assert report
    always = ["proved, nothing left to collect", "right values on the CPU"]
    assert [line.text for line in report.lines] == [*always, *(goal.text for goal in task.goals)]
    assert all(line.passed is True for line in report.lines)
    assert "2 thread orders, at these sizes" in str(report)
    assert report._repr_html_().count("✓") == 4


def test_an_exercise_says_what_is_asked() -> None:
    task = Exercise(scale.schedule(M=8, N=64), exercises.kernels(1), exercises.kernels(2))
    assert "at most 1 kernel\n" in str(task)
    assert all(text in task._repr_html_() for text in ("at most 2 kernels", "right values on the CPU", "Exercise on scale"))


def test_the_untouched_start_is_not_yet_a_solution() -> None:
    start = scale.schedule(M=8, N=64)
    report = Exercise(start, exercises.threads(1)).check(start.split("i", 4).undo())
    assert not report
    assert report.title == "nothing done yet"
    assert "right values on the CPU" not in str(report), "it is not even run"


def test_other_things_are_not_solutions() -> None:
    task = Exercise(scale.schedule(M=8, N=64), exercises.threads(64))
    for other, said in ((..., "ellipsis"), (None, "NoneType"), (chain.schedule(N=8), "'chain'"), (near().at(M=9), "'scale'")):
        report = task.check(other)
        assert not report
        assert said in str(report)


def test_updates_that_wait_are_reported_and_not_run() -> None:
    waiting = row_sum.schedule(M=8, N=64).bind("i", "block.x").bind("k", "thread.x")
    report = Exercise(row_sum.schedule(M=8, N=64), exercises.barriers(1)).check(waiting)
    assert report.lines[0].passed is False
    assert "would race" in report.lines[0].found
    assert "right values on the CPU" not in str(report)
    assert "cannot be measured: there is no CUDA text" in report.lines[-1].found


def test_wrong_values_and_faults_are_no_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Exercise(scale.schedule(M=8, N=64))
    monkeypatch.setattr(ex.Schedule, "run", lambda *_, **__: Run("scale", "cpu", (), (), faults=("x[9] is outside",)))
    assert task.check(near()).lines[1].found == "x[9] is outside"
    assert not task.check(near())

    def missing(*_: object, **__: object) -> Run:
        raise ex.CompilerMissing("there is no compiler")

    monkeypatch.setattr(ex.Schedule, "run", missing)
    assert task.check(near()).lines[1].passed is None
    assert not task.check(near())


def test_a_goal_of_ones_own() -> None:
    short = Goal("at most two steps", lambda schedule: (len(schedule.steps) <= 2, f"{len(schedule.steps)} steps"))
    task = Exercise(scale.schedule(M=8, N=64), short)
    assert task.check(near())
    assert "✗ at most two steps: 3 steps" in str(task.check(wide().undo(1)))
