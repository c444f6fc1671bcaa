"""How often loops run that end early in some blocks (`trim`), on average over the blocks."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

import numpy as np

from ..ir.expr import Expr
from ..ir.plan import Plan
from ..ir.tree import Loop
from ..poly.early_end import end_of

VALUES = 64
"""Values of a loop around that are looked at: more are sampled at equal distances, the first and the last among them."""


def mean_iterations(plan: Plan, loop: Loop) -> float:
    """Iterations of a loop, on average over the iterations of the loops around it.

    Examples
    --------
    Rows in 4 tiles, each of which meets the tiles of keys up to its own one: a trimmed loop over 4 tiles of keys runs 2.5 times.
    """
    kernel = plan.kernel_of(loop.id) if loop.trimmed else None
    last = end_of(plan, kernel, loop) if kernel is not None else ""
    if not isinstance(last, Expr):
        return float(loop.extent)
    around = [plan.loops[name] for name in sorted(last.variables())]
    samples = [np.unique(np.linspace(x.start, x.start + x.extent - 1, min(x.extent, VALUES)).round().astype(int)) for x in around]
    values = dict(zip((x.id for x in around), np.meshgrid(*samples, indexing="ij"), strict=True))
    return float(np.mean(np.clip(last.evaluate(values) - loop.start + 1, 0, loop.extent)))


def share_run(plan: Plan, loops: Iterable[Loop]) -> float:
    """Of the iterations of nested loops, the part that runs on average."""
    return prod(mean_iterations(plan, x) / x.extent for x in loops if x.trimmed)
