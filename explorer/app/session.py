"""The session: what is shown, how it came to be, what was measured.  The one mutable object of the package.

Everything the widget can do is a method here, and every method that changes the schedule is one step of a Python script.
Nothing here knows of widgets, messages or panes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import RLock
from typing import Any

from ..errors import ExplorerError, ReplayError, ScheduleError
from ..gpu.spec import Gpu, gpu, target_gpu
from ..run.result import Run
from ..schedule import Schedule
from ..steps.calls import read_call
from ..steps.replay import LOADING, progress_line, replayed
from ..transforms.base import Transform
from .history import History, Notes, State, replay
from .script import ScriptProblem, Written, read_script, subject_of, write_script

log = logging.getLogger("explorer")


@dataclass(frozen=True)
class Rejected:
    """A script that was not taken: its text, the line of the error, and the error."""

    text: str
    line: int
    error: ExplorerError


class Session:
    """One exploration.

    Parameters
    ----------
    schedule : Schedule
        Where it starts; the steps that made it become the first states of the history.

    Attributes
    ----------
    history : History
    selected : str or None
        Id of the selected node; kept over steps as long as the node exists.
    device : str
        ``"cpu"`` or ``"cuda"``; ``""`` until the user or the machine has decided.
    target, installed : str
        Names in the GPU catalogue: what the user plans for, and what the machine has; ``""`` where that is not known.
    rejected : Rejected or None
        The last script that was typed, if it was not taken.
    observers : list of callable
        Called after every change, by whoever made it.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.history = History(schedule)
        self.selected: str | None = first_loop(schedule)
        self.device = ""
        self.target = self.installed = ""
        self.rejected: Rejected | None = None
        self.observers: list[Callable[[], None]] = []
        self.lock = RLock()

    @property
    def schedule(self) -> Schedule:
        """The schedule that is shown."""
        return self.history.state.schedule

    @property
    def script(self) -> str:
        """Python that makes the schedule that is shown, one line for each step."""
        return self.written().text

    def written(self) -> Written:
        """The script of the current line of the history, with the line of each state."""
        return write_script(self.history.line())

    # ---- the schedule ----

    def step(self, call: str | Transform) -> Transform:
        """A step from its Python text."""
        return read_call(call) if isinstance(call, str) else call

    def apply(self, call: str | Transform) -> State:
        """Take one step from the current state; a step taken here before leads to the same state again.

        Raises
        ------
        TransformError, IllegalSchedule
            As :meth:`explorer.Schedule.apply`; then nothing has changed.
        """
        step = self.step(call)
        with self.lock:
            known = self.history.child(self.history.current, step)
            after = known.schedule if known else self.schedule.apply(step)
            (state,) = self.history.grow(self.history.current, [(step, after)])
            return self._shown(state.id)

    def take(self, calls: Sequence[str | Transform], title: str = "") -> State:
        """Take several steps from the current state as one action.

        Raises
        ------
        TransformError, IllegalSchedule
            As :meth:`apply` for the first step that does not apply; then nothing has changed.
        """
        steps = [self.step(call) for call in calls]
        with self.lock:
            return self._walked(self.history.current, replay(self.schedule, steps), title)

    def follow(self, start: Schedule, done: Sequence[tuple[Transform, Schedule]], title: str = "") -> State:
        """Show the end of steps that have been made from the program as written.

        Parameters
        ----------
        start : Schedule
            The program as written.
        done : sequence of (Transform, Schedule)
            Each step with the schedule after it.
        title : str
            Makes them one action with this title; by default each is one.
        """
        with self.lock:
            return self._walked(self.history.root(start, self.history.current).id, done, title)

    def _walked(self, start: str, done: Sequence[tuple[Transform, Schedule]], title: str) -> State:
        shown, path = self.history.current, self.history.grow(start, done)
        end = path[-1].id if path else start
        self.history.show(end)  # states inside of an action that it is in are steps again, before a new one is made
        if title:
            self.history.leap(start, end, title, shown)
        return self._shown(end)

    def undo(self) -> State:
        """Go back by one action."""
        with self.lock:
            before = self.history.before(self.history.current)
            if before is None:
                raise ScheduleError("there is nothing to undo", why="this is the program as written")
            self.history.next[before] = self.history.current
            return self._at(before)

    def redo(self) -> State:
        """Go forward again by one action."""
        with self.lock:
            after = self.history.after(self.history.current)
            if after is None:
                raise ScheduleError("there is nothing to redo", why="nothing was undone here")
            return self._at(after)

    def goto(self, state: str) -> State:
        """Show any state of the history; a step from there begins a branch."""
        with self.lock:
            return self._shown(self.history.get(state).id)

    def rename(self, state: str, title: str) -> State:
        """Give a state a title; an empty one gives the old title back."""
        with self.lock:
            found = self.history.get(state)
            words = " ".join(title.split())[:80]
            found = self.history.change(state, title=words or found.call)
            self._tell()
            return found

    def resize(self, sizes: Mapping[str, Any]) -> State:
        """The same steps at other sizes: a line of its own in the history.

        Raises
        ------
        ReplayError
            If a step does not apply at these sizes, or the program's definition is not known.
        """
        with self.lock:
            wanted = {**dict(self.schedule.source.sizes), **sizes}
            start = self._root_at(wanted)
            steps = [(s.step, s) for s in self.history.line()[1:] if s.step]
            schedule, done = start, []
            for number, (step, state) in enumerate(steps, 1):
                try:
                    schedule = schedule.apply(step)
                except ExplorerError as error:
                    raise ReplayError(f"step {number}, {step}, does not apply at these sizes: {error.what}", why=error.why,
                                      hint="other sizes, or undo that step first", **error.details) from error
                done.append((step, schedule, state))
            return self._line(start, [(step, after) for step, after, _ in done], [old.notes for *_, old in done])

    def write(self, text: str) -> State:
        """Take a script: keep the states that it has in common with the history, branch where it differs.

        Raises
        ------
        ScriptProblem
            With the line of what is not accepted or does not apply; nothing has changed but `rejected`.
        """
        with self.lock:
            try:
                script = read_script(text, subject_of(self.schedule))
                start = self._root_at(script.sizes, script.line)
                done: list[tuple[Transform, Schedule]] = []
                walk = replayed(start, [line.step for line in script.steps], LOADING, progress_line(start.source.name))
                for line in script.steps:
                    try:
                        done.append(next(walk))  # type: ignore[arg-type]
                    except ExplorerError as error:
                        raise ScriptProblem(line.line, error) from error
            except ScriptProblem as problem:
                self.rejected = Rejected(text, problem.line, problem.error)
                raise
            self.rejected = None
            return self._line(start, done, [line.notes for line in script.steps], script.notes)

    # ---- the rest ----

    @property
    def gpu(self) -> Gpu:
        """The GPU that strategies, estimates and the CUDA text are made for: the user's choice, the machine's, or the default."""
        return target_gpu(self.target or self.installed or None)

    def aim(self, name: str) -> Gpu:
        """Plan for the GPU of that name, whatever the machine has; the schedule stays as it is.

        Raises
        ------
        ResourceError
            If the catalogue has none of that name; it says which there are.
        """
        found = gpu(name)
        self.target = found.name
        self._tell()
        return found

    def select(self, node: str | None) -> None:
        """Select a node (a kernel, loop, statement, wait or buffer), or nothing.

        Raises
        ------
        ScheduleError
            If the schedule that is shown has no such node.
        """
        if node is not None and node not in nodes(self.schedule):
            raise ScheduleError(f"there is no node {node!r}", hint=f"one of {', '.join(sorted(nodes(self.schedule)))}"[:200])
        self.selected = node
        self._tell()

    def record(self, state: str, run: Run) -> None:
        """Keep what a run of a state has shown."""
        with self.lock:
            self.history.change(state, run=replace(run, outputs={}, module=None))
            self._tell()

    def accepted(self, state: str, arch: str) -> None:
        """Keep that a compiler has accepted a state's text for an architecture."""
        with self.lock:
            known = self.history.get(state).compiled
            self.history.change(state, compiled=tuple(dict.fromkeys((*known, arch))))
            self._tell()

    def _root_at(self, sizes: Mapping[str, Any], line: int = 0) -> Schedule:
        """The program as written, at these sizes."""
        now = self.schedule
        if dict(sizes) == dict(now.source.sizes):
            return self.history.line()[0].schedule
        try:
            if now.definition is None:
                raise ReplayError("the sizes of this schedule are fixed: the program's definition is not known",
                                  hint=f"ex.explore({now.source.name}, …) with the decorated function")
            return now.definition.schedule(**sizes)
        except ExplorerError as error:
            if line:
                raise ScriptProblem(line, error) from error
            raise

    def _line(self, start: Schedule, done: list[tuple[Transform, Schedule]], notes: list[Notes],
              root_notes: Notes | None = None) -> State:
        """Show the end of a line of states, with these comments."""
        root = self.history.root(start, self.history.current)
        if root_notes is not None:
            self.history.change(root.id, notes=root_notes)
        path = self.history.grow(root.id, done)
        for state, note in zip(path, notes, strict=True):
            self.history.change(state.id, notes=note)
        return self._shown((path[-1] if path else root).id)

    def _shown(self, state: str) -> State:
        found = self.history.show(state)
        self._keep_selection()
        self.rejected = None
        self._tell()
        return found

    def _at(self, state: str) -> State:
        """Show a state without changing where redo leads."""
        self.history.current = state
        self._keep_selection()
        self.rejected = None
        self._tell()
        return self.history.state

    def _tell(self) -> None:
        for observer in tuple(self.observers):
            observer()

    def _keep_selection(self) -> None:
        if self.selected is not None and self.selected not in nodes(self.schedule):
            stem = self.selected.split(".")[0]
            self.selected = stem if stem in nodes(self.schedule) else first_loop(self.schedule)


def nodes(schedule: Schedule) -> frozenset[str]:
    """Everything that can be selected: kernels, loops, statements, waits, buffers."""
    return schedule.plan.ids | schedule.plan.buffer_of.keys()


def first_loop(schedule: Schedule) -> str | None:
    """The outermost loop, which is selected at first."""
    return next(iter(schedule.plan.loops), None)


__all__ = ["Rejected", "Session", "first_loop", "nodes", "replay"]
