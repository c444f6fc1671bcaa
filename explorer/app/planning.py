"""Requests for many steps at once: a strategy's steps, one by one or all; a scheme for every edge of the statement graph.

What takes long is a task in a thread of its own: its pane comes again and again while it goes on, and a new question stops it.
Plans are made for the session's GPU.  When that is another one, a strategy that is shown, or being made, is made again, and the
edges are as if they had never been asked for; the schedule stays as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from ..errors import ScheduleError
from ..gpu.spec import Gpu
from ..schedule import Schedule
from ..strategies.stitch import stitching
from .context import Context
from .panes.stitching import price, stitching_pane
from .panes.strategy import strategy_pane
from .protocol_plans import StitchPane, StrategyPane
from .recipes import KINDS, Recipe, recipe, recipe_of, stitched
from .session import Session
from .stitches import tried
from .tasks import Progress, Task, Tell

log = logging.getLogger("explorer")

Make = Callable[[Gpu, Tell], Recipe]
"""``make(gpu, tell)``: the steps for a GPU."""
Then = Callable[[Recipe, Tell], None]
"""``then(recipe, tell)``: what is done with them as soon as they are made."""


class Planning:
    """Answers the requests that begin with ``strategy`` and ``stitch``, and ``target``."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._name = ""
        self._task: Task | None = None
        self._again: Callable[[int, bool], None] = lambda serial, apply: None
        self._edges: Task | None = None
        self._asked: tuple[Schedule, Gpu] | None = None
        self._gpu = context.session.gpu
        self._lock = Lock()

    @property
    def pane(self) -> StrategyPane:
        """The strategies pane now."""
        return strategy_pane(self._context.session, self._name, self._task.progress if self._task else Progress())

    @property
    def edges_pane(self) -> StitchPane:
        """The stitching pane now: idle for a program, sizes, or a GPU, whose edges have not been asked for."""
        start, gpu = written(self._context.session), self._context.session.gpu
        asked = self._asked is not None and (self._asked[0].source, self._asked[1]) == (start.source, gpu)
        progress = self._edges.progress if self._edges and asked else Progress()
        return stitching_pane(start, gpu, progress, self._context.session.schedule)

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait until no task is at work; False if it took longer."""
        return all(task is None or task.wait(timeout_s) for task in (self._task, self._edges))

    def close(self) -> None:
        """Stop what is under way."""
        for task in (self._task, self._edges):
            if task is not None:
                task.cancel()

    # ---- the GPU ----

    def on_target(self, serial: int, message: Mapping[str, Any]) -> None:
        """Plan for another GPU."""
        self._context.session.aim(message.get("gpu", ""))
        self._context.after(serial)

    def renew(self, serial: int) -> None:
        """Make again what was made for another GPU than the session's; what the user has stopped is forgotten."""
        gpu, task = self._context.session.gpu, self._task
        with self._lock:
            if gpu == self._gpu:
                return
            self._gpu = gpu
        if self._edges is not None and self._asked is not None and self._asked[1] != gpu:
            self._edges.cancel()
        if task is not None and task.progress.status == "cancelled":
            self._task = None
        elif task is not None:
            self._again(serial, task.running)

    # ---- strategies ----

    def on_strategy(self, serial: int, message: Mapping[str, Any]) -> None:
        """Make a strategy's steps from the program as written."""
        name = str(message.get("name", ""))
        if name not in KINDS:
            raise ScheduleError(f"there is no strategy {name!r}", hint=" or ".join(KINDS))
        start = written(self._context.session)
        self._make(serial, name, lambda gpu, tell: recipe(start, name, gpu, tell))

    def on_strategy_stop(self, serial: int, _: Mapping[str, Any]) -> None:
        """Stop making them."""
        if self._task is not None:
            self._task.cancel()
        self._context.panes(serial, {"strategy": lambda: self.pane})

    def on_strategy_step(self, serial: int, message: Mapping[str, Any]) -> None:
        """Show the schedule after so many steps; with ``whole`` they are one action."""
        found: Recipe | None = self._task.progress.result if self._task and not self._task.running else None
        to = message.get("to")
        if found is None:
            raise ScheduleError("no strategy has been asked for", hint="choose one of the strategies first")
        if not isinstance(to, int) or isinstance(to, bool) or not 0 <= to <= len(found.steps):
            raise ScheduleError(f"a strategy of {len(found.steps)} steps has no step {to!r}"[:120])
        self._context.session.follow(found.start, found.done[:to], found.name if message.get("whole") else "")
        self._context.after(serial)

    def _make(self, serial: int, name: str, make: Make, then: Then | None = None) -> None:
        """Make steps for the session's GPU."""
        gpu = self._context.session.gpu

        def work(tell: Tell) -> Recipe:
            found = make(gpu, tell)
            if then is not None:
                then(found, tell)
            return found

        if self._task is not None:
            self._task.cancel()
        self._name, self._again = name, lambda serial, apply: self._make(serial, name, make, then if apply else None)
        self._task = Task(work, self._reporting(serial, "strategy", lambda: self.pane))
        self._context.panes(serial, {"strategy": lambda: self.pane})
        self._task.start()

    # ---- stitching ----

    def on_stitching(self, serial: int, _: Mapping[str, Any]) -> None:
        """Try every scheme on every edge of the program as written."""
        start, gpu = written(self._context.session), self._context.session.gpu
        if self._edges is None or self._asked != (start, gpu) or self._edges.progress.status in ("failed", "cancelled"):
            if self._edges is not None:
                self._edges.cancel()
            self._asked = start, gpu
            report = self._reporting(serial, "stitching", lambda: self.edges_pane)
            self._edges = Task(lambda tell: tried(start, gpu, tell), report)
            self._edges.start()
        self._context.panes(serial, {"stitching": lambda: self.edges_pane})

    def on_stitch_stop(self, serial: int, _: Mapping[str, Any]) -> None:
        """Stop trying."""
        if self._edges is not None:
            self._edges.cancel()
        self._context.panes(serial, {"stitching": lambda: self.edges_pane})

    def on_stitch_price(self, serial: int, message: Mapping[str, Any]) -> None:
        """What a choice of schemes comes to."""
        start, choices, gpu = written(self._context.session), _choices(message), self._context.session.gpu

        def work() -> Any:
            found = stitching(start, choices, gpu)
            return price(found, len(found.schedule.steps))

        self._context.later(serial, "stitch_price", work)

    def on_stitch_apply(self, serial: int, message: Mapping[str, Any]) -> None:
        """Take the steps of a choice of schemes as one action; they stand in the strategies pane, too."""
        start, choices = written(self._context.session), _choices(message)

        def make(gpu: Gpu, tell: Tell) -> Recipe:
            tell("stitching")
            return recipe_of(start, "stitch", stitched(stitching(start, choices, gpu)), gpu, tell)

        def apply(found: Recipe, tell: Tell) -> None:
            tell("applying", 1.0, found)
            with self._context.ours():
                self._context.session.follow(start, found.done, "stitch")
            self._context.after(serial)

        self._make(serial, "stitch", make, apply)

    def _reporting(self, serial: int, name: str, pane: Callable[[], Any]) -> Callable[[Progress], None]:
        """From a task's thread: the pane again."""
        def report(_: Progress) -> None:
            try:
                self._context.panes(serial, {name: pane})
            except Exception as error:
                self._context.failed(serial, name, error)

        return report


def _choices(message: Mapping[str, Any]) -> dict[str, str]:
    given = message.get("choices")
    if not isinstance(given, Mapping):
        raise ScheduleError("no choices were given", hint="an edge and its scheme for each")
    return {str(edge): str(scheme) for edge, scheme in given.items()}


def written(session: Session) -> Schedule:
    """The program as written, at the sizes that are shown."""
    return session.history.line()[0].schedule
