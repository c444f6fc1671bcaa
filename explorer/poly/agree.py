"""Layout consistency of a buffer: whether reads look in the cells to which the values were written."""

from __future__ import annotations

from ..ir.plan import Plan
from .decide import decide
from .events import events, same_cell
from .flow import BUDGET, last_writers
from .isl import Undecided, alone, budget
from .last_writer import Always
from .linear import equal
from .plan_facts import facts


@alone
def cells_agree(plan: Plan, buffer: str) -> bool:
    """Whether every read through a buffer uses the cell that each of its last writers wrote, wherever and whenever they run.

    Parameters
    ----------
    plan : Plan
    buffer : str
        Name of one of its buffers.

    Returns
    -------
    bool
        False where some pair is known to differ.  What could not be decided counts as agreed: question *flow* asks again.
    """
    everything, flows = events(plan), facts(plan).flow
    for reader in everything:
        site = reader.site
        if not site.reads or site.cells != (buffer, True):
            continue
        try:
            with budget(BUDGET):
                for s in last_writers(plan, everything, flows, reader):
                    if s.writer.site.cells != site.cells:
                        continue
                    alike = tuple(equal(e, "a", f, "b") for e, f in same_cell(s.writer.site, site))
                    if not decide(Always(s.link.of, alike)):
                        return False
        except Undecided:
            continue
    return True
