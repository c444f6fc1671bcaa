"""Estimated GPU time of a schedule, shown beside a time measured on the CPU device."""

from __future__ import annotations

from ..errors import ExplorerError
from ..gpu.spec import Gpu
from ..ir.memo import per_program
from ..schedule import Schedule
from ..strategies.price import price


@per_program(256)
def priced_us(schedule: Schedule, gpu: Gpu) -> float | None:
    """Microseconds by the one price of plans (:mod:`explorer.strategies.price`); None where the schedule has no text to price."""
    try:
        return price(schedule.plan, gpu).total_us if schedule.judgement.emittable else None
    except ExplorerError:
        return None
