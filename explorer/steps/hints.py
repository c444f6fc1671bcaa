"""Hints of refusals: proposed steps are checked for legality before they are shown.

The questions and the transformations write proposals as text: calls on the schedule, ``…`` for an argument that they do not
know.  Here each is read back into steps and taken, one after the other, on the schedule on which a step was refused.  It is
said

- if the step that was refused applies then; or
- where it says *instead*, or ends in another call of the refused transformation: if it applies itself.

Where a proposal divides a loop of the step, the step is tried on the new parts too.  One that does not get there is
followed once more: the refusal that it meets may know the next one (``A, then B``).
Where an earlier step is at fault (`Transform.mends`), it is said what that one could have been: ``split('n', 4) in place of
split('n', 3)``, if all steps behind it and the refused one apply then.
What does not help, or is too dear to try, is not said.  Words without a call are advice, and stay as they are.  Where a step does
not apply and no proposal is enough, the first one that applies itself is said for what it is: one of several steps.

Nothing is tried until somebody reads the hints: judging a step costs no more than before.
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import cast

from ..errors import ExplorerError
from ..ir.finding import Advice, Finding, Verdict
from ..ir.plan import Plan
from ..schedule import Schedule
from ..schedule.step import taken
from ..system.cancel import Cancelled
from ..transforms.base import Transform, catalogue
from .calls import closing, construct, literal

TRIES = 16
"""Judgements for the hints of one refusal at most; half as many before them, where an earlier step may be at fault."""
SECONDS = 1.0
"""Time after which no further one is begun."""
PARTLY = "(and more steps then)"
"""Behind a proposal that is not enough by itself."""
IN_PLACE = " in place of "
"""Between a step and the earlier one that it should have been."""
OPEN = "…"
SIZES = (1, 2, 3, 4, 8, 16, 32, 64, 128)
"""Numbers that an open argument may be."""
NEAR = 5
"""How many of them a distance may be."""


class Budget:
    """What may still be tried."""

    def __init__(self, tries: int = TRIES, seconds: float = SECONDS) -> None:
        self._left, self._until = tries, time.monotonic() + seconds

    def take(self) -> bool:
        """Whether one more judgement may be made; it is counted."""
        self._left -= 1
        return self._left >= 0 and time.monotonic() < self._until


def advised(schedule: Schedule, asked: Transform | None, refusal: Verdict) -> Verdict:
    """A refusal whose hints are found out when they are read: those of its proposals that help.

    Parameters
    ----------
    schedule : Schedule
        On which the step was refused.
    asked : Transform or None
        The step; None where a transformation cannot stand at a node at all, and for what is still to do.
    refusal : Verdict
    """
    finding = refusal.finding
    texts = tuple(finding.hints) if finding else tuple(t for t in refusal.hint.split("; or ") if t)
    advice = Advice(lambda: _said(schedule, asked, texts, finding))
    return replace(refusal, hint=cast(str, advice), finding=finding and replace(finding, hints=advice))


def open_findings(schedule: Schedule) -> tuple[Finding, ...]:
    """What is still to do on a schedule, with hints that apply."""
    def tried(finding: Finding) -> Finding:
        return replace(finding, hints=Advice(lambda: _said(schedule, None, finding.hints, None)))

    return tuple(map(tried, schedule.judgement.obligations))


def _said(schedule: Schedule, asked: Transform | None, texts: Sequence[str], finding: Finding | None) -> tuple[str, ...]:
    budget = Budget()
    eased = tuple(asked.eases(schedule.plan, finding)) if asked is not None and finding is not None else ()
    if asked is not None and finding is None and (said := _mended(schedule, asked, Budget(TRIES // 2))):
        return (said,)
    found = tuple(dict.fromkeys(filter(None, (_tried(schedule, asked, text, budget) for text in (*eased, *texts)))))
    if not found and asked is not None and finding is None:
        return next(((f"{said} {PARTLY}",) for said in (_applicable(schedule, text, budget) for text in texts) if said), ())
    return found


def _mended(schedule: Schedule, asked: Transform, budget: Budget) -> str:
    """What the step that made a loop of `asked` could have been, so that `asked` applies; nothing if that is not known."""
    mending = [n for n, step in enumerate(schedule.steps) if next(asked.mends(schedule.plan, step), None)]
    number, before = _maker(schedule, asked) if mending else (-1, schedule.plan)
    for other in asked.mends(schedule.plan, schedule.steps[number]) if number in mending else ():
        then = replace(schedule, plan=before, steps=schedule.steps[:number])
        for step in (other, *schedule.steps[number + 1:], asked):
            if not budget.take():
                return ""
            verdict, plan = _try(then, step)
            if not verdict or plan is None:
                break
            then = replace(then, plan=plan, steps=(*then.steps, step))
        else:
            return f"{other}{IN_PLACE}{schedule.steps[number]}"
    return ""


def _maker(schedule: Schedule, asked: Transform) -> tuple[int, Plan]:
    """The number of the last step that made a loop which `asked` names, and the plan before it; -1 where none did."""
    given = [value if isinstance(value, tuple) else (value,) for value in asked.arguments().values()]
    names = {name for values in given for name in values if isinstance(name, str)} & schedule.plan.loops.keys()
    found, now = (-1, schedule.plan), Schedule.of(schedule.source, schedule.definition).plan
    for number, step in enumerate(schedule.steps):
        try:
            _, plan = taken(now, step, judge_it=False)
        except ExplorerError:
            return -1, schedule.plan
        if plan is None:  # a plan that these steps do not make
            return -1, schedule.plan
        found, now = (number, now) if names & (plan.loops.keys() - now.loops.keys()) else found, plan
    return found


def _applicable(schedule: Schedule, text: str, budget: Budget) -> str:
    """A proposal without open arguments, if its steps apply one after the other; wherever they lead to."""
    calls = tuple(open_calls(text))
    known = calls and not any(value == OPEN for call in calls for _, value in call.given)
    return next((_filled(text, calls, steps) for steps, _ in _taken(schedule, calls, budget)), "") if known else ""


def _tried(schedule: Schedule, asked: Transform | None, text: str, budget: Budget, deep: bool = True) -> str:
    """The proposal as it is said, or nothing if it does not help."""
    calls = tuple(open_calls(text))
    if not calls:
        return text if deep else ""
    instead = asked is None or "instead" in text or calls[-1].kind is type(asked)
    after = ""
    for steps, then in _taken(schedule, calls, budget):
        said = _filled(text, calls, steps)
        if instead:
            return said if asked not in steps and (deep or _kept(asked, steps[-1])) else ""
        if not budget.take():
            return ""
        assert asked is not None
        verdict = _try(then, asked)[0]
        if verdict:
            return said
        for alike in _renamed(asked, schedule.plan, then.plan):
            if alike.check(then.plan) and budget.take() and _try(then, alike)[0]:
                return f"{said.partition(' first')[0]} and {alike} instead"
        if deep and not after:
            more = (_tried(then, asked, further, budget, deep=False) for further in _proposed(then, asked, verdict))
            after = next((f"{said.partition(' first')[0]}, then {second}" for second in more if second), "")
    return after


def _kept(asked: Transform | None, step: Transform) -> bool:
    """Whether a step does what was asked of a part of it, or with more words: behind other steps, nothing else is worth them."""
    wanted, found = asked.arguments() if asked is not None else {}, step.arguments()
    return type(step) is type(asked) and all(
        (isinstance(value, str) and str(found.get(name)).startswith(f"{value}.")) or found.get(name) == value
        for name, value in wanted.items())


def _proposed(schedule: Schedule, asked: Transform, refusal: Verdict) -> tuple[str, ...]:
    if refusal.finding is None:
        return tuple(refusal.hint.split("; or "))
    return (*asked.eases(schedule.plan, refusal.finding), *refusal.finding.hints)


def _taken(schedule: Schedule, calls: Sequence[Call], budget: Budget) -> Iterator[tuple[tuple[Transform, ...], Schedule]]:
    """The ways to take all these steps in order, each with the schedule that it makes."""
    if not calls:
        yield (), schedule
        return
    for step in calls[0].fillings(schedule.plan):
        if not step.check(schedule.plan):
            continue
        if not budget.take():
            return
        verdict, plan = _try(schedule, step)
        if verdict and plan is not None:
            for rest, then in _taken(replace(schedule, plan=plan, steps=(*schedule.steps, step)), calls[1:], budget):
                yield (step, *rest), then


def _renamed(asked: Transform, before: Plan, after: Plan) -> Iterator[Transform]:
    """The step on the new parts of its loops: where `i` was distributed, on ``i.2``."""
    for f in fields(asked):  # type: ignore[arg-type]
        value = getattr(asked, f.name)
        for name in value if isinstance(value, tuple) else (value,):
            stem = re.compile(rf"{re.escape(str(name))}\.\d+")
            for new in sorted(after.loops.keys() - before.loops.keys()):
                if name in before.loops and stem.fullmatch(new):
                    yield replace(asked, **{f.name: tuple(new if n == name else n for n in value)  # type: ignore[type-var]
                                            if isinstance(value, tuple) else new})


def _try(schedule: Schedule, step: Transform) -> tuple[Verdict, Plan | None]:
    """The plain answer, whose own hints are proposals still; a failure of the judgement itself counts as no."""
    try:
        return taken(schedule.plan, step)
    except Cancelled:
        raise
    except ExplorerError as error:
        return Verdict(error.what), None
    except Exception as error:  # a fault of the step's own: a refusal is printed without this proposal
        return Verdict(f"{type(error).__name__}: {error}"), None


# -- reading -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """A call in a text: where it stands, and the step that it means once its open arguments are filled in."""

    start: int
    end: int
    kind: type[Transform]
    given: tuple[tuple[str, object], ...]

    def fillings(self, plan: Plan) -> Iterator[Transform]:
        """The steps that it may mean on a plan."""
        free = [name for name, value in self.given if value == OPEN]
        for values in _choices(self.kind, free, plan):
            try:
                yield construct(self.kind, {**dict(self.given), **values})
            except ExplorerError:
                continue


def open_calls(text: str) -> Iterator[Call]:
    """Every call of a transformation in a text, with its arguments as far as they are known."""
    for match in re.finditer(r"\b([a-z_]+)\(", text):
        kind, end = catalogue().get(match[1]), closing(text, match.end())
        if kind is None or not end:
            continue
        whole = re.sub(rf"(?<!['\"]){OPEN}(?!['\"])", repr(OPEN), text[match.start():end])
        try:
            node = ast.parse(whole, mode="eval").body
            assert isinstance(node, ast.Call)
            names = [f.name for f in fields(kind)]  # type: ignore[arg-type]
            given = dict(zip(names, map(literal, node.args), strict=False))
            given |= {str(k.arg): literal(k.value) for k in node.keywords}
        except (SyntaxError, ExplorerError):
            continue
        yield Call(match.start(), end, kind, tuple(given.items()))


def _choices(kind: type[Transform], free: Sequence[str], plan: Plan) -> Iterator[dict[str, object]]:
    """Values for the open arguments: what the kinds of their fields allow on this plan."""
    if not free:
        yield {}
        return
    meta = next(f.metadata for f in fields(kind) if f.name == free[0])  # type: ignore[arg-type]
    leaves = [leaf.id for leaf, _, _ in plan.leaves]
    among: dict[str, Sequence[object]] = {
        "loop": tuple(plan.loops), "node": (*plan.loops, *leaves), "leaf": leaves, "kernel": [k.id for k in plan.kernels],
        "array": tuple(plan.array_of), "int": SIZES, "choice": meta.get("choices", ()), "loops": tuple(plan.loops),
    }
    found = among.get(meta["kind"], ())
    if meta["kind"] == "int":  # a number of iterations or places: rather many of them; a distance: rather a short one
        found = found[::-1] if meta.get("min") == 1 else found[:NEAR]
    for value in found:
        for rest in _choices(kind, free[1:], plan):
            yield {free[0]: value, **rest}


def _filled(text: str, calls: Sequence[Call], steps: Sequence[Transform]) -> str:
    """The text with each call as it was taken."""
    for call, step in reversed(list(zip(calls, steps, strict=True))):
        text = text[:call.start] + str(step) + text[call.end:]
    return text
