"""Background tasks of a second or more, with progress and cancellation between two of their parts."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from ..errors import ExplorerError
from ..system.cancel import Cancel, Cancelled, cancellable

log = logging.getLogger("explorer")

Tell = Callable[..., None]
"""``tell(doing, fraction=None, part=None)``: what is done, how far it is, what is known so far; raises when to stop."""


@dataclass(frozen=True)
class Stand:
    """How some work stands; each report is a new value.

    Attributes
    ----------
    status : str
        ``"idle"``, ``"running"``, ``"done"``, ``"failed"`` or ``"cancelled"``.
    doing : str
    fraction : float or None
    error : BaseException or None
    """

    status: str = "idle"
    doing: str = ""
    fraction: float | None = None
    error: BaseException | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Progress(Stand):
    """How a task stands.

    Attributes
    ----------
    result : Any
        What is known so far; whole when done.
    """

    result: Any = None


P = TypeVar("P", bound=Stand)


class Background(ABC, Generic[P]):
    """One piece of work in a thread; it begins, is told of while it runs, and ends once.

    Parameters
    ----------
    begun : Stand
        How it stands at first.
    report : callable
        ``report(progress)``, called from the thread whenever something is known, and at the end.
    """

    def __init__(self, begun: P, report: Callable[[P], None]) -> None:
        self.progress, self._report, self._cancel = begun, report, Cancel()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"explorer-{type(self).__name__.lower()}", daemon=True)

    @abstractmethod
    def _work(self) -> Mapping[str, Any]:
        """Do it; what it has shown, as fields of the progress."""

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def cancel(self) -> None:
        """Stop at the next part; child processes are killed, and nothing more is reported after this."""
        with self._lock:
            if self.running:
                self.progress = replace(self.progress, status="cancelled", doing="cancelled", fraction=None)
        self._cancel.ask()

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait for the thread to end; False if it has not."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    @property
    def running(self) -> bool:
        """Whether it is at work."""
        return self.progress.status == "running"

    def _tell(self, **changes: Any) -> None:
        """Report a change, unless the work is over."""
        with self._lock:
            if not self.running:
                return
            self.progress = told = replace(self.progress, **changes)
        self._report(told)

    def _run(self) -> None:
        try:
            with cancellable(self._cancel):
                shown = self._work()
        except Cancelled:
            self._tell(status="cancelled", doing="cancelled", fraction=None)
        except Exception as error:
            level = logging.INFO if isinstance(error, ExplorerError) else logging.ERROR
            log.log(level, "%s failed", self._thread.name, exc_info=error)
            self._tell(status="failed", doing="failed", fraction=None, error=error)
        else:
            self._tell(status="done", doing="", fraction=1.0, **shown)


class Task(Background[Progress]):
    """A function in a thread.

    Parameters
    ----------
    work : callable
        ``work(tell)``, which returns the result.
    report : callable
        ``report(progress)``, called from the thread whenever something is known, and at the end.
    """

    def __init__(self, work: Callable[[Tell], Any], report: Callable[[Progress], None]) -> None:
        super().__init__(Progress("running", "starting"), report)
        self._function = work

    def _work(self) -> Mapping[str, Any]:
        return {"result": self._function(self._heard)}

    def _heard(self, doing: str, fraction: float | None = None, part: Any = None) -> None:
        self._cancel.check()
        self._tell(doing=doing, fraction=fraction, **({} if part is None else {"result": part}))
