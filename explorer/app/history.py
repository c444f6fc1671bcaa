"""The history of an exploration as a tree of schedules: a new step after an undo starts a new branch.

Several steps can be one action: undo and redo go over all of them, and the strip of schedules shows the last, until somebody
looks at one of those between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from ..errors import ScheduleError
from ..run.result import Run
from ..schedule import Schedule
from ..steps.calls import title_of
from ..steps.replay import LOADING, replayed
from ..transforms.base import Transform


@dataclass(frozen=True)
class Notes:
    """The comments of a script at one line: lines above it, behind it on the same line, and below the last line."""

    above: tuple[str, ...] = ()
    beside: str = ""
    below: tuple[str, ...] = ()


@dataclass(frozen=True)
class State:
    """One schedule of the tree.

    Attributes
    ----------
    id : str
        ``"h0"``, ``"h1"``, … in order of birth.
    parent : str or None
        The state whose step led here; None for a program as written at some sizes.
    origin : str or None
        For a state without parent: the state that was shown when its sizes were chosen.
    step : Transform or None
    schedule : Schedule
    title : str
        In few words; users rename it.
    notes : Notes
        Comments of the script.
    run : Run or None
        The last run of this very schedule, without its arrays.
    compiled : tuple of str
        Architectures that have accepted its text.
    """

    id: str
    parent: str | None
    origin: str | None
    step: Transform | None
    schedule: Schedule
    title: str
    notes: Notes = field(default_factory=Notes)
    run: Run | None = None
    compiled: tuple[str, ...] = ()

    @property
    def call(self) -> str:
        """The step as Python, or the call that made the schedule."""
        sizes = ", ".join(f"{n}={v}" for n, v in self.schedule.source.sizes)
        return str(self.step) if self.step is not None else f"schedule({sizes})"


@dataclass(frozen=True)
class Leap:
    """Several steps that were taken as one action: undo goes back over all of them.

    Attributes
    ----------
    start : str
        The state before them.
    title : str
        Of the action.
    shown : str
        The state that was shown, where they began at another one: undo goes back to it.
    """

    start: str
    title: str
    shown: str = ""


class History:
    """All states, which one is shown, and where redo leads from each."""

    def __init__(self, schedule: Schedule) -> None:
        self.states: dict[str, State] = {}
        self.next: dict[str, str] = {}
        self.leaps: dict[str, Leap] = {}
        self.current = self.root(Schedule.of(schedule.source, schedule.definition), None).id
        for state in self.grow(self.current, replay(self.state.schedule, schedule.steps)):
            self.current = state.id

    @property
    def state(self) -> State:
        """The state that is shown."""
        return self.states[self.current]

    def get(self, state: str) -> State:
        """The state with this id; refuses an unknown one."""
        if state not in self.states:
            raise ScheduleError(f"there is no state {state!r} in the history", hint=f"one of {', '.join(self.states)}"[:200])
        return self.states[state]

    def root(self, schedule: Schedule, origin: str | None) -> State:
        """The program as written, at the sizes of `schedule`: the state there is, or a new one."""
        for state in self.states.values():
            if state.parent is None and state.schedule.source == schedule.source:
                return state
        sizes = ", ".join(f"{n}={v}" for n, v in schedule.source.sizes)
        return self._add(None, origin, None, schedule, f"{schedule.source.name}  {sizes}".rstrip())

    def child(self, parent: str, step: Transform) -> State | None:
        """The state that this step has led to before."""
        return next((s for s in self.states.values() if s.parent == parent and s.step == step), None)

    def grow(self, parent: str, done: Sequence[tuple[Transform, Schedule]]) -> list[State]:
        """The states of these steps below `parent`: those there are, then new ones."""
        path = []
        for step, schedule in done:
            state = self.child(parent, step) or self._add(parent, None, step, schedule, title_of(step))
            path.append(state)
            parent = state.id
        return path

    def leap(self, start: str, end: str, title: str, shown: str = "") -> None:
        """Make the steps between two states of one line one action, which ends at `end` and was taken where `shown` was shown."""
        if start == end:
            return
        self.leaps.pop(end, None)
        if shown in (s.id for s in self.line(end)) or not self._leads_away(shown, end):
            shown = ""
        if shown or len(self.inside(start, end)) > 0:
            self.leaps[end] = Leap(start, title, shown)

    def _leads_away(self, shown: str, end: str) -> bool:
        """Whether the way back from a state does not come through another one; of two actions taken from each other the later one
        keeps its way.
        """
        at: str | None = shown
        while at:
            leap = self.leaps.get(at)
            if leap and leap.shown == end:
                self.leaps[at] = replace(leap, shown="")
            if at == end:
                return False
            at = self.before(at)
        return True

    def actions(self) -> tuple[tuple[int, int, str], ...]:
        """The actions of several steps on the line to the current state: steps before, steps with it, title."""
        depth = {s.id: n for n, s in enumerate(self.line())}
        return tuple((depth[leap.start], depth[end], leap.title) for end, leap in self.leaps.items() if end in depth)

    def regroup(self, actions: Sequence[tuple[int, int, str]]) -> None:
        """Make steps of the line to the current state actions again, as :meth:`actions` told them."""
        ids = [s.id for s in self.line()]
        for start, end, title in actions:
            if 0 <= start < end < len(ids):
                self.leaps[ids[end]] = Leap(ids[start], title)

    def inside(self, start: str, end: str) -> list[str]:
        """The states between two of one line."""
        ids = [s.id for s in self.line(end)]
        return ids[ids.index(start) + 1 : -1]

    def action(self, state: str) -> str:
        """What led to a state, in few words: its step, or the action of several."""
        leap, found = self.leaps.get(state), self.states[state]
        own = found.step is None or found.title != title_of(found.step)
        if leap is None or own:
            return found.title
        count = len(self.inside(leap.start, state)) + 1
        return f"{leap.title} · {count} step{'s' * (count != 1)}"

    def folded(self) -> frozenset[str]:
        """States inside of one action that nobody has looked at, run, or gone on from."""
        parents = Counter(s.parent for s in self.states.values())
        used = {self.current, *self.leaps, *(i for leap in self.leaps.values() for i in (leap.start, leap.shown))}
        between = {i for end, leap in self.leaps.items() for i in self.inside(leap.start, end)}
        return frozenset(i for i in between - used if parents[i] == 1 and self.states[i].run is None)

    def _unfold(self, state: str) -> None:
        """A state inside of an action is shown: its steps are steps again."""
        for end, leap in [*self.leaps.items()]:
            inner = self.inside(leap.start, end)
            if state in inner:
                del self.leaps[end]
                for before, after in pairwise([leap.start, *inner, end]):
                    self.next[before] = after

    def show(self, state: str) -> State:
        """Make a state the current one; redo leads back to it from every state before it."""
        found = self.get(state)
        self._unfold(state)
        self.current = state
        if leap := self.leaps.get(state):
            self.next[leap.shown or leap.start] = state
        while (before := self._above(state)) is not None:
            self.next[before] = state
            state = before
        return found

    def before(self, state: str) -> str | None:
        """Where undo leads."""
        leap = self.leaps.get(state)
        return leap.shown if leap and leap.shown else self._above(state)

    def _above(self, state: str) -> str | None:
        """The state that an action or a step began at."""
        found = self.states[state]
        return self.leaps[state].start if state in self.leaps else found.parent or found.origin

    def after(self, state: str) -> str | None:
        """Where redo leads."""
        return self.next.get(state)

    def line(self, state: str | None = None) -> list[State]:
        """The states from the program as written to `state` (by default the current one)."""
        found = []
        at: str | None = state or self.current
        while at is not None:
            found.append(self.states[at])
            at = self.states[at].parent
        return found[::-1]

    def path(self) -> list[str]:
        """The line to the current state and on to the redo's end."""
        ids = [s.id for s in self.line()]
        while (following := self.next.get(ids[-1])) and following not in ids:
            leap = self.leaps.get(following)
            if leap and leap.start == ids[-1]:
                ids += self.inside(leap.start, following)
            elif self.states[following].parent != ids[-1]:
                break
            ids.append(following)
        return ids

    def times(self, gpu: str) -> tuple[tuple[tuple[Transform, ...], float], ...]:
        """Steps and microseconds of the schedules of the program that is shown, at its sizes, that were right on this GPU."""
        source = self.state.schedule.source
        ran = [(s.schedule, s.run) for s in self.states.values() if s.run is not None and s.schedule.source == source]
        right = [(s, run.timing) for s, run in ran if run.timing and run.device == gpu and run.correct is not False]
        return tuple((s.steps, timing.net_us) for s, timing in right)

    def change(self, state: str, **changes: object) -> State:
        """Replace some of a state's title, notes, run and architectures."""
        self.states[state] = replace(self.get(state), **changes)  # type: ignore[arg-type]
        return self.states[state]

    def _add(self, parent: str | None, origin: str | None, step: Transform | None, schedule: Schedule, title: str) -> State:
        state = State(f"h{len(self.states)}", parent, origin, step, schedule, title)
        self.states[state.id] = state
        return state


def replay(schedule: Schedule, steps: Sequence[Transform]) -> list[tuple[Transform, Schedule]]:
    """Each step with the schedule after it; raises what the first step that does not apply raises."""
    return list(replayed(schedule, steps, LOADING))
