"""Windows: sums of few products over a window around each element, as depthwise convolutions and those of small groups are.

Neighbouring results share most of their windows, and little else is used twice: no tensor instruction has work here, and what
costs is to load, convert and guard each element again for each result.  So a thread computes several neighbours
(:mod:`~explorer.strategies.windows.form` finds along which loop, from accesses alone), reads their common window into registers
with zeros beyond the edge, and the weights beside it (:mod:`~explorer.strategies.windows.moves`); how many, a small model says
(:mod:`~explorer.strategies.windows.shapes`).
"""

from __future__ import annotations

from ...errors import ScheduleError
from ...gpu.spec import Gpu, default_gpu
from ...schedule import Schedule
from .form import WindowForm, ready_windows
from .moves import build
from .shapes import Shape, priced

TRIED = 4
"""Shapes that are tried, the cheapest first, until one can be built."""
ENOUGH = 64
"""Results for each multiprocessor from which on a thread gets several: with fewer, what counts is how long its path is."""


def windows(schedule: Schedule, kernel: str = "", gpu: Gpu | None = None, shape: Shape | None = None) -> Schedule:
    """Give sums over windows threads with several neighbouring results each.

    Parameters
    ----------
    schedule : Schedule
    kernel : str
        Which kernel (default: the first); nothing of it is spread.
    gpu : Gpu, optional
        By default the H200.
    shape : Shape, optional
        By default the cheapest by the model that can be built.

    Returns
    -------
    Schedule
        Legal and without open obligations of its own; the same schedule where the kernel has no such windows.

    Raises
    ------
    ScheduleError
        If the shape that is asked for cannot be built.
    """
    kernel, gpu = kernel or schedule.plan.kernels[0].id, gpu or default_gpu()
    ready, form = ready_windows(schedule, kernel)
    if form is None:
        return schedule
    if shape is not None:
        return build(ready, form, shape)
    if form.results < ENOUGH * gpu.multiprocessors:
        return schedule
    for found, _ in priced(form, gpu)[:TRIED]:
        try:
            made = build(ready, form, found)
        except ScheduleError:
            continue
        if made.judgement.legal:
            return made
    return schedule


def windows_us(schedule: Schedule, kernel: str, gpu: Gpu) -> float | None:
    """What the model says the kernel takes so; None where :func:`windows` leaves it alone."""
    _, form = ready_windows(schedule, kernel)
    found = priced(form, gpu) if form and form.results >= ENOUGH * gpu.multiprocessors else ()
    return found[0][1] if found else None


__all__ = ["Shape", "WindowForm", "priced", "ready_windows", "windows", "windows_us"]
