"""Child processes that are killed when the work that started them is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from .cancel import check, stopping


def run_process(arguments: Sequence[str], *, input: str | None = None, timeout: float | None = None,
                **options: Any) -> subprocess.CompletedProcess[str]:
    """As :func:`subprocess.run` with captured text, in a process group of its own that a request to stop kills.

    Raises
    ------
    subprocess.TimeoutExpired
        After `timeout` seconds; the group is killed.
    Cancelled
        If it was stopped.
    """
    with subprocess.Popen(arguments, stdin=None if input is None else subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True, **options) as process:
        def kill() -> None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

        try:
            with stopping(kill):
                out, problems = process.communicate(input, timeout)
        except BaseException:
            kill()
            process.wait()
            raise
    check()
    return subprocess.CompletedProcess(arguments, process.returncode, out, problems)
