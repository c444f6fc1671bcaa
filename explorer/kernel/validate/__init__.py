"""Translation validation: the last IR of every emitted kernel is checked against its plan.

The plan is proved against the program (:mod:`explorer.poly.judge`).  Passes then make from it what is printed.  Here the last IR
is compared with the plan, as exact relations over physical coordinates and loop variables, without asking the passes:

- *leaves*: every instance runs once, its operands and its target are the plan's cells, registers of the passes hold what memory
  held; what runs beside the instances changes nothing (:mod:`~explorer.kernel.validate.leaves`);
- *order*: statements keep the plan's order, and nothing is written between a load and its use, or a result and its store
  (:mod:`~explorer.kernel.validate.order`), with commits and waits where the plan counts them, and for the groups that it counts
  (:mod:`~explorer.kernel.validate.waits`), slots released and acquired so (:mod:`~explorer.kernel.validate.slots`), by all blocks
  that share copies (:mod:`~explorer.kernel.validate.mates`), bulk stores read before anybody writes what they send
  (:mod:`~explorer.kernel.validate.stores`), turns of warpgroups in which none waits for another
  (:mod:`~explorer.kernel.validate.turns`), and loops that end early to one end (:mod:`~explorer.kernel.validate.ends`);
- *barriers*: those in the text order all threads that meet in one element (:mod:`~explorer.kernel.validate.barriers`);
- *bounds*: no access leaves its array (:mod:`~explorer.kernel.validate.bounds`).

A finding about barriers, commits, waits, arrivals or releases has a proof, found out when it is read: for which trip counts and
stages it holds, and the least instance with the two that do not fit (:mod:`explorer.kernel.validate.proofs`).

A pass that breaks one of these is caught in the schedule that it breaks, and nothing is written.  The idea is that of
Pnueli, Siegel and Singerman, "Translation Validation" (TACAS 1998).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...errors import ScheduleError, Undecided
from ...ir.finding import Finding
from ...ir.plan import Plan
from ...poly.isl import LIMIT, alone, budget
from ..launches import LaunchIR
from ..nodes import Collect, Combine, Node
from ..sites import Lowered
from ..traverse import walk
from .barriers import check_barriers
from .bounds import check_bounds
from .ends import check_ends
from .instructions import check_instructions
from .leaves import Leaves, finding
from .mates import check_mates
from .order import check_order
from .points import Coordinates
from .slots import check_slots
from .steps import steps
from .stores import check_stores
from .turns import check_turns
from .waits import check_waits
from .wanted import wanted


class NotProved(ScheduleError):
    """The text would not be the schedule that was proved: a fault of a pass."""


@alone
def validate(plan: Plan, low: Lowered, body: Sequence[Node], used: frozenset[str] = frozenset()) -> tuple[Finding, ...]:
    """Whether the last IR of a kernel is what its plan says.

    Parameters
    ----------
    plan : Plan
        A plan that has been judged.
    low : Lowered
        One of its kernels.
    body : sequence of Node
        What the passes have made of it.
    used : frozenset of str
        Shared arrays of collectives that earlier phases of the launch have worked in.

    Returns
    -------
    tuple of Finding
        Empty where it is.  A question that takes longer than its budget is a finding, too.
    """
    coordinates = Coordinates(low)
    leaves = wanted(coordinates, low.kernel)
    every = steps(body, coordinates)
    try:
        with budget(LIMIT):
            return (*Leaves(plan, leaves, every).findings(), *check_order(leaves, every, coordinates),
                    *check_waits(leaves, every, coordinates), *check_slots(leaves, every, coordinates),
                    *check_mates(low, body), *check_turns(leaves, every, coordinates), *check_ends(every, coordinates),
                    *check_stores(low, body),
                    *check_barriers(leaves, every, coordinates, used),
                    *check_bounds(leaves, every), *check_instructions(plan, low, body))
    except KeyError as error:
        return (finding("flow", low.kernel.id, f"uses {error.args[0]} where there is no such variable", None),)
    except Undecided as error:
        return (finding("flow", low.kernel.id, f"could not be compared with the schedule: {error.what}", None),)


def judged(launch: LaunchIR) -> Iterator[Finding]:
    """What is wrong with the kernels of a launch, one after the other."""
    used: frozenset[str] = frozenset()
    for low, body in zip(launch.lows, launch.bodies, strict=True):
        yield from validate(low.plan, low, body, used)
        used |= {node.way.scratch for node in walk(body) if isinstance(node, (Collect, Combine)) and node.way.scratch}


def require_proved(launch: LaunchIR) -> None:
    """Nothing is written that is not the schedule that was proved.

    Raises
    ------
    NotProved
        If a pass has made something else of it.
    """
    for found in judged(launch):
        why = f"{found.why}; {found.proof}" if found.proof else found.why
        raise NotProved(found.what, where=found.where, why=why, hint="; or ".join(found.hints))
