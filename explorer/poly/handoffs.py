"""Legality of a handoff: whether every value that a kernel takes from other blocks is one word, written once.

A handoff orders one value: the word that carries it.  So whatever the blocks of a launch and the block that joins them share has
to go through such words: a temporary of four bytes an element or less in global memory, each element written once, by the phase
before, and not used by anything else.  That the writing and the reading block agree along the axes that the joining kernel binds
is asked as for `last_block` (:mod:`~explorer.poly.joins`).
"""

from __future__ import annotations

from ..ir.expr import Expr, var
from ..ir.finding import Finding
from ..ir.plan import Plan
from ..ir.tree import Kernel
from .decide import Meet, decide
from .isl import Undecided
from .linear import differ, equal
from .sites import AXES, Site, sites

WORD = 4
"""Bytes of a value that share one access of 64 bits with their flag."""


def check_handoff(plan: Plan, group: tuple[Kernel, ...], kernel: Kernel, operations: int) -> Finding | None:
    """The first reason why a kernel cannot take what it needs by handoff.

    Parameters
    ----------
    plan : Plan
    group : tuple of Kernel
        The kernels of the launch.
    kernel : Kernel
        One of them, joined by handoff.
    operations : int
        Of isl, for one question.
    """
    before = group[group.index(kernel) - 1]
    hints = (f"join('{kernel.id}', 'last_block')", f"join('{kernel.id}', 'launch')")
    if before.by_one:
        return Finding("order", f"{before.id} is run by one block alone, and {kernel.id} waits for values of many",
                       "a handoff follows a phase that all blocks run", nodes=(before.id, kernel.id), hints=hints)
    behind = group[group.index(kernel) + 1 :]
    if behind and behind[0].by_one:
        return Finding("order", f"{behind[0].id} cannot follow the block that runs {kernel.id}",
                       "a phase behind a handoff is the last of its launch, or a barrier of the grid follows",
                       nodes=(kernel.id, behind[0].id), hints=(f"join('{behind[0].id}', 'launch')",))
    handed = {(name, kind == "buffer") for (kind, name), to in plan.handed_off.items() if to == kernel.id}
    if not handed:
        return Finding("order", f"{kernel.id} uses nothing that {before.id} writes", "there is no value to wait for",
                       nodes=(before.id, kernel.id), hints=hints)
    for cells in sorted(handed):
        if why := _no_words(plan, cells, before, kernel, operations):
            return Finding("order", f"{cells[0]} cannot be handed off", why, cells[0], nodes=(before.id, kernel.id),
                           hints=hints)
    for a in sites(plan)[before.id]:
        for b in sites(plan)[kernel.id]:
            alike = a.space == b.space == "global" and a.cells == b.cells and a.cells not in handed and (a.writes or b.writes)
            if alike and _share(a, b, operations):
                words = ", ".join(name for name, _ in sorted(handed))
                return Finding("order", f"{a.leaf.id} and {b.leaf.id} use {a.storage}, which is not handed off",
                               f"{kernel.id} waits for the words of {words}, and for nothing else", a.storage,
                               nodes=(a.leaf.id, b.leaf.id, kernel.id), hints=hints)
    return None


def _no_words(plan: Plan, cells: tuple[str, bool], before: Kernel, kernel: Kernel, operations: int) -> str:
    """Why an array's elements are not words that are written once and then taken; "" where they are."""
    name, staged = cells
    if not staged and plan.array_of[name].role != "temporary":
        return f"{name} is an argument: it holds values, not values with flags"
    size = (plan.buffer_of[name] if staged else plan.array_of[name]).dtype.bytes
    if size > WORD:
        return f"its elements have {size} bytes; a word holds {WORD} beside the flag"
    used = [(k, s) for k in plan.kernels for s in sites(plan)[k.id] if s.space == "global" and s.cells == cells]
    writers = [s for k, s in used if s.writes]
    if len(writers) != 1 or writers[0].reads or writers[0].atomic or any(s.writes for k, s in used if k is not before):
        return f"it is not written by one statement of {before.id} once"
    if any(k is not kernel for k, s in used if not s.writes):
        return f"others than {kernel.id} read it, too"
    if None in writers[0].cell:
        return "which element is written depends on data"
    try:
        return f"{writers[0].leaf.id} writes an element more than once" if _twice(writers[0], operations) else ""
    except Undecided:
        return "it could not be decided whether each element is written once; the exact question took too long"


def _share(a: Site, b: Site, operations: int) -> bool:
    """Whether instances of two leaves use a cell both; also where that could not be decided."""
    cells = [(e, f) for e, f in zip(a.cell, b.cell, strict=True) if isinstance(e, Expr) and isinstance(f, Expr)]
    same = (*a.conditions("a"), *b.conditions("b"), *(equal(e, "a", f, "b") for e, f in cells))
    try:
        return decide(Meet(a.names("a"), b.names("b"), same, ((),), operations))
    except Undecided:
        return True


def _twice(site: Site, operations: int) -> bool:
    """Whether two instances of a leaf, or two places that run one, write the same cell."""
    if any(site.place[axis] is None for axis in range(AXES)):
        return True
    cells = [(e, f) for e, f in zip(site.cell, site.cell, strict=True) if isinstance(e, Expr) and isinstance(f, Expr)]
    same = (*site.conditions("a"), *site.conditions("b"), *(equal(e, "a", f, "b") for e, f in cells))
    cases = tuple(case for x in site.above for case in differ(var(x.id), "a", var(x.id), "b"))
    return decide(Meet(site.names("a"), site.names("b"), same, cases, operations))
