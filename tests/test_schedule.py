"""One class of schedules and one of programs; a step that is not judged; work that is to stop."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import pytest

import explorer as ex
from explorer import api
from explorer.frontend.definition import Definition
from explorer.frontend.definition import program as decorator
from explorer.poly.dependence import analyse
from explorer.poly.judge import judge
from explorer.schedule import Schedule
from explorer.strategies.auto import auto
from explorer.strategies.default import default
from explorer.strategies.stitch import stitch
from explorer.system import cancel
from explorer.transforms.bind import Bind
from explorer.transforms.split import Split

PACKAGE = Path(ex.__file__).parent


def softmax(m: int = 4, n: int = 8) -> Schedule:
    return ex.workloads.get("softmax").definition.schedule(M=m, N=n)


def test_there_is_one_class_of_each() -> None:
    assert ex.Schedule is Schedule is api.Schedule
    assert ex.Definition is Definition is api.Definition
    assert ex.program is decorator
    classes = [n for p in PACKAGE.rglob("*.py") for n in ast.walk(ast.parse(p.read_text())) if isinstance(n, ast.ClassDef)]
    named = [n.name for n in classes if n.name in ("Schedule", "Definition")
             or {ast.unparse(b).rpartition(".")[2] for b in n.bases} & {"Schedule", "Definition"}]
    assert sorted(named) == ["Definition", "Schedule"]


@pytest.mark.parametrize("name", ex.workloads.names())
def test_workloads_have_the_users_methods(name: str) -> None:
    workload = ex.workloads.get(name)
    assert type(workload.definition) is ex.Definition
    s = workload.definition.schedule(**workload.tiny)
    assert type(s) is type(default(s)) is type(workload.definition.load(s.share())) is ex.Schedule


@pytest.mark.parametrize("place", [b"explorer.api", b"explorer.schedule"])
def test_what_was_pickled_can_be_read(place: bytes) -> None:
    """Under the names that earlier versions had for the class."""
    s = softmax().bind("i", "block.x")
    now = Schedule.__module__.encode()
    pickled = pickle.dumps(s, 0)
    assert now in pickled
    again = pickle.loads(pickled.replace(now + b"\n", place + b"\n"))
    assert type(again) is ex.Schedule
    assert (again.source, again.plan, again.steps) == (s.source, s.plan, s.steps)


def test_a_step_that_is_not_judged() -> None:
    s = softmax()
    illegal = Bind("k", "block.y")
    with pytest.raises(ex.IllegalSchedule):
        s.apply(illegal)
    taken = s.apply(illegal, judge=False)
    assert type(taken) is Schedule
    assert taken.steps == (illegal,)
    assert taken.judgement == judge(taken.plan)
    assert taken.judgement.refusals
    for use in (lambda: taken.cuda, taken.module, taken.kernel, lambda: taken.run(device="cpu"), taken.ir):
        with pytest.raises(ex.IllegalSchedule):
            use()
    legal = Bind("i", "block.x")
    assert s.apply(legal, judge=False) == s.apply(legal)


def test_a_step_that_is_not_judged_has_its_own_preconditions() -> None:
    with pytest.raises(ex.TransformError):
        softmax().apply(Bind("nowhere", "block.x"), judge=False)


@pytest.mark.parametrize("work", [default, auto, stitch, lambda s: s.moves("k"), lambda s: s.split("k", 2)])
def test_work_on_a_schedule_stops(work) -> None:
    asked = cancel.Cancel()
    s = softmax()
    asked.ask()
    with pytest.raises(cancel.Cancelled), cancel.cancellable(asked):
        work(s)
    assert work(s)


def test_a_judgement_stops_between_its_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = cancel.Cancel()
    plan = softmax(5, 9).bind("i", "block.x").plan
    judge.cache_clear()
    monkeypatch.setattr("explorer.poly.judge.check_cover", lambda *_: asked.ask())
    with pytest.raises(cancel.Cancelled), cancel.cancellable(asked):
        judge(plan)
    monkeypatch.undo()
    assert judge(plan).legal


def test_a_step_that_changes_values_alone_asks_for_no_dependence_again() -> None:
    s = softmax(6, 11)  # sizes of its own: what other tests have asked may have been forgotten by half
    fast = s.approximate(next(x.name for x in s.source.statements if "exp" in str(x.value)))
    assert fast.plan.program != s.plan.program
    before, after = analyse(s.plan.program), analyse(fast.plan.program)
    assert all(a is b for a, b in zip(before.ordered + before.flow, after.ordered + after.flow, strict=True))


def test_a_step_is_made_once_and_equal_ones_of_other_types_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    s, made = softmax(), list[object]()
    rewrite = Split.rewrite
    monkeypatch.setattr(Split, "rewrite", lambda self, plan: made.append(self) or rewrite(self, plan))
    assert s.split("k", 7).plan == s.split("k", 7).plan == s.apply(Split("k", 7), judge=False).plan
    assert len(made) == 1
    with pytest.raises(ex.TransformError):
        s.split("k", 7.0)
