"""From a case to machine code, in processes without the GPU: its program, `auto`'s schedule, text and code, within a time."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import fused_programs
import product_programs
from product_cases import KINDS
from reduction_program import reduction

CHAINS = ("fused", "chains", "odd_chains")
"""Suites of fused chains, whose cases are a name, a program and its sizes."""


class Built(NamedTuple):
    """A case's kernels, or a variant's; the time that the schedule took, and its price, 0 where it has none."""

    module: Any
    cubin: bytes
    seconds: float
    priced_us: float = 0.0


def written(suite: str, case: Any) -> Any:
    """The program of a case as written."""
    if isinstance(case, KINDS):
        return getattr(product_programs, case.program).schedule(**case.sizes)
    return getattr(fused_programs, case[1]).schedule(**case[2]) if suite in CHAINS else reduction(*case[1:])


@contextmanager
def deadline(seconds: int) -> Iterator[None]:
    """Stop what is inside by a :class:`TimeoutError`; what hangs in a library is stopped when it returns."""
    def late(_signal: int, _frame: object) -> None:
        raise TimeoutError(f"not ready in {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def prepare(job: tuple[str, Any], limit_s: int) -> Built | str:
    """Schedule, text and machine code of one case, or in words why not."""
    from explorer.run.kernel import Kernel
    from explorer.run.nvrtc.compiler import compile_module
    from explorer.strategies.auto import auto

    try:
        with deadline(limit_s):
            begin = time.process_time()
            schedule = auto(written(*job), "H200")
            kernel = Kernel.of(schedule, "H200")
            seconds = time.process_time() - begin
            cubin = compile_module(kernel.module, kernel.gpu.arch).cubin
            return Built(kernel.module, cubin, seconds, priced_us(schedule) if isinstance(job[1], KINDS) else 0.0)
    except Exception as error:  # one case must not stop the others
        return f"{type(error).__name__}: {error}"


def priced_us(schedule: Any) -> float:
    """What a schedule may take by the model, so that a hopeless one need not run; 0 where the model does not know."""
    from explorer.gpu.spec import gpu
    from explorer.strategies.price import price

    try:
        return price(schedule.plan, gpu("H200")).total_us
    except Exception:
        return 0.0


def processes() -> int:
    """How many build at once: one core is the measurement's."""
    return min(15, os.cpu_count() or 1)
