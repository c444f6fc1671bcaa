"""Run plans as text: emit them, compile them together for the CPU, and hold every result against the interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.ir.dtype import bf16_to_f32
from explorer.ir.interpret import interpret
from explorer.ir.plan import Plan, initial
from explorer.ir.program import Program
from explorer.kernel.emit import emit
from explorer.run.cpu.device import CpuDevice
from explorer.transforms.base import catalogue

TOLERANCE = {"f64": 1e-12, "f32": 2e-5, "f16": 2e-3, "bf16": 2e-2}
"""Relative to the largest element of the result; a few roundings of the type that holds it."""
Step = tuple


@dataclass(frozen=True)
class Case:
    """A plan, the program it must compute, and inputs."""

    name: str
    program: Program
    plan: Plan
    arrays: Mapping[str, np.ndarray]


def follow(program: Program, steps: Sequence[Step]) -> Plan:
    """The plan after some steps, each a name, arguments, and maybe a dictionary of further arguments."""
    plan = initial(program)
    for name, *arguments in steps:
        named = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
        step = catalogue()[name](*arguments, **named)
        verdict = step.check(plan)
        assert verdict, f"{step}: {verdict}"
        plan = step.rewrite(plan)
    return plan


def differences(cases: Sequence[Case], seeds: int = 3, **options: object) -> list[str]:
    """What went wrong, one entry for each case that does not compute what its program says."""
    modules = [emit(case.plan, **options) for case in cases]  # type: ignore[arg-type]
    device = CpuDevice(checked=True, seeds=seeds)
    wrong = []
    for case, built in zip(cases, device.build_many(modules), strict=True):
        wanted = interpret(case.program, case.arrays, exact=True)
        for seed, got in enumerate(device.run_seeds(built, case.arrays)):
            for name, want in wanted.items():
                kind = case.program.array_of[name].dtype
                have = bf16_to_f32(got[name]) if kind.name == "bf16" else got[name]
                error = np.abs(have.astype(np.float64) - want.astype(np.float64)).max(initial=0.0)
                allowed = TOLERANCE.get(kind.name, 0.0) * max(np.abs(want.astype(np.float64)).max(initial=0.0), 1.0)
                if not error <= allowed:
                    wrong.append(f"{case.name}: {name} is off by {error:.3g} (seed {seed})\n{built.module.text}")
    return wrong
