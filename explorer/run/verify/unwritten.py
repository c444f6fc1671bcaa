"""Unwritten elements of outputs: those that a program writes nowhere, and arrays that a caller passed for an output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...ir.program import Array, Program
from ...poly.count import compulsory
from ...schedule import Schedule


def unwritten(program: Program) -> dict[str, int]:
    """How many cells of each output no instance writes; where that could not be counted exactly, 0."""
    count = {e.array: e.written for e in compulsory(program) if e.exact}
    return {a.name: a.size - count.get(a.name, a.size) for a in program.parameters if a.role == "out"}


def notes_on(schedule: Schedule, program: Program, arrays: Mapping[str, Any] | None) -> Iterator[str]:
    """What a run says of cells that hold no value, and of what was passed for outputs."""
    for array in program.parameters:
        if array.role != "out":
            continue
        if arrays is not None and array.name in arrays:
            yield f"what was passed for {array.name} is not used: {array.name} is an output"
        if missing := unwritten(program)[array.name]:
            cells = "1 cell" if missing == 1 else f"{missing:,} cells"
            yield (f"{cells} of {array.name} {'is' if missing == 1 else 'are'} written by nothing and hold{'s' * (missing == 1)} "
                   f"no value; to keep the caller's there, declare {array.name}: ex.inout[ex.{_declared(schedule, array)}]")


def _declared(schedule: Schedule, array: Array) -> str:
    """The type of a parameter, with the sizes as the user wrote them where they are known."""
    parameters = getattr(getattr(schedule, "definition", None), "parameters", ())
    shapes = [p.shape for p in parameters if p.name == array.name] or [array.shape]
    name = "bool_" if array.dtype.name == "bool" else array.dtype.name
    return f"{name}[{', '.join(map(str, shapes[0]))}]" if shapes[0] else name
