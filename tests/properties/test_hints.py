"""What a refusal proposes applies, and gets to where the refused step was to lead: random moves on random and ready programs."""

from __future__ import annotations

import random
import time

import pytest

from explorer import workloads
from explorer.errors import ScheduleError
from explorer.schedule import Schedule
from explorer.schedule.step import taken
from explorer.steps import hints
from explorer.steps.calls import calls_in
from explorer.transforms.base import Transform

from .moves import random_step
from .programs import random_case

MOVES = 12


def untrue(schedule: Schedule, asked: Transform, hint: str) -> str:
    """What is wrong with a hint, or nothing."""
    steps, now = list(calls_in(hint)), schedule
    if hints.IN_PLACE in hint:
        new, old = steps
        place = schedule.steps.index(old)
        now, steps = schedule.replay(schedule.steps[:place]), [new, *schedule.steps[place + 1:]]
    for step in steps:
        try:
            now = now.apply(step)
        except ScheduleError as error:
            return f"{step} is refused: {error.what}"
    if ", then " in hint and "instead" in hint and not isinstance(steps[-1], type(asked)):
        return f"{steps[-1]} is not worth the steps before it"
    if not steps or "instead" in hint or hint.endswith(hints.PARTLY) or isinstance(steps[-1], type(asked)):
        return ""
    return "" if now.try_step(asked)[0] else f"{asked} does not apply after it"


def walk(schedule: Schedule, pick: random.Random, told: list[str]) -> None:
    """Random moves; the hints of each refused one are read and taken at their word."""
    for _ in range(MOVES):
        step = random_step(schedule.plan, pick, "fuse")
        if step is None:
            continue
        verdict, _ = schedule.try_step(step)
        if verdict:
            schedule = schedule.apply(step)
            continue
        for hint in verdict.finding.hints if verdict.finding else str(verdict.hint).split("; or "):
            if any(True for _ in calls_in(hint)):
                told.append(hint)
            if wrong := untrue(schedule, step, hint):
                raise AssertionError(f"{schedule.script()}\n{step} is refused, try: {hint}\n{wrong}")


@pytest.mark.parametrize("seed", range(6))
def test_on_random_programs(seed: int) -> None:
    told: list[str] = []
    for n in range(8):
        pick = random.Random(f"hints {seed} {n}")
        try:
            case = random_case(pick, f"hints{seed}_{n}")
        except ScheduleError:
            continue
        walk(case.schedule, pick, told)
    assert told


@pytest.mark.parametrize("name", workloads.names())
def test_on_workloads(name: str) -> None:
    chosen = workloads.get(name)
    walk(chosen.definition.schedule(**chosen.tiny), random.Random(f"hints {name}"), [])


def test_a_chain_ends_in_what_was_asked() -> None:
    """Behind other steps another place is no answer: that was proposed without them."""
    s = workloads.get("softmax").definition.schedule(M=64, N=1000)
    verdict, _ = s.try_step(next(calls_in("bind('k', 'block.x')")))
    assert "bind('k', 'thread.x') instead" in verdict.hint
    assert ", then bind" not in verdict.hint
    parts = [part for part in verdict.hint.split("; or ") if "launch(" in part]
    assert parts
    for part in parts:
        assert not untrue(s, next(calls_in("bind('k', 'block.x')")), part)


def test_nothing_is_tried_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = workloads.get("softmax")
    schedule = chosen.definition.schedule(**chosen.tiny)
    tried: list[Transform] = []
    monkeypatch.setattr(hints, "_try", lambda s, step: tried.append(step) or taken(s.plan, step))
    with pytest.raises(ScheduleError) as refused:
        schedule.bind("k", "block.x")
    assert not tried
    assert "bind('k', 'thread.x') instead" in str(refused.value)
    assert tried
    count = len(tried)
    assert str(refused.value)
    assert len(tried) == count


def test_trying_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = workloads.get("attention_softmax")
    schedule = chosen.definition.schedule(**chosen.tiny)
    tried: list[Transform] = []
    monkeypatch.setattr(hints, "_try", lambda s, step: tried.append(step) or taken(s.plan, step))
    verdict, _ = schedule.try_step(next(calls_in("fuse('k_2', 'k_3')")))
    begin = time.monotonic()
    assert str(verdict)
    assert len(tried) <= hints.TRIES
    assert time.monotonic() - begin < 20
