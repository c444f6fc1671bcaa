"""Warpgroups take turns as the plan says, and none that has its turn waits for one that has not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from ...ir.finding import Finding
from ...ir.layout import GROUP
from ...ir.tree import Sync, walk
from ..nodes import AwaitTurn, PassTurn
from .barriers import meetings
from .ends import ends
from .leaves import finding
from .points import Coordinates
from .steps import Step
from .wanted import Wanted


def check_turns(wanted: Mapping[str, Wanted], steps: Sequence[Step], coordinates: Coordinates) -> Iterator[Finding]:
    """A finding for every turn that not all warpgroups take, or in which they meet in a barrier.

    That turns stand where the plan has them, is asked with the slots (:mod:`~explorer.kernel.validate.slots`).
    """
    low = coordinates.low
    planned = {n.id: n for n in walk(low.kernel.body) if isinstance(n, Sync)}
    turns = [s for s in steps if isinstance(s.node, (AwaitTurn, PassTurn))]
    for s in turns:
        name = next(iter(s.node.ids), "")
        ended = s.node.begun if isinstance(s.node, AwaitTurn) else s.node.over
        if name in planned and (s.node.groups, ended) != (low.block[1], planned[name].pending > 0):
            yield finding("flow", name, "takes turns among others than the kernel's warpgroups", s)
        every = s.space.points((ends(s),))
        if low.block[0] != GROUP or not (s.points.is_subset(every) and every.is_subset(s.points)):
            yield finding("flow", name, "is not run by all warpgroups, in every iteration", s)
    for begin, end in pairwise(turns):
        if isinstance(begin.node, AwaitTurn):
            for m in meetings(steps, wanted, coordinates):
                if begin.number < m.number < end.number:
                    leaf = m.step.leaf or low.kernel.id
                    yield finding("flow", leaf, "meets warpgroups in a barrier that wait for their turn: a deadlock", m.step)
