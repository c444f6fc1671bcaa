"""Steps that are judged at the end: what may change the order is asked, and what comes out not legal is made step by step."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.errors import IllegalSchedule, TransformError
from explorer.ir.finding import Verdict
from explorer.ir.plan import Plan
from explorer.schedule import Schedule
from explorer.schedule.step import taken
from explorer.strategies import deferred
from explorer.strategies.deferred import Memory, ask, judged_once, take
from explorer.transforms.base import Transform
from explorer.transforms.bind import Bind
from explorer.transforms.reverse import Reverse
from explorer.transforms.split import Split

LEGAL, ILLEGAL = Bind("i", "block.x"), Bind("k", "block.y")


@pytest.fixture
def start() -> Schedule:
    return ex.workloads.get("softmax").definition.schedule(M=4, N=8)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Transform, bool]]:
    """The steps that are computed here, each with whether it is judged."""
    found: list[tuple[Transform, bool]] = []

    def counted(plan: Plan, step: Transform, judged: bool = True) -> tuple[Verdict, Plan | None]:
        found.append((step, judged))
        return taken(plan, step, judged)

    monkeypatch.setattr(deferred, "taken", counted)
    return found


def test_a_step_is_judged_elsewhere(start: Schedule) -> None:
    with pytest.raises(IllegalSchedule):
        take(start, ILLEGAL)
    assert not ask(start, ILLEGAL)[0]


def test_steps_are_not_judged_each(start: Schedule, steps: list[tuple[Transform, bool]]) -> None:
    made = judged_once(start, lambda s: take(take(s, LEGAL), Split("k", 2)))
    assert steps == [(LEGAL, False), (Split("k", 2), False)]
    assert made == start.apply(LEGAL).apply(Split("k", 2))


def test_what_may_change_the_order_is_asked(start: Schedule, steps: list[tuple[Transform, bool]]) -> None:
    def work(schedule: Schedule) -> Schedule:
        assert ask(schedule, LEGAL)[0]
        assert ask(schedule, Reverse("k"))[0]
        return take(schedule, Reverse("k"))

    assert judged_once(start, work).steps == (Reverse("k"),)
    assert steps == [(LEGAL, False), (Reverse("k"), True)]  # and what was judged is not computed again


def test_what_is_not_legal_is_made_step_by_step(start: Schedule) -> None:
    plans = []

    def work(schedule: Schedule) -> Schedule:
        plans.append(schedule)
        verdict, _ = ask(schedule, ILLEGAL)
        return take(take(schedule, LEGAL), ILLEGAL) if verdict else take(schedule, LEGAL)

    assert judged_once(start, work) == start.apply(LEGAL)
    assert plans == [start, start]
    with pytest.raises(IllegalSchedule) as refused:
        judged_once(start, lambda s: take(take(s, LEGAL), ILLEGAL))
    assert refused.value.step == ILLEGAL


def test_a_refusal_behind_an_illegal_step_is_that_of_the_step(start: Schedule) -> None:
    with pytest.raises(IllegalSchedule):
        judged_once(start, lambda s: take(take(s, ILLEGAL), Bind("nowhere", "block.x")))
    with pytest.raises(TransformError):
        judged_once(start, lambda s: take(take(s, LEGAL), Bind("nowhere", "block.x")))


def test_it_ends_with_the_work(start: Schedule) -> None:
    def work(schedule: Schedule) -> Schedule:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        judged_once(start, work)
    with pytest.raises(IllegalSchedule):
        take(start, ILLEGAL)


def test_work_within_work_is_judged_with_it(start: Schedule, steps: list[tuple[Transform, bool]]) -> None:
    def outer(schedule: Schedule) -> Schedule:
        inner = judged_once(schedule, lambda s: take(s, ILLEGAL))
        assert inner.judgement.refusals
        return schedule

    assert judged_once(start, outer) is start


def test_what_one_kernel_took_is_taken_again(start: Schedule, steps: list[tuple[Transform, bool]]) -> None:
    memory, calls = Memory(), []

    def work(schedule: Schedule) -> Schedule:
        calls.append(schedule)
        return take(schedule, Split("k", 2))

    first = judged_once(start, lambda s: memory.again(s, "key", work), memory.steps)
    again = judged_once(start, lambda s: memory.again(s, "key", work), memory.steps)
    assert first == again
    assert len(calls) == len(steps) == 1
