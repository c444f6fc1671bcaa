"""Requests for runs: the devices there are, the run that goes on, and what it has shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ScheduleError
from ..run.timing import Timing
from .context import Context, Timed
from .devices import devices, gpu_is_likely, installed_gpu
from .history import State
from .jobs import Job, Order, Snapshot
from .panes.head import head
from .panes.history import history
from .panes.run import run_pane
from .panes.target import target_pane
from .protocol import Head
from .protocol_results import RunPane


class Running(Timed[Job]):
    """Answers ``device``, ``run`` and ``cancel``."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._devices = devices(ask_driver=False)
        self._asked_driver = False
        self._recorded: object = None

    @property
    def pane(self) -> RunPane:
        """The run pane now."""
        return run_pane(self._context.session, self._task.progress if self._task else Snapshot(), self._devices)

    @property
    def head(self) -> Head:
        """The head now: it says what a run is doing."""
        job = self._task
        return head(self._context.session, job.progress.doing if job and job.running else "")

    # ---- devices ----

    def begin(self, serial: int) -> None:
        """Choose a device; the driver is asked once, in a thread."""
        if self._asked_driver:
            return
        self._asked_driver = True
        if gpu_is_likely():
            self._context.queue(lambda: self._ask_driver(serial))
        session = self._context.session
        session.device = session.device or next((d["name"] for d in self._devices if d["available"]), "")
        self._context.panes(serial, {"run": lambda: self.pane})

    def _ask_driver(self, serial: int) -> None:
        session = self._context.session
        before = session.gpu
        try:
            self._devices = devices()
            gpu = next(d for d in self._devices if d["name"] == "cuda")
            if gpu["available"] and session.device in ("", "cpu") and self._task is None:
                session.device = "cuda"
            session.installed = installed_gpu() if gpu["available"] else ""
            self._context.panes(serial, {"run": lambda: self.pane, "target": lambda: target_pane(session)})
            if session.gpu != before:
                self._context.after(serial)
        except Exception as error:
            self._context.failed(serial, "ready", error)

    def on_device(self, serial: int, message: Mapping[str, Any]) -> None:
        """Run on another device."""
        name = str(message.get("device"))
        found = next((d for d in self._devices if d["name"] == name), None)
        if found is None:
            raise ScheduleError(f"there is no device {name!r}", hint=" or ".join(d["name"] for d in self._devices))
        if not found["available"]:
            raise ScheduleError(f"{found['label']} cannot be used here", why=found["why"])
        self._context.session.device = name
        self._context.panes(serial, {"run": lambda: self.pane})

    # ---- runs ----

    def on_run(self, serial: int, message: Mapping[str, Any]) -> None:
        """Run the schedule that is shown."""
        self._refuse_beside("cancel")
        session = self._context.session
        device, line = session.device or "cpu", session.history.line()
        before = line[-2] if len(line) > 1 else None
        order = Order(session.history.current, session.schedule, device, bool(message.get("time", True)), line[0].schedule,
                      before.schedule if before else None, known_time(before, device))
        self._task = Job(order, lambda snapshot: self._reported(serial, snapshot))
        self._task.start()
        self._show(serial)

    def on_cancel(self, serial: int, _: Mapping[str, Any]) -> None:
        """Stop it."""
        self.close()
        self._show(serial)

    def _show(self, serial: int, **more: Callable[[], Any]) -> None:
        self._context.panes(serial, {"run": lambda: self.pane, "head": lambda: self.head, **more})

    def _reported(self, serial: int, snapshot: Snapshot) -> None:
        """From the job's thread: keep what the run has shown, and tell the front end."""
        try:
            more: dict[str, Callable[[], Any]] = {}
            if snapshot.run is not None:
                if snapshot.run is not self._recorded:
                    self._recorded = snapshot.run
                    with self._context.ours():
                        self._context.session.record(snapshot.state, snapshot.run)
                more["history"] = lambda: history(self._context.session)
            self._show(serial, **more)
            if snapshot.status != "running":
                self._context.changed()
        except Exception as error:
            self._context.failed(serial, "run", error)


def known_time(state: State | None, device: str) -> Timing | None:
    """The timing of a state on this kind of device, if it has been taken."""
    run = state.run if state is not None else None
    return run.timing if run is not None and (run.device == "cpu") == (device == "cpu") else None
