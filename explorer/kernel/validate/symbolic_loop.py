"""A kernel's IR with a symbolic trip count of one of its loops.

The IR is made for one trip count: the loop runs to a number, and copies ahead of it end some iterations before.  Here that
number becomes the variable K, and bounds that depended on it become bounds in K.  All other loops keep their sizes.  What is
found holds for the kernels of other trip counts as far as the passes make the same IR for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...ir.expr import var
from ...ir.tree import Kernel, Loop, leaves
from ...poly.linear import Condition as Row
from ...poly.linear import Tuple, at_least, equal
from ...poly.symbolic_trips import TRIPS, moved
from ..nodes import Acquire, Arrive, Await, Barrier, Commit, Release, Wait, WaitProducts
from .points import Cases, Space
from .steps import Round, Step

MEET = (Acquire, Arrive, Await, Barrier, Commit, Release, Wait, WaitProducts)
"""Steps of which a loop of a pipeline has some."""


@dataclass(frozen=True)
class SymbolicLoop:
    """A loop with a symbolic trip count.

    Attributes
    ----------
    name : str
        Its variable in the text.
    start, trips : int
        Its first iteration, and the trip count for which the text was made.
    ahead : frozenset of int
        See :func:`~explorer.poly.symbolic_trips.moved`.
    """

    name: str
    start: int
    trips: int
    ahead: frozenset[int]

    def side(self, space: Space, side: str) -> Tuple:
        """The variables, and the trip count."""
        return Tuple("", side, (TRIPS, *space.names))

    def rows(self, space: Space, side: str) -> tuple[Row, ...]:
        """The ranges, that of the loop up to its trip count."""
        others = Space(tuple((n, r) for n, r in space.ranges if n != self.name)).rows(side)
        if self.name not in space.names:
            return others
        return (*others, at_least(var(self.name), side, self.start),
                at_least(var(TRIPS) - var(self.name), side, 1 - self.start))

    def one(self, a: str, b: str) -> Row:
        """Both sides have one trip count."""
        return equal(var(TRIPS), a, var(TRIPS), b)

    def moved(self, cases: Cases, ranges: Mapping[str, tuple[int, int]]) -> Cases:
        """Conditions for any trip count."""
        last = self.start + self.trips - 1
        return tuple(tuple(c if c.equality else replace(c, expr=moved(c.expr, self.name, self.trips, last, ranges, self.ahead))
                           for c in conj) for conj in cases)


def sized(steps: Sequence[Step], kernel: Kernel, around: Sequence[Round]) -> SymbolicLoop | None:
    """The innermost of some loops in which threads meet or wait, or groups are closed; else the innermost one in time."""
    meeting = [s for s in steps if isinstance(s.node, MEET)]
    found = next((r for r in reversed(around) if any(r in s.loops for s in meeting)), None)
    if found is None:
        found = next((r for r in reversed(around) if r.node.loop.role in ("seq", "unroll")), None)
    if found is None:
        return None
    return SymbolicLoop(found.node.var, found.node.start, found.node.extent, ahead(kernel, found.node.loop.id))


def ahead(kernel: Kernel, loop: str) -> frozenset[int]:
    """By how many iterations leaves run ahead in a loop."""
    out = set[int]()
    for leaf, above in leaves(kernel.body):
        if any(x.id == loop for x in above):
            for _, e in leaf.at:
                if by := e.coefficient(loop):
                    out.add(e.const // by)
    return frozenset(n for n in out if n > 0)


def time_loops(loops: Sequence[Loop]) -> tuple[Loop, ...]:
    """The loops that run in time, one iteration after the other."""
    return tuple(x for x in loops if not x.is_place and x.role not in ("launch", "tensor", "vector"))
