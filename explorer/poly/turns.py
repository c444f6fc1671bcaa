"""Turns of a block's warpgroups: each waits for one and passes it, again and again, all of them alike.

Each turn is one barrier of two warpgroups: the one that passes comes to it and goes on, the next one waits there.  So nobody may
pass twice before the next one has waited, nor wait twice.  That holds where in the text of one thread waits and passes alternate,
with the first and the last outside of all loops in time, and where all warpgroups run the same text (a loop that ends early ends
alike for a block: :mod:`~explorer.poly.early_end`).
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.finding import Finding
from ..ir.layout import GROUP
from ..ir.plan import Plan
from ..ir.tree import Kernel, Loop, Node, Sync, walk
from .groups import is_once

KINDS = ("turn", "pass")
WHY = "a warpgroup that passes comes to the next one's barrier, once for each time that the next one waits"


def check_turns(plan: Plan, kernel: Kernel) -> Iterator[Finding]:
    """What is wrong with the turns of a kernel."""
    turns = [n for n in walk(kernel.body) if isinstance(n, Sync) and n.kind in KINDS]
    if not turns:
        return
    names = tuple(n.id for n in turns)
    across, groups, deep = plan.extents[kernel.id][3:]
    if across != GROUP or groups < 2 or deep > 1 or not kernel.has_roles:
        yield Finding("flow", f"{kernel.id} has turns, and blocks of {across} x {groups} x {deep} threads",
                      f"warpgroups take turns, of {GROUP} threads along x, one behind the other along y, beside a producer",
                      nodes=names, hints=("take_turns behind all that changes the block",))
    if _state(kernel.body, False) is not False:
        yield Finding("flow", f"waits and passes of {kernel.id} do not alternate", WHY, nodes=names,
                      hints=("take_turns is the last move of its loop",))
    elif (outside := [n for n in _outside(kernel.body) if n.kind in KINDS]) != [turns[0], turns[-1]] or any(
            n.pending != (n in outside) for n in turns):
        yield Finding("flow", f"turns of {kernel.id} begin or end in a loop", WHY, nodes=names,
                      hints=("no loop in time around it",))


def _state(nodes: tuple[Node, ...], inside: bool) -> bool | None:
    """Whether one has its turn behind these nodes, and has it or not before them; None where they do not alternate."""
    state: bool | None = inside
    for node in nodes:
        if state is None:
            return None
        if isinstance(node, Loop):
            behind = _state(node.body, state) if node.extent > 0 else state
            state = behind if behind == state or _is_once(node) or node.extent == 1 else None
        elif isinstance(node, Sync) and node.kind in KINDS:
            state = None if state == (node.kind == "turn") else not state
    return state


def _outside(nodes: tuple[Node, ...]) -> Iterator[Sync]:
    """Synchronisations in no loop in time."""
    for node in nodes:
        if isinstance(node, Sync):
            yield node
        elif isinstance(node, Loop) and _is_once(node):
            yield from _outside(node.body)


def _is_once(loop: Loop) -> bool:
    """Whether a thread of a launch runs the body once."""
    return is_once(loop) or loop.role == "launch"
