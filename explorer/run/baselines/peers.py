"""Times to hold a schedule against, taken on the same device: another schedule of the program, and array libraries."""

from __future__ import annotations

import importlib.util
import time as clock
from collections.abc import Sequence

import numpy as np

from ...errors import DeviceError
from ...kernel.emit import emit
from ...kernel.emittable import require_emittable
from ...kernel.reference.slices import cost
from ...schedule import Schedule
from ...system.worker import Worker
from ..cpu.device import CpuDevice
from ..cuda import device as cuda
from ..inputs.arguments import seeded_arrays, widened
from ..timing import Samples, Timing
from ..verify.ragged import TIME_LIMIT_S
from ..verify.reference import NumpyReference

SECONDS = 2.0
"""How long the repeats of one CPU timing may take together."""
ONE_THREAD_PER_S = {"cpu": 2e8, "cuda": 2e7}
"""Operations that one thread does in a second, at worst; an order of magnitude, to refuse what takes minutes."""


def seconds_at_worst(schedule: Schedule, device: str) -> float:
    """How long one run would take if a single thread did all of it."""
    return cost(schedule.source) / ONE_THREAD_PER_S[device]


def time_together(schedules: Sequence[Schedule], *, seed: int = 0, repeats: int = 30) -> tuple[Timing, ...]:
    """The times of several schedules of one program on the GPU, taken in turn, so that a drifting clock hits all alike.

    Before the repeats come a tenth as many that do not count.

    Raises
    ------
    IllegalSchedule, ResourceError, DeviceError
        As :func:`explorer.run.execute.execute`.
    """
    for schedule in schedules:
        require_emittable(schedule)
    gpu, program = cuda.device(), schedules[0].source
    inputs = {n: v for n, v in seeded_arrays(program, seed).items() if program.array_of[n].role != "out"}
    built = [(gpu.build(emit(s.plan)), inputs) for s in schedules]
    return tuple(map(Timing.of, gpu.time_interleaved(built, repeats=repeats, warmup=-(-repeats // 10), l2="cold")))


def time_schedule(schedule: Schedule, device: str, *, seed: int = 0, repeats: int = 30) -> Timing:
    """The time of a schedule, without checking what it computes.

    Parameters
    ----------
    schedule : Schedule
    device : {"cpu", "cuda"}
    seed : int
        Of the inputs.
    repeats : int
        On the GPU; on the CPU as many as fit two seconds.

    Raises
    ------
    IllegalSchedule, ResourceError, DeviceError
        As :func:`explorer.run.execute.execute`.
    """
    if device == "cuda":
        return time_together([schedule], seed=seed, repeats=repeats)[0]
    require_emittable(schedule)
    module, held = emit(schedule.plan), seeded_arrays(schedule.source, seed)
    cpu = CpuDevice(checked=False, time_limit_s=TIME_LIMIT_S)
    built = cpu.build(module)
    first = cpu.time(built, held, repeats=1, warmup=0)[0] * 1e-6
    samples = cpu.time(built, held, repeats=max(3, min(10, int(SECONDS / max(first, 1e-3)))), warmup=0)
    return Timing.of(Samples(samples, l2="warm", method="fast build on the CPU"))


LIBRARIES = {"cupy": ("CuPy", "time_cupy"), "torch": ("torch.compile", "time_torch")}
"""Packages that can run a NumPy function on the GPU: their name for the reader, and the worker's method."""


def libraries() -> tuple[str, ...]:
    """Those of :data:`LIBRARIES` that are installed."""
    return tuple(package for package in LIBRARIES if importlib.util.find_spec(package) is not None)


def time_library(package: str, schedule: Schedule, function: NumpyReference, *, seed: int = 0, repeats: int = 10) -> Timing:
    """The time of a NumPy function that a library runs on the GPU (floats as float64, as the function takes them).

    Parameters
    ----------
    package : str
        One of :func:`libraries`.
    schedule : Schedule
        Whose program's inputs it gets.
    function : callable
        Defined at the top of a module.
    seed, repeats : int

    Raises
    ------
    DeviceError
        If the function does something that the library cannot.
    """
    name = f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', '')}"
    worker = Worker("explorer.run.baselines.peers_worker:Backend", noun="library")
    try:
        taken = worker.call(LIBRARIES[package][1], name, _given(schedule, seed), dict(schedule.source.sizes), repeats,
                            limit_s=TIME_LIMIT_S)
    finally:
        worker.close()
    return Timing.of(Samples(taken, l2="cold", method="CUDA events around the call"))


def _given(schedule: Schedule, seed: int) -> dict[str, np.ndarray]:
    """The inputs, as a NumPy reference takes them."""
    program, held = schedule.source, seeded_arrays(schedule.source, seed)
    return {a.name: widened(a, held[a.name]) for a in program.parameters if a.role != "out"}


def time_numpy(schedule: Schedule, function: NumpyReference, *, seed: int = 0) -> Timing:
    """The time of a NumPy function for the same program, on the same inputs (floats as float64, as it takes them)."""
    given, sizes = _given(schedule, seed), dict(schedule.source.sizes)
    samples = []
    begin = clock.perf_counter()
    while len(samples) < 3 or (clock.perf_counter() - begin < SECONDS and len(samples) < 10):
        start = clock.perf_counter()
        try:
            function(dict(given), dict(sizes))
        except MemoryError as error:
            raise DeviceError("NumPy has not enough memory for its intermediate arrays.", why=str(error)) from error
        samples.append((clock.perf_counter() - start) * 1e6)
    return Timing.of(Samples(samples, l2="warm", method="wall clock around the call"))
