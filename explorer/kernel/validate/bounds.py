"""Validation of bounds: no step accesses an element outside of its array."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from ...ir.finding import Finding
from ..conditions import Condition
from .leaves import finding
from .points import both
from .steps import Step
from .touches import Touch, index, space_of, touches
from .wanted import Wanted


def check_bounds(wanted: Mapping[str, Wanted], steps: Sequence[Step]) -> Iterator[Finding]:
    """A finding for every access that may lie beyond its array."""
    for touch in touches(steps):
        if touch.store.handed:
            continue
        if (what := _beyond(touch)) and touch.step.leaf:
            yield finding("flow", touch.step.leaf, what, touch.step, wanted.get(touch.step.leaf))


def _beyond(touch: Touch) -> str:
    """What lies beyond its array; empty where nothing does."""
    cells, shape = index(touch), touch.store.shape
    if touch.lanes > 1 or touch.ref.flat:
        shape = (prod(shape),)
    space = space_of(touch)
    ranges = dict(space.ranges)
    for e, size in zip(cells, shape, strict=True):
        if e is None:
            continue
        low, high = e.interval(ranges)
        for bad, wrong in ((low < 0, Condition(-e - 1)), (high >= size, Condition(e - size))):
            if bad and not space.points(both(both(touch.cases, touch.lanes_read), ((wrong,),))).is_empty():
                return f"{'writes' if touch.writes else 'reads'} beyond {touch.store.name}"
    return ""


