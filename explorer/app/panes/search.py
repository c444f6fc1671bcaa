"""The search pane: every variant with its time or its problem, the best, what it gained, and where the schedule stands."""

from __future__ import annotations

from dataclasses import dataclass

from ...run.search.result import SearchResult, Trial, fastest
from ...views.search import Scale, outcome_html, trial_html
from ..protocol_plans import SearchPane, SearchTrial
from ..session import Session
from ..tasks import Progress
from . import problems

USUAL, MOST = 40, 200
"""Variants that a search measures unless told otherwise, and at most."""


@dataclass(frozen=True)
class Found:
    """What a search has shown so far.

    Attributes
    ----------
    trials : tuple of Trial
        In the order measured.
    total : int
        How many there will be at most.
    result : SearchResult or None
        At its end.
    """

    trials: tuple[Trial, ...]
    total: int
    result: SearchResult | None = None


def search_pane(session: Session, progress: Progress, stopping: bool, gpu: str = "") -> SearchPane:
    """The pane for a search that goes on, or has ended; `stopping` where it has been asked to end.

    `gpu` is the one that variants are priced on where their times are of the CPU.
    """
    found: Found = progress.result or Found((), 0)
    result, running = found.result, progress.status == "running"
    order = _order(found)
    best = order[0] if order and found.trials[order[0]].time_us < float("inf") else None
    scale = Scale.of(found.trials, bool(gpu), gpu)
    return {
        "status": progress.status, "doing": "stopping" if running and stopping else progress.doing,  # type: ignore[typeddict-item]
        "fraction": progress.fraction, "usual": USUAL, "most": MOST, "total": found.total, "gpu": gpu,
        "remembered": bool(result and result.remembered), "html": outcome_html(result) if result else "",
        "trials": [_trial(session, found, n, n == best, scale) for n in order],
        "problem": problems.of_error(progress.error) if progress.error is not None else None,
    }


def _order(found: Found) -> list[int]:
    """The best first, then those that stayed in longest and the fastest of them; then twins, then those that do not count."""
    timed = sorted(fastest(found.trials), key=lambda n: (-found.trials[n].rounds, found.trials[n].time_us))
    if found.result is not None and timed:
        timed = [found.result.best, *(n for n in timed if n != found.result.best)]
    rest = [n for n in range(len(found.trials)) if n not in timed]
    return [*timed, *sorted(rest, key=lambda n: bool(found.trials[n].problem))]


def _trial(session: Session, found: Found, number: int, best: bool, scale: Scale) -> SearchTrial:
    trial = found.trials[number]
    here, timing = session.schedule.steps == trial.steps, trial.timing if not trial.problem else None
    return {
        "number": number, "label": trial.label, "best": best, "here": here, "time_us": timing.median_us if timing else None,
        "estimate_us": trial.estimate_us,
        "html": trial_html(trial, scale, start=number == 0, best=best, here=here, number=number),
    }
