"""Schedules on the CPU device, against the loops as written."""

from __future__ import annotations

from collections.abc import Sequence

import explorer as ex
from explorer.kernel.emit import emit
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from tests.properties.equal import difference


def right(schedules: Sequence[ex.Schedule]) -> None:
    """With several orders of threads, each computes what its source says; the device refuses what lies outside of arrays."""
    device = CpuDevice(seeds=3)
    for s, built in zip(schedules, device.build_many([emit(s.plan) for s in schedules]), strict=True):
        arrays = seeded_arrays(s.source, 5)
        for results in device.run_seeds(built, arrays):
            assert not difference(s.source, arrays, results), [str(x) for x in s.steps]
