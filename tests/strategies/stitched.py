"""Programs to stitch, and how the schedules are held against their references."""

from __future__ import annotations

import numpy as np

import explorer as ex
from benchmarks import fused_programs
from explorer.kernel.emit import emit
from explorer.run.cpu.device import CpuDevice
from explorer.run.verify.outputs import check_outputs
from explorer.run.verify.reference import references

M, N = ex.sizes("M N")


@ex.program
def two_nests(x: ex.f32[M, N], y: ex.f32[M], z: ex.f32[M, N]):
    t = ex.local(ex.f32, M, N)
    for i in range(M):
        for k in range(N):
            t[i, k] = 2.0 * x[i, k] + 1.0
    for i in range(M):
        y[i] = 0.0
        for k in range(N):
            y[i] += t[i, k]
    for i in range(M):
        for k in range(N):
            z[i, k] = t[i, k] * 3.0


@ex.program
def stencils(x: ex.f32[M, N], y: ex.f32[M, N]):
    t = ex.local(ex.f32, M, N)
    for i in range(M):
        for k in range(N):
            t[i, k] = 2.0 * x[i, k]
    for i in range(1, M - 1):
        for k in range(N):
            y[i, k] = t[i - 1, k] + t[i + 1, k]


@ex.program
def mirror(x: ex.f32[M, N], y: ex.f32[M, N]):
    t = ex.local(ex.f32, M, N)
    for i in range(M):
        for k in range(N):
            t[i, k] = 2.0 * x[i, k]
        for k in range(N):
            y[i, k] = t[i, N - 1 - k]


@ex.program
def two_outputs(x: ex.f32[M, N], y: ex.f32[M, N], z: ex.f32[M, N]):
    for i in range(M):
        for k in range(N):
            y[i, k] = x[i, k] + 1.0
    for i in range(M):
        for k in range(N):
            z[i, k] = x[i, k] * x[i, k]


PROGRAMS = {
    "batchnorm_relu": {"B": 3, "C": 5, "P": 24}, "softmax": {"M": 6, "N": 96}, "layernorm": {"M": 5, "N": 64},
    "cross_entropy": {"M": 6, "N": 64}, "bias_gelu": {"M": 4, "N": 32}, "two_nests": {"M": 5, "N": 32},
}
def program(name: str) -> ex.Definition:
    return globals()[name] if name in globals() else getattr(fused_programs, name)


def written(name: str, **sizes: int) -> ex.Schedule:
    return program(name).schedule(**(sizes or PROGRAMS[name]))


def run_all(schedules: list[ex.Schedule]) -> None:
    """Build each different text once, run it on the CPU device, and hold the results against the program's reference."""
    texts = {s.cuda: s for s in schedules}
    device, random = CpuDevice(checked=True, seeds=1), np.random.default_rng(0)
    for schedule, built in zip(texts.values(), device.build_many([emit(s.plan) for s in texts.values()]), strict=True):
        arrays = {a.name: random.integers(0, dict(schedule.source.sizes)["N"], a.shape) if a.dtype.name == "i64"
                  else random.standard_normal(a.shape).astype(a.dtype.numpy)
                  for a in schedule.source.parameters if a.role != "out"}
        wanted, _ = references(schedule.source, arrays)
        for outputs in device.run_seeds(built, arrays):
            checks = check_outputs(schedule.source, outputs, *wanted)
            assert checks
            assert all(checks), [str(schedule.steps), *map(str, checks)]
