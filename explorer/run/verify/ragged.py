"""The same steps at small sizes that nothing divides, on the CPU device that checks every access."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ...errors import CompilerMissing, DeviceError, ExplorerError
from ...ir.program import Program
from ...kernel.emit import emit
from ...kernel.emittable import require_emittable
from ...kernel.reference.slices import cost
from ...schedule import Schedule
from ...transforms.approximate import as_computed
from ..cpu.device import CpuBuilt, CpuDevice
from ..inputs.arguments import Inputs
from .exact_runs import run_sharp
from .expected import expected
from .outputs import Check, check_outputs, worst_of
from .reference import NumpyReference

CHECKED_LIMIT = 3 * 10**7
"""Operations (times thread orders) up to which the CPU device checks every access: some ten seconds."""

TIME_LIMIT_S = 120.0
_RAGGED = ((37, 29, 31, 23, 41, 19), (7, 5, 11, 3, 13, 2))
_SMALL = 8

Again = Callable[[Mapping[str, int]], Schedule]
"""The same steps on the same program at other sizes; raises what the steps raise where they do not apply."""


def own_again(schedule: Schedule) -> Again | None:
    """The schedule's own way to other sizes."""
    return None if schedule.definition is None else lambda sizes: schedule.at(**sizes)


def ragged_sizes_of(program: Program) -> list[dict[str, int]]:
    """Two sets of small sizes with no common factors; sizes up to 8 (windows, time steps) are kept in the first."""
    first = {name: value if value <= _SMALL else _RAGGED[0][n % 6] for n, (name, value) in enumerate(program.sizes)}
    second = {name: min(value, _RAGGED[1][n % 6]) for n, (name, value) in enumerate(program.sizes)}
    return [first, second]


BySizes = tuple[tuple[str, tuple[Check, ...]], ...]
"""Checks, by the sizes in words."""


def run_ragged(again: Again, sets: Sequence[Mapping[str, int]], usual: Mapping[str, int], seed: int, seeds: int,
               function: NumpyReference | None) -> tuple[BySizes, list[str], list[str]]:  # fmt: skip
    """Run the same steps at each set of sizes: the checks by sizes, the faults, and notes on what was not run."""
    found: list[tuple[str, tuple[Check, ...]]] = []
    faults: list[str] = []
    notes: list[str] = []
    for sizes in sets:
        where = ", ".join(f"{n}={v}" for n, v in sizes.items())
        if dict(sizes) == dict(usual):
            continue
        try:
            schedule = again(sizes)
            require_emittable(schedule)
        except ExplorerError as error:
            notes.append(f"the steps do not apply at {where}: {error.what}")
            continue
        program = as_computed(schedule.source, schedule.plan)
        if cost(program) * seeds > CHECKED_LIMIT:
            notes.append(f"not run at {where}: too large to check every access")
            continue
        held = Inputs(program, seed)
        device = CpuDevice(checked=True, seeds=seeds, time_limit_s=TIME_LIMIT_S)
        try:
            built = device.build(emit(schedule.plan))
            runs = device.run_seeds(built, held.arrays)
            exact, _ = run_sharp(program, partial(_one_order, device, built), seed=seed)
        except CompilerMissing as error:
            notes.append(f"not run at ragged sizes: {error.what}")
            break
        except DeviceError as error:
            faults.append(f"at {where}: {error.message()}")
            continue
        wanted, _ = expected(held, function)
        found.append((where, (*worst_of([check_outputs(program, outputs, *wanted) for outputs in runs]), *exact)))
    return tuple(found), faults, notes


def _one_order(device: CpuDevice, built: CpuBuilt, inputs: Inputs, number: int) -> Mapping[str, np.ndarray]:
    """One run, in an order of threads that no other one has."""
    return replace(device, seeds=(number + 2,)).run(built, inputs.arrays)
