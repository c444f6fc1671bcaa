"""Over-approximated footprints of copies: elements in a copy's box that no reader of the copy wants.

The box of a staged copy is rectangular, so it may hold elements beyond what its readers use.  Of an input they are there
in any case.  Of an array that the program itself fills, nothing orders the copy after their writes, and they may never be
written at all: such a copy would read memory that holds nothing; unless an earlier launch writes the whole array.  Of an array
that the program changes, another block may write them while the copy reads (within a block, barriers see to that).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import islpy as isl

from ..ir.expr import Expr, var
from ..ir.finding import Finding, Instance
from ..ir.plan import Plan
from ..ir.program import Array, Statement
from .decide import Question, decide
from .isl import Undecided, alone, budget, smallest
from .plan_facts import CopyUse, facts, source_copies
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
        if (at := _unwanted(plan, copy)) is not None:
            yield _finding(plan, copy, at)


@alone
def overapproximates(plan: Plan, name: str) -> bool:
    """Whether a copy reads an element for nobody that the program itself writes; False too where that is undecided."""
    try:
        with budget(BUDGET):
            return _unwanted(plan, next(c for c in plan.copies if c.name == name)) is not None
    except Undecided:
        return False


def _unwanted(plan: Plan, copy: Statement) -> tuple[int, ...] | None:
    """The smallest instance of a copy that reads, for nobody, an element that is the program's to write; None: there is none."""
    copies, array = frozenset(c.name for c in plan.copies), plan.array_of[copy.reads[0].array]
    if array.name in copies or array.role == "in":
        return None
    writers = tuple(s for s in plan.program.statements if s.target.array == array.name) if array.role == "inout" else ()
    if array.role == "inout" and not (writers and _in_blocks(plan, copy)):
        return None
    if array.role != "inout" and _whole_before(plan, copy, array):
        return None
    return decide(_Unwanted(copy, array, writers, copies, facts(plan).copy_uses))


def _whole_before(plan: Plan, copy: Statement, array: Array) -> bool:
    """Whether one statement writes each element of an array, once, in launches before the copy's."""
    writers = [s for s in plan.program.statements if s.target.array == array.name]
    if len(writers) != 1 or writers[0].update or not _covers(writers[0], array):
        return False
    launch = {k.id: n for n, group in enumerate(plan.launched) for k in group}
    wrote = [(leaf, launch[k.id]) for leaf, _, k in plan.leaves if leaf.statement == writers[0].name]
    reads = [launch[k.id] for leaf, _, k in plan.leaves if leaf.statement == copy.name]
    plainly = all(leaf.view(len(writers[0].reads)) is None for leaf, _ in wrote)
    return bool(wrote) and bool(reads) and plainly and max(n for _, n in wrote) < min(reads)


def _covers(writer: Statement, array: Array) -> bool:
    """Whether a statement's target is the whole array, by its form: dimensions of whole axes, each with one."""
    dims = [next((d for d in writer.dims if e == var(d)), "") for e in writer.target.index]
    whole = [e for d, n in zip(dims, array.shape, strict=True) if d for e in (var(d), -var(d) + (n - 1))]
    return len(set(dims)) == len(dims) == len(writer.dims) and "" not in dims and (
        {c.expr for c in writer.domain} <= set(whole) and not any(c.equality for c in writer.domain))


def _in_blocks(plan: Plan, copy: Statement) -> bool:
    """Whether the copy stands in a kernel of several blocks."""
    return any(leaf.statement == copy.name and max(plan.extents[kernel.id][:3]) > 1 for leaf, _, kernel in plan.leaves)


@dataclass(frozen=True)
class _Unwanted(Question["tuple[int, ...] | None"]):
    """The smallest instance of a copy that reads an element for nobody, one that `writers` write if there are any; or None."""

    copy: Statement
    array: Array
    writers: tuple[Statement, ...]
    copies: frozenset[str]
    served: tuple[CopyUse, ...]

    def by_isl(self) -> tuple[int, ...] | None:
        reads, name = access(self.copy, 0, self.array), self.copy.name
        if written := [access(s, len(s.reads), self.array).range() for s in self.writers]:
            reads = reads.intersect_range(reduce(isl.Set.union, written))
        stray = reads.domain()
        for s in self.served:
            for through, copy in source_copies(s, self.served) if s.consumer not in self.copies else ():
                stray = stray.subtract(through.range()) if copy == name else stray
        for s in self.served:  # what is read through another copy
            stray = stray.subtract(s.relation.domain()) if s.consumer == name else stray
        return None if stray.is_empty() else smallest(stray)


def _finding(plan: Plan, copy: Statement, point: tuple[int, ...]) -> Finding:
    values = dict(zip(copy.dims, point, strict=True))
    element = tuple(int(e.evaluate(values)) for e in copy.reads[0].index if isinstance(e, Expr))
    name, sink = copy.reads[0].array, Instance(copy.name, point)
    nodes = tuple(leaf.id for leaf, _, _ in plan.leaves if leaf.statement == copy.name)
    return Finding("flow", f"{sink} would copy {name}[{', '.join(map(str, element))}], which no reader of the copy wants",
                   f"the program itself writes {name}; nothing says that this element is written before the copy, or at all",
                   name, element, "flow", None, sink, nodes,
                   hints=(f"stage {name} at a loop whose iterations read all of a box", f"contract('{name}', 'shared')"))
