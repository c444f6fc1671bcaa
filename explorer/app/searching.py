"""Requests for a measured search: what `auto` could have decided otherwise, timed variant by variant; any of them is one action.

Stopping it keeps the best so far.  A search and a run would disturb each other's times: while one goes on, the other waits for
the user to stop it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import ScheduleError
from ..run.search.measured import search
from ..run.search.result import Trial
from ..schedule import Schedule
from ..system.cancel import Cancel
from ..views.figures.ablation import timed
from .context import Context, Timed
from .devices import installed_gpu
from .panes.search import MOST, Found, search_pane
from .protocol_plans import SearchPane
from .session import Session
from .tasks import Progress, Task, Tell


class Searching(Timed[Task]):
    """Answers ``search``, ``search_stop`` and ``search_apply``."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._stop = Cancel()
        self._of: Schedule | None = None
        self._gpu = self._on = ""

    @property
    def pane(self) -> SearchPane:
        """The search pane now: idle for a program, or sizes, that have not been searched."""
        here = self._of is not None and self._of.source == self._context.session.schedule.source
        progress = self._task.progress if self._task and (here or self.busy) else Progress()
        return search_pane(self._context.session, progress, self._stop.asked, self._gpu)

    def times(self, gpu: str) -> tuple[tuple[tuple[Any, ...], float], ...]:
        """Steps and microseconds of the variants measured so far, if they are of the program shown and ran on this GPU."""
        found: Found | None = self._task.progress.result if self._task else None
        here = self._of is not None and self._of.source == self._context.session.schedule.source
        return timed(found.trials) if found is not None and here and self._on == gpu else ()

    def close(self) -> None:
        """Stop it at once."""
        super().close()
        self._stop.ask()

    def on_search(self, serial: int, message: Mapping[str, Any]) -> None:
        """Measure variants on the device that the run pane names."""
        self._refuse_beside("stop")
        trials, again = message.get("trials"), bool(message.get("again"))
        if not isinstance(trials, int) or isinstance(trials, bool) or not 1 <= trials <= MOST:
            raise ScheduleError(f"a search measures 1 to {MOST} variants, not {trials!r}"[:120])
        schedule, device, stop = self._context.session.schedule, self._context.session.device or "cpu", Cancel()
        gpu = self._context.session.gpu

        def work(tell: Tell) -> Found:
            said = ["listing what can be decided otherwise"]
            tell(said[0])

            def watch(done: Sequence[Trial], total: int) -> None:
                tell(said[0], len(done) / total, Found(tuple(done), total))

            result = search(schedule, device=device, trials=trials, progress=lambda line: said.__setitem__(0, line), watch=watch,
                            cancel=stop, renew=again, gpu=gpu)
            return Found(result.trials, len(result.trials), result)

        self._of, self._stop, self._gpu = schedule, stop, gpu.name if device == "cpu" else ""
        self._on = "" if device == "cpu" else installed_gpu()
        self._task = Task(work, lambda _: self._reported(serial))
        self._show(serial)
        self._task.start()

    def on_search_stop(self, serial: int, _: Mapping[str, Any]) -> None:
        """End it with the best so far."""
        if self.busy:
            self._stop.ask()
        self._show(serial)

    def on_search_apply(self, serial: int, message: Mapping[str, Any]) -> None:
        """Take a variant's steps, from the program as written, as one action."""
        found: Found | None = self._task.progress.result if self._task else None
        number, session = message.get("trial"), self._context.session
        if found is None or self._of is None or self._of.source != session.schedule.source:
            raise ScheduleError("nothing has been searched at these sizes", hint="start a search first")
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < len(found.trials):
            raise ScheduleError(f"there is no variant {number!r}"[:120], hint=f"0 to {len(found.trials) - 1}")
        trial = found.trials[number]
        if trial.timing is None and not trial.steps:
            raise ScheduleError(f"{trial.label} could not be built", why=trial.problem)
        self._show(serial)
        self._context.queue(lambda: self._take(serial, session, trial))

    def _take(self, serial: int, session: Session, trial: Trial) -> None:
        """From the worker's thread: the steps judged one by one, then shown."""
        try:
            start = now = session.history.line()[0].schedule
            done = []
            for step in trial.steps:
                now = now.apply(step)
                done.append((step, now))
            with self._context.ours():
                session.follow(start, done, "search")
            self._context.after(serial)
        except Exception as error:
            self._context.failed(serial, "search_apply", error)

    def _show(self, serial: int) -> None:
        self._context.panes(serial, {"search": lambda: self.pane})

    def _reported(self, serial: int) -> None:
        """From the task's thread: the pane again."""
        try:
            self._show(serial)
        except Exception as error:
            self._context.failed(serial, "search", error)


