"""What is needed to finish a result besides its sum: asked for before the sum, where a compiler would not do so.

One thread of those that share a sum finishes the result, under a condition and behind the block's barrier.  What it loads only
there costs the block another latency: 3,000 sums of 100 f16 with a factor and an offset each took 2.21 instead of 1.79 µs on an
H200, 8,191 sums of 512 took 4.32 instead of 3.94 µs.  Where shuffles alone stand between, the compiler loads ahead by itself.
"""

from __future__ import annotations

from math import prod

from ...ir.program import Statement
from ...ir.tree import Leaf
from .._steps import Builder
from ..rows.form import WIDE

WORDS = 8
"""Words of a thread that are asked for ahead, at most."""


def ask_ahead(b: Builder, kernel: str) -> None:
    """Stage what finishes results in registers, at the start of the loops over those.

    Parameters
    ----------
    b : Builder
    kernel : str
        Spread, and its reductions collected.
    """
    room, axes = WORDS, {x.role for _, above, k in b.plan.leaves if k.id == kernel for x in above if x.is_thread}
    written = {b.plan.statement_of[leaf.statement].target.array for leaf, _, k in b.plan.leaves if k.id == kernel}
    for leaf, above, owner in list(b.plan.leaves):
        statement = b.plan.statement_of[leaf.statement]
        place = max((n for n, x in enumerate(above) if x.is_place), default=-1)
        alone = axes - {x.role for x in above}
        if owner.id != kernel or place < 0 or not alone or leaf.collect or statement.update:
            continue
        elements = prod(x.extent for x in above[place + 1:])
        for array in _needed(b, leaf, statement, written):
            nbytes, at = elements * b.plan.array_of[array].dtype.bytes, above[place].id
            words, widths = -(-nbytes // 4), (elements, 1) if elements > 1 and nbytes <= WIDE else (1,)
            if words <= room and any(b.attempt("stage", array, at, space="register", vector=n, early=True) for n in widths):
                room -= words


def _needed(b: Builder, leaf: Leaf, statement: Statement, written: set[str]) -> list[str]:
    """Arrays in global memory that a statement reads, where known before, and the kernel does not write."""
    found = [a.array for slot, a in enumerate(statement.reads) if a.affine and not leaf.view(slot)]
    return [a for a in dict.fromkeys(found) if a not in written and b.plan.array_of[a].role != "temporary"]
