"""What the plan asks of a kernel, in the kernel's variables: which instances of a leaf run where, and which cells they touch.

It comes from the plan's own accesses (:mod:`explorer.poly.sites`), which the proof is about, and not from what lowering made of
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ...ir.expr import Expr, const, quotient, remainder, var
from ...ir.instructions import instruction
from ...ir.program import Constraint
from ...ir.tree import WARP_SIZE, Kernel, Loop
from ...poly.region import Region
from ...poly.sites import Site as Access
from ...poly.sites import launch_extents, sites
from ..conditions import Condition
from .points import Conj, Coordinates, Space


@dataclass(frozen=True, eq=False)
class Wanted:
    """A leaf of the plan.

    Attributes
    ----------
    accesses : tuple of Access
        One for each slot, the target last.
    coordinates : Coordinates
    number : int
        Among the leaves of the kernel, in order of the text.
    """

    accesses: tuple[Access, ...]
    coordinates: Coordinates
    number: int

    @property
    def above(self) -> tuple[Loop, ...]:
        """The loops around it."""
        return self.accesses[-1].above

    @cached_property
    def counters(self) -> tuple[Loop, ...]:
        """The loops around it that are loops of the text."""
        return tuple(x for x in self.above if self.coordinates.low.is_counter(x))

    @cached_property
    def names(self) -> list[str]:
        """Their variables, outermost first."""
        return [self.coordinates.low.variable[x.id] for x in self.counters]

    @cached_property
    def values(self) -> dict[str, Expr]:
        """Each loop's variable in the kernel's variables."""
        low = self.coordinates.low
        out: dict[str, Expr] = {}
        for x in self.above:
            name = low.variable[x.id]
            if x.extent == 1 and x.role != "launch" and (not x.is_place or low.role_extents[x.role] == 1):
                out[x.id] = const(x.start)
            else:
                out[x.id] = self.coordinates.values.get(name, var(name))
        return out

    @cached_property
    def ranges(self) -> dict[str, tuple[int, int]]:
        """The variables of its instances."""
        low = self.coordinates.low
        return self.coordinates.ranges | {low.variable[x.id]: x.range for x in self.counters}

    @cached_property
    def space(self) -> Space:
        """The same as a space."""
        return Space.of(self.ranges)

    def expr(self, e: Expr) -> Expr:
        """An expression over the plan's loops, in the kernel's variables."""
        return e.substitute(self.values, self.ranges)

    @cached_property
    def case(self) -> Conj:
        """When an instance of it runs here."""
        leaf = self.accesses[0].leaf  # of an instruction, where the accumulator's element is; of a shuffle, who asks
        site = self.accesses[-1 if instruction(leaf.mechanism) or any(v.lane is not None for _, v in leaf.views) else 0]
        boxes = [Condition(e) for x in self.above for e in (self.values[x.id] - x.start,
                                                            -self.values[x.id] + (x.start + x.extent - 1))]
        guards = [Condition(self.expr(c.expr), c.equality) for c in site.guards]
        places = [Condition(here - self.expr(there), True)
                  for here, there, size in zip(self._here, site.place, self._extents, strict=True)
                  if there is not None and size > 1]
        return tuple(c for c in (*boxes, *guards, *places) if c.expr.terms or c.expr.const < 0 or c.equality)

    @cached_property
    def points(self) -> Region:
        """Where its instances run."""
        return self.space.points((self.case,))

    @cached_property
    def _extents(self) -> tuple[int, ...]:
        low = self.coordinates.low
        return launch_extents(low.plan, low.kernel)

    @cached_property
    def _here(self) -> tuple[Expr, ...]:
        """The seven coordinates of a place (:data:`~explorer.poly.sites.AXES`)."""
        at, x = self.coordinates.at, self.coordinates.at("thread.x")
        split = self._extents[4] > 1
        digits = (quotient(x, WARP_SIZE, self.ranges), remainder(x, WARP_SIZE, self.ranges)) if split else (x, const(0))
        return (*(at(f"block.{a}") for a in "xyz"), *digits, at("thread.y"), at("thread.z"))

    def inside(self) -> Conj:
        """When the statement's value is its expression, and not its fill."""
        return tuple(self.condition(c) for c in self.accesses[-1].statement.inside)

    def condition(self, c: Constraint) -> Condition:
        """A constraint on the statement's dimensions, in the kernel's variables."""
        at = dict(self.accesses[-1].leaf.at)
        return Condition(self.expr(c.expr.substitute(at)), c.equality)

    def cell(self, slot: int) -> tuple[Expr | None, ...]:
        """The cell of an access, None along a data-dependent axis."""
        return tuple(None if e is None else self.expr(e) for e in self.accesses[slot].cell)

    def element(self, slot: int) -> tuple[str, tuple[Expr, ...]]:
        """The buffer and the element of it that a read of a staged copy names; nothing where it is none."""
        view = self.accesses[slot].leaf.view(slot)
        if view is None or not view.element:
            return "", ()
        return view.buffer, tuple(self.expr(e) for e in view.element)


def wanted(coordinates: Coordinates, kernel: Kernel) -> dict[str, Wanted]:
    """The leaves of a kernel, by id."""
    by_leaf: dict[str, list[Access]] = {}
    for site in sites(coordinates.low.plan)[kernel.id]:
        by_leaf.setdefault(site.leaf.id, []).append(site)
    return {name: Wanted(tuple(found), coordinates, number) for number, (name, found) in enumerate(by_leaf.items())}


