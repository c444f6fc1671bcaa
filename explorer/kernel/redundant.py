"""Redundant guards: executions of a leaf outside of its domain that provably have no effect.

Dropping a condition ``E >= 0`` of a leaf makes it also run at points L of the loop boxes where E(L) < 0.  That is
harmless when the leaf's target is a register cell, or a cell of shared memory that it writes (not updates) from registers, all
its accesses stay inside their buffers for every point of the boxes, all its reads come from registers or are elements of staged
copies (so nothing is read from beyond an array, or from shared memory that nobody has written), and, for each dropped
condition, one of two things holds:

*dead cell*
    An extra run only touches a cell that nobody reads (:mod:`~explorer.poly.dead_cells`).

*identity*
    The leaf is an update, and where E(L) < 0 its value is the identity of its reduction: each read it needs comes from
    a copy whose `inside` conditions fail whenever E does, so it is the copy's fill, and the value folds to the identity
    with these constants (:mod:`~explorer.poly.zero_fill`).

An extra run violates at least one dropped condition, and either argument alone suffices, so conditions may be dropped
one by one.  Extra runs touch shared memory at times when no real run might, so the barriers must hold for them too: see
:meth:`RedundantGuards.unsure`.  A condition that all threads share and that only depends on what encloses the buffer's scope is
kept: it skips whole tiles and costs nothing; but a product in flight is counted, so it runs in any case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..ir.expr import Ranges
from ..ir.instructions import instruction, stays_in_flight
from ..ir.plan import Buffer, Plan
from ..ir.program import Statement
from ..poly.dead_cells import dead_cells, in_cells, of_a_copy
from ..poly.zero_fill import fills
from .conditions import Condition
from .sites import Lowered, Site


class RedundantGuards:
    """Which conditions of a kernel's leaves may be dropped.

    Parameters
    ----------
    low : Lowered
    sites : mapping of str to Site
        Every leaf of the kernel.
    """

    def __init__(self, low: Lowered, sites: Mapping[str, Site]) -> None:
        self.low, self.sites = low, sites
        self.refused: frozenset[str] = frozenset()
        self.users: dict[str, list[tuple[Site, int]]] = {}
        for site in sites.values():
            for slot, view in site.leaf.views:
                self.users.setdefault(view.buffer, []).append((site, slot % len(site.statement.accesses)))
        self.answers: dict[str, tuple[Condition, ...]] = {}

    def kept(self, site: Site) -> tuple[Condition, ...]:
        """The conditions of the leaf that must stay."""
        if site.leaf.id not in self.answers:
            self.answers[site.leaf.id] = self._kept(site)
        return self.answers[site.leaf.id]

    def _kept(self, site: Site) -> tuple[Condition, ...]:
        if not site.named or site.leaf.id in self.refused or not self.contained(site):
            return site.conditions
        buffer = self.low.store(site.leaf, len(site.statement.reads)).buffer
        assert buffer is not None
        enclosing, filled, unread = self.enclosing(site, buffer), fills(self.low.plan), dead_cells(self.low.plan)
        counted = stays_in_flight(site.leaf.mechanism)

        def harmless(c: Condition) -> bool:
            constraints = [constraint for named, constraint in site.named if named == c]
            return bool(constraints) and (counted or not c.variables() <= enclosing) and all(
                unread.dead(site.leaf, constraint) or filled.is_identity(site.leaf, site.loops, constraint)
                for constraint in constraints)

        return tuple(c for c in site.conditions if not harmless(c))

    def enclosing(self, site: Site, buffer: Buffer) -> frozenset[str]:
        """Variables, equal for all threads, that are fixed while the buffer lives."""
        names: set[str] = set()
        for loop in site.loops if buffer.scope else ():
            names.add(self.low.variable[loop.id])
            if loop.id == buffer.scope:
                break
        blocks = {self.low.variable[loop.id] for loop in site.loops if loop.is_block}
        return frozenset((names | blocks) - self.low.thread_variables)

    def contained(self, site: Site) -> bool:
        """Whether running the leaf anywhere in its boxes stays inside register, shared and staged buffers."""
        statement, leaf = site.statement, site.leaf
        target = len(statement.reads)
        computes = leaf.mechanism == "plain" or instruction(leaf.mechanism) is not None
        spaces = [self.low.store(leaf, slot).space for slot in range(target + 1)]
        written = spaces[target] == "shared" and not statement.update  # an update reads its cell, which nobody may have written
        kept = spaces[target] == "register" or (written and set(spaces[:target]) <= {"register"})
        if not computes or leaf.collect or statement.inside or not kept:
            return False
        for slot in range(len(statement.accesses)):
            store, view = self.low.store(leaf, slot), leaf.view(slot)
            if view is None or store.buffer is None or store.space == "global":
                return False
            if slot < target and store.space == "shared" and not of_a_copy(self.low.plan, leaf, site.loops, slot):
                return False
        return in_cells(self.low.plan, leaf, site.loops)

    def fill_is_used(self, copy: Site) -> bool:
        """Whether anybody may ask for what a copy gives where its `inside` fails: by running too often, or to copy it again."""
        view = copy.leaf.view(len(copy.statement.reads))
        return view is None or any(
            self.dropped(user) or user.statement.origin == "copy"
            for user, slot in self.users[view.buffer] if slot < len(user.statement.reads) or user.statement.update is not None)

    # -- barriers -----------------------------------------------------------------------------------------------

    def unsure(self) -> frozenset[str]:
        """Leaves that overrun and touch shared memory, and for which the barriers between real runs may not be enough.

        They are enough if some block has, for each loop around both the copies and the leaf, three consecutive
        iterations (or all) in which every run is a real one, and so is every copy: conflicts are the same in every such tile.
        """
        return frozenset(
            site.leaf.id for site in self.sites.values()
            if self.dropped(site) and (shared := self.shared_buffers(site)) and not self.has_full_tile(site, shared))

    def dropped(self, site: Site) -> tuple[Condition, ...]:
        """The conditions that the leaf runs without."""
        kept = set(self.kept(site))
        return tuple(c for c in site.conditions if c not in kept)

    def shared_buffers(self, site: Site) -> frozenset[str]:
        """Shared buffers that the leaf reads or writes."""
        return frozenset(v.buffer for _, v in site.leaf.views if self.low.stores["buffer", v.buffer].space == "shared")

    def has_full_tile(self, site: Site, shared: frozenset[str]) -> bool:
        """Whether the conditions of a leaf, dropped ones or not, and of what it reads hold everywhere inside some tile."""
        writers = [user for name in shared for user, slot in self.users[name] if slot == len(user.statement.reads)]
        outer = [x for x in site.loops if not x.is_thread and all(x in user.loops for user in writers)]
        for share in (0, 1, 2):
            window = dict[str, tuple[int, int]]()
            for loop in outer:
                width = min(loop.extent, 1 if not self.low.is_counter(loop) else 3)
                first = loop.start + (loop.extent - width) * share // 2
                window[self.low.variable[loop.id]] = (first, first + width - 1)
            if all(_whole(x, window) for x in (site, *writers)):
                return True
        return False

    def relaxed(self, names: frozenset[str]) -> Plan:
        """The plan whose statements run as these leaves do, for an exact look at barriers."""
        changed: dict[str, Statement] = {}
        for site in self.sites.values():
            if site.leaf.id in names:
                gone = set(self.dropped(site))
                free = {constraint for c, constraint in site.named if c in gone}
                statement = changed.get(site.statement.name, site.statement)
                changed[statement.name] = replace(statement, domain=tuple(c for c in statement.domain if c not in free))
        plan = self.low.plan
        program = replace(plan.program, statements=tuple(changed.get(s.name, s) for s in plan.program.statements))
        return replace(plan, program=program, copies=tuple(changed.get(s.name, s) for s in plan.copies))

    def refuse(self, names: frozenset[str]) -> None:
        """Keep the guards of these leaves."""
        self.refused |= names
        self.answers.clear()


def _whole(site: Site, window: Ranges) -> bool:
    """Whether all conditions of a leaf that depend on more than its own threads hold in a window of the loops around."""
    ranges = {**site.ranges, **window}
    return all(not c.equality and c.expr.interval(ranges)[0] >= 0 for c in site.conditions if c.variables() & window.keys())
