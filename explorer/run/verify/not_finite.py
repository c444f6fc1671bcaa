"""Inputs that are not finite: what a run says of results that differ then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ...ir.coding import coded, decoded
from ...ir.program import Program
from .outputs import Check


def notes_on_infinities(program: Program, arrays: Mapping[str, np.ndarray], checks: Sequence[Check]) -> Iterator[str]:
    """What may have made the difference, where a result differs and an input has infinities or NaN.

    Parameters
    ----------
    program : Program
    arrays : mapping of str to array
        The inputs, as the device has them.
    checks : sequence of Check
    """
    if all(checks):
        return
    odd = [a.name for a in program.parameters if a.role != "out" and a.dtype.kind == "float" and not np.isfinite(
        decoded(arrays[a.name], a.dtype) if coded(a.dtype) else arrays[a.name]).all()]
    if odd:
        yield (f"{', '.join(odd)} {'holds' if len(odd) == 1 else 'hold'} infinities or NaN: a tile has zeros beyond an edge or a "
               "diagonal, and zero times these is NaN where the program skips the term; the proof is about finite numbers "
               "(docs/concepts.md, \"Infinities and NaN\")")
