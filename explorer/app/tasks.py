"""Work of a second or more in a thread of its own: it says how far it is, and can be stopped between two of its parts."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ..run.cancel import Cancel, Cancelled

log = logging.getLogger("explorer")

Tell = Callable[..., None]
"""``tell(doing, fraction=None, part=None)``: what is done, how far it is, what is known so far; raises when to stop."""


@dataclass(frozen=True)
class Progress:
    """How a task stands; each report is a new value.

    Attributes
    ----------
    status : str
        ``"idle"``, ``"running"``, ``"done"``, ``"failed"`` or ``"cancelled"``.
    doing : str
    fraction : float or None
    result : Any
        What is known so far; whole when done.
    error : BaseException or None
    """

    status: str = "idle"
    doing: str = ""
    fraction: float | None = None
    result: Any = None
    error: BaseException | None = field(default=None, compare=False)


class Task:
    """One piece of work.

    Parameters
    ----------
    work : callable
        ``work(tell)``, which returns the result.
    report : callable
        ``report(progress)``, called from the thread whenever something is known, and at the end.
    """

    def __init__(self, work: Callable[[Tell], Any], report: Callable[[Progress], None]) -> None:
        self._work, self._report, self._cancel = work, report, Cancel()
        self.progress = Progress("running", "starting")
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="explorer-task", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def cancel(self) -> None:
        """Stop at the next part; nothing more is reported after this."""
        with self._lock:
            if self.progress.status == "running":
                self.progress = replace(self.progress, status="cancelled", doing="", fraction=None)
        self._cancel.ask()

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait for the thread to end; False if it has not."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    @property
    def running(self) -> bool:
        """Whether it is at work."""
        return self.progress.status == "running"

    def _tell(self, doing: str, fraction: float | None = None, part: Any = None) -> None:
        self._cancel.check()
        self._set(doing=doing, fraction=fraction, **({} if part is None else {"result": part}))

    def _set(self, **changes: Any) -> None:
        with self._lock:
            if self.progress.status != "running":
                return
            self.progress = replace(self.progress, **changes)
            told = self.progress
        self._report(told)

    def _run(self) -> None:
        try:
            result = self._work(self._tell)
        except Cancelled:
            return
        except Exception as error:
            log.info("a task failed", exc_info=error)
            self._set(status="failed", doing="", fraction=None, error=error)
            return
        self._set(status="done", doing="", fraction=1.0, result=result)
