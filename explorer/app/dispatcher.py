"""The dispatcher: protocol requests to session calls and answers, slow work in threads; independent of the widget."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import RLock, get_ident
from typing import Any

from ..errors import ExplorerError, ScheduleError
from ..steps.calls import construct, find, read_call
from ..views.plotlyjs import plotly_source
from . import answers
from .context import Context, Panes
from .judging import MoveJudge
from .measuring import Measuring
from .panes import problems
from .panes.cuda import after_pass, cuda
from .panes.history import history
from .panes.loops import loop_rows, tree_rows
from .panes.plain import plain
from .panes.preview import preview, refused
from .panes.resume import resume_pane
from .panes.script import script
from .panes.selection import selection
from .panes.target import target_pane
from .planning import Planning
from .protocol_moves import MovesPane
from .running import Running
from .script import ScriptProblem
from .searching import Searching
from .session import Session
from .worker_thread import WorkerThread

log = logging.getLogger("explorer")

Send = Callable[[dict[str, Any], list[bytes]], None]
"""``send(message, buffers)``; called from several threads."""


class Dispatcher:
    """Answers the front end's requests on one session.

    Parameters
    ----------
    session : Session
    send : callable
        Takes each answer.
    changed : callable, optional
        Called without arguments whenever the schedule or what is known of it has changed.
    widget : str
        Id of the widget, by which a notebook knows its output.
    """

    def __init__(self, session: Session, send: Send, changed: Callable[[], None] = lambda: None, widget: str = "") -> None:
        self.session, self._send, self._changed, self._widget = session, send, changed, widget
        self._judge = MoveJudge(lambda serial: self._panes(serial, {"moves": self._judged}))
        self._worker = WorkerThread()
        out = Context(session, self._panes, self._failed, self._after, changed, self._ours, self._later, self._worker.do,
                       self._busy)
        self._planning, self._running, self._searching = Planning(out), Running(out), Searching(out)
        self._measuring = Measuring(out)
        self._shown: dict[str, Any] = {}
        self._lock = RLock()
        self._own: set[int] = set()
        session.observers.append(self._noticed)

    # ---- in and out ----

    def handle(self, message: Any) -> None:
        """Answer one request; whatever goes wrong is an answer, too, and nothing is raised."""
        kind, serial = (message.get("kind"), message.get("serial")) if isinstance(message, Mapping) else (None, 0)
        serial = serial if isinstance(serial, int) else 0
        try:
            method = self._method(kind) if isinstance(kind, str) and kind.isidentifier() else None
            if method is None:
                raise ScheduleError(f"there is no request {str(kind)[:40]!r}")
            with self._judge.paused(), self._ours():
                method(serial, message)
        except Exception as error:
            self._failed(serial, str(kind), error)

    def _method(self, kind: str) -> Callable[[int, Mapping[str, Any]], None] | None:
        found = (getattr(part, f"on_{kind}", None) for part in (self._planning, self._running, self._searching, self._measuring))
        return getattr(self, f"_on_{kind}", None) or next(filter(None, found), None)

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait until no thread is at work for this dispatcher; False if it took longer."""
        parts = (self._planning, self._judge, self._searching, self._worker, self._running, self._measuring)
        return all(part.wait(timeout_s) for part in parts)

    def close(self) -> None:
        """Stop the run and end the threads."""
        if self._noticed in self.session.observers:
            self.session.observers.remove(self._noticed)
        for part in (self._running, self._searching, self._measuring, self._planning, self._judge, self._worker):
            part.close()

    @contextmanager
    def _ours(self) -> Iterator[None]:
        """What this thread changes meanwhile, it also tells the front end."""
        me = get_ident()
        self._own.add(me)
        try:
            yield
        finally:
            self._own.discard(me)

    def _noticed(self) -> None:
        """The session has changed: somebody has called one of its methods in a cell."""
        if get_ident() in self._own:
            return
        try:
            self._after(0)
        except Exception as error:
            self._failed(0, "ready", error)

    def _answer(self, serial: int, to: str, data: Any, buffers: list[bytes] | None = None) -> None:
        self._send({"kind": "answer", "serial": serial, "to": to, "data": plain(data)}, buffers or [])

    def _failed(self, serial: int, to: str, error: BaseException) -> None:
        if isinstance(error, ExplorerError):
            log.info("%s refused: %s", to, error)
        else:
            log.error("%s failed", to, exc_info=error)
        try:
            problem = problems.of_error(error, self.session.schedule)
        except Exception:
            log.exception("the problem itself could not be put in words")
            problem = problems.plain(str(error)[:500])
        self._send({"kind": "problem", "serial": serial, "to": to, "problem": plain(problem)}, [])

    def _panes(self, serial: int, panes: Panes, always: bool = False) -> None:
        """Send the panes that differ from what is shown.

        They are made while no other thread sends any: one that was made before cannot take the place of a newer one.
        """
        with self._lock:
            made = {name: make() for name, make in panes.items()}
            new = {name: data for name, data in made.items() if always or self._shown.get(name) != data}
            self._shown.update(new)
            self._send({"kind": "panes", "serial": serial, "panes": plain(new)}, [])

    def _all(self, serial: int, always: bool = False) -> None:
        """Every pane of the schedule that is shown; the moves as far as they are known."""
        session = self.session
        self._ask_moves(serial)
        self._panes(serial, {
            "head": lambda: self._running.head, "loops": lambda: loop_rows(session.schedule.plan),
            "tree": lambda: tree_rows(session.schedule.plan), "selection": lambda: selection(session), "moves": self._judged,
            "cuda": lambda: cuda(session.schedule, session.gpu), "history": lambda: history(session),
            "run": lambda: self._running.pane, "script": lambda: script(session), "target": lambda: target_pane(session),
            "resume": lambda: resume_pane(session, self._widget),
            "strategy": lambda: self._planning.pane, "search": lambda: self._searching.pane,
            "measure": lambda: self._measuring.pane, "stitching": lambda: self._planning.edges_pane}, always)

    def _busy(self) -> str:
        """What takes times just now."""
        parts = {"a run": self._running, "a search": self._searching, "a measurement of roles": self._measuring}
        return next((name for name, part in parts.items() if part.busy), "")

    def _ask_moves(self, serial: int) -> None:
        self._judge.ask(serial, self.session.schedule, self.session.selected, self.session.gpu)

    def _judged(self) -> MovesPane:
        return self._judge.pane

    def _after(self, serial: int) -> None:
        """The schedule has changed, or the GPU that it is for."""
        self._planning.renew(serial)
        self._all(serial)
        self._changed()

    # ---- requests ----

    def _on_ready(self, serial: int, _: Mapping[str, Any]) -> None:
        self._all(serial, always=True)
        self._running.begin(serial)

    def _on_select(self, serial: int, message: Mapping[str, Any]) -> None:
        node = message.get("node")
        self.session.select(node if node is None else str(node))
        self._ask_moves(serial)
        self._panes(serial, {"selection": lambda: selection(self.session), "moves": self._judged})

    def _on_preview(self, serial: int, message: Mapping[str, Any]) -> None:
        call = str(message.get("call", ""))
        try:
            step = read_call(call)
        except ExplorerError as error:
            self._answer(serial, "preview", refused(call, error, self.session.schedule))
            return
        self._answer(serial, "preview", preview(self.session.schedule, step))

    def _on_check(self, serial: int, message: Mapping[str, Any]) -> None:
        name, arguments = str(message.get("name", "")), message.get("arguments")
        try:
            step = construct(find(name), arguments if isinstance(arguments, Mapping) else {})
        except ExplorerError as error:
            self._answer(serial, "check", refused(name, error, self.session.schedule))
            return
        self._answer(serial, "check", preview(self.session.schedule, step))

    def _on_apply(self, serial: int, message: Mapping[str, Any]) -> None:
        if message.get("call"):
            step = read_call(str(message["call"]))
        else:
            arguments = message.get("arguments")
            step = construct(find(str(message.get("name", ""))), arguments if isinstance(arguments, Mapping) else {})
        self.session.apply(step)
        self._after(serial)

    def _on_take(self, serial: int, message: Mapping[str, Any]) -> None:
        calls = message.get("calls")
        if not isinstance(calls, list) or not calls:
            raise ScheduleError("no steps were given", hint="a list of calls such as collect('y', 'shuffle')")
        self.session.take([str(call) for call in calls], str(message.get("title", ""))[:80])
        self._after(serial)

    def _on_undo(self, serial: int, _: Mapping[str, Any]) -> None:
        self.session.undo()
        self._after(serial)

    def _on_redo(self, serial: int, _: Mapping[str, Any]) -> None:
        self.session.redo()
        self._after(serial)

    def _on_goto(self, serial: int, message: Mapping[str, Any]) -> None:
        self.session.goto(str(message.get("state")))
        self._after(serial)

    def _on_rename(self, serial: int, message: Mapping[str, Any]) -> None:
        self.session.rename(str(message.get("state")), str(message.get("title", "")))
        self._panes(serial, {"history": lambda: history(self.session), "head": lambda: self._running.head})
        self._changed()

    def _on_script(self, serial: int, message: Mapping[str, Any]) -> None:
        try:
            self.session.write(str(message.get("text", "")))
        except ScriptProblem as problem:
            log.info("script refused: %s", problem)
            self._panes(serial, {"script": lambda: script(self.session)}, always=True)
            return
        self._after(serial)

    def _on_sizes(self, serial: int, message: Mapping[str, Any]) -> None:
        sizes = message.get("sizes")
        if not isinstance(sizes, Mapping):
            raise ScheduleError("no sizes were given", hint="a name and an integer for each")
        self.session.resize({str(k): v for k, v in sizes.items()})
        self._after(serial)

    def _on_compare(self, serial: int, message: Mapping[str, Any]) -> None:
        first, second = (self.session.history.get(str(message.get(side))) for side in ("a", "b"))
        gpu = self.session.gpu
        self._later(serial, "compare", lambda: answers.compared(first, second, gpu))

    def _on_counterexample(self, serial: int, message: Mapping[str, Any]) -> None:
        schedule, step = self.session.schedule, read_call(str(message.get("call", "")))
        self._later(serial, "counterexample", lambda: answers.counterexample_of(schedule, step))

    def _on_figure(self, serial: int, message: Mapping[str, Any]) -> None:
        session, name, asked = self.session, str(message.get("name", "")), message.get("options")
        schedule, node, run, gpu = session.schedule, session.selected, session.history.state.run, session.gpu
        options = asked if isinstance(asked, Mapping) else {}
        step = read_call(str(message["call"])) if message.get("call") else None
        have, times = message.get("have"), (*session.history.times(gpu.name), *self._searching.times(gpu.name))
        noted = self._measuring.of(session.history.state.id)
        self._later(serial, "figure", lambda: answers.figure(schedule, name, options, node, run, gpu, step, have, times, noted))

    def _on_ir(self, serial: int, message: Mapping[str, Any]) -> None:
        schedule, gpu, name = self.session.schedule, self.session.gpu, str(message.get("after", ""))
        self._later(serial, "ir", lambda: after_pass(schedule, gpu, name))

    def _on_ptx(self, serial: int, message: Mapping[str, Any]) -> None:
        state, arch = self.session.history.state, str(message.get("arch") or "sm_90")

        def work() -> dict[str, str]:
            found = answers.ptx(state.schedule, arch)
            if "text" in found:
                self.session.accepted(state.id, arch)
            return found

        self._later(serial, "ptx", work)

    def _on_export(self, serial: int, message: Mapping[str, Any]) -> None:
        schedule, what, gpu = self.session.schedule, str(message.get("what")), self.session.gpu
        if what == "cu":
            self._later(serial, "export", lambda: answers.exported(schedule, what, gpu))
        else:
            self._answer(serial, "export", answers.exported(schedule, what, gpu))

    def _on_plotly(self, serial: int, _: Mapping[str, Any]) -> None:
        self._answer(serial, "plotly", {}, [plotly_source()])

    # ---- threads ----

    def _later(self, serial: int, to: str, work: Callable[[], Any]) -> None:
        """Answer from the worker's thread."""
        def task() -> None:
            try:
                self._answer(serial, to, work())
            except Exception as error:
                self._failed(serial, to, error)

        self._worker.do(task)
