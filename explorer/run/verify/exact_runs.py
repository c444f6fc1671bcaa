"""Runs of a built kernel on inputs whose arithmetic is exact: another few launches of the same text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from ...errors import DeviceError
from ...ir.program import Program
from ..inputs.arguments import Inputs
from ..inputs.exact import KINDS, kinds_for
from .expected import expected
from .outputs import Check, check_outputs
from .reference import BUDGET

Launch = Callable[[Inputs, int], Mapping[str, np.ndarray]]
"""Runs the built text on the inputs; the number counts the runs, for an order of threads of each one's own."""


def run_sharp(program: Program, launch: Launch, *, seed: int = 0,
              budget: int = BUDGET // 4) -> tuple[tuple[Check, ...], tuple[str, ...]]:  # fmt: skip
    """Run on each kind of inputs that has something to show, and compare with the loops as written.

    Parameters
    ----------
    program : Program
    launch : callable
    seed : int
    budget : int
        Operations up to which the reference computes every cell, and a sample beyond.

    Returns
    -------
    tuple of Check, tuple of str
        One check for each kind and output, and notes on what was not run.

    Raises
    ------
    KernelFault, KernelTimeout
        From the launch.
    """
    found: list[Check] = []
    for number, kind in enumerate(kinds_for(program)):
        try:
            held = Inputs(program, seed, kind=kind)
        except DeviceError as error:
            return tuple(found), (f"no runs on exact inputs: {error.what}",)
        wanted, notes = expected(held, budget=budget)
        if notes:
            return tuple(found), tuple(f"exact inputs: {note}" for note in notes)
        found += [replace(c, inputs=KINDS[kind]) for c in check_outputs(program, launch(held, number), *wanted)]
    return tuple(found), ()
