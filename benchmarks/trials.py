"""Trials of a product: schedules built in processes without the GPU, run under a watchdog, verified; what fails keeps its reason.

Schedules that no search would offer are run here, too: one may be wrong, end in a fault after which the GPU takes nothing from
this process any more, or not end at all.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Timer
from typing import Any, NamedTuple

from building import deadline

BUILD_S, HANG_S = 40, 20.0
"""Seconds of one build, and of one first run, from which on it is taken to hang."""
HUNG = 3
"""Status of a process whose kernel does not end, or ends in a fault: `--resume` goes on without that one."""

HANGS, FAILS = "HUNG", "failed"
"""How the problem of such a kernel begins."""


class Job(NamedTuple):
    """What is to be built: a function that makes the schedule; the model's time, and the place in its order."""

    shape: str
    label: str
    predicted_us: float
    make: Callable[[], Any]
    gpu: str
    rank: int = 0


class Made(NamedTuple):
    """The kernels of a job, or in words why there are none; `row` is what is kept of it."""

    row: dict[str, Any]
    module: Any = None
    cubin: bytes = b""


def build(job: Job) -> Made:
    """Schedule, price, text and machine code."""
    from explorer.gpu.spec import gpu
    from explorer.run.kernel import Kernel
    from explorer.run.nvrtc.compiler import compile_module
    from explorer.strategies.price import price

    begin, row = time.monotonic(), {"label": job.label, "rank": job.rank, "predicted_us": job.predicted_us}
    try:
        with deadline(BUILD_S):
            schedule = job.make()
            if not schedule.judgement.legal:
                raise ArithmeticError("the schedule is illegal")
            row["price_us"] = price(schedule.plan, gpu(job.gpu)).total_us
            kernel = Kernel.of(schedule, job.gpu)
            cubin = compile_module(kernel.module, kernel.gpu.arch)
    except Exception as error:  # one trial must not stop the others
        return Made(row | {"problem": f"not built: {type(error).__name__}: {error}"[:300]})
    row |= {"registers": max(k.registers for k in cubin.kernels.values()),
            "spilled": sum(k.spill_store_bytes for k in cubin.kernels.values()), "build_s": round(time.monotonic() - begin, 2)}
    return Made(row, kernel.module, cubin.cubin)


class Builds:
    """Jobs in a pool, whose results come as they are ready; what has not begun is given up when they are no longer asked for."""

    def __init__(self, pool: Any, jobs: Sequence[Job]) -> None:
        self.late = Event()
        self.results = pool.imap_unordered(build, (job for job in jobs if not self.late.is_set()))

    def arriving(self, until: float) -> Iterator[Made]:
        """Those that are ready before it is late; where a process was lost with its job, the others."""
        try:
            while time.monotonic() < until:
                yield self.results.next(max(0.01, min(until - time.monotonic(), 2 * BUILD_S)))
        except (multiprocessing.TimeoutError, StopIteration):
            pass
        finally:
            self.late.set()


@dataclass
class Kept:
    """All that is measured, in a file that is written as it grows.

    Attributes
    ----------
    path : str
        "" for none.
    data : dict
        The GPU's name, for which one prices are, and of each shape its `trials`, and what else is told of it.
    """

    path: str
    data: dict[str, Any] = field(default_factory=lambda: {"shapes": {}})

    @classmethod
    def of(cls, path: str | None, resume: str | None) -> Kept:
        """New, or what an earlier run has kept."""
        return cls(path or "", json.loads(Path(resume).read_text(encoding="utf-8"))) if resume else cls(path or "")

    def trials(self, shape: str) -> list[dict[str, Any]]:
        """Of a shape."""
        return self.data["shapes"].setdefault(shape, {}).setdefault("trials", [])

    def add(self, shape: str, row: dict[str, Any]) -> None:
        """A trial, in the place of an earlier one."""
        rows = self.trials(shape)
        rows[:] = [*(r for r in rows if r["label"] != row["label"]), row]

    def ended(self, job: Job) -> bool:
        """Whether it has brought a process to its end."""
        problems = (row.get("problem", "") for row in self.trials(job.shape) if row["label"] == job.label)
        return any(problem.startswith((HANGS, FAILS)) for problem in problems)

    def save(self) -> None:
        """Write the file."""
        if self.path:
            Path(self.path).write_text(json.dumps(self.data, indent=1) + "\n", encoding="utf-8")


class Lab:
    """One product on the GPU: its inputs, its right result, and runs that are watched."""

    def __init__(self, case: Any, kept: Kept) -> None:
        from product_peers import rivals

        self.case, self.kept, self.peers = case, kept, rivals(case)
        self.wanted = self.peers.wanted()

    def verified(self, made: Made) -> Any:
        """The kernels on tensors after one right run; None where there are none, and the row has the reason."""
        from against import bound, error_of
        from compute_bound import WRONG, first
        from gpu import alive

        if "problem" in made.row:
            return None
        watch = Timer(HANG_S, self._hung, (made,))
        try:
            ours = bound((made.module, made.cubin), self.peers.given)
            watch.start()
            first(ours)
            error = error_of(ours[self.peers.output], self.wanted)
            if error <= WRONG[self.case.arithmetic]:
                return ours
            made.row["problem"] = f"WRONG: error {error:.3g}"
        except Exception as problem:
            made.row["problem"] = f"{FAILS}: {type(problem).__name__}: {problem}"[:300]
            if not alive():
                self._end(made, "the GPU takes no more work from this process")
        finally:
            watch.cancel()
        return None

    def _hung(self, made: Made) -> None:
        made.row["problem"] = HANGS
        self._end(made, f"no end in {HANG_S:.0f} s")

    def _end(self, made: Made, why: str) -> None:
        """Keep what there is, and leave without a word to the GPU."""
        self.kept.add(self.case.name, made.row)
        self.kept.save()
        print(f"   {self.case.name} {made.row['label']}: {made.row['problem']}: {why}; --resume goes on", flush=True)
        for process in multiprocessing.active_children():
            process.terminate()
        os._exit(HUNG)


def built_here(pool: Any, jobs: Sequence[Job]) -> Iterator[Made]:
    """All jobs, without a GPU: what a dry run prints."""
    for made in Builds(pool, jobs).arriving(time.monotonic() + BUILD_S * len(jobs)):
        row = made.row
        print(f"   {row['label']}: predicted {row['predicted_us']:.2f} µs, price {row.get('price_us', float('nan')):.2f}; "
              + row.get("problem", f"{row.get('registers')} registers, {row.get('spilled')} B spilled, "
                        f"{len(made.cubin)} B of code in {row.get('build_s')} s"), flush=True)
        yield made
