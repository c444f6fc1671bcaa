"""Which of the product's own judgements notices a mutant: a question, the compiler, the CPU device's checks, or the reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from unittest.mock import patch

from explorer.errors import CompileError, ExplorerError, IllegalSchedule
from explorer.kernel import emit as emitting
from explorer.kernel.emit import emit
from explorer.kernel.launches import LaunchIR
from explorer.kernel.module import CudaModule
from explorer.kernel.validate import NotProved
from explorer.run.cpu.device import CpuBuilt, CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from explorer.schedule import Schedule
from tests.properties.equal import difference

from .gallery import GALLERY
from .mutants import MUTANTS, Mutant
from .patches import patched

SEEDS = (0, 1, 2)
SURVIVED = "nothing"
IR = "the judge of the IR"


@dataclass(frozen=True)
class Caught:
    """A mutant, what noticed it, and whether the judge of the IR did, before anything else could."""

    mutant: Mutant
    by: str
    in_ir: bool = False

    @property
    def survived(self) -> bool:
        return self.by == SURVIVED or self.by.startswith("not made")


def caught(mutants: Sequence[Mutant] = MUTANTS) -> list[Caught]:
    """Every mutant with the first judgement that notices it.  The texts are compiled together, without the mutants' patches.

    What the judge of the IR refuses is written all the same, to see what stands behind that judge.
    """
    judged = [_made(m) for m in mutants]
    made = [_made(m, unjudged=True) if answer == IR else answer for m, answer in zip(mutants, judged, strict=True)]
    running = {n: answer for n, answer in enumerate(made) if not isinstance(answer, str)}
    by = _runs(running)
    answers = [answer if isinstance(answer, str) else by[n] for n, answer in enumerate(made)]
    return [Caught(m, answer, before == IR) for m, answer, before in zip(mutants, answers, judged, strict=True)]


def control() -> dict[str, str]:
    """What the same judgements say of the gallery without any mutant, by schedule: nothing, if all is well."""
    schedules = {make.__name__: _emitted(make, ()) for make in GALLERY}
    by = _runs({name: made for name, made in enumerate(schedules.values()) if not isinstance(made, str)})
    return {name: made if isinstance(made, str) else by[n] for n, (name, made) in enumerate(schedules.items())}


def _made(mutant: Mutant, unjudged: bool = False) -> tuple[Schedule, CudaModule] | str:
    judge = _let_through if unjudged else emitting.require_proved
    with patched(*mutant.patches), patch.object(emitting, "require_proved", judge):
        return _emitted(mutant.make, mutant.text)


def _let_through(launch: LaunchIR) -> None:
    """In the place of the judge of the IR."""


def _emitted(make: Callable[[], Schedule], text: Sequence[tuple[str, str]]) -> tuple[Schedule, CudaModule] | str:
    """The schedule's text, or the question that refuses it."""
    try:
        schedule = make()
        if schedule.obligations:
            return "question obligation"
        module = emit(schedule.plan)
    except NotProved:
        return IR
    except IllegalSchedule as error:
        return f"question {error.finding.question}"
    except ExplorerError as error:
        return f"not made ({error.what})"
    for old, new in text:
        if old not in module.text:
            return f"not made (the text has no {old!r})"
        module = replace(module, text=module.text.replace(old, new))
    return schedule, module


def _runs(made: dict[int, tuple[Schedule, CudaModule]]) -> dict[int, str]:
    """What the compiler, the device and the reference say."""
    out, left = {}, dict(made)
    while left:
        try:
            built = dict(zip(left, CpuDevice().build_many([module for _, module in left.values()]), strict=True))
        except CompileError as error:
            out[list(left)[error.index]] = "the compiler"
            del left[list(left)[error.index]]
            continue
        for n, program in built.items():
            out[n] = _run(left[n][0], program)
        break
    return out


def _run(schedule: Schedule, built: CpuBuilt) -> str:
    arrays = seeded_arrays(schedule.source, 1)
    try:
        results = CpuDevice(seeds=SEEDS, time_limit_s=20.0).run_seeds(built, arrays)
    except ExplorerError as error:
        return f"CPU device: {getattr(error, 'kind', type(error).__name__)}"
    return "the reference: a wrong result" if any(difference(schedule.source, arrays, r) for r in results) else SURVIVED


def table(found: Sequence[Caught]) -> str:
    """Mutants and what noticed them, as a table in Markdown."""
    rows = [f"| {c.mutant.part} | {c.mutant.breaks} | {f'{IR}; without it {c.by}' if c.in_ir else c.by} |" for c in found]
    return "\n".join(["| in | defect | noticed by |", "|---|---|---|", *rows])


def page(found: Sequence[Caught]) -> str:
    """The page of the documentation."""
    return f"""# Mutants: can the judgements fail?

A test suite that cannot fail proves nothing.  Each row is a defect that the tests put into explorer on purpose, and the first
of its own judgements that notices it: one of the questions that every schedule is asked, the judge of the IR that is printed (and
what stands behind it), a check of the CPU device, or the comparison with the reference.
Where a row says that a question *is not asked*, it shows what stands behind that question.
Without a defect the same schedules pass every judgement.

{len(found)} defects, {sum(not c.survived for c in found)} noticed.

{table(found)}

Made by `python -m benchmarks.properties --mutants --write`; the defects are in `tests/mutants/mutants.py`.
"""
