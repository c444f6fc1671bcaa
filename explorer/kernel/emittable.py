"""Preconditions of code generation: what must hold of a schedule before text is emitted."""

from __future__ import annotations

from ..errors import IllegalSchedule
from ..schedule import Schedule


def require_emittable(schedule: Schedule) -> None:
    """Refuse a schedule that may not be emitted: not legal, or with an open obligation.

    Raises
    ------
    IllegalSchedule
        With the first finding.
    """
    for finding in (*schedule.judgement.refusals, *schedule.obligations):
        raise IllegalSchedule(finding.what, where=finding.where, why=finding.why, hint="; or ".join(finding.hints),
                              finding=finding, program=schedule.source)
