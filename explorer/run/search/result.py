"""What a measured search says: every variant with its time or its problem, the best schedule, and what it gained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import DeviceError, outspoken
from ...gpu.units import time_text
from ...schedule import Schedule
from ..timing import Comparison, Timing

SHOWN = 10
"""Trials that the text shows."""


@dataclass(frozen=True)
class Trial:
    """One variant, measured or not.

    Attributes
    ----------
    label : str
        What is different from the start.
    steps : tuple of Transform
        ``schedule.replay(trial.steps)`` is the variant; empty where it could not be built.
    estimate_us : float or None
        The price of its schedule (:mod:`explorer.strategies.price`); None where it could not be built.
    timing : Timing or None
        Of the last round it took part in.
    rounds : int
        Rounds of timing it took part in: more for those that came near the best.
    problem : str
        Why it does not count: it could not be built or run, or its outputs are wrong.
    twin : str
        The earlier variant that has the same kernels; then this one was not timed.
    """

    label: str
    steps: tuple[Any, ...] = ()
    estimate_us: float | None = None
    timing: Timing | None = None
    rounds: int = 0
    problem: str = ""
    twin: str = ""

    @property
    def time_us(self) -> float:
        """The median; infinite where it does not count."""
        return self.timing.median_us if self.timing and not self.problem else float("inf")

    def __str__(self) -> str:
        if self.problem or self.timing is None:
            return f"{self.label}: {self.problem or 'the same kernels as ' + self.twin}"
        about = "" if self.estimate_us is None else f", estimated {time_text(self.estimate_us)}"
        return f"{self.label}: {time_text(self.timing.median_us, 4)}, spread {self.timing.spread:.1%}{about}"


@outspoken(DeviceError)
@dataclass(frozen=True)
class SearchResult:
    """The outcome of :func:`explorer.run.search.measured.search`.

    Attributes
    ----------
    program : str
    sizes : tuple of (str, int)
    device : str
        The GPU's name, or the processor.
    clock : str
        What the times are.
    schedule : Schedule
        The best: the fastest by more than noise, else the start.
    trials : tuple of Trial
        In the order measured; the first is the start, what :func:`explorer.strategies.auto.auto` makes.
    best : int
        The trial that `schedule` is.
    gain : Comparison or None
        The start against the best, timed in turns: the ratio is above 1 where the best is faster.  None where the start is
        the best, or could not be timed.
    floor_us : float or None
        The least that the program's traffic takes on the GPU.
    ended : str
        Why the search ended.
    remembered : bool
        Whether the times are those of an earlier search; the schedule was replayed and judged anew.
    notes : tuple of str
    """

    program: str
    sizes: tuple[tuple[str, int], ...]
    device: str
    clock: str
    schedule: Schedule = field(repr=False, compare=False)
    trials: tuple[Trial, ...] = ()
    best: int = 0
    gain: Comparison | None = None
    floor_us: float | None = None
    ended: str = ""
    remembered: bool = False
    notes: tuple[str, ...] = ()

    @property
    def steps(self) -> tuple[Any, ...]:
        """The steps of the best schedule."""
        return self.schedule.steps

    @property
    def start(self) -> Trial:
        """What the search began with."""
        return self.trials[0]

    @property
    def time_us(self) -> float:
        """The best schedule's median, microseconds."""
        return self.trials[self.best].time_us

    @property
    def ranked(self) -> tuple[Trial, ...]:
        """The best first, then the others that were timed, those that stayed in longest first, then the fastest."""
        timed = [t for n, t in enumerate(self.trials) if n != self.best and t.time_us < float("inf")]
        return (self.trials[self.best], *sorted(timed, key=lambda t: (-t.rounds, t.time_us)))

    @property
    def failed(self) -> tuple[Trial, ...]:
        """Variants that do not count, each with its problem."""
        return tuple(t for t in self.trials if t.problem)

    @property
    def verdict(self) -> str:
        """What was gained, in a sentence."""
        if self.device == "cpu":
            return "the variants by their time on the CPU, which says nothing about a GPU"
        if self.gain is None:
            return "no variant is faster than the start by more than noise" if self.start.timing else "the start has no time"
        g = self.gain
        return f"{g.ratio:.2f}× faster than the start ({g.low:.2f} to {g.high:.2f})"

    def __str__(self) -> str:
        sizes = ", ".join(f"{n}={v}" for n, v in self.sizes)
        again = ", remembered from an earlier search" if self.remembered else ""
        lines = [f"{self.program}({sizes}) on {self.device}: {self.verdict}",
                 f"  {len(self.trials)} variants, {len(self.failed)} of them failed; {self.ended}{again}",
                 f"  {self.clock}" + (f"; the floor is {time_text(self.floor_us, 4)}" if self.floor_us else "")]
        shown = list(dict.fromkeys((*self.ranked[:SHOWN], self.start)))
        lines += [f"  {self._mark(t)} {t}" for t in shown]
        lines += [f"  ✗ {t}" for t in self.failed[:3]]
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _mark(self, trial: Trial) -> str:
        return "→" if trial is self.trials[self.best] else "·"


def fastest(trials: Sequence[Trial]) -> list[int]:
    """Positions of the trials that count, the fastest first."""
    return sorted((n for n, t in enumerate(trials) if t.time_us < float("inf")), key=lambda n: trials[n].time_us)
