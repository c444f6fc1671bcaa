"""A refused step, executed all the same: the illegal order at the smallest sizes that show a wrong cell.

The step is taken without judgement, and the CUDA text of its plan runs on the CPU device, in the orders that device offers, and
is compared with the program's own loops.  What the text does not show there, the interpreter of the kernel does in orders of its
own (:mod:`~explorer.run.counterexample.illegal` has both; the answer says which of them showed it).  Sizes are tried by the work
they take, each on its own, and are then made smaller one by one.  Not every illegal order shows: the value that it spoils may
never be used.  Then the result says so.
"""

from __future__ import annotations

import time as clock
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from ...errors import ExplorerError
from ...ir.finding import Finding, Verdict
from ...ir.plan import Plan
from ...ir.tree import Loop
from ...poly.count import instances
from ...poly.judge import judge
from ...schedule import Schedule
from ...schedule.step import Step
from ...transforms.approximate import as_computed
from ..verify.ragged import Again
from .illegal import Answer, Trial, Wrong, cell_name, illegal_ir, inputs_in_words, interpreted, on_device, watched, written
from .result import INTERPRETED, ON_DEVICE, Counterexample
from .smallest import smallest_first

MOST_INSTANCES = 20_000
"""Statement instances that are interpreted in one attempt."""
SECONDS = 5.0
"""After which the search ends."""
PATIENCE = 24
"""Sizes at which the CPU device may still show what the interpreter has shown already."""
TOGETHER = 8
"""Most texts that are compiled at once."""
SEEDS = 4
"""Inputs that are tried at smaller sizes: those of one seed may hide there what others show."""


@dataclass(frozen=True)
class _Found:
    """A trial that shows a wrong cell, who showed it on which inputs, and what the CPU device answered."""

    trial: Trial
    wrong: Wrong
    shown_by: str
    answer: Answer
    seed: int


@dataclass(frozen=True)
class _Search:
    """A step to be made at other sizes until `end`."""

    schedule: Schedule
    step: Step
    again: Again | None
    allowed: Mapping[str, Iterable[int]] | None
    seed: int
    end: float

    def sizes(self) -> Iterator[dict[str, int]]:
        own = dict(self.schedule.source.sizes)
        return iter([own]) if self.again is None else smallest_first(own, self.allowed)

    def trials(self, several: Iterable[Mapping[str, int]]) -> Iterator[Trial]:
        """The step at these sizes, where it applies, is illegal and small enough, while there is time."""
        for sizes in several:
            if clock.monotonic() > self.end:
                return
            if trial := _trial(self.schedule, self.step, self.again, sizes):
                yield trial

    def first(self, trials: Iterator[Trial], shown_by: str = "", more: int = 0) -> tuple[_Found | None, Trial | None]:
        """The first trial with a wrong cell, on the CPU device if possible (or only as `shown_by` says); and the last tried.

        The inputs are those of the seed, or of one that is `more`.
        """
        fallback, last, patience, together, seed = None, None, PATIENCE, 1, self.seed + more
        while batch := list(islice(trials, together)):
            last, together = batch[-1], min(2 * together, TOGETHER)
            answers = on_device(batch, seed) if shown_by != INTERPRETED else [Answer()] * len(batch)
            for trial, answer in zip(batch, answers, strict=True):
                if answer.wrong:
                    return _Found(trial, answer.wrong, ON_DEVICE, answer, seed), last
            for trial, answer in zip(batch, answers, strict=True):
                if fallback is None and shown_by != ON_DEVICE and (wrong := interpreted(trial, seed)):
                    fallback = _Found(trial, wrong, INTERPRETED, answer, seed)
            patience -= len(batch) if fallback else 0
            if fallback and (patience <= 0 or fallback.answer.text is None):
                break
        return fallback, last

    def smaller(self, found: _Found) -> _Found:
        """The same at sizes of which none can be one smaller (as far as time allows), shown the same way."""
        for name, value in found.trial.sizes.items() if self.again else ():
            chosen = sorted((self.allowed or {}).get(name, range(1, value)))
            less = [{**found.trial.sizes, name: v} for v in chosen if 0 < v < value]
            tried = (self.first(self.trials(less), found.shown_by, more)[0] for more in range(SEEDS if less else 0))
            found = next(filter(None, tried), found)
        return found


def counterexample(schedule: Schedule, step: Step, *, again: Again | None = None, seed: int = 0, seconds: float = SECONDS,
                   allowed: Mapping[str, Iterable[int]] | None = None) -> Counterexample:  # fmt: skip
    """Run the order that a refused step would make.

    Parameters
    ----------
    schedule : Schedule
        The schedule that the step was refused on.
    step : Step
        A transformation; also one that is legal but leaves updates that nothing collects.
    again : callable, optional
        ``again(sizes)`` gives the schedule at other sizes, and raises where the program or a step does not allow them; without
        it only its own sizes are tried.
    seed : int
        Of the inputs.
    seconds : float
        After which the search ends.
    allowed : mapping of str to iterable of int, optional
        Values that some sizes may take; by default all up to the schedule's own.
    """
    refusal = _refusal(schedule, step)
    if isinstance(refusal, str):
        return Counterexample(str(step), False, refusal)
    search = _Search(schedule, step, again, allowed, seed, clock.monotonic() + seconds)
    found, last = search.first(search.trials(search.sizes()))
    if found:
        return _told(step, search.smaller(found))
    if last is None:
        return Counterexample(str(step), False, "the step is refused only at sizes that are too large to interpret here",
                              finding=refusal)
    if isinstance(why := illegal_ir(last.plan), str):
        return Counterexample(str(step), False, f"no kernel can say what {step} would make, so there is no order to run: {why}",
                              tuple(last.sizes.items()), finding=last.finding)
    return Counterexample(
        str(step), False, f"no output cell is wrong in any order that was tried, up to {_words(last.sizes)}: the value that the "
        "order would spoil is not used later, or the result does not depend on it; the order is illegal all the same",
        tuple(last.sizes.items()), finding=last.finding)  # fmt: skip


def shown(step: Step, trial: Trial, seed: int = 0) -> Counterexample:
    """What one illegal plan computes at its sizes: on the CPU device, else, where it is small, in the interpreter."""
    answer, small = on_device([trial], seed)[0], sum(instances(trial.plan).values()) <= MOST_INSTANCES
    by, wrong = ON_DEVICE, answer.wrong
    if wrong is None and small and _places(trial.plan) <= MOST_INSTANCES:
        by, wrong = INTERPRETED, interpreted(trial, seed)
    if wrong is not None:
        return _told(step, _Found(trial, wrong, by, answer, seed))
    said, sizes = watched(answer, trial, seed), tuple(trial.sizes.items())
    text, above = (answer.text.text, answer.text.above) if answer.text else ("", 0)
    if said:
        return Counterexample(str(step), True, f"at {_words(trial.sizes)}, {said}", sizes, finding=trial.finding,
                              shown_by=ON_DEVICE, text=text, above=above)
    return Counterexample(str(step), False, f"no output cell is wrong at {_words(trial.sizes)}: {answer.why}", sizes,
                          finding=trial.finding, text=text, above=above)


def _told(step: Step, found: _Found) -> Counterexample:
    """The result in words."""
    trial, wrong, where, seed = found.trial, found.wrong, _words(found.trial.sizes), found.seed
    checks = watched(found.answer, trial, seed)
    silent = found.answer.why if found.shown_by == INTERPRETED else ""
    cell = cell_name(wrong.array, wrong.element)
    verdict = (f"at {where}, {cell} is {wrong.got} and should be {wrong.expected}; {wrong.count} of {wrong.total} cells are wrong"
               if wrong.array else f"at {where}, {wrong.problem}")  # fmt: skip
    return Counterexample(
        str(step), True, verdict, tuple(trial.sizes.items()), wrong.array, wrong.element, wrong.got, wrong.expected, wrong.cells,
        trial.finding, found.shown_by, wrong.order, "; ".join(filter(None, (silent, checks))),
        found.answer.text.text if found.answer.text else "", inputs_in_words(trial, seed),
        written(trial, wrong.array, wrong.element, seed), found.answer.text.above if found.answer.text else 0)  # fmt: skip


def _refusal(schedule: Schedule, step: Step) -> Finding | str:
    """What speaks against the step, or why there is no order to run."""
    verdict: Verdict = step.check(schedule.plan)
    if not verdict:
        return f"{step} cannot be made at all, so there is no order to run: {verdict.what}"
    judgement = judge(step.rewrite(schedule.plan))
    if judgement.refusals:
        return judgement.refusals[0]
    if judgement.obligations:
        return judgement.obligations[0]
    return f"{step} is legal: every order that it allows computes what the program says"


def _trial(schedule: Schedule, step: Step, again: Again | None, sizes: Mapping[str, int]) -> Trial | None:
    """The step at these sizes; None where it does not apply, is legal there, or is too large."""
    own = dict(schedule.source.sizes)
    try:
        smaller = schedule if again is None or dict(sizes) == own else again(sizes)
        plan = smaller.plan
        if not step.check(plan):
            return None
        new = step.rewrite(plan)
        if sum(instances(new).values()) > MOST_INSTANCES or _places(new) > MOST_INSTANCES:
            return None
        judgement = judge(new)
    except ExplorerError:
        return None
    finding = next(iter((*judgement.refusals, *judgement.obligations)), None)
    return Trial(dict(sizes), as_computed(smaller.source, new), new, finding) if finding else None


def _places(plan: Plan) -> int:
    """Iterations of all loops, as a bound on what the interpreter goes through."""
    def count(nodes: tuple) -> int:
        return sum(max(n.extent, 1) * max(count(n.body), 1) if isinstance(n, Loop) else 1 for n in nodes)

    return sum(count(k.body) for k in plan.kernels)


def _words(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sizes.items()) or "its own sizes"


__all__ = ["counterexample", "shown"]
