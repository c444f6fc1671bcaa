"""The schedule to start from: the right strategy for each kernel of a program, by what the kernel is."""

from __future__ import annotations

from typing import TypeVar

from ..errors import ScheduleError
from ..gpu.spec import Gpu, default_gpu
from ..gpu.spec import gpu as find_gpu
from ..schedule import Schedule
from ._steps import Builder
from .default import default, separate
from .elementwise import elementwise
from .reductions import reduce
from .rows import rows

S = TypeVar("S", bound=Schedule)


def auto(schedule: S, gpu: Gpu | str | None = None, approximate: bool = True) -> S:
    """A fast schedule for a memory-bound program, without tuning.

    1. Nests at the top become kernels of their own (`launch`).
    2. A kernel without reductions is spread flat over the GPU (:mod:`explorer.strategies.elementwise`).
    3. One reduction under parallel loops gets its canonical form (:mod:`explorer.strategies.reductions`).
    4. A chain of loops over rows is stitched in registers (:mod:`explorer.strategies.rows`).
    5. What is left gets the default schedule (:mod:`explorer.strategies.default`).

    Parameters
    ----------
    schedule : Schedule
        A program as written.
    gpu : Gpu or str, optional
        By default the H200.
    approximate : bool
        Whether exponentials, logarithms and quotients may use the special-function units, as library kernels do; the steps
        `approximate` show where, and a run's tolerance grows by their errors.

    Returns
    -------
    Schedule
        Legal and without open obligations; its steps show what was done and can be replayed one by one.
    """
    target = find_gpu(gpu) if isinstance(gpu, str) else gpu or default_gpu()
    schedule = separate(schedule)
    b = Builder(schedule)
    if approximate:
        for leaf, _, _ in schedule.plan.leaves:
            b.attempt("approximate", leaf.id)
    for kernel in [k.id for k in b.plan.kernels]:
        for strategy in (elementwise, lambda s, k: reduce(s, k, target), rows):
            try:
                new = strategy(b.schedule, kernel)
            except ScheduleError:  # a form it was not made for: the next one may fit
                continue
            if new is not b.schedule:
                b.schedule = new
                break
    return default(b.schedule)
