"""The interface of the dispatcher that the handlers for planning, runs and searches use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from .session import Session

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
