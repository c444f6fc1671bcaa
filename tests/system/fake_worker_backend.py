"""A backend that misbehaves on request; runs in the worker's process."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from explorer.errors import CompilerMissing, DeviceError, KernelFault, OutOfMemory


class Backend:
    def __init__(self, note: Callable[[str], None]) -> None:
        self.note = note
        self.calls = 0

    def echo(self, value: Any) -> Any:
        self.calls += 1
        return value

    def count(self) -> int:
        return self.calls

    def pid(self) -> int:
        return os.getpid()

    def path(self) -> list[str]:
        return sys.path

    def hang(self, note: str) -> None:
        self.note(note)
        time.sleep(600)

    def hang_in_c(self) -> None:
        self.note("inside a C call that lets go of the interpreter lock")
        ctypes.CDLL(None).sleep(600)

    def steps(self, count: int, each_s: float) -> str:
        for step in range(count):
            self.note(f"step {step}")
            time.sleep(each_s)
        return "done"

    def crash(self) -> None:
        self.note("launch 1 of 1: bad")
        print("last words", flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)

    def killed(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def leave(self) -> None:
        os._exit(3)

    def fault(self) -> None:
        raise KernelFault("The kernel faulted.", why="illegal address", status=700)

    def out_of_memory(self) -> None:
        raise OutOfMemory("The GPU's memory does not hold the arrays.", why="asked for 1 TB")

    def exhaust(self) -> None:
        raise MemoryError("could not allocate 8 EiB")

    def refuse(self) -> None:
        raise DeviceError("Not like this.", hint="like that")

    def bug(self) -> None:
        {}["missing"]

    def chatter(self) -> str:
        print("to standard output")
        os.write(1, b"straight to the descriptor\n" * 1000)
        return "heard"

    def grab(self, path: str) -> None:
        Path(path).write_text(str(os.getpid()))
        ctypes.CDLL(None).sleep(600)


def no_start(note: Callable[[str], None]) -> None:
    raise CompilerMissing("CuPy is not installed.", hint="pip install cupy-cuda13x")


def dies_at_start(note: Callable[[str], None]) -> None:
    os._exit(7)
