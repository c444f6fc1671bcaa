"""Replicated copies: reads that every block makes of a cell that one block of the same launch writes.

A leaf whose target is in registers or shared memory runs in every block along an axis that no loop around it binds, since
each block has that storage for itself.  Only one block may use the copy; the others read all the same, while the writer runs.
The value does not matter there, but the access is a data race (CUDA C++ Programming Guide, "Memory Consistency Model").
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.expr import var
from ..ir.finding import Finding
from ..ir.plan import Plan
from .decide import Meet, decide
from .events import common_loops, relation, same_cell, witness
from .flow_text import cell_text, element, instance
from .linear import Case, equal
from .sites import Site, launch_extents, sites

_AXES = ("block.x", "block.y", "block.z")


def check_replicas(plan: Plan) -> tuple[Finding, ...]:
    """Cells of global memory that every block reads for itself and another access of the same phase writes.

    Parameters
    ----------
    plan : Plan
        A plan that passes *cover*, *order* and *flow*.

    Returns
    -------
    tuple of Finding
        One for each pair of accesses, with the smallest pair of instances.
    """
    return tuple(_finding(a, b, axis) for a, b, axis in _pairs(plan) if decide(Meet(a.names("a"), b.names("b"), _same(a, b))))


def _pairs(plan: Plan) -> Iterator[tuple[Site, Site, str]]:
    for kernel in plan.kernels:
        own, launch = sites(plan)[kernel.id], launch_extents(plan, kernel)
        writes = [s for s in own if s.writes and s.space == "global"]
        for a in own if any(n > 1 for n in launch[:3]) else ():
            free = [axis for axis, at, n in zip(_AXES, a.place, launch, strict=False) if at is None and n > 1]
            if free and a.space == "global" and not a.writes:
                yield from ((a, b, free[0]) for b in writes if b.cells == a.cells)


def _same(a: Site, b: Site) -> Case:
    """One cell, in one launch."""
    launches = [(var(x.id), var(x.id)) for x in common_loops(a, b) if x.role == "launch"]
    alike = (equal(e, "a", f, "b") for e, f in (*same_cell(a, b), *launches))
    return (*a.conditions("a"), *b.conditions("b"), *alike)


def _finding(a: Site, b: Site, axis: str) -> Finding:
    first, last = witness(relation(a, b, _same(a, b)), a, b)
    source, sink, cell = instance(a, first), instance(b, last), cell_text(b, last)
    lines = tuple(sorted({s.statement.line for s in (a, b) if s.statement.line}))
    return Finding("race", f"{source} reads {cell} in every block, and {sink} writes it in one",
                   f"no loop around {source} is bound to {axis}, so each block makes a copy of its own; blocks have no order",
                   b.statement.accesses[b.slot].array, element(b, last), "anti", source, sink, (a.leaf.id, b.leaf.id), lines,
                   (f"bind a loop around {a.leaf.id} to {axis}", "launch(…) to give what has no such loop a kernel of its own"))
