"""The correct texts that mutants are made of: every workload, by the strategies, at small sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from explorer import strategies, workloads
from explorer.ir.program import Program
from explorer.kernel.emit import emit
from explorer.kernel.module import CudaModule
from explorer.run.inputs.arguments import Inputs
from explorer.run.inputs.exact import kinds_for
from explorer.run.verify.reference import Reference, compiled
from explorer.schedule import Schedule
from explorer.transforms.approximate import as_computed

from .text import TextMutant, text_mutants

_ODD = {1: (67,), 2: (7, 37), 3: (7, 11, 13)}, (3, 5, 7, 9, 3, 2, 3)
_EVEN = {1: (64,), 2: (4, 256), 3: (8, 16, 32)}, (2, 4, 8, 8, 4, 3, 3)
_SMALL = 8
STRATEGIES: dict[str, tuple[Callable[[Schedule], Schedule], tuple[dict[int, tuple[int, ...]], tuple[int, ...]]]] = {
    "default": (lambda s: strategies.default(s, 4), _ODD), "auto": (strategies.auto, _ODD),
    "auto, sizes that divide": (strategies.auto, _EVEN)}  # fmt: skip
"""How a schedule is made, and at which sizes."""


@dataclass(frozen=True)
class Subject:
    """A correct text, and what it is held against."""

    workload: str
    strategy: str
    program: Program
    module: CudaModule
    inputs: tuple[Inputs, ...]
    expected: tuple[Reference, ...]

    @property
    def mutants(self) -> list[TextMutant]:
        """All mutants of the text."""
        return text_mutants(self.module)


def subject(workload: str, strategy: str) -> Subject:
    """A workload's schedule at small sizes; windows and time steps keep their size."""
    w = workloads.get(workload)
    definition = w.definition
    make, (few, many) = STRATEGIES[strategy]
    values = few.get(len(definition.sizes), many)
    sizes = {n: w.tiny[n] if w.typical[n] <= _SMALL else v for n, v in zip(definition.sizes, values, strict=False)}
    if len(sizes) < 3 and min(w.typical.values()) <= _SMALL:  # a vector and its window
        sizes = {n: w.tiny[n] if w.typical[n] <= _SMALL else few[1][0] for n in sizes}
    schedule = make(definition.schedule(**sizes))
    program = as_computed(schedule.source, schedule.plan)
    inputs = tuple(Inputs(program, 0, kind=kind) for kind in ("normal", *kinds_for(program)))
    expected = tuple(compiled(program, held.arrays, random=held.random) for held in inputs)
    return Subject(workload, strategy, program, emit(schedule.plan), inputs, expected)
