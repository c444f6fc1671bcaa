"""Cancellation of work in another thread: a flag that the work polls, and the child processes to kill.

The work runs under :func:`cancellable`, which sets a context variable; so what it calls, layers below, needs no argument for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..errors import DeviceError


class Cancelled(DeviceError):
    """The user stopped the work."""


class Cancel:
    """One request to stop, and what has to be stopped when it comes."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._stops: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    @property
    def asked(self) -> bool:
        """Whether to stop."""
        return self._asked.is_set()

    def ask(self) -> None:
        """Stop: kills the child processes at work; phases to come do not begin."""
        with self._lock:
            self._asked.set()
            stops = list(self._stops)
        for stop in stops:
            stop()

    def check(self) -> None:
        """Raise :class:`Cancelled` if it is time to stop."""
        if self.asked:
            raise Cancelled("The run was cancelled.")

    @contextmanager
    def stopping(self, stop: Callable[[], None]) -> Iterator[None]:
        """While this runs, `stop` is called when the work is to be stopped."""
        with self._lock:
            self.check()
            self._stops.append(stop)
        try:
            yield
        finally:
            with self._lock:
                self._stops.remove(stop)


_CURRENT: ContextVar[Cancel | None] = ContextVar("cancel", default=None)


@contextmanager
def cancellable(cancel: Cancel) -> Iterator[None]:
    """Everything that this thread does inside can be stopped; what a killed child breaks off is :class:`Cancelled`."""
    token = _CURRENT.set(cancel)
    try:
        yield
    except DeviceError as error:
        if cancel.asked and not isinstance(error, Cancelled):
            raise Cancelled("The run was cancelled.") from error
        raise
    finally:
        _CURRENT.reset(token)


@contextmanager
def stopping(stop: Callable[[], None]) -> Iterator[None]:
    """Have `stop` called on a request to stop this thread's work, if it can be stopped at all."""
    cancel = _CURRENT.get()
    if cancel is None:
        yield
        return
    with cancel.stopping(stop):
        yield


def check() -> None:
    """Raise :class:`Cancelled` if this thread's work is to stop.  What takes long asks now and then: every step of a schedule,
    every question about it.
    """
    if (cancel := _CURRENT.get()) is not None:
        cancel.check()
