"""Slow answers, one after the other, in a thread of their own, so that the kernel stays responsive."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

Task = Callable[[], None]


class WorkerThread:
    """A queue of tasks and the thread that does them; the thread starts with the first task and ends when closed."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Task | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._open = 0
        self._change = threading.Condition()

    def do(self, task: Task) -> None:
        """Do a task later; it handles its own errors."""
        with self._change:
            self._open += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="explorer-worker", daemon=True)
                self._thread.start()
        self._queue.put(task)

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait until everything asked for is done; False if it took longer."""
        with self._change:
            return self._change.wait_for(lambda: self._open == 0, timeout_s)

    def close(self) -> None:
        """End the thread after its present task."""
        self._queue.put(None)

    def _work(self) -> None:
        while (task := self._queue.get()) is not None:
            try:
                task()
            finally:
                with self._change:
                    self._open -= 1
                    self._change.notify_all()
