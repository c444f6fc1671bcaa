"""Run a schedule: emit, build, run, verify against independent references, also at ragged sizes, and time."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..codegen.emit import emit
from ..codegen.module import CudaModule
from ..codegen.slices import cost
from ..errors import CompileError, CompilerMissing, DeviceError, ExplorerError, IllegalSchedule
from ..gpu.occupancy import check_launch
from ..gpu.roofline import roofline
from ..gpu.spec import Gpu, default_gpu
from ..gpu.spec import gpu as find_gpu
from ..ir.dtype import f32_to_bf16
from ..ir.program import Array, Program
from ..ir.scalar import common
from ..poly.count import compulsory_bytes, flops
from ..schedule import Schedule
from . import cuda
from .cpu import CpuDevice
from .inputs import check_arrays, seeded_arrays
from .nvrtc import try_compile_for
from .reference import BUDGET, NumpyReference, Reference, reference, with_numpy
from .result import Evidence, Run
from .timing import Samples, Timing
from .verify import Check, check_outputs

CHECKED_LIMIT = 3 * 10**7
"""Operations (times thread orders) up to which the CPU device checks every access: some ten seconds."""

FAST_LIMIT = 5 * 10**10
"""Operations that the fast build on the CPU is asked to do: about a minute on two cores."""

CPU_TIME_LIMIT_S = 120.0
_RAGGED = ((37, 29, 31, 23, 41, 19), (7, 5, 11, 3, 13, 2))
_SMALL = 8

Again = Callable[[Mapping[str, int]], Schedule]
"""The same steps on the same program at other sizes; raises what the steps raise where they do not apply."""


@dataclass(frozen=True)
class _Outcome:
    """What one device run gives: its checks, the evidence it earns, and what it leaves unsaid."""

    checks: tuple[Check, ...]
    outputs: Mapping[str, np.ndarray]
    orders: int = 0
    notes: tuple[str, ...] = ()


def execute(
    schedule: Schedule, arrays: Mapping[str, Any] | None = None, *, device: str = "auto", seed: int = 0, seeds: int = 2,
    time: bool = True, l2: Sequence[str] = ("cold", "warm"), repeats: int = 30, checked: bool | None = None, ragged: bool = True,
    again: Again | None = None, ragged_sizes: Sequence[Mapping[str, int]] | None = None, reference: NumpyReference | None = None,
    gpu: Gpu | str | None = None, archs: Sequence[str] = (), budget: int = BUDGET,
) -> Run:
    """Run a schedule, verify its outputs, and time it.

    Parameters
    ----------
    schedule : Schedule
    arrays : mapping of str to array, optional
        NumPy, CuPy, or anything with DLPack; by default made from `seed` (:mod:`explorer.run.inputs`).
    device : {"auto", "cpu", "cuda"}
        ``"auto"`` is the GPU if there is one.
    seed, seeds : int
        Of the inputs; and how many thread orders (CPU device) or input sets (GPU) are run.
    time : bool
    l2 : sequence of {"cold", "warm"}
        States of the cache to time in (GPU).
    repeats : int
        Timed runs (GPU; on the CPU as many as fit a few seconds).
    checked : bool, optional
        Check every access on the CPU device; by default where the size allows.
    ragged : bool
        Also run the same steps at small sizes that do not divide, on the checked CPU device.
    again : callable, optional
        ``again(sizes)`` gives the schedule at other sizes; by default the schedule's own ``at``, if it has one.
    ragged_sizes : sequence of mapping, optional
        The sizes for that; by default primes.
    reference : callable, optional
        A NumPy reference ``function(arrays, sizes)``, checked beside the loops themselves.
    gpu : Gpu or str, optional
        Whose limits the launches must keep when there is no GPU; by default the H200.
    archs : sequence of str
        Architectures to compile the text for as well.
    budget : int
        Operations up to which the reference computes every cell, and a sample beyond.

    Returns
    -------
    Run
        Also when the outputs are wrong: then ``run.correct`` is False and the checks say where.

    Raises
    ------
    IllegalSchedule
        While a question of legality is answered "no" or a reduction's obligation is open.
    ResourceError
        If a launch does not fit the GPU.
    CompilerMissing, CompileError, KernelFault, KernelTimeout, OutOfMemory
        From the device.
    """
    require_emittable(schedule)
    program = schedule.source
    on_gpu = _choose(device)
    target = cuda.device().installed().gpu if on_gpu else find_gpu(gpu) if isinstance(gpu, str) else gpu or default_gpu()
    module = emit(schedule.plan, arch=target.arch)
    for launch in module.launches:
        check_launch(target, launch)
    held = arguments(program, arrays, seed)
    if on_gpu:
        outcome, timings, evidence = _on_gpu(program, module, held, arrays is None, seed, seeds, reference, budget, l2 if time else (), repeats)
    else:
        outcome, timings, evidence = _on_cpu(program, module, held, seeds, checked, reference, budget, time)
    evidence = replace(evidence, proved=True)
    notes, faults = list(outcome.notes), []
    several: tuple[tuple[str, tuple[Check, ...]], ...] = ()
    if ragged and (again := again or _own_again(schedule)) is not None and program.sizes:
        several, faults, more = _ragged(again, ragged_sizes or ragged_sizes_of(program), dict(program.sizes), seed, seeds, reference)
        notes += more
        passed = tuple(where for where, checks in several if all(checks))
        evidence = replace(evidence, ragged=passed)
        if faults or len(passed) < len(several):
            evidence = replace(evidence, refuted=(*evidence.refuted, "emulated"))
    if archs:
        evidence, more = _compiled(module, archs, evidence)
        notes += more
    least, work = compulsory_bytes(program), flops(program)
    floor = roofline(target, least, work, _arithmetic(program)) if on_gpu and timings else None
    return Run(program.name, target.name if on_gpu else "cpu", program.sizes, outcome.checks, several, timings, least, work, floor,
               evidence, tuple(notes), tuple(faults), module, outcome.outputs)


def require_emittable(schedule: Schedule) -> None:
    """Refuse a schedule that may not be emitted: not legal, or with an open obligation.

    Raises
    ------
    IllegalSchedule
        With the first finding.
    """
    judgement = schedule.judgement
    for finding in (*judgement.refusals, *judgement.obligations):
        where = f"source line {' and '.join(map(str, finding.lines))}" if finding.lines else ""
        raise IllegalSchedule(finding.what, where=where, why=finding.why, hint="; or ".join(finding.hints), finding=finding)


def arguments(program: Program, arrays: Mapping[str, Any] | None, seed: int = 0) -> dict[str, np.ndarray]:
    """The program's arguments as NumPy arrays of its dtypes, made from `seed` or converted from what was given.

    Raises
    ------
    DeviceError
        For a missing, unknown or misshapen array, or values that the dtype cannot hold.
    """
    if arrays is None:
        return seeded_arrays(program, seed)
    given = {name: cuda.as_numpy(value) for name, value in arrays.items()}
    check_arrays(program, given)
    return {a.name: _converted(a, given[a.name]) for a in program.parameters if a.name in given and a.role != "out"}


def _converted(array: Array, values: np.ndarray) -> np.ndarray:
    wanted = array.dtype.numpy
    if values.dtype == wanted:
        return np.ascontiguousarray(values)
    if array.dtype.kind == "float" and np.issubdtype(values.dtype, np.number):
        return f32_to_bf16(values.astype(np.float32)) if array.dtype.name == "bf16" else np.ascontiguousarray(values, dtype=wanted)
    if array.dtype.kind == "int" and np.issubdtype(values.dtype, np.integer) and np.array_equal(values.astype(wanted), values):
        return np.ascontiguousarray(values, dtype=wanted)
    raise DeviceError(f"{array.name} is {values.dtype}, the program has {array.dtype}.", hint=f"convert it with .astype({wanted.name!r})")


def _choose(device: str) -> bool:
    """Whether to run on the GPU."""
    if device not in ("auto", "cpu", "cuda"):
        raise DeviceError(f"There is no device {device!r}.", hint='"auto", "cpu" or "cuda"')
    missing = cuda.available() if device != "cpu" else "not asked for"
    if device == "cuda" and missing:
        raise DeviceError("There is no GPU to run on.", why=missing, hint='device="cpu" runs the same text on the processor')
    return missing is None


def _expected(program: Program, held: Mapping[str, np.ndarray], function: NumpyReference | None,
              budget: int, seed: int = 0) -> tuple[list[Reference], tuple[str, ...]]:  # fmt: skip
    """All references there are, and why one is not."""
    found: list[Reference] = []
    notes: tuple[str, ...] = ()
    try:
        found.append(reference(program, held, budget=budget, seed=seed))
    except (CompilerMissing, DeviceError) as error:
        if function is None and not isinstance(error, CompilerMissing):
            notes = (f"not checked: {error.what}",)
        elif isinstance(error, CompilerMissing):
            notes = (f"the float64 loops did not run: {error.what}",)
    if function is not None:
        found.append(with_numpy(program, function, held, found[0] if found else None))
    return found, notes


def _checks(program: Program, outputs: Mapping[str, np.ndarray], expected: Sequence[Reference]) -> tuple[Check, ...]:
    return tuple(check for r in expected for check in check_outputs(program, outputs, r))


def _worst(several: Sequence[tuple[Check, ...]]) -> tuple[Check, ...]:
    """Of several runs of the same checks, each check's worst."""
    return tuple(max(column, key=lambda c: (c.wrong, c.worst)) for column in zip(*several, strict=True))


def _on_cpu(program: Program, module: CudaModule, held: Mapping[str, np.ndarray], seeds: int, checked: bool | None,
            function: NumpyReference | None, budget: int, time: bool) -> tuple[_Outcome, dict[str, Timing], Evidence]:  # fmt: skip
    work, notes = cost(program), []
    if checked is None:
        checked = work * seeds <= CHECKED_LIMIT
        if not checked:
            notes.append(f"accesses were not checked at these sizes ({work:.2g} operations); checked=True does it, slowly")
    if work > FAST_LIMIT:
        raise DeviceError(f"{program.name} takes {work:.2g} operations at these sizes, too many for the CPU.",
                          hint="run it at smaller sizes: schedule.at(...), or on a GPU")
    device = CpuDevice(checked=checked, seeds=seeds, time_limit_s=CPU_TIME_LIMIT_S)
    built = device.build(module)
    begin = clock.perf_counter()
    runs = device.run_seeds(built, held)
    seconds = clock.perf_counter() - begin
    expected, more = _expected(program, held, function, budget)
    checks = _worst([_checks(program, outputs, expected) for outputs in runs]) if expected else ()
    right = bool(checks) and all(checks)
    evidence = Evidence(orders=seeds if checked and right else 0, refuted=() if right or not checks else ("emulated",))
    timings: dict[str, Timing] = {}
    if time:
        each = seconds if not checked else work / 1e8
        if each > 10:
            notes.append("not timed: one run on the CPU takes too long")
        else:
            samples = device.time(built, held, repeats=max(3, min(10, int(2 / max(each, 1e-3)))), warmup=1)
            timings["warm"] = Timing.of(Samples(samples, l2="warm", method="fast build on the CPU"))
            evidence = replace(evidence, timed="cpu, which says nothing about a GPU")
    return _Outcome(checks, runs[0], evidence.orders, (*notes, *more)), timings, evidence


def _on_gpu(program: Program, module: CudaModule, held: Mapping[str, np.ndarray], own: bool, seed: int, seeds: int,
            function: NumpyReference | None, budget: int, l2: Sequence[str],
            repeats: int) -> tuple[_Outcome, dict[str, Timing], Evidence]:  # fmt: skip
    device = cuda.device()
    built = device.build(module)
    outputs: Mapping[str, np.ndarray] = {}
    several: list[tuple[Check, ...]] = []
    notes: tuple[str, ...] = ()
    sets = [held] + ([seeded_arrays(program, seed + n) for n in range(1, seeds)] if own and cost(program) <= budget else [])
    for n, values in enumerate(sets):
        found = device.run(built, {k: v for k, v in values.items() if program.array_of[k].role != "out"})
        outputs = outputs or found
        expected, notes = _expected(program, values, function, budget, seed + n)
        several.append(_checks(program, found, expected))
    checks = _worst(several)
    right = bool(checks) and all(checks)
    name = device.installed().name
    evidence = Evidence(compiled=(built.cubin.arch,), gpu=name if right else "", refuted=() if right or not checks else ("GPU-checked",))
    given = {k: v for k, v in held.items() if program.array_of[k].role != "out"}
    timings = {state: Timing.of(device.time(built, given, repeats=repeats, l2=state)) for state in l2}
    if timings:
        evidence = replace(evidence, timed=f"{name}, {' and '.join(timings)} L2")
    return _Outcome(checks, outputs, 0, notes), timings, evidence


def _own_again(schedule: Schedule) -> Again | None:
    """The schedule's own way to other sizes."""
    at = getattr(schedule, "at", None) if getattr(schedule, "definition", None) is not None else None
    return (lambda sizes: at(**sizes)) if at else None


def ragged_sizes_of(program: Program) -> list[dict[str, int]]:
    """Two sets of small sizes with no common factors; sizes up to 8 (windows, time steps) are kept in the first."""
    first = {name: value if value <= _SMALL else _RAGGED[0][n % 6] for n, (name, value) in enumerate(program.sizes)}
    second = {name: min(value, _RAGGED[1][n % 6]) if value <= _SMALL else _RAGGED[1][n % 6] for n, (name, value) in enumerate(program.sizes)}
    return [first, second]


def _ragged(again: Again, sets: Sequence[Mapping[str, int]], usual: Mapping[str, int], seed: int, seeds: int,
            function: NumpyReference | None) -> tuple[tuple[tuple[str, tuple[Check, ...]], ...], list[str], list[str]]:  # fmt: skip
    """The checks at ragged sizes, the faults, and the notes."""
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
        program = schedule.source
        if cost(program) * seeds > CHECKED_LIMIT:
            notes.append(f"not run at {where}: too large to check every access")
            continue
        held = seeded_arrays(program, seed)
        device = CpuDevice(checked=True, seeds=seeds, time_limit_s=CPU_TIME_LIMIT_S)
        try:
            runs = device.run_seeds(device.build(emit(schedule.plan)), held)
        except CompilerMissing as error:
            notes.append(f"not run at ragged sizes: {error.what}")
            break
        except DeviceError as error:
            faults.append(f"at {where}: {error.message()}")
            continue
        expected, _ = _expected(program, held, function, BUDGET)
        found.append((where, _worst([_checks(program, outputs, expected) for outputs in runs])))
    return tuple(found), faults, notes


def _compiled(module: CudaModule, archs: Sequence[str], evidence: Evidence) -> tuple[Evidence, list[str]]:
    """The architectures that accept the text."""
    try:
        results = try_compile_for(module, archs)
    except CompilerMissing as error:
        return evidence, [f"not compiled: {error.what}"]
    accepted = tuple(arch for arch, outcome in results.items() if not isinstance(outcome, CompileError))
    refused = [f"{arch} refuses the text: {outcome.what}" for arch, outcome in results.items() if isinstance(outcome, CompileError)]
    merged = tuple(dict.fromkeys((*evidence.compiled, *accepted)))
    return replace(evidence, compiled=merged, refuted=(*evidence.refuted, *(["compiled"] if refused else []))), refused


def _arithmetic(program: Program) -> str:
    """The type the program computes in, for the peak rate."""
    return common([program.array_of[s.target.array].dtype for s in program.statements]).name if program.statements else "f32"
