"""Whether a run's outputs are those of the program: the interpreter first, the bounded float64 loops as the last word."""

from __future__ import annotations

import numpy as np

from explorer.ir.dtype import bf16_to_f32
from explorer.ir.interpret import interpret
from explorer.ir.program import Program
from explorer.run.verify.outputs import check_outputs
from explorer.run.verify.reference import Reference, compiled


def difference(program: Program, arrays: dict[str, np.ndarray], outputs: dict[str, np.ndarray]) -> str:
    """The first output that differs from the reference by more than rounding, or nothing.

    The interpreter decides; where it disagrees, the compiled float64 loops with the error bound of each cell have the
    last word (the interpreter's tolerance is one for the whole array).
    """
    if all(check_outputs(program, outputs, expected(program, arrays))):
        return ""
    again = [c for c in check_outputs(program, outputs, compiled(program, arrays)) if not c]
    return "\n".join(map(str, again))


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
