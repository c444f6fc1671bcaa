"""Steps taken again, one by one, on another schedule: with a limit of time, and word of how far it is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from math import inf
from time import monotonic

from ..errors import ExplorerError, ReplayError
from ..schedule import Schedule
from ..transforms.base import Transform

LOADING = 120.0
"""Seconds that the steps of a saved schedule may take to judge, if nothing else is said."""

Reached = Callable[[int, int], None]
"""Told how many steps are made, and of how many."""


def replayed(start: Schedule, steps: Sequence[Transform], seconds: float = inf,
             progress: Reached | None = None) -> Iterator[tuple[Transform, Schedule]]:
    """Apply steps one by one: each with the schedule after it.

    Parameters
    ----------
    start : Schedule
    steps : sequence of Transform
    seconds : float
        How long they may take together.
    progress : callable, optional
        Called with the number of steps that are made and of all.

    Raises
    ------
    ReplayError
        When the time is over, with what was reached as ``error.schedule``, ``error.done``, and the steps that are left as
        ``error.left``.
    ExplorerError
        What a step raises that does not apply, with the same.
    """
    end, now = monotonic() + seconds, start
    for done, step in enumerate(steps):
        reached = {"schedule": now, "done": done, "left": tuple(steps[done:])}
        if monotonic() > end:
            raise ReplayError(f"the steps take too long: {done} of {len(steps)} were made in {seconds:g} s",
                              where=f"step {done + 1}, {step}"[:200], why="each step is judged for every instance",
                              hint="more seconds; or go on from error.schedule, which has the steps that were made; error.left "
                                   "has the others", **reached)
        try:
            now = now.apply(step)
        except ExplorerError as error:
            error.details = {**reached, **error.details}
            raise
        if progress is not None:
            progress(done + 1, len(steps))
        yield step, now


def progress_line(name: str, after: float = 3.0) -> Reached:
    """Progress as one line on stderr, for what takes longer than `after` seconds."""
    begin = monotonic()
    said = 0.0

    def reached(done: int, total: int) -> None:
        nonlocal said
        now = monotonic()
        if now - begin < after or (now - said < 1.0 and done < total):
            return
        said = now
        print(f"\r{name}: {done} of {total} steps", end="\n" if done == total else "", file=sys.stderr, flush=True)

    return reached
