"""One way of deciding: the cheap answers come first, and each of them is the answer that isl has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any

import pytest

from explorer import workloads
from explorer.errors import Undecided
from explorer.ir.expr import const
from explorer.ir.finding import Verdict
from explorer.poly import decide as module
from explorer.poly.asynchronous import check_async
from explorer.poly.decide import OPEN, Maybe, Question, decide
from explorer.poly.distances import distances
from explorer.poly.flow import check_flow
from explorer.poly.initial import with_exact_roles
from explorer.poly.judge import judge
from explorer.strategies import default
from explorer.transforms.base import catalogue
from tests.mutants.patches import Patch, forget, patched
from tests.poly import plans
from tests.properties.programs import define


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
    """Equal answers: truth values, points, or sets of pairs that are equal."""
    return type(one) is type(other) and (one.is_equal(other) if hasattr(one, "is_equal") else one == other)


def asked_by(session: Callable[[], None]) -> dict[Question, Any]:
    """Every question that a session asks, with isl's answer to it."""
    asked: dict[Question, None] = {}
    answered = module._answered

    def noted(question: Question) -> object:
        asked[question] = None
        return answered(question)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_answered", noted)
        forget()
        session()
    return {question: question.by_isl() for question in asked}


def told(asked: dict[Question, Any]) -> Counter[tuple[str, str]]:
    """How often each cheap way could tell, by the kind of question; what it told is what isl says."""
    out: Counter[tuple[str, str]] = Counter()
    for question, exact in asked.items():
        for way in (question.by_intervals, question.by_points):
            if (answer := way()) is not OPEN:
                assert same(answer, exact), (question, way)
                out[type(question).__name__.strip("_"), way.__name__] += 1
    return out


def of_a_workload(name: str) -> None:
    """A program as written, with its distances; the default strategy; single steps, also refused."""
    workload = workloads.get(name)
    written = workload.definition.schedule(**workload.tiny)
    distances(written.plan)
    default(written)
    for kind in ("bind", "interchange", "reverse", "split", "stage"):
        for loop in written.plan.loops:
            for step in catalogue()[kind].candidates(written.plan, loop):
                verdict: Verdict = step.check(written.plan)
                if verdict:
                    judge(step.rewrite(written.plan))


@pytest.mark.parametrize("name", ["softmax", "jacobi2d", "triangular_matmul", "conv2d"])
def test_every_way_that_tells_tells_what_isl_does(name: str) -> None:
    found = told(asked_by(lambda: of_a_workload(name)))
    assert sum(n for (_, way), n in found.items() if way == "by_intervals") > 10


def of_staged_tiles() -> None:
    """Tiles in shared memory: right, in flight when they are read, of another element, beyond their buffer."""
    for size in ({"m": 8, "n": 8, "k": 12}, {"m": 7, "n": 9, "k": 11}, {"m": 256, "n": 256, "k": 250}):
        for ahead in (1, 2):
            for pending in range(ahead + 1):
                for first in (True, False):
                    tiles = {"ahead": ahead, "buffers": ahead + 1, "pending": pending, "wait_first": first}
                    check_async(plans.matmul(**size, **tiles, mechanism="async"))
            loop = (plan := plans.matmul(**size, ahead=ahead, buffers=ahead + 1, mechanism="async")).loops["ko"]
            for n in range(len(loop.body)):
                check_async(plan.replace_node("ko", replace(loop, body=(*loop.body[n:], *loop.body[:n]))))
        plan = plans.matmul(**size)
        distances(plan)
        small = replace(plan, buffers=tuple(replace(b, shape=(4, 3)) if b.name == "As" else b for b in plan.buffers))
        other = replace(plan.copies[0], reads=(plans.read("A", plan.copies[0].reads[0].index[0], const(3) - plans.var("x")),))
        narrow = replace(plan.copies[0], inside=(*plan.copies[0].inside, *plans.box({"y": 2})[1:]))
        for wrong in (plan, small, *(replace(plan, copies=(copy, plan.copies[1])) for copy in (other, narrow))):
            judge(wrong)
            check_flow(wrong)


REUSED = """@ex.program
def f(x: ex.f32[M, N], y: ex.f32[M, N]):
    for a in range(M):
        for j in range(N):
            y[a, j] = x[a, j]
        for i in range(N):
            x[a, i] = 1.0 * a
"""


def of_a_source_that_is_written_again() -> None:
    """A copy, its commit, its wait, its reader and a later write of its source, in every order of the text; and the distances."""
    s = define(REUSED, "decide.py").schedule(M=5, N=8).bind("j", "thread.x").bind("i", "thread.x")
    plan = s.stage("x", "a").pipeline("a", 2).plan
    loop = plan.loops["a"]
    for body in permutations(loop.body):
        check_async(plan.replace_node("a", replace(loop, body=body)))
    distances(plan)
    distances(workloads.get("jacobi2d").definition.schedule(T=3, H=6, W=6).plan)


STARTED = """@ex.program
def f(x: ex.f32[N], y: ex.f32[N], z: ex.f32[N]):
    for i in range({first}, N):
        y[i] = x[i]
    for j in range(N):
        z[j] = y[{index}]
"""


def of_first_reads() -> None:
    """Arrays that are written before they are read: each element, all but one, another one, and none; and every workload's."""
    whole, part, turned = (STARTED.format(first=n, index=e) for n, e in ((0, "j"), (1, "j"), (1, "N - 1 - j")))
    head, *loops = whole.split("    for ")
    after = "    for ".join((head, *reversed(loops)))
    one = whole.replace("    for j in range(N):\n        z[j] = y[j]", "        z[i] = y[N - 1 - i]")
    for source in (whole, part, turned, after, one):
        define(source, "first.py").schedule(N=6)
    for name in workloads.names():
        workload = workloads.get(name)
        with_exact_roles(workload.definition.schedule(**workload.tiny).plan.program)


@pytest.fixture(scope="module")
def staged() -> dict[Question, Any]:
    """Questions about copies, about differences in time, and about what is read first."""
    return asked_by(of_staged_tiles) | asked_by(of_a_source_that_is_written_again) | asked_by(of_first_reads)


def test_every_kind_of_question_about_copies_is_told_by_each_of_its_ways(staged: dict[Question, Any]) -> None:
    found = told(staged)
    assert {("Broken", "by_intervals"), ("Broken", "by_points"), ("NotLanded", "by_intervals"), ("StillOpen", "by_intervals"),
            ("InProgram", "by_intervals"), ("First", "by_intervals")} <= {key for key, n in found.items() if n > 1}
    refused = Counter(type(question).__name__ for question, exact in staged.items() if exact is not None)
    assert min(refused[kind] for kind in ("_Broken", "_NotLanded", "StillOpen", "_First")) > 1


def _reached(original: Callable[..., bool]) -> Callable[..., bool]:
    """One group too many counts as landed."""
    return lambda facts, group, alternatives: original(facts, group, [replace(w, landed=w.landed + 1) for w in alternatives])


def _every_run(original: Callable[..., bool]) -> Callable[..., bool]:
    """A run of a wait counts where there is none yet."""
    return lambda facts, group, alternatives: original(facts, group, [replace(w, when=()) for w in alternatives])


MUTANTS = {
    "nothing is ever broken": Patch("explorer.poly.footprint", "_Broken.by_intervals", lambda _: lambda q: None),
    "an upper bound is one too high": Patch(
        "explorer.poly.footprint", "_Broken.by_intervals",
        lambda original: lambda q: original(replace(q, wanted=tuple(replace(c, expr=c.expr + 1) for c in q.wanted)))),
    "the largest point is the witness": Patch("explorer.poly.enumerated", "_grid", lambda original: lambda box: {
        name: axis[::-1] for name, axis in original(box).items()}),
    "instances outside the domain count": Patch(
        "explorer.poly.enumerated", "first_broken", lambda original: lambda box, held, wanted: original(box, (), wanted)),
    "a wait lets one group more through": Patch("explorer.poly.asynchronous", "_let_through", _reached),
    "a wait has always run": Patch("explorer.poly.asynchronous", "_let_through", _every_run),
    "a later iteration writes nothing again": Patch(
        "explorer.poly.asynchronous", "StillOpen.by_intervals",
        lambda original: lambda q: original(replace(q, after=q.after[1:]))),
    "a write comes first wherever it stands": Patch(
        "explorer.poly.initial", "_First._precedes",
        lambda original: lambda q, w, time: original(replace(q, time=(q.time[0] + 9, *q.time[1:])), w, time)),
    "a write has no domain": Patch(
        "explorer.poly.initial", "_First._precedes",
        lambda original: lambda q, w, time: original(q, replace(w, domain=()), time)),
    "a write is of any element": Patch(
        "explorer.poly.initial", "_First._precedes", lambda original: lambda q, w, time: original(
            q, replace(w, target=replace(w.target, index=q.reader.accesses[q.slot].index)), time)),
    "source and sink change places": Patch("explorer.poly.distances", "over", lambda original: lambda e, side: original(
        e, {"a": "b", "b": "a"}[side])),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_cheap_answer_is_noticed(name: str, staged: dict[Question, Any]) -> None:
    with patched(MUTANTS[name]), pytest.raises(AssertionError):
        told(staged)
