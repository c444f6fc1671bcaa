"""Variants of a case's schedule: built in processes without the GPU, each with a deadline, then timed quickly and the best kept.

Like :func:`explorer.run.search.measured.search`, by the benchmark's own measure and with the building in parallel: so the
variants are those that the models favour, without steps from the best one.
"""

from __future__ import annotations

import math
import multiprocessing
import multiprocessing.pool
import signal
import statistics
import time
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

CASE_S = 60.0
"""Seconds that the variants of one case may take to build, from when the ones before it are done."""
ONE_S = 40
"""Seconds of one build; one that hangs in a library only ends with its pool."""
QUICK, KEPT = 9, 6
"""Repeats of a first timing, and how many variants get a second one, in turn with `auto`'s own schedule."""
WORTH, MOST = 0.01, 0.75
"""What the best variant must gain when it runs against `auto`'s own once more, in the middle, and in what share of turns it must
be faster: less may be the clock."""


def variant(job: tuple[Any, int, int]) -> Any:
    """(label, kernels, machine code, seconds) of one variant of a case, or in words why not; None where there are fewer.

    `job` is a function that makes the program as written, the variant's number (1 is the first beside `auto`'s own), and how
    many there are to be.
    """
    make, number, count = job
    from explorer.run.kernel import Kernel
    from explorer.run.nvrtc.compiler import compile_module
    from explorer.strategies.choices import decisions, variants

    begin = time.process_time()
    signal.signal(signal.SIGALRM, _late)
    signal.alarm(ONE_S)
    try:
        written = make()
        each = -(-count // max(1, len(decisions(written, "H200"))))
        found = next(islice(variants(written, "H200", each=each), number, None), None)
        if found is None:
            return None
        kernel = Kernel.of(found.schedule, "H200")
        cubin = compile_module(kernel.module, kernel.gpu.arch).cubin
        return found.label, kernel.module, cubin, time.process_time() - begin
    except Exception as error:  # one variant must not stop the others
        return f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)


def _late(_signal: int, _frame: object) -> None:
    raise TimeoutError(f"not built in {ONE_S} s")


class Builds:
    """Results of jobs in a pool, in order, none waited for beyond its case's deadline."""

    def __init__(self, pool: multiprocessing.pool.Pool, work: Callable[[Any], Any], jobs: Sequence[Sequence[Any]]) -> None:
        self.pending = [[pool.apply_async(work, (job,)) for job in case] for case in jobs]

    def collect(self, limit_s: float = CASE_S, whole_s: float = math.inf) -> list[list[Any]]:
        """For each case its results; ``"timeout"`` for what was not ready, in `whole_s` for all of them."""
        out, last = [], time.monotonic() + whole_s
        for case in self.pending:
            end, found = min(time.monotonic() + limit_s, last), []
            for one in case:
                try:
                    found.append(one.get(max(0.01, end - time.monotonic())))
                except multiprocessing.TimeoutError:
                    found.append("timeout")
                except Exception as error:  # a result that cannot be sent
                    found.append(f"{type(error).__name__}: {error}")
            out.append(found)
        return out


def quick(bench: Any, ours: Any, repeats: int = QUICK) -> float:
    """Median device time of all launches together in microseconds, cold, all repeats in one profile."""
    ours()
    return statistics.median(bench.sampled([ours] * repeats))


def best(bench: Any, built: Sequence[Any], bind: Callable[[Any], Any], right: Callable[[Any], bool],
         auto: Any) -> tuple[Any, str, int, list[str]]:
    """The fastest variant: (bound kernels, label, how many were timed, problems); `auto`'s own where none is faster.

    Parameters
    ----------
    bench : Bench
    built : sequence
        Results of :func:`variant`.
    bind : callable
        From (module, cubin, seconds) to kernels bound to tensors.
    right : callable
        Whether the outputs of bound kernels that have run are right.
    auto : Ours
        What to beat.
    """
    found, problems = [(quick(bench, auto), "auto", auto)], []
    for one in built:
        if one is None:
            continue
        if isinstance(one, str):
            problems.append(one[:160])
            continue
        label, module, cubin, seconds = one
        try:
            ours = bind((module, cubin, seconds))
            ours()
            if right(ours):
                found.append((quick(bench, ours), label, ours))
            else:
                problems.append(f"WRONG: {label}")
        except Exception as error:
            problems.append(f"{label}: {type(error).__name__}: {str(error)[:120]}")
        found = sorted(found, key=lambda f: f[0])[:KEPT]  # the tensors of the others are given back
    kept = {label: ours for _, label, ours in found} | {"auto": auto}
    again = bench.times_us(kept)
    label = min(again, key=again.__getitem__)
    if label != "auto" and not surely(bench.samples_us({"auto": auto, label: kept[label]}), label):
        label = "auto"
    return kept[label], label, sum(isinstance(o, tuple) for o in built), problems


def surely(samples: dict[str, list[float]], label: str) -> bool:
    """Whether a variant was faster than `auto`'s schedule by what is worth it, and in most turns."""
    ahead = [mine / theirs for theirs, mine in zip(samples["auto"], samples[label], strict=True)]
    return statistics.median(ahead) < 1 - WORTH and sum(r < 1 for r in ahead) >= MOST * len(ahead)
