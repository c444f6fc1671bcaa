"""The text of an IR with an error in it, and what the CPU device says of it: the same printer, nothing judged."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

from explorer.errors import CompileError, DeviceError, KernelFault
from explorer.kernel.emit import written
from explorer.kernel.launches import PlanIR
from explorer.kernel.module import CudaModule
from explorer.kernel.nodes import Begin
from explorer.kernel.traverse import walk
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from explorer.run.verify.outputs import check_outputs
from explorer.run.verify.reference import compiled
from explorer.schedule import Schedule
from explorer.transforms.approximate import as_computed

SEEDS = 5
"""Orders of the CPU device: copies as late as can be, at once, and at random times."""
LIMIT_S = 20.0


def printed(ir: PlanIR) -> CudaModule:
    """The text of an IR as it is."""
    with ExitStack() as stack:
        for launch in ir.launches:  # as many are declared as are made ready
            nodes = (node for body in launch.bodies for node in walk(body))
            begun = {node.mbarriers.name: node.mbarriers for node in nodes if isinstance(node, Begin)}
            for what in ("mbarriers", "released"):
                declared = {kernel: begun.get(m.name, m) for kernel, m in getattr(launch.bulk, what).items()}
                stack.enter_context(patch.object(launch.bulk, what, declared))
        return written(ir)


@dataclass(frozen=True)
class Subject:
    """A schedule with its inputs and its right outputs, to run texts of its mutants."""

    schedule: Schedule
    arrays: dict[str, np.ndarray]
    wanted: Any

    @classmethod
    def of(cls, schedule: Schedule) -> Subject:
        """With seeded inputs."""
        arrays = seeded_arrays(schedule.source, 1)
        return cls(schedule, arrays, compiled(as_computed(schedule.source, schedule.plan), arrays))

    def verdicts(self, irs: Sequence[PlanIR]) -> list[str]:
        """What the CPU device says of each: a kind of fault, "a wrong result", or nothing where it is right in every order."""
        device = CpuDevice(seeds=SEEDS, time_limit_s=LIMIT_S)
        texts: list[CudaModule | str] = [_printed(ir) for ir in irs]
        modules = [t for t in texts if isinstance(t, CudaModule)]
        try:
            built = iter(device.build_many(modules))
        except CompileError:
            built = iter(_built(device, m) for m in modules)
        return [t if isinstance(t, str) else self._verdict(device, next(built)) for t in texts]

    def _verdict(self, device: CpuDevice, built: Any) -> str:
        if isinstance(built, str):
            return built
        try:
            runs = device.run_seeds(built, self.arrays)
        except KernelFault as fault:
            return fault.kind
        except DeviceError as error:
            return type(error).__name__
        right = all(all(check_outputs(self.schedule.source, outputs, self.wanted)) for outputs in runs)
        return "" if right else "a wrong result"


def _printed(ir: PlanIR) -> CudaModule | str:
    try:
        return printed(ir)
    except (KeyError, AssertionError, ValueError) as error:
        return f"no text: {error}"


def _built(device: CpuDevice, module: CudaModule) -> Any:
    try:
        return device.build(module)
    except CompileError:
        return "no program"
