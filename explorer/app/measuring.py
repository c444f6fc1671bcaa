"""Requests to note what each role of the kernels does when: an instrumented copy is run, and its stamps stand in the figure.

On a GPU they are times.  On the CPU device they are an order, which needs no GPU; neither goes on beside a run or a search, whose
times they would disturb.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..run.stamps import Stamps, stamps
from .context import Context, Timed
from .panes import problems
from .protocol_results import MeasurePane
from .tasks import Progress, Task, Tell

KEPT = 8
"""States whose stamps are kept."""


class Measuring(Timed[Task]):
    """Answers ``measure``."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._state = ""
        self._found: dict[str, Stamps] = {}
        self._number = 0

    @property
    def pane(self) -> MeasurePane:
        """The stamps of the state that is shown, and whether some are on their way."""
        session, task = self._context.session, self._task
        mine = task is not None and (task.running or self._state == session.history.state.id)
        progress = task.progress if task is not None and mine else Progress()
        found = self.of(session.history.state.id)
        error = progress.error
        return {"status": progress.status, "doing": progress.doing,  # type: ignore[typeddict-item]
                "device": found.device if found else "", "number": self._number if found else 0,
                "problem": problems.of_error(error, session.schedule) if error is not None else None}

    def of(self, state: str) -> Stamps | None:
        """The stamps of a state of the history, where it has some."""
        return self._found.get(state)

    def on_measure(self, serial: int, message: Mapping[str, Any]) -> None:
        """Run an instrumented copy of the schedule that is shown on a device."""
        self._refuse_beside("stop")
        device, state = str(message.get("device", "cuda")), self._context.session.history.state

        def work(tell: Tell) -> Stamps:
            tell("running an instrumented copy")
            return stamps(state.schedule, device=device)

        self._state = state.id
        self._task = Task(work, lambda progress: self._reported(serial, state.id, progress))
        self._show(serial)
        self._task.start()

    def _reported(self, serial: int, state: str, progress: Progress) -> None:
        """From the task's thread: keep what was found, and tell the front end."""
        try:
            if progress.status == "done":
                self._found.pop(state, None)
                self._found[state] = progress.result
                self._number += 1
                for old in list(self._found)[:-KEPT]:
                    del self._found[old]
            self._show(serial)
        except Exception as error:
            self._context.failed(serial, "measure", error)

    def _show(self, serial: int) -> None:
        self._context.panes(serial, {"measure": lambda: self.pane})
