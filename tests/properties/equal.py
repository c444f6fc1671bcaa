"""Whether a run's outputs are those of the program: the interpreter first, the bounded float64 loops as the last word."""

from __future__ import annotations

from functools import cached_property, lru_cache
from math import prod

import numpy as np

from explorer.ir.dtype import bf16_to_f32
from explorer.ir.interpret import interpret
from explorer.ir.program import Program
from explorer.run.verify.outputs import check_outputs
from explorer.run.verify.reference import Reference, compiled

Given = tuple[str, np.dtype, tuple[int, ...], bytes]
FEW = 30_000
"""Iterations over all sizes at once, up to which the interpreter is quick."""


def difference(program: Program, arrays: dict[str, np.ndarray], outputs: dict[str, np.ndarray]) -> str:
    """The first output that differs from the reference by more than rounding, or nothing.

    The interpreter decides; where it disagrees, the compiled float64 loops with the error bound of each cell have the
    last word (the interpreter's tolerance is one for the whole array).  They alone are asked where it would take seconds.
    """
    known = _known(program, tuple((name, a.dtype, a.shape, a.tobytes()) for name, a in arrays.items()))
    if prod(n for _, n in program.sizes) <= FEW and all(check_outputs(program, outputs, known.interpreted)):
        return ""
    again = [c for c in check_outputs(program, outputs, known.compiled) if not c]
    return "\n".join(map(str, again))


class _Known:
    """The references of a program on some inputs, each made when it is asked for: orders of one run share them."""

    def __init__(self, program: Program, given: tuple[Given, ...]) -> None:
        self.program = program
        self.arrays = {name: np.frombuffer(data, dtype).reshape(shape) for name, dtype, shape, data in given}

    @cached_property
    def interpreted(self) -> Reference:
        return expected(self.program, self.arrays)

    @cached_property
    def compiled(self) -> Reference:
        return compiled(self.program, self.arrays)


@lru_cache(maxsize=4)
def _known(program: Program, given: tuple[Given, ...]) -> _Known:
    return _Known(program, given)


def expected(program: Program, arrays: dict[str, np.ndarray]) -> Reference:
    """The interpreter's result: floats in float64 without rounding, integers as their types hold them."""
    floats = any(a.dtype.kind == "float" for a in program.arrays)
    found = interpret(program, arrays, exact=floats, rounded=not floats)
    values = {}
    for a in program.parameters:
        if a.role != "in":
            value = np.asarray(found[a.name])
            if a.dtype.name == "bf16" and value.dtype == a.dtype.numpy:
                value = bf16_to_f32(value)
            values[a.name] = value.astype({"float": np.float64, "int": np.int64, "bool": np.uint8}[a.dtype.kind]).reshape(a.shape)
    return Reference(values, {}, {}, "the interpreter")
