"""Inputs that are not finite: what a run says of results that differ then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ...ir.coding import coded, decoded
from ...ir.program import Program


def notes_on_infinities(program: Program, arrays: Mapping[str, np.ndarray]) -> Iterator[str]:
    """What may have made a result differ, where an input has infinities or NaN.

    Parameters
    ----------
    program : Program
    arrays : mapping of str to array
        The inputs, as the device has them.
    """
    odd = [a.name for a in program.parameters if a.role != "out" and a.dtype.kind == "float" and not np.isfinite(
        decoded(arrays[a.name], a.dtype) if coded(a.dtype) else arrays[a.name]).all()]
    if odd:
        yield (f"{', '.join(odd)} {'holds' if len(odd) == 1 else 'hold'} infinities or NaN: a tile has zeros beyond an edge or a "
               "diagonal, and zero times these is NaN where the program skips the term; the proof is about finite numbers "
               "(docs/concepts.md, \"Infinities and NaN\")")
