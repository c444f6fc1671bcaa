"""The same steps at small sizes that nothing divides, or at others, on the CPU device that checks every access."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ...errors import CompilerMissing, DeviceError, ExplorerError, ResourceError
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
from .fitting import SMALL
from .outputs import Check, check_outputs, worst_of
from .reference import NumpyReference

CHECKED_LIMIT = 3 * 10**7
"""Operations (times thread orders) up to which the CPU device checks every access: some ten seconds."""

RAGGED_LIMIT = 4 * 10**7
"""The same at each set of ragged sizes, so that a warpgroup's largest tile and a rest are among them."""
TIME_LIMIT_S = 120.0
_RAGGED = ((37, 29, 31, 23, 41, 19), (7, 5, 11, 3, 13, 2))

Again = Callable[[Mapping[str, int]], Schedule]
"""The same steps on the same program at other sizes; raises what the steps raise where they do not apply."""


def own_again(schedule: Schedule) -> Again | None:
    """The schedule's own way to other sizes."""
    return None if schedule.definition is None else lambda sizes: schedule.at(**sizes)


def ragged_sizes_of(program: Program) -> list[dict[str, int]]:
    """Two sets of small sizes with no common factors; sizes up to 8 (windows, time steps) are kept in the first."""
    first = {name: value if value <= SMALL else _RAGGED[0][n % 6] for n, (name, value) in enumerate(program.sizes)}
    second = {name: min(value, _RAGGED[1][n % 6]) for n, (name, value) in enumerate(program.sizes)}
    return [first, second]


BySizes = tuple[tuple[str, tuple[Check, ...]], ...]
"""Checks, by the sizes in words."""


@dataclass(frozen=True)
class _Tried:
    """What came of one set of sizes: checks; a fault; why the steps do not apply; or the operations, where they are too many."""

    where: str
    checks: tuple[Check, ...] = ()
    fault: str = ""
    refused: str = ""
    large: int = 0


def run_ragged(again: Again, sets: Sequence[Mapping[str, int]], usual: Mapping[str, int], seed: int, seeds: int,
               function: NumpyReference | None, others: Callable[[], Sequence[Mapping[str, int]]] = tuple,
               ) -> tuple[BySizes, list[str], list[str]]:  # fmt: skip
    """Run the same steps at other sizes: the checks by sizes, the faults, and notes on what was not run.

    They run at each of `sets`, and where they apply at none of these, at the first of `others` at which they do.
    """
    attempt = partial(_tried, again, seed=seed, seeds=seeds, function=function)
    instead: list[_Tried] = []
    try:
        tried = [attempt(sizes) for sizes in sets if dict(sizes) != dict(usual)]
        if tried and all(x.refused for x in tried):
            for sizes in others():
                instead.append(attempt(sizes))
                if not instead[-1].refused:
                    break
    except CompilerMissing as error:
        return (), [], [f"not run at ragged sizes: {error.what}"]
    every = (*tried, *instead)
    found = tuple((x.where, x.checks) for x in every if x.checks)
    return found, [x.fault for x in every if x.fault], [*_refused(tried, instead, usual, seeds), *_too_large(every, seeds)]


def _tried(again: Again, sizes: Mapping[str, int], *, seed: int, seeds: int, function: NumpyReference | None) -> _Tried:
    where = ", ".join(f"{n}={v}" for n, v in sizes.items())
    try:
        schedule = again(sizes)
        require_emittable(schedule)
    except ExplorerError as error:
        return _Tried(where, refused=error.what)
    program = as_computed(schedule.source, schedule.plan)
    if cost(program) * seeds > RAGGED_LIMIT:
        return _Tried(where, large=cost(program))
    held = Inputs(program, seed)
    device = CpuDevice(checked=True, seeds=seeds, time_limit_s=TIME_LIMIT_S)
    try:
        built = device.build(emit(schedule.plan))
        runs = device.run_seeds(built, held.arrays)
        exact, _ = run_sharp(program, partial(_one_order, device, built), seed=seed)
    except CompilerMissing:
        raise
    except ResourceError as error:  # a grid whose blocks wait for each other, of more threads than the CPU device holds
        return _Tried(where, refused=error.what)
    except DeviceError as error:
        return _Tried(where, fault=f"at {where}: {error.message()}")
    wanted, _ = expected(held, function)
    return _Tried(where, (*worst_of([check_outputs(program, outputs, *wanted) for outputs in runs]), *exact))


def _refused(tried: Sequence[_Tried], instead: Sequence[_Tried], usual: Mapping[str, int], seeds: int) -> list[str]:
    """Notes on the sizes at which the steps do not apply; where nothing was found instead, how to give others."""
    if not instead:
        return [f"the steps do not apply at {x.where}: {x.refused}" for x in tried if x.refused]
    *before, last = (*tried, *instead)
    missed = "; ".join(x.where for x in before)
    if not last.refused:
        return [f"run at {last.where} instead, as the steps do not apply at {missed}: {tried[0].refused}"]
    named = ", ".join(f"{name!r}: …" for name in usual)
    return [f"not run at small sizes: the steps do not apply at {missed}; nor at {last.where}: {last.refused}",
            f"to run at others, of {RAGGED_LIMIT / seeds:.2g} operations at most: ragged_sizes=[{{{named}}}]"]


def _too_large(every: Sequence[_Tried], seeds: int) -> list[str]:
    limit = f"{RAGGED_LIMIT:.2g} at most"
    return [f"not run at {x.where}: too large to check every access: {seeds} × {x.large:.2g} operations, {limit}"
            for x in every if x.large]  # fmt: skip


def _one_order(device: CpuDevice, built: CpuBuilt, inputs: Inputs, number: int) -> Mapping[str, np.ndarray]:
    """One run, in an order of threads that no other one has."""
    return replace(device, seeds=(number + 2,)).run(built, inputs.arrays)
