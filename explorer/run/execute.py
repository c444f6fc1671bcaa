"""Run a schedule: emit, build, run, verify against independent references, also at ragged sizes, and time."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..errors import CompileError, CompilerMissing, DeviceError
from ..gpu.occupancy import check_launch
from ..gpu.roofline import roofline
from ..gpu.spec import Gpu, target_gpu
from ..ir.plan import Plan
from ..ir.program import Program
from ..kernel.emit import emit
from ..kernel.emittable import require_emittable
from ..kernel.module import CudaModule
from ..kernel.reference.slices import cost
from ..poly.count import arithmetic_type, compulsory_bytes, flops
from ..schedule import Schedule
from ..transforms.approximate import as_computed
from .cpu.device import CpuDevice
from .cuda import device as cuda
from .inputs.arguments import Inputs
from .inputs.exact import kinds_for
from .kernel import architectures, compiled_for
from .options import (
    check_counts,
    check_device,
    check_flags,
    check_functions,
    check_reference,
    check_seed,
    check_sizes,
    l2_states,
    require_memory,
)
from .result import THESE, Evidence, Run
from .timing import Samples, Timing
from .verify.exact_runs import run_sharp
from .verify.expected import expected
from .verify.fitting import fitting_sizes
from .verify.not_finite import notes_on_infinities
from .verify.outputs import Check, check_outputs, worst_of
from .verify.ragged import CHECKED_LIMIT, RAGGED_LIMIT, TIME_LIMIT_S, Again, own_again, ragged_sizes_of, run_ragged
from .verify.reference import BUDGET, NumpyReference
from .verify.unwritten import notes_on, unwritten

FAST_LIMIT = 5 * 10**10
"""Operations that the fast build on the CPU is asked to do: about a minute on two cores."""

PHASES = ("emit", "compile", "run", "verify", "time", "ragged")
"""What a run does, in order; not every run does everything."""

Progress = Callable[[str], None]


def _silent(phase: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class _Ask:
    """What the caller of `execute` wants of either device, as there."""

    seeds: int
    checked: bool | None
    reference: NumpyReference | None
    budget: int
    l2: tuple[str, ...]
    repeats: int
    progress: Progress


@dataclass(frozen=True)
class _Outcome:
    """What one device run gives: its checks, its outputs, and what it leaves out."""

    checks: tuple[Check, ...]
    outputs: Mapping[str, np.ndarray]
    notes: tuple[str, ...] = ()
    exact: tuple[Check, ...] = ()


def execute(
    schedule: Schedule, arrays: Mapping[str, Any] | None = None, *, device: str = "auto", seed: int = 0, seeds: int = 2,
    time: bool = True, l2: Sequence[str] = ("cold", "warm"), repeats: int = 30, checked: bool | None = None, ragged: bool = True,
    again: Again | None = None, ragged_sizes: Sequence[Mapping[str, int]] | None = None, reference: NumpyReference | None = None,
    gpu: Gpu | str | None = None, archs: Sequence[str] = (), budget: int = BUDGET, progress: Progress = _silent,
) -> Run:
    """Run a schedule, verify its outputs, and time it.

    Parameters
    ----------
    schedule : Schedule
    arrays : mapping of str to array, optional
        NumPy, CuPy, or anything with DLPack; by default made from `seed` (:mod:`explorer.run.inputs.arguments`).
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
        The sizes for that; by default primes.  If the steps do not apply there, and accesses were not checked at the sizes asked
        for, small sizes of whole vectors and tiles (:mod:`explorer.run.verify.fitting`).
    reference : callable, optional
        A NumPy reference ``function(arrays, sizes)``, checked beside the loops themselves.
    gpu : Gpu or str, optional
        Whose limits the launches must keep when there is no GPU; by default the H200.
    archs : sequence of str
        Architectures to compile the text for as well.
    budget : int
        Operations up to which the reference computes every cell, and a sample beyond.
    progress : callable, optional
        Called with each of :data:`PHASES` as it begins.  What it raises ends the run; :mod:`explorer.system.cancel` also ends
        what runs in child processes.

    Returns
    -------
    Run
        Also when the outputs are wrong: then ``run.correct`` is False and the checks say where.

    Raises
    ------
    IllegalSchedule
        While a question of legality is answered "no" or a reduction's obligation is open.
    ResourceError
        If a launch does not fit the GPU, or a GPU or architecture is not known.
    DeviceError
        For arrays that are missing, of another shape or of values that do not fit, and for other options that make no sense.
    CompilerMissing, CompileError, KernelFault, KernelTimeout, OutOfMemory
        From the device.
    """
    check_functions(again=again, progress=progress)
    progress = progress or _silent
    progress("emit")
    require_emittable(schedule)
    program = as_computed(schedule.source, schedule.plan)
    check_seed(seed)
    check_counts(seeds=seeds, repeats=repeats, budget=budget)
    check_flags(time=time, ragged=ragged, **({} if checked is None else {"checked": checked}))
    check_reference(reference)
    check_sizes(program, ragged_sizes)
    states, wanted = l2_states(l2) if time else (), architectures(archs)
    on_gpu = _choose(device)
    target = cuda.device().installed().gpu if on_gpu else target_gpu(gpu)
    module = emit(schedule.plan, arch=target.arch)
    for launch in module.launches:
        check_launch(target, launch)
    if not on_gpu and cost(program) > FAST_LIMIT:
        raise DeviceError(f"{program.name} takes {cost(program):.2g} operations at these sizes, too many for the CPU.",
                          hint="run it at smaller sizes: schedule.at(...), or on a GPU")
    require_memory(program)
    held = Inputs(program, seed, arrays)
    ask = _Ask(seeds, checked, reference, budget, states, repeats, progress)
    if on_gpu:
        outcome, timings, evidence = _on_gpu(program, module, held, ask)
    else:
        outcome, timings, evidence = _on_cpu(program, module, held, ask)
    evidence = replace(evidence, proved=True)
    missing = unwritten(program)
    checks = tuple(replace(c, unwritten=missing.get(c.array, 0)) for c in outcome.checks)
    notes, faults = [*notes_on(schedule, program, arrays), *outcome.notes, *_blind(outcome)], []
    if arrays is not None and not all(checks):
        notes += notes_on_infinities(program, held.arrays)
    several: tuple[tuple[str, tuple[Check, ...]], ...] = ()
    if ragged and (again := again or own_again(schedule)) is not None and program.sizes:
        progress("ragged")
        sets, enough = ragged_sizes or ragged_sizes_of(program), ragged_sizes or evidence.emulated
        others = tuple if enough else partial(fitting_sizes, schedule, RAGGED_LIMIT / seeds)
        several, faults, more = run_ragged(again, sets, dict(program.sizes), seed, seeds, reference, others)
        notes += more
        passed = tuple(where for where, checks in several if all(checks))
        evidence = replace(evidence, orders=seeds, emulated=(*evidence.emulated, *passed))
        if faults or len(passed) < len(several):
            evidence = replace(evidence, refuted=(*evidence.refuted, "emulated"))
    if wanted:
        evidence, more = _compiled(schedule.plan, module, wanted, evidence)
        notes += more
    least, work = compulsory_bytes(program), flops(program)
    floor = roofline(target, least, work, arithmetic_type(program)) if on_gpu and timings else None
    where = target.name if on_gpu else "cpu"
    return Run(program.name, where, program.sizes, checks, several, timings, least, work, floor, evidence, tuple(notes),
               tuple(faults), module, outcome.outputs, outcome.exact)


def _choose(device: str) -> bool:
    """Whether to run on the GPU."""
    check_device(device)
    missing = cuda.available() if device != "cpu" else "not asked for"
    if device == "cuda" and missing:
        raise DeviceError("There is no GPU to run on.", why=missing, hint='device="cpu" runs the same text on the processor')
    return missing is None


def _on_cpu(program: Program, module: CudaModule, held: Inputs,
            ask: _Ask) -> tuple[_Outcome, dict[str, Timing], Evidence]:  # fmt: skip
    work, checked, seeds = cost(program), ask.checked, ask.seeds
    notes: list[str] = []
    if checked is None:
        checked = work * seeds <= CHECKED_LIMIT
        if not checked:
            asked = f"{seeds} × {work:.2g} operations, {CHECKED_LIMIT:.2g} at most"
            notes.append(f"accesses were not checked at these sizes: {asked}; checked=True does it, slowly")
    device = CpuDevice(checked=checked, seeds=seeds, time_limit_s=TIME_LIMIT_S)
    ask.progress("compile")
    built = device.build(module)
    ask.progress("run")
    begin = clock.perf_counter()
    runs = device.run_seeds(built, held.arrays)
    seconds = clock.perf_counter() - begin
    ask.progress("verify")
    wanted, more = expected(held, ask.reference, budget=ask.budget)
    checks = worst_of([check_outputs(program, outputs, *wanted) for outputs in runs])
    slow = checked and work * len(kinds_for(program)) > CHECKED_LIMIT
    again = replace(device, checked=False).build(module) if slow else built
    exact, skipped = run_sharp(program, lambda inputs, n: replace(device, seeds=(n + 2,)).run(again, inputs.arrays),
                               seed=held.seed, budget=ask.budget // 4)
    right = bool(checks) and all(checks) and all(exact)
    done = (THESE,) if checked and right else ()
    evidence = Evidence(orders=seeds if done else 0, emulated=done, exact=_kinds(exact),
                        refuted=() if right or not checks else ("emulated",))
    timings: dict[str, Timing] = {}
    if ask.l2:
        ask.progress("time")
        each = seconds if not checked else work / 1e8
        if each > 10:
            notes.append("not timed: one run on the CPU takes too long")
        else:
            samples = device.time(built, held.arrays, repeats=max(3, min(10, int(2 / max(each, 1e-3)))), warmup=1)
            timings["warm"] = Timing.of(Samples(samples, l2="", method="fast build on the CPU"))
            evidence = replace(evidence, timed="cpu, which says nothing about a GPU")
    return _Outcome(checks, runs[0], (*notes, *more, *skipped), exact), timings, evidence


def _on_gpu(program: Program, module: CudaModule, held: Inputs,
            ask: _Ask) -> tuple[_Outcome, dict[str, Timing], Evidence]:  # fmt: skip
    device = cuda.device()
    ask.progress("compile")
    built = device.build(module)
    outputs: Mapping[str, np.ndarray] = {}
    several: list[tuple[Check, ...]] = []
    notes: tuple[str, ...] = ()
    several_sets = held.own and cost(program) <= ask.budget
    for values in (held, *(Inputs(program, held.seed + n) for n in range(1, ask.seeds if several_sets else 1))):
        ask.progress("run")
        found = device.run(built, values.for_gpu)
        outputs = outputs or found
        ask.progress("verify")
        wanted, notes = expected(values, ask.reference, budget=ask.budget)
        several.append(check_outputs(program, found, *wanted))
    checks = worst_of(several)
    exact, skipped = run_sharp(program, lambda inputs, _: device.run(built, inputs.for_gpu), seed=held.seed,
                               budget=ask.budget // 4)
    right = bool(checks) and all(checks) and all(exact)
    name = device.installed().name
    refuted = () if right or not checks else ("GPU-checked",)
    evidence = Evidence(compiled=(built.cubin.arch,), gpu=name if right else "", exact=_kinds(exact), refuted=refuted)
    if ask.l2:
        ask.progress("time")
    timings = {state: Timing.of(device.time(built, held.for_gpu, repeats=ask.repeats, l2=state)) for state in ask.l2}
    if timings:
        evidence = replace(evidence, timed=f"{name}, {' and '.join(timings)} L2")
    return _Outcome(checks, outputs, (*notes, *skipped), exact), timings, evidence


def _blind(outcome: _Outcome) -> list[str]:
    """What is said where a deep chain of operations lets the bound grow beyond the values themselves."""
    out = []
    for check in outcome.checks:
        if not check.blind:
            continue
        others = [c for c in outcome.exact if c.array == check.array and not c.blind]
        best = "; ".join(f"on {c.inputs}: {c.sharpness}" for c in others) or "nor do the exact inputs"
        allows = f"{check.tolerance.absolute:.2g}" if check.tolerance.unbounded < check.checked else "anything"
        out.append(f"the bound says nothing of {check.array}: it allows {allows}, and the values are of "
                   f"size {check.size:.2g}; {best}")
    return out


def _kinds(exact: Sequence[Check]) -> tuple[str, ...]:
    """The kinds of exact inputs on which everything was right."""
    return tuple(dict.fromkeys(c.inputs for c in exact if not c.blind)) if all(exact) else ()


def _compiled(plan: Plan, module: CudaModule, archs: Sequence[str], evidence: Evidence) -> tuple[Evidence, list[str]]:
    """The architectures that accept the text."""
    try:
        results = compiled_for(plan, module, archs)
    except CompilerMissing as error:
        return evidence, [f"not compiled: {error.what}"]
    accepted = tuple(arch for arch, outcome in results.items() if not isinstance(outcome, CompileError))
    refused = [f"{arch} refuses the text: {found.what}" for arch, found in results.items() if isinstance(found, CompileError)]
    merged = tuple(dict.fromkeys((*evidence.compiled, *accepted)))
    return replace(evidence, compiled=merged, refuted=(*evidence.refuted, *(["compiled"] if refused else []))), refused
