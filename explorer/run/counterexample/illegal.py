"""One illegal plan, executed at one set of sizes: its CUDA text on the CPU device, and its IR in the interpreter.

The text is the emitter's own, with barriers wherever they can stand; where two threads race, nothing can, and nothing does.  It
runs in the thread and block orders of the CPU device, with accesses unwatched, since a watched run ends at the first fault and
computes nothing.  One thread runs there until it waits, so a lost update never shows; the interpreter
(:mod:`explorer.kernel.interpreter`) runs all threads together too, and each thread first that the refusal names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

import numpy as np

from ...errors import CompileError, CompilerMissing, DeviceError, ExplorerError, KernelFault
from ...ir.finding import Finding
from ...ir.interpret import interpret
from ...ir.plan import Plan
from ...ir.program import Array, Program, Statement
from ...ir.tree import Loop, walk
from ...kernel.emit import emit
from ...kernel.interpreter import Order, execute
from ...kernel.launches import PlanIR, plan_ir, standing
from ...kernel.module import CudaModule
from ...poly.mechanism import ASYNCHRONOUS
from ..cpu.device import CpuDevice
from ..inputs.arguments import poisoned, reference_dtype, seeded_arrays, widened
from ..verify.outputs import check_output
from ..verify.reference import Reference

RELATIVE = 1e-6
"""Larger differences than this between two orders in float64 are not rounding."""
SHOWN = 8
"""Cells shown around the first wrong one."""
THREAD_ORDERS = ("threads and blocks in order", "threads and blocks in reverse", "threads and blocks shuffled")
"""Of the CPU device's seeds."""
SEEDS = 4
INPUTS = 12
"""Elements of an input that are shown."""
WRITES = 4
"""Writes of the wrong cell that are shown, from its first and from its last ones."""
LINE = 70
"""Most characters of a line of text that is quoted."""
LIMIT_S = 5.0
"""For one run of one text."""


@dataclass(frozen=True)
class Trial:
    """A step at some sizes: the program, the plan that the step would make, and what speaks against it."""

    sizes: dict[str, int]
    program: Program
    plan: Plan
    finding: Finding


@dataclass(frozen=True)
class Wrong:
    """An output that is not what the program says.

    Attributes
    ----------
    order : str
        The order that shows it, in words.
    array : str
        Empty where a run ended without outputs; then `problem` says how.
    element : tuple of int
        The first wrong cell; `got` and `expected` are its values in words.
    count, total : int
        Wrong cells, and cells.
    cells : tuple of (str, str, str, str)
        Cells around the first wrong one: name, got, expected, ``"wrong"`` or ``"right"``.
    problem : str
    """

    order: str
    array: str = ""
    element: tuple[int, ...] = ()
    got: str = ""
    expected: str = ""
    count: int = 0
    total: int = 0
    cells: tuple[tuple[str, str, str, str], ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class Answer:
    """What the CPU device shows of a trial: a wrong output, or `why` there is none; `text` where a text was run."""

    wrong: Wrong | None = None
    why: str = ""
    text: CudaModule | None = None


# ---- the emitted text ----


def illegal_text(plan: Plan) -> CudaModule:
    """The text of a plan that may be illegal: barriers where they can stand, and none against races.

    Raises
    ------
    ExplorerError
        If the emitter cannot print it.
    """
    return emit(plan, barriers=standing)


def on_device(trials: Sequence[Trial], seed: int = 0) -> list[Answer]:
    """What the texts of some trials compute on the CPU device; they are compiled together.

    Parameters
    ----------
    trials : sequence of Trial
    seed : int
        Of the inputs.
    """
    answers = [_printed(trial) for trial in trials]
    chosen = [n for n, answer in enumerate(answers) if answer.text is not None]
    late = CpuDevice(watched=False, seeds=SEEDS, time_limit_s=LIMIT_S)
    early = CpuDevice(checked=False, threads=1, time_limit_s=LIMIT_S)
    for device in (early, late):  # a copy on its way is poison in the late one: what an early one leaves says more
        using = [n for n in chosen if answers[n].wrong is None and (device is late or _asynchronous(trials[n].plan))]
        try:
            built = device.build_many([text for n in using if (text := answers[n].text)])
        except CompilerMissing as error:
            return [Answer(why=error.what) for _ in trials]
        except CompileError as error:
            if len(trials) == 1:
                return [Answer(why=error.what)]
            return [answer for trial in trials for answer in on_device([trial], seed)]
        for n, program in zip(using, built, strict=True):
            answers[n] = Answer(_run_text(trials[n], device, program, seed), answers[n].why, answers[n].text)
    return answers


def watched(answer: Answer, trial: Trial, seed: int = 0) -> str:
    """What the checks of the CPU device say of a trial's text, in a sentence; empty if nothing."""
    if answer.text is None:
        return ""
    device = CpuDevice(seeds=SEEDS, time_limit_s=LIMIT_S)
    try:
        device.run_seeds(device.build(answer.text), seeded_arrays(trial.program, seed))
    except KernelFault as fault:
        line = fault.details.get("line")
        quoted = shorten(answer.text.text.splitlines()[line - 1], LINE, placeholder=" …") if line else ""
        where = f" at line {line}, {quoted}" if line else ""
        return f"the CPU device's checks stop the text{where}: {fault.what.rstrip('.')}"
    except DeviceError:
        return ""
    return ""


def _printed(trial: Trial) -> Answer:
    try:
        return Answer(text=illegal_text(trial.plan),
                      why=f"the emitted text computes the right values in all {SEEDS} orders of the CPU device")
    except ExplorerError as error:
        return Answer(why=f"the order cannot be written as CUDA: {error.what}")


def _asynchronous(plan: Plan) -> bool:
    return any(leaf.mechanism in ASYNCHRONOUS for leaf, _, _ in plan.leaves)


def _run_text(trial: Trial, device: CpuDevice, built: Any, seed: int) -> Wrong | None:
    try:
        held = seeded_arrays(trial.program, seed)
        several = device.run_seeds(built, held)
    except DeviceError as error:
        return Wrong(THREAD_ORDERS[0], problem=f"{error.what} {error.why}".strip())
    landing = "" if device.checked or not _asynchronous(trial.plan) else ", asynchronous copies landing at once"
    for n, outputs in enumerate(several):
        values = {a.name: widened(a, outputs[a.name]) for a in trial.program.parameters if a.role != "in"}
        if found := _compared(trial, f"{THREAD_ORDERS[min(n, 2)]}{landing}", values, expected(trial.program, held), outputs):
            return found
    return None


# ---- the interpreter ----


def illegal_ir(plan: Plan) -> PlanIR | str:
    """The IR of a plan that may be illegal, or why no kernel can say it."""
    try:
        return plan_ir(plan, barriers=standing)
    except ExplorerError as error:
        return error.what


def interpreted(trial: Trial, seed: int = 0) -> Wrong | None:
    """What the interpreter shows: the first of its orders with a wrong cell, if any."""
    ir = illegal_ir(trial.plan)
    try:
        held = seeded_arrays(trial.program, seed)
    except DeviceError:
        return None
    if isinstance(ir, str):
        return None
    want = expected(trial.program, held)
    for order in orders(trial):
        run = execute(ir, held, order, exact=True, watch=False)
        if run.hazards:
            return Wrong(str(order), problem=run.hazards[0].what)
        if found := _compared(trial, str(order), run.outputs, want, None):
            return found
    return None


def orders(trial: Trial) -> tuple[Order, ...]:
    """The orders that are tried: several only where blocks, threads or asynchronous copies leave them open.

    The last ones are those of the refusal's witness: the thread of either instance runs before all others.
    """
    loops = [n for k in trial.plan.kernels for n in walk(k.body) if isinstance(n, Loop)]
    found = [Order()]
    if any(x.is_place for x in loops):
        found.append(Order(sequence="descending"))
    if any(x.is_block for x in loops):
        found += [Order("block", "descending"), Order("block")]
    if _asynchronous(trial.plan):
        found.append(Order(early=True))
    pair = (trial.finding.sink, trial.finding.source)
    places = [instance.place for instance in pair if instance is not None and instance.place]
    return (*found, *(Order("thread", first=place) for place in dict.fromkeys(places) if len(set(places)) > 1))


# ---- what is right ----


def expected(program: Program, held: Mapping[str, np.ndarray]) -> Reference:
    """The program's own loops in float64; integers are exact."""
    given = {a.name: held[a.name] if a.role != "out" else poisoned(a) for a in program.parameters}
    found = interpret(program, given, exact=True)
    values = {a.name: _wide(a, found[a.name]) for a in program.parameters if a.role != "in"}
    return Reference(values, {}, {}, "the loops as written")


def _wide(array: Array, values: np.ndarray) -> np.ndarray:
    if array.dtype.kind == "bool":
        return np.asarray(values, order="C").view(np.uint8)
    return np.asarray(values, reference_dtype(array.dtype))


def _compared(trial: Trial, order: str, got: Mapping[str, np.ndarray], want: Reference,
              native: Mapping[str, np.ndarray] | None) -> Wrong | None:  # fmt: skip
    """The first wrong cell with the cells around it; `native` outputs were rounded, so rounding is allowed for."""
    for array in trial.program.parameters:
        if array.role == "in":
            continue
        right = np.asarray(want.values[array.name], np.float64).reshape(-1)
        have = np.asarray(got[array.name], np.float64).reshape(-1)
        wrong = _outside(trial.program, array, have, right, want, native)
        if not wrong.any():
            continue
        first = int(np.flatnonzero(wrong)[0])
        start = max(0, min(first - SHOWN // 2, right.size - SHOWN))
        cells = tuple((cell_name(array.name, _index(array, n)), number(have[n]), number(right[n]),
                       "wrong" if wrong[n] else "right") for n in range(start, min(start + SHOWN, right.size)))
        return Wrong(order, array.name, _index(array, first), number(have[first]), number(right[first]), int(wrong.sum()),
                     right.size, cells)
    return None


def _outside(program: Program, array: Array, have: np.ndarray, right: np.ndarray, want: Reference,
             native: Mapping[str, np.ndarray] | None) -> np.ndarray:  # fmt: skip
    if native is None:
        scale = max(float(np.max(np.abs(right), initial=0.0, where=np.isfinite(right))), 1e-300)
        relative, absolute = 0.0, RELATIVE * scale
    else:
        check = check_output(program, array, native[array.name], want)
        if check:
            return np.zeros(right.shape, bool)
        relative, absolute = check.tolerance.relative, check.tolerance.absolute
    with np.errstate(invalid="ignore"):
        within = np.abs(have - right) <= relative * np.abs(right) + absolute
        return ~(within | (have == right) | (np.isnan(have) & np.isnan(right)))


def _index(array: Array, flat: int) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(flat, array.shape)) if array.shape else ()


def inputs_in_words(trial: Trial, seed: int = 0) -> tuple[tuple[str, str], ...]:
    """Each input array with its elements and their values, the first ones where there are many."""
    held, out = seeded_arrays(trial.program, seed), []
    for array in trial.program.parameters:
        if array.role == "out":
            continue
        values = np.asarray(widened(array, held[array.name]), np.float64).reshape(-1)
        shown = [f"{cell_name(array.name, _index(array, n))} = {number(values[n])}" for n in range(min(values.size, INPUTS))]
        more = [f"… {values.size - INPUTS:,} more"] if values.size > INPUTS else []
        out.append((array.name, ", ".join([*shown, *more])))
    return tuple(out)


def written(trial: Trial, array: str, element: Sequence[int], seed: int = 0) -> tuple[tuple[str, str], ...]:
    """The instances that write a cell in the program's order, with the value that each leaves there, some of many."""
    held, out = seeded_arrays(trial.program, seed), []

    def watch(statement: Statement, at: Mapping[str, int], name: str, where: tuple[int, ...], value: Any) -> None:
        if name == array and tuple(where) == tuple(element):
            out.append((cell_name(statement.name, [at[d] for d in statement.dims]), number(value)))

    given = {a.name: held[a.name] if a.role != "out" else poisoned(a) for a in trial.program.parameters}
    interpret(trial.program, given, exact=True, watch=watch)
    left = len(out) - 2 * WRITES
    return tuple(out if left <= 0 else [*out[:WRITES], (f"… {left} more", ""), *out[-WRITES:]])


def cell_name(name: str, element: Sequence[int]) -> str:
    """``y[0, 1]``."""
    return f"{name}[{', '.join(map(str, element))}]" if element else name


def number(value: float) -> str:
    """Six digits."""
    return f"{float(value):.6g}"


