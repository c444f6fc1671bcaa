"""Errors, verdicts and findings in the protocol's words, each hint with the step that its button takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...errors import ExplorerError, IllegalSchedule, ScheduleError
from ...ir.finding import Finding, Verdict
from ...schedule import Schedule
from ...steps.calls import calls_in
from ...steps.hints import IN_PLACE
from ...transforms.base import Transform
from ...views.findings import Refusal, order_text, refusal_box, refusal_of
from ..protocol import Hint, Problem, Witness


def of_error(error: BaseException, schedule: Schedule | None = None) -> Problem:
    """An exception; one that is not ours is a defect of the explorer and says so."""
    if not isinstance(error, ExplorerError):
        return plain(f"the explorer itself failed: {type(error).__name__}: {error}"[:500],
                     why="this is a defect of the explorer, not of your program; the log has the traceback")
    found = error.details.get("finding")
    finding = found if isinstance(found, Finding) else None
    if isinstance(error, IllegalSchedule) and finding:
        step = error.details.get("step")
        return of_finding(finding, schedule, f"{step} is not legal" if step is not None else "")
    return _problem(Refusal(error.what, error.why, error.where), error.hint.split("; or "),
                    schedule if isinstance(error, ScheduleError) else None)


def of_verdict(verdict: Verdict, schedule: Schedule | None, step: Transform | None = None) -> Problem:
    """A refusal."""
    if verdict.finding:
        return of_finding(verdict.finding, schedule, f"{step} is not legal" if step is not None else "")
    return _problem(Refusal(verdict.what, verdict.why), verdict.hint.split("; or "), schedule)


def of_finding(finding: Finding, schedule: Schedule | None, title: str = "") -> Problem:
    """A refusal or an open obligation with its smallest pair of instances.

    With a title, the finding's own sentence goes before the reason.
    """
    return _problem(refusal_of(finding, schedule.source if schedule else None, title), finding.hints, schedule)


def plain(what: str, why: str = "", where: str = "", tries: Iterable[str] = ()) -> Problem:
    """A problem in words alone."""
    return _problem(Refusal(what, why, where), tries, None)


def _problem(refusal: Refusal, tries: Iterable[str], schedule: Schedule | None) -> Problem:
    tried = hints(tries, schedule)
    box = refusal_box(replace(refusal, hints=tuple((hint["text"], hint["call"]) for hint in tried)))
    found = witness(refusal.finding) if refusal.finding else None
    return {"what": refusal.what, "where": refusal.where, "why": refusal.why, "hints": tried, "finding": found, "html": box}


def hints(texts: Iterable[str], schedule: Schedule | None) -> list[Hint]:
    """Each thing to try; where a step stands in it that applies to the schedule, that step."""
    out: list[Hint] = []
    for text in texts:
        if not text.strip():
            continue
        call = None
        if schedule is not None and IN_PLACE not in text:  # a step of the past is no button
            call = next((str(step) for step in calls_in(text) if applies(schedule, step)), None)
        out.append({"text": text.strip(), "call": call})
    return out


def applies(schedule: Schedule, step: Transform) -> bool:
    """Whether a step can be taken; a failure of the judgement itself counts as no."""
    try:
        return bool(schedule.try_step(step)[0])
    except ExplorerError:
        return False


def witness(finding: Finding) -> Witness | None:
    """The pair of instances, if the finding has one."""
    if finding.source is None and finding.sink is None and not finding.nodes:
        return None
    return {
        "question": finding.question, "kind": finding.kind, "array": finding.array, "element": list(finding.element),
        "source": str(finding.source or ""), "sink": str(finding.sink or ""), "source_order": order_text(finding.source),
        "sink_order": order_text(finding.sink), "nodes": list(finding.nodes), "lines": list(finding.lines),
    }
