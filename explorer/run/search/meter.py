"""How a search measures: build a schedule for a device, check its outputs, time several in turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ...errors import DeviceError, OutOfMemory
from ...gpu.occupancy import check_launch
from ...gpu.roofline import roofline
from ...gpu.spec import Gpu, target_gpu
from ...ir.program import Program
from ...kernel.emit import emit
from ...kernel.emittable import require_emittable
from ...kernel.module import CudaModule
from ...kernel.reference.slices import cost
from ...poly.count import arithmetic_type, compulsory_bytes, flops
from ...schedule import Schedule
from ...transforms.approximate import as_computed
from ..cpu.device import CpuDevice
from ..cuda import device as cuda
from ..execute import FAST_LIMIT
from ..inputs.arguments import Inputs
from ..options import check_device, require_memory
from ..timing import Samples
from ..verify.outputs import check_outputs
from ..verify.ragged import TIME_LIMIT_S
from ..verify.reference import Reference, references

BUDGET = 10**8
"""Operations of the reference for which all outputs are checked (about 0.1 s); beyond, a sample of about so many."""
ROUNDS = 3
"""Turns on the CPU device, where each turn costs a process."""


class Meter(Protocol):
    """A device, as a search sees it."""

    name: str
    clock: str
    target: Gpu
    floor_us: float | None

    def build(self, schedule: Schedule) -> Any:
        """Compile; an :class:`~explorer.errors.ExplorerError` says why not."""
        ...

    def wrong(self, schedule: Schedule, built: Any) -> str:
        """What is wrong with the outputs; empty where they are right."""
        ...

    def time(self, several: Sequence[Any], repeats: int) -> list[Samples]:
        """Time what was built, in turns."""
        ...


def meter(program: Program, device: str, arrays: Mapping[str, Any] | None, seed: int, gpu: Gpu | str | None = None) -> Meter:
    """The meter of a device; on the CPU, variants are made for `gpu` and priced on it.

    Raises
    ------
    DeviceError
        If there is no such device here, the arrays do not fit, or the CPU would take too long.
    """
    check_device(device)
    missing = cuda.available() if device != "cpu" else "not asked for"
    if device == "cuda" and missing:
        raise DeviceError("There is no GPU to search on.", why=missing,
                          hint='device="cpu" times the same text on the processor, which says nothing about a GPU')
    require_memory(program)
    return CpuMeter(program, arrays, seed, gpu) if missing else CudaMeter(program, arrays, seed)


class _Checked:
    """Inputs, and expected outputs: computed once for each set of approximations."""

    def __init__(self, program: Program, arrays: Mapping[str, Any] | None, seed: int) -> None:
        self.inputs = Inputs(program, seed, arrays)
        self._expected: dict[Program, list[Reference]] = {}

    def problem(self, schedule: Schedule, outputs: Mapping[str, np.ndarray]) -> str:
        """The first wrong output in words."""
        program = as_computed(schedule.source, schedule.plan)
        if program not in self._expected:
            held = self.inputs
            self._expected[program], _ = references(program, held.arrays, budget=BUDGET, seed=held.seed, random=held.random)
        wrong = [c for c in check_outputs(program, outputs, *self._expected[program]) if not c]
        return f"wrong: {wrong[0]}" if wrong else ""


class CudaMeter:
    """CUDA events around a graph of all launches, in the worker process, the L2 cache cold."""

    def __init__(self, program: Program, arrays: Mapping[str, Any] | None, seed: int) -> None:
        self.device = cuda.device()
        here = self.device.installed()
        self.name, self.target = here.name, here.gpu
        self.clock = "CUDA events around all launches, cold L2 cache"
        self._checked = _Checked(program, arrays, seed)
        floor = roofline(self.target, compulsory_bytes(program), flops(program), arithmetic_type(program))
        self.floor_us: float | None = floor.floor_us

    def build(self, schedule: Schedule) -> cuda.CudaBuilt:
        """Compile for this GPU."""
        return self.device.build(_module(schedule, self.target))

    def wrong(self, schedule: Schedule, built: cuda.CudaBuilt) -> str:
        """Run once and compare."""
        return self._checked.problem(schedule, self.device.run(built, self._checked.inputs.for_gpu))

    def time(self, several: Sequence[cuda.CudaBuilt], repeats: int) -> list[Samples]:
        """In turns where all fit the memory together, else one after the other."""
        work = [(built, self._checked.inputs.for_gpu) for built in several]
        try:
            return list(self.device.time_interleaved(work, repeats=repeats, l2="cold"))
        except OutOfMemory:
            if len(work) == 1:
                raise
            return [self.device.time(*one, repeats=repeats, l2="cold") for one in work]


class CpuMeter:
    """The same text compiled for the processor."""

    def __init__(self, program: Program, arrays: Mapping[str, Any] | None, seed: int, gpu: Gpu | str | None = None) -> None:
        if cost(program) > FAST_LIMIT:
            raise DeviceError(f"{program.name} takes {cost(program):.2g} operations at these sizes, too many for the CPU.",
                              hint="search at smaller sizes, or on a GPU")
        self.device = CpuDevice(checked=False, time_limit_s=TIME_LIMIT_S)
        self.name, self.target = "cpu", target_gpu(gpu)
        self.floor_us: float | None = None
        self.clock = "CPU device time, not GPU time"
        self._checked = _Checked(program, arrays, seed)

    def build(self, schedule: Schedule) -> Any:
        """Compile with the C++ compiler."""
        return self.device.build(_module(schedule, self.target))

    def wrong(self, schedule: Schedule, built: Any) -> str:
        """Run once and compare."""
        return self._checked.problem(schedule, self.device.run(built, self._checked.inputs.arrays))

    def time(self, several: Sequence[Any], repeats: int) -> list[Samples]:
        """In turns, a few repeats each."""
        taken: list[list[float]] = [[] for _ in several]
        turns = min(ROUNDS, repeats) if len(several) > 1 else 1
        for _ in range(turns):
            for n, built in enumerate(several):
                taken[n] += self.device.time(built, self._checked.inputs.arrays, repeats=-(-repeats // turns), warmup=1)
        return [Samples(t, l2="", method="fast build on the CPU") for t in taken]


def _module(schedule: Schedule, target: Gpu) -> CudaModule:
    """The text, its launches checked against the GPU's limits."""
    require_emittable(schedule)
    module = emit(schedule.plan, arch=target.arch)
    for launch in module.launches:
        check_launch(target, launch)
    return module
