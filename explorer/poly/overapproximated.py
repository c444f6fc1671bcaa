"""Over-approximated footprints of copies: elements in a copy's box that no reader of the copy wants.

The box of a staged copy is rectangular, so it may hold elements beyond what its readers use.  Of an input they are there
in any case.  Of an array that the program itself fills, nothing orders the copy after their writes, and they may never be
written at all: such a copy would read memory that holds nothing.  Of an array that the program changes, another block may
write them while the copy reads (within a block, barriers see to that).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import islpy as isl

from ..ir.expr import Expr
from ..ir.finding import Finding, Instance
from ..ir.plan import Plan
from ..ir.program import Array, Statement
from .isl import Undecided, alone, budget, smallest
from .plan_facts import facts, source_copies
from .relations import access

BUDGET = 2_000_000
"""Operations of isl for a question that only chooses between two copies."""


def check_overapproximated(plan: Plan) -> Iterator[Finding]:
    """A finding for each copy of what the program itself writes that reads an element for nobody.

    Parameters
    ----------
    plan : Plan

    Yields
    ------
    Finding
        Question ``"flow"``; its sink is the smallest such instance of the copy.
    """
    for copy in plan.copies:
        stray = _unwanted(plan, copy)
        if stray is not None and not stray.is_empty():
            yield _finding(plan, copy, smallest(stray))


@alone
def overapproximates(plan: Plan, name: str) -> bool:
    """Whether a copy reads an element for nobody that the program itself writes; False too where that is undecided."""
    try:
        with budget(BUDGET):
            stray = _unwanted(plan, next(c for c in plan.copies if c.name == name))
            return stray is not None and not stray.is_empty()
    except Undecided:
        return False


def _unwanted(plan: Plan, copy: Statement) -> isl.Set | None:
    """Instances of a copy that read an element for nobody; None where none of its elements is the program's to write."""
    copies, array = {c.name for c in plan.copies}, plan.array_of[copy.reads[0].array]
    if array.name in copies or array.role == "in" or (array.role == "inout" and not _in_blocks(plan, copy)):
        return None
    served = facts(plan).supplies
    stray = (_changed(plan, copy, array) if array.role == "inout" else access(copy, 0, array)).domain()
    for s in served:
        for reads, name in source_copies(s, served) if s.consumer not in copies else ():
            stray = stray.subtract(reads.range()) if name == copy.name else stray
    for s in served:  # what is read through another copy
        stray = stray.subtract(s.relation.domain()) if s.consumer == copy.name else stray
    return stray


def _in_blocks(plan: Plan, copy: Statement) -> bool:
    """Whether the copy stands in a kernel of several blocks."""
    return any(leaf.statement == copy.name and max(plan.extents[kernel.id][:3]) > 1 for leaf, _, kernel in plan.leaves)


def _changed(plan: Plan, copy: Statement, array: Array) -> isl.Map:
    """The copy's reads of elements that the program writes."""
    reads = access(copy, 0, array)
    written = [access(s, len(s.reads), array).range() for s in plan.program.statements if s.target.array == array.name]
    return reads.intersect_range(reduce(isl.Set.union, written))


def _finding(plan: Plan, copy: Statement, point: tuple[int, ...]) -> Finding:
    values = dict(zip(copy.dims, point, strict=True))
    element = tuple(int(e.evaluate(values)) for e in copy.reads[0].index if isinstance(e, Expr))
    name, sink = copy.reads[0].array, Instance(copy.name, point)
    nodes = tuple(leaf.id for leaf, _, _ in plan.leaves if leaf.statement == copy.name)
    return Finding("flow", f"{sink} would copy {name}[{', '.join(map(str, element))}], which no reader of the copy wants",
                   f"the program itself writes {name}; nothing says that this element is written before the copy, or at all",
                   name, element, "flow", None, sink, nodes,
                   hints=(f"stage {name} at a loop whose iterations read all of a box", f"contract('{name}', 'shared')"))
