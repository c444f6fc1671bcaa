"""The smallest release, or wait of the producer for one, that does not match the other, and for which trip counts there is one.

As in :mod:`~.mbarriers`, for releases instead of groups.  They are counted from two rounds before the first one: at its
first waits the producer finds phases that seem to be over, as the mbarriers are new.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....ir.expr import Expr
from ....ir.finding import Act
from ....ir.tree import Sync
from ....poly.groups import RELEASES, closed_before, path_to
from .mbarriers import Numbered

if TYPE_CHECKING:
    from ..waits import Phases


class Released(Numbered):
    """Proofs about the mbarriers on which consumers release slots."""

    CLOSING, WAITING = "release", "acquire"

    def asked(self, wait: Sync) -> bool:
        """Every acquire is for a release."""
        return wait.kind == self.WAITING

    def group(self, name: str) -> Expr:
        """The release that a node is, or waits for."""
        return numbered(self.phases, self.syncs[name][0])

    def closes(self, name: str) -> tuple[Expr, ...]:
        """Consumers release a slot in every iteration."""
        return ()

    def named(self, number: int) -> str:
        """The releases counted from the first one; a slot that is used for the first time waits for none."""
        first = 2 * self.phases.count
        return f"release {number - first}" if number >= first else "a new slot"

    def who(self, name: str) -> str:
        """Consumers release, and the producer waits."""
        return "the producer" if self.syncs[name][0].kind == self.WAITING else "each warp of the consumers"

    def _for_all_rings(self, wait: str, text: Expr) -> str:
        """None: releases are counted from a number that depends on how many mbarriers there are."""
        return ""

    def _partner(self, name: str, group: int, trips: int) -> Act | None:
        """Who releases a slot or waits for that; where nobody does, who made its mbarrier ready."""
        if (found := super()._partner(name, group, trips)) is not None:
            return found
        waits = self.syncs[name][0].kind == self.WAITING
        over = ", whose phase before the first one seems to be over" if waits else f", which {self.named(group)} is for"
        return Act(self.phases.kernel.id, (), (), (), f"makes mbarrier {group % self.phases.count} ready{over}", (),
                   "the first thread")


def numbered(phases: Phases, sync: Sync) -> Expr:
    """The release that a node of a plan is, or waits for, counted from two rounds before the first one."""
    number = closed_before(path_to(phases.kernel, sync.id), RELEASES) + 2 * phases.count
    return number - (sync.pending + 1) if sync.kind == "acquire" else number
