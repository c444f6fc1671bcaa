"""Legality checks of all moves at a node in a background thread: the latest request first, answers cached."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields

from ..errors import ExplorerError
from ..gpu.spec import Gpu
from ..ir.finding import no
from ..ir.plan import Plan
from ..schedule import Schedule
from ..steps.moves import Move, judged
from ..transforms.base import Transform, catalogue
from .panes.moves import move_data, moves_pane
from .panes.ways import ways_at
from .protocol import Problem
from .protocol_moves import MoveData, MovesPane, WaysData

log = logging.getLogger("explorer")

DEBOUNCE_S = 0.03
"""A selection that is followed by another one sooner is not judged."""
PARTIAL_S = 0.4
"""How often what is known so far is shown while judging takes long."""
KEPT = 128
"""Answers kept."""
_TAKES = {"loop": "a loop", "loops": "loops", "leaf": "a statement", "kernel": "a kernel", "array": "an array",
          "arrays": "arrays"}
"""What a move takes, by the kind of its first field."""


@dataclass(frozen=True)
class Question:
    """The moves of which node, for which request; ways to combine are judged for a GPU."""

    serial: int
    schedule: Schedule
    node: str
    gpu: Gpu


def moves_at(schedule: Schedule, node: str) -> Iterator[Move]:
    """The moves at a node; at a buffer, also those at its loop and at its users that speak of it."""
    if node not in schedule.plan.buffer_of:
        yield from judged(schedule, node)
        return
    told = set()
    for step in _steps_on(schedule.plan, node):
        told.add(step.name)
        yield Move(step.name, step, schedule.try_step(step)[0])
    if node in schedule.plan.ids:  # the statement that fills it has the same name
        yield from (move for move in judged(schedule, node) if move.name not in told)
        return
    for name, kind in catalogue().items():
        if name not in told:
            first = fields(kind)[0].metadata.get("kind", "")  # type: ignore[arg-type]
            yield Move(name, None, no(f"{name} takes {_TAKES.get(first, 'a loop or a statement')}, not the buffer {node}",
                                      hint=f"select {_TAKES.get(first, 'a loop or a statement')} that uses it"))


def _steps_on(plan: Plan, buffer: str) -> Iterator[Transform]:
    """Steps that are offered at the buffer's loop and at the statements that use it, and that speak of it."""
    users = [leaf.id for leaf, _, _ in plan.leaves if any(v.buffer == buffer for _, v in leaf.views)]
    scope = plan.buffer_of[buffer].scope
    seen = set()
    for kind in catalogue().values():
        for place in (*([scope] if scope else []), *users):
            for step in kind.candidates(plan, place) if kind.offers(plan, place) else ():
                if step not in seen and _speaks_of(step, buffer):
                    seen.add(step)
                    yield step


def _speaks_of(step: Transform, buffer: str) -> bool:
    """Whether a step names the buffer, or takes all copies of its loop."""
    values = [v if isinstance(v, tuple) else (v,) for v in step.arguments().values()]
    kinds = {f.name: f.metadata.get("kind") for f in fields(step)}  # type: ignore[arg-type]
    everything = any(kind == "arrays" and name not in step.arguments() for name, kind in kinds.items())
    return everything or any(buffer == item for value in values for item in value)


class MoveJudge:
    """Answers questions for the moves at a node.

    Parameters
    ----------
    ready : callable
        ``ready(serial)``, called from the thread whenever the pane has changed: several times while it takes long, then once
        when it is no longer pending.

    Attributes
    ----------
    pane : MovesPane
        What is known for the newest question.
    """

    def __init__(self, ready: Callable[[int], None]) -> None:
        self._ready = ready
        self.pane = moves_pane(None, (), pending=False)
        self._known: OrderedDict[tuple[Plan, str, Gpu], tuple[list[MoveData], list[WaysData]]] = OrderedDict()
        self._change = threading.Condition()
        self._asked: Question | None = None
        self._busy = self._closed = False
        self._requests = 0
        self._thread: threading.Thread | None = None

    def ask(self, serial: int, schedule: Schedule, node: str | None, gpu: Gpu) -> None:
        """The moves at a node: the pane is complete where the answer is known, else pending, and the thread goes to work."""
        with self._change:
            self._asked = None
            if node is None:
                self.pane = moves_pane(None, (), pending=False)
                return
            key = (schedule.plan, node, gpu)
            if key in self._known:
                self._known.move_to_end(key)
                moves, ways = self._known[key]
                self.pane = moves_pane(node, moves, pending=False, ways=ways)
                return
            self._asked = Question(serial, schedule, node, gpu)
            self.pane = moves_pane(node, self._same(self._asked) or (), pending=True)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="explorer-moves", daemon=True)
                self._thread.start()
            self._change.notify_all()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """While a request is answered, no further move is judged: the request has the processor and the analysis."""
        with self._change:
            self._requests += 1
        try:
            yield
        finally:
            with self._change:
                self._requests -= 1
                self._change.notify_all()

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait until nothing is being judged; False if it took longer."""
        with self._change:
            return self._change.wait_for(lambda: not self._busy and self._asked is None, timeout_s)

    def close(self) -> None:
        """End the thread after the move it is judging."""
        with self._change:
            self._closed, self._asked = True, None
            self._change.notify_all()

    def _work(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._closed or self._asked is not None)
                if self._closed:
                    return
                question = self._asked
                assert question is not None
                if self._change.wait_for(lambda q=question: self._closed or self._asked is not q, DEBOUNCE_S):
                    continue
                self._busy = True
            try:
                self._answer(question)
            except Exception as error:
                log.exception("the moves at %s could not be judged", question.node)
                failed = f"the moves at {question.node} could not be judged: {type(error).__name__}: {error}"
                self._tell(question, {**moves_pane(question.node, (), pending=False), "title": failed[:300]})
            finally:
                with self._change:
                    if self._asked is question:
                        self._asked = None
                    self._busy = False
                    self._change.notify_all()

    def _answer(self, question: Question) -> None:
        """Judge move by move; stops when another question is asked."""
        known = self._same(question)
        found = list(known or ())
        told = time.monotonic()
        ways = self._ways(question)
        said: dict[tuple[str, str], Problem] = {}
        for move in moves_at(question.schedule, question.node) if known is None else ():
            if not self._go_on(question):
                return
            found.append(move_data(question.schedule, question.node, move, said))
            if time.monotonic() - told > PARTIAL_S:
                told = time.monotonic()
                self._tell(question, moves_pane(question.node, found, pending=True, ways=ways))
        with self._change:
            if self._asked is not question:
                return
            self._known[question.schedule.plan, question.node, question.gpu] = found, ways
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        self._tell(question, moves_pane(question.node, found, pending=False, ways=ways))

    def _tell(self, question: Question, pane: MovesPane) -> None:
        """Show what is known, unless something else has been asked meanwhile."""
        with self._change:
            if self._asked is not question:
                return
            self.pane = pane
        self._ready(question.serial)

    def _same(self, question: Question) -> list[MoveData] | None:
        """The moves as they were judged for another GPU: it makes no difference to them."""
        with self._change:
            return next((moves for (plan, node, _), (moves, _) in self._known.items()
                         if node == question.node and plan == question.schedule.plan), None)

    def _ways(self, question: Question) -> list[WaysData]:
        """The ways to collect what stands open at the node; shown before the moves, which take longer."""
        if not self._go_on(question):
            return []
        try:
            found = ways_at(question.schedule, question.node, question.gpu)
        except ExplorerError as error:
            log.info("the ways at %s: %s", question.node, error)
            return []
        if found:
            self._tell(question, moves_pane(question.node, (), pending=True, ways=found))
        return found

    def _go_on(self, question: Question) -> bool:
        """Whether the question still stands; waits while requests are answered."""
        with self._change:
            self._change.wait_for(lambda: self._closed or self._requests == 0 or self._asked is not question)
            return not self._closed and self._asked is question
