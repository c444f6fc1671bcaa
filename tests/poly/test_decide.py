"""One way of deciding: the cheap answers come first, and each of them is the answer that isl has."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest

from explorer import workloads
from explorer.errors import Undecided
from explorer.ir.finding import Verdict
from explorer.poly import decide as module
from explorer.poly.decide import OPEN, Maybe, Question, decide
from explorer.poly.judge import judge
from explorer.strategies import default
from explorer.transforms.base import catalogue


@dataclass(frozen=True)
class Asked(Question[int]):
    """A question that notes which ways were tried."""

    number: int
    intervals: Maybe[int] = OPEN
    points: Maybe[int] = OPEN
    tried: list[str] = field(default_factory=list, compare=False)

    def by_intervals(self) -> Maybe[int]:
        self.tried.append("intervals")
        return self.intervals

    def by_points(self) -> Maybe[int]:
        self.tried.append("points")
        return self.points

    def by_isl(self) -> int:
        self.tried.append("isl")
        if self.number < 0:
            raise Undecided("too long")
        return 3


@pytest.mark.parametrize(("question", "answer", "tried"), [
    (Asked(1, intervals=1), 1, ["intervals"]), (Asked(2, points=2), 2, ["intervals", "points"]),
    (Asked(3), 3, ["intervals", "points", "isl"]), (Asked(4, intervals=0), 0, ["intervals"]),
])  # fmt: skip
def test_intervals_come_first_then_points_then_isl(question: Asked, answer: int, tried: list[str]) -> None:
    assert decide(question) == answer
    assert question.tried == tried
    assert decide(Asked(question.number, question.intervals, question.points)) == answer
    assert question.tried == tried  # remembered


def test_what_could_not_be_decided_is_asked_again() -> None:
    question = Asked(-1)
    for _ in range(2):
        with pytest.raises(Undecided):
            decide(question)
    assert question.tried == ["intervals", "points", "isl"] * 2


def same(one: object, other: object) -> bool:
    """Equal answers: truth values, or sets of pairs that are equal."""
    return one.is_equal(other) if hasattr(one, "is_equal") and other is not None else one is other


@pytest.mark.parametrize("name", ["softmax", "jacobi2d", "triangular_matmul", "conv2d"])
def test_every_way_that_tells_tells_what_isl_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all questions that are asked of a program as written, by the default strategy, and after single steps, also refused."""
    asked: dict[Question, None] = {}
    answered = module._answered

    def noted(question: Question) -> object:
        asked[question] = None
        return answered(question)

    workload = workloads.get(name)
    written = workload.definition.schedule(**workload.tiny)
    with monkeypatch.context() as patch:
        patch.setattr(module, "_answered", noted)
        judge.cache_clear()
        default(written)
        for kind in ("bind", "interchange", "reverse", "split"):
            for loop in written.plan.loops:
                for step in catalogue()[kind].candidates(written.plan, loop):
                    verdict: Verdict = step.check(written.plan)
                    if verdict:
                        judge(step.rewrite(written.plan))
    told = Counter()
    for question in asked:
        exact = question.by_isl()
        for way in (question.by_intervals, question.by_points):
            if (answer := way()) is not OPEN:
                assert same(answer, exact), (question, way)
                told[way.__name__] += 1
    assert told["by_intervals"] > 10
