"""The passes over the IR, in their order; each is one documented function in a file of its own.

What comes out of each is a kernel that does the same: the tests print it, run it and interpret it after every one
of them.
"""

from __future__ import annotations

from collections.abc import Callable

from ..lower import Context
from ..nodes import Node
from .batch_loads import batch_loads
from .collectives import collectives
from .fence_reads import fence_reads
from .first_writes import first_writes
from .name_divisions import name_divisions
from .place_guards import place_guards
from .redundant_guards import redundant_guards
from .scalar_lanes import scalar_lanes
from .vectorize import vectorize
from .whole_tiles import whole_tiles

Pass = Callable[[tuple[Node, ...], Context], tuple[Node, ...]]

PASSES: tuple[Pass, ...] = (collectives, redundant_guards, scalar_lanes, batch_loads, vectorize, first_writes, place_guards,
                            whole_tiles, fence_reads, name_divisions)
"""In the order in which they run.  The first one decides how threads combine values, without which there is no text."""


def names() -> tuple[str, ...]:
    """The names of the passes, in order."""
    return tuple(change.__name__ for change in PASSES)


def run(body: tuple[Node, ...], context: Context, after: str = "") -> tuple[Node, ...]:
    """The body after all passes, or after the one with this name."""
    for change in PASSES:
        body = change(body, context)
        if change.__name__ == after:
            break
    return body
