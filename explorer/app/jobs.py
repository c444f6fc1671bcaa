"""A run in a background thread: its phases, the times to compare with, and cancellation that ends child processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .. import workloads
from ..errors import ExplorerError
from ..run.baselines.peers import LIBRARIES, libraries, seconds_at_worst, time_library, time_numpy, time_schedule, time_together
from ..run.baselines.vectorised import vectorised
from ..run.execute import PHASES, execute
from ..run.result import Run
from ..run.timing import Timing
from ..run.verify.reference import NumpyReference
from ..schedule import Schedule
from ..system.cancel import Cancelled
from .tasks import Background, Stand

STEPS = (*PHASES, "compare")
"""Phases of a run with the comparisons behind it."""
WORTH_S = 5.0
"""A baseline that may take longer than this in one thread is not timed."""
REPEATS, LEAST = 30, 3
"""Repeats of a baseline on the GPU; the fewest, of one that takes a while."""
STEP_BEFORE, AS_WRITTEN = "the step before", "as written, one thread"
"""What a run is compared with, by name."""
WORDS = {"emit": "writing the CUDA text", "compile": "compiling", "run": "running", "verify": "comparing with the reference",
         "time": "timing", "ragged": "running at sizes that do not divide", "compare": "timing what to compare with"}


@dataclass(frozen=True)
class Snapshot(Stand):
    """How a job stands; its fraction is the share of the phases begun.

    Attributes
    ----------
    state : str
        The history's state that runs.
    device : str
    run : Run or None
        As soon as there is one; comparisons may follow.
    against : tuple of (str, Timing, Timing or None)
        Times to compare with, by what was timed; with this schedule's own time if it was taken in turn with the other.
    notes : tuple of str
        What was not timed, and why.
    """

    state: str = ""
    device: str = ""
    run: Run | None = None
    against: tuple[tuple[str, Timing, Timing | None], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Order:
    """What to run.

    Attributes
    ----------
    state : str
        Of the history.
    schedule : Schedule
    device : str
        ``"cpu"`` or ``"cuda"``.
    time : bool
    before : Schedule or None
        The step before, to be timed too, unless `known` has its time.
    known : Timing or None
    baseline : Schedule
        The program as written.
    """

    state: str
    schedule: Schedule
    device: str
    time: bool
    baseline: Schedule
    before: Schedule | None = None
    known: Timing | None = None


class Job(Background[Snapshot]):
    """One run; a cancel kills its child processes.

    Parameters
    ----------
    order : Order
    report : callable
        ``report(snapshot)``, called from the job's thread whenever something is known.
    """

    def __init__(self, order: Order, report: Callable[[Snapshot], None]) -> None:
        super().__init__(Snapshot("running", "starting", 0.0, state=order.state, device=order.device), report)
        self.order = order

    def _phase(self, name: str) -> None:
        self._cancel.check()
        self._tell(doing=WORDS[name], fraction=STEPS.index(name) / len(STEPS))

    def _work(self) -> Mapping[str, Any]:
        order = self.order
        run = execute(order.schedule, device=order.device, time=order.time, reference=numpy_reference(order.schedule),
                      progress=self._phase)
        self._cancel.check()
        self._tell(run=replace(run, outputs={}, module=None))
        if order.time and run.timing is not None:
            self._compare()
        return {}

    def _compare(self) -> None:
        """The previous step, the program as written, and libraries, each as far as it can be had in seconds."""
        order = self.order
        self._phase("compare")
        if order.known is not None and order.device == "cpu":
            self._add(STEP_BEFORE, lambda: order.known)
        elif order.before is not None:
            self._timed(STEP_BEFORE, order.before)
        if order.schedule.steps and (order.before is None or order.before.steps):
            self._timed(AS_WRITTEN, order.baseline)
        function = numpy_reference(order.schedule)
        if function is not None and order.device == "cpu":
            self._add("NumPy (the reference, in float64)", lambda: time_numpy(order.schedule, function))
        elif function is not None:
            for package in libraries():
                title = f"{LIBRARIES[package][0]} (the NumPy reference, in float64)"
                self._add(title, lambda package=package: time_library(package, order.schedule, function))
        else:
            self._derived()

    def _derived(self) -> None:
        """A program of the user's own has no function of a library; NumPy's is made from its loops."""
        schedule = self.order.schedule
        none = f"no library peer: {schedule.source.name} is not the text of a program in explorer.workloads"
        found = vectorised(schedule) if self.order.device == "cpu" else "it runs on the CPU"
        if isinstance(found, str):
            self._tell(notes=(*self.progress.notes, f"{none}; NumPy: not timed: {found}"))
            return
        self._tell(notes=(*self.progress.notes, f"{none}; NumPy was made from the program as written, in whole arrays"))
        self._add("NumPy (vectorised, in float64)", lambda: time_numpy(schedule, found))

    def _timed(self, name: str, schedule: Schedule) -> None:
        worst = seconds_at_worst(schedule, self.order.device)
        alone = not any(x.is_place for x in schedule.plan.loops.values())
        if worst > WORTH_S and alone:
            self._tell(notes=(*self.progress.notes, f"{name}: not timed, it would take about {worst:.0f} s in one thread"))
            return
        if self.order.device == "cuda":
            repeats = max(LEAST, min(REPEATS, int(WORTH_S / max(worst, 1e-9)))) if alone else REPEATS
            self._add(name, lambda: time_together([schedule, self.order.schedule], repeats=repeats))
        else:
            self._add(name, lambda: time_schedule(schedule, self.order.device))

    def _add(self, name: str, measure: Callable[[], Timing | tuple[Timing, ...] | None]) -> None:
        """Time one thing to compare with; one that fails is a note, not the end of the run."""
        self._cancel.check()
        try:
            timing = measure()
        except Cancelled:
            raise
        except ExplorerError as error:
            self._tell(notes=(*self.progress.notes, f"{name}: not timed: {error.what.splitlines()[0][:160]}"))
            return
        self._cancel.check()
        if timing is not None:
            other, own = timing if isinstance(timing, tuple) else (timing, None)
            self._tell(against=(*self.progress.against, (name, other, own)))


def numpy_reference(schedule: Schedule) -> NumpyReference | None:
    """The NumPy reference of the workload with this very text, if it is one."""
    name = schedule.source.name
    if name not in workloads.names():
        return None
    workload = workloads.get(name)
    return workload.reference if workload.definition.source == schedule.source.source else None
