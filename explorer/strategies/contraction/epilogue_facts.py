"""Facts about the epilogue of a product: how results lie in memory, whether it is long, and which leaves are row sums."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...ir.expr import Expr
from ...ir.operations import OPERATIONS
from ...ir.plan import Plan
from ...ir.scalar import Call, walk
from ...ir.tree import Leaf
from .accesses import index_of, strides_of, vector_of

PAIRED = 2
"""Bytes of an element of the results: of such, the pairs that four lanes hold fill half a sector."""
EIGHT = 8
"""Columns of results that four lanes hold together, a pair each."""


def is_long(plan: Plan, leaves: Sequence[Leaf], update: Leaf, wide: set[str], tall: set[str]) -> bool:
    """Whether what follows the sum takes longer than its store (:attr:`ProductForm.long`)."""
    total = plan.statement_of[update.statement].target.array
    for leaf in leaves:
        statement = plan.statement_of[leaf.statement]
        for slot, access in enumerate(statement.reads):
            used = frozenset[str]().union(*(e.variables() for e in index_of(plan, leaf, slot) or ()))
            if access.array != total and plan.array_of[access.array].role != "temporary" and used & wide and used & tall:
                return True
        if any(isinstance(x, Call) and (OPERATIONS[x.op].special or OPERATIONS[x.op].ulp > 1) for x in walk(statement.value)):
            return True
    return False


def aligned_bytes(plan: Plan, leaf: Leaf, columns: Sequence[str], flat: Sequence[tuple[str, ...]], rows: Sequence[str]) -> int:
    """Bytes of the last leaf's accesses along columns (:attr:`ProductForm.aligned`).

    Nothing where a few columns lie between rows that lie apart, as a transposed convolution's residues do in NCHW: lanes of a
    fragment then write whole sectors along the rows, and lanes along the columns would write pieces of many.
    """
    statement = plan.statement_of[leaf.statement]
    array, slot = plan.array_of[statement.target.array], len(statement.reads)
    if array.dtype.bytes != PAIRED or index_of(plan, leaf, slot) is None:
        return 0
    steps = strides_of(plan, leaf, slot)
    along = {name for name in columns if steps.get(name) == 1}
    for run in flat:  # of loops that are one, those that walk the results on, too
        for x, y in zip(run[-2::-1], run[:0:-1], strict=True):
            if y in along and steps.get(x) == steps[y] * plan.loops[y].extent:
                along.add(x)
    if are_spaced(plan, leaf, rows) and prod(plan.loops[name].extent for name in along) < EIGHT:
        return 0
    return vector_of(plan, leaf, slot, along) * array.dtype.bytes if along else 0


def lies_across(plan: Plan, leaf: Leaf, rows: Sequence[str]) -> bool:
    """Whether the last leaf's results have neighbours along rows (:attr:`ProductForm.across`)."""
    slot = len(plan.statement_of[leaf.statement].reads)
    steps = strides_of(plan, leaf, slot) if index_of(plan, leaf, slot) is not None else {}
    return any(steps.get(name) == 1 for name in rows)


def are_spaced(plan: Plan, leaf: Leaf, rows: Sequence[str]) -> bool:
    """Whether the last leaf's rows of results lie some elements of an axis apart (:attr:`ProductForm.spaced`)."""
    index = index_of(plan, leaf, len(plan.statement_of[leaf.statement].reads)) or ()
    return any(abs(e.coefficient(name)) > 1 for e in index for name in rows)


def row_sums(plan: Plan, leaves: Sequence[Leaf], rows: set[str], columns: set[str]) -> tuple[str, ...]:
    """The leaves that sum over the columns of a product, an element of memory for each row."""
    return tuple(leaf.id for leaf in leaves if sums_rows(plan, leaf, columns) and walked(plan, leaf) >= rows)


def sums_fit(engine: str, columns: int) -> bool:
    """Whether the lanes of a tensor instruction add up sums over rows: where each has several pairs of so many columns."""
    return engine != "plain" and columns > EIGHT


def sums_rows(plan: Plan, leaf: Leaf, columns: set[str] | frozenset[str]) -> bool:
    """Whether a leaf adds to elements that none of these loops moves."""
    statement = plan.statement_of[leaf.statement]
    return statement.update == "sum" and bool(statement.target.index) and not walked(plan, leaf) & columns


def walked(plan: Plan, leaf: Leaf) -> frozenset[str]:
    """The loops that move the element a statement writes."""
    return variables_of(leaf, plan.statement_of[leaf.statement].target.index)


def variables_of(leaf: Leaf, index: Sequence[object]) -> frozenset[str]:
    """The loops that move an index of a leaf."""
    return frozenset[str]().union(*(e.substitute(leaf.places).variables() for e in index if isinstance(e, Expr)))


def result_steps(plan: Plan, leaf: Leaf, loops: Sequence[str], flat: Sequence[tuple[str, ...]]) -> tuple[tuple[int, int], ...]:
    """Of each of some loops, or run of loops that are one: :attr:`ProductForm.result_steps`."""
    slot = len(plan.statement_of[leaf.statement].reads)
    steps, runs = strides_of(plan, leaf, slot), {run[0]: run for run in flat}
    out = list[tuple[int, int]]()
    for name in loops:
        *before, last = runs.get(name, (name,))
        holds = plan.loops[last].extent
        for x in reversed(before):
            if steps.get(x, 0) != steps.get(last, 0) * holds:
                break
            holds *= plan.loops[x].extent
        out.append((abs(steps.get(last, 0)), holds))
    return tuple(out)
