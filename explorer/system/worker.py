"""A worker process with a time limit, for work that can hang, crash or exhaust memory, behind a plain call.

The parent names a *backend*, ``"module:callable"``.  The child imports it, calls it once with a `note` function, and answers
calls of the resulting object's methods, one at a time.  Every `note(text)` is a sign of life: the time limit counts from the
last one, and its text says where the work stood when it stopped.  Whatever goes wrong (late, dead, faulted) comes back as an
exception of `explorer.errors` with that place in it; the process is then thrown away, and the next call starts a new one.

Messages are pickles with a length in front, over the child's standard input and output; what the child prints goes to a
file of which a failure shows the end.  Nothing is forked and the caller's ``__main__`` is not imported, so this works in
notebooks, in scripts without a ``__main__`` guard, and beside libraries that are not safe to fork.
"""

from __future__ import annotations

import atexit
import faulthandler
import io
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import traceback
import weakref
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from .. import errors
from ..errors import DeviceError, ExplorerError, KernelFault, KernelTimeout, OutOfMemory
from .cancel import stopping

STARTUP_S = 120.0
_TAIL_BYTES = 2000
_START = "import sys; sys.path[:] = {path!r}; from explorer.system.worker import serve; serve({backend!r})"
_ENDS_PROCESS = (KernelFault, KernelTimeout, OutOfMemory)


class Worker:
    """One child process, started on the first call and again after every failure.

    Parameters
    ----------
    backend : str
        ``"module:callable"``; the callable takes `note` and returns the object whose methods are called.
    noun : str
        What does the work, for the messages: ``"kernel"``, ``"compiler"``.
    startup_s : float
        Seconds for the imports and whatever the backend does first.

    Attributes
    ----------
    generation : int
        How many processes have been started; what a backend held is gone when this changes.
    """

    def __init__(self, backend: str, *, noun: str = "kernel", startup_s: float = STARTUP_S) -> None:
        self.backend, self.noun, self.startup_s, self.generation = backend, noun, startup_s, 0
        self._process: subprocess.Popen[bytes] | None = None
        self._inbox: queue.Queue[tuple[Any, ...] | None] = queue.Queue()
        self._log: IO[bytes] | None = None
        self._lock = threading.RLock()
        reference = weakref.ref(self)
        atexit.register(lambda: (w := reference()) and w.close())

    def start(self) -> int:
        """Have a process running; its generation."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._launch()
            return self.generation

    def call(self, method: str, *arguments: Any, limit_s: float) -> Any:
        """Call a method of the backend in the child.

        Parameters
        ----------
        method : str
        *arguments
            Anything that pickles; large arrays belong in a `SharedBlock`.
        limit_s : float
            Seconds allowed without a sign of life.

        Raises
        ------
        KernelTimeout
            No sign of life for `limit_s`.
        KernelFault
            The backend said so, or the process died.
        OutOfMemory
            The backend said so, or the process was killed from outside, as the system does when memory runs out.
        DeviceError
            Any other failure, with the child's traceback.
        """
        with self._lock:
            self.start()
            try:
                with stopping(self._kill):
                    self._send((method, arguments))
                    return self._answer(limit_s)
            except (KeyboardInterrupt, SystemExit):
                self.close()
                raise

    def close(self) -> None:
        """End the process; the next call starts a new one."""
        with self._lock:
            process, self._process = self._process, None
            if process is None:
                return
            process.kill()
            with suppress(subprocess.TimeoutExpired):  # stuck in the driver: it goes when the driver lets it
                process.wait(10)
            for stream in (process.stdin, self._log):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()

    def _kill(self) -> None:
        """End the process from another thread; the call at work sees its death."""
        process = self._process
        if process is not None:
            process.kill()

    def _launch(self) -> None:
        self.close()
        root = str(Path(__file__).resolve().parents[2])
        path = list(dict.fromkeys([p or os.getcwd() for p in sys.path] + [root]))
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START.format(path=path, backend=self.backend)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, start_new_session=True)
        self._inbox = queue.Queue()
        assert self._process.stdout is not None
        threading.Thread(target=_receive, args=(self._process.stdout, self._inbox), daemon=True).start()
        self.generation += 1
        try:
            self._answer(self.startup_s)
        except BaseException:
            self.close()
            raise

    def _send(self, message: tuple[Any, ...]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the process has died; the missing answer says why
            _write(self._process.stdin, message)

    def _answer(self, limit_s: float) -> Any:
        """Wait for the result; every note renews the time limit."""
        at = ""
        while True:
            try:
                message = self._inbox.get(timeout=limit_s)
            except queue.Empty:
                self.close()
                raise KernelTimeout(
                    f"The {self.noun} gave no sign of life for {limit_s:g} s and was stopped.", where=at,
                    why="its process was ended and the next call gets a new one",
                    hint="look for a loop or a barrier that never ends (the CPU device names it), or raise the time limit",
                    limit_s=limit_s) from None
            if message is None:
                raise self._death(at)
            if message[0] == "note":
                at = message[1]
            elif message[0] == "done":
                return message[1]
            else:
                raise self._failure(at, *message[1:])

    def _failure(self, at: str, kind: str, what: str, parts: dict[str, Any], keep: bool) -> ExplorerError:
        """The child's exception as ours."""
        if not keep:
            self.close()
        parts["where"] = parts.get("where") or at
        return getattr(errors, kind, DeviceError)(what, **parts)

    def _death(self, at: str) -> DeviceError:
        """Why the pipe closed."""
        assert self._process is not None
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        code, tail = self._process.returncode, self._printed()
        self.close()
        if code == -getattr(signal, "SIGKILL", 9):
            return OutOfMemory(f"The {self.noun}'s process was killed from outside.", where=at,
                               why="the system does that when memory runs out", hint="use smaller sizes")
        name = signal.Signals(-code).name if code is not None and code < 0 else f"exit status {code}"
        return KernelFault(f"The {self.noun}'s process died ({name}).", where=at, why=tail)

    def _printed(self) -> str:
        """The end of what the child printed."""
        if self._log is None or self._log.closed:
            return ""
        self._log.seek(max(0, self._log.seek(0, io.SEEK_END) - _TAIL_BYTES))
        return self._log.read().decode(errors="replace").strip()


def serve(backend: str) -> None:
    """Answer calls until standard input closes; the child's whole life."""
    replies = os.fdopen(os.dup(1), "wb")
    requests = os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)  # whatever prints, device code included, must not reach the replies
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    faulthandler.enable()
    inbox: queue.Queue[tuple[Any, ...]] = queue.Queue()
    lock = threading.Lock()

    def reply(*message: Any) -> None:
        with lock:
            _write(replies, message)

    def listen() -> None:
        while (message := _read(requests)) is not None:
            inbox.put(message)
        os._exit(0)  # the parent is gone: end now, even inside a kernel that never ends

    threading.Thread(target=listen, daemon=True).start()
    made: list[Any] = []

    def begin() -> None:
        module, _, name = backend.partition(":")
        made.append(getattr(import_module(module), name)(lambda text: reply("note", str(text))))

    _attempt(begin, reply)
    while True:
        method, arguments = inbox.get()
        _attempt(lambda method=method, arguments=arguments: getattr(made[0], method)(*arguments), reply)


def _attempt(work: Callable[[], Any], reply: Callable[..., None]) -> None:
    """Do one piece of work and send what came of it."""
    try:
        value = work()
    except ExplorerError as error:
        parts = {"where": error.where, "why": error.why, "hint": error.hint, **error.details}
        reply("failed", type(error).__name__, error.what, parts, not isinstance(error, _ENDS_PROCESS))
    except MemoryError as error:
        reply("failed", "OutOfMemory", "The host's memory does not hold the arrays.", {"why": str(error)}, False)
    except BaseException as error:
        what = f"The worker failed: {type(error).__name__}: {error}"
        reply("failed", "DeviceError", what, {"why": traceback.format_exc(limit=8)}, False)
    else:
        reply("done", value)


def _receive(stream: IO[bytes], inbox: queue.Queue[tuple[Any, ...] | None]) -> None:
    """Move messages from the child's pipe to a queue, then None when it closes."""
    with suppress(OSError, ValueError), stream:
        while (message := _read(stream)) is not None:
            inbox.put(message)
    inbox.put(None)


def _write(stream: IO[bytes], message: tuple[Any, ...]) -> None:
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(struct.pack(">Q", len(data)) + data)
    stream.flush()


def _read(stream: IO[bytes]) -> tuple[Any, ...] | None:
    """One message, or None at the end of the stream."""
    head = stream.read(8)
    if len(head) < 8:
        return None
    (size,) = struct.unpack(">Q", head)
    data = stream.read(size)
    return pickle.loads(data) if len(data) == size else None
