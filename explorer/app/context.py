"""The interface of the dispatcher that the handlers for planning, runs and searches use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..errors import ScheduleError
from .session import Session
from .tasks import Background

Panes = Mapping[str, Callable[[], Any]]
"""Panes by name, each made when it is sent."""


@dataclass(frozen=True)
class Context:
    """The dispatcher, as its parts see it.

    Attributes
    ----------
    session : Session
    panes : callable
        ``panes(serial, panes)`` sends those that differ from what is shown.
    failed : callable
        ``failed(serial, to, error)``.
    after : callable
        ``after(serial)`` sends everything: the schedule has changed.
    changed : callable
        ``changed()``: what is known of the schedule has changed.
    ours : callable
        ``with ours():`` what this thread changes meanwhile, it also tells the front end.
    later : callable
        ``later(serial, to, work)`` answers from the worker's thread.
    queue : callable
        ``queue(task)`` does something else there.
    busy : callable
        ``busy()``: what takes times just now, ``"a run"``, ``"a search"``; empty where nothing does.
    """

    session: Session
    panes: Callable[[int, Panes], None]
    failed: Callable[[int, str, BaseException], None]
    after: Callable[[int], None]
    changed: Callable[[], None]
    ours: Callable[[], AbstractContextManager[None]]
    later: Callable[[int, str, Callable[[], Any]], None]
    queue: Callable[[Callable[[], None]], None]
    busy: Callable[[], str]


B = TypeVar("B", bound=Background[Any])


class Timed(Generic[B]):
    """A part of the dispatcher that takes times: one piece of work in a thread, which nothing else that takes times disturbs."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._task: B | None = None

    @property
    def busy(self) -> bool:
        """Whether it is at work."""
        return self._task is not None and self._task.running

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait until it is not at work; False if it took longer."""
        return self._task is None or self._task.wait(timeout_s)

    def close(self) -> None:
        """Stop it."""
        if self._task is not None:
            self._task.cancel()

    def _refuse_beside(self, end: str) -> None:
        """Raise where something else takes times; `end` says how that ends."""
        if going := self._context.busy():
            raise ScheduleError(f"{going} is going on", hint=f"{end} it first: two at a time would disturb each other's times")
