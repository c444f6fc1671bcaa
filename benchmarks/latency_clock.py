"""What the measurements of latency have in common: a clock of CPU time, copies of a process, quantiles, the machine."""

from __future__ import annotations

import gc
import os
import pickle
import platform
import time
import traceback
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any


def forked(work: Callable[[], Any]) -> Any:
    """What `work` returns in a copy of this process, which then ends."""
    gc.collect()
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            answer: Any = (True, work())
        except Exception as error:
            answer = (False, "".join(traceback.format_exception(error)))
        with os.fdopen(write, "wb") as out:
            out.write(pickle.dumps(answer))
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as back:
        data = back.read()
    os.waitpid(child, 0)
    good, value = pickle.loads(data) if data else (False, "the process ended without an answer")
    if not good:
        raise RuntimeError(value)
    return value


def clock() -> tuple[float, float]:
    """Milliseconds of CPU time, and of the wall clock."""
    return 1e3 * time.process_time(), 1e3 * time.perf_counter()


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)]


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    names = [line.split(":", 1)[1].strip() for line in _cpuinfo() if line.startswith("model name")]
    return {"cpu": names[0] if names else platform.processor(), "cores": os.cpu_count(), "python": platform.python_version(),
            "islpy": version("islpy"), "load_average": [round(x, 2) for x in os.getloadavg()]}


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []
