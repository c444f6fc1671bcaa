"""Cells that nobody reads: where a leaf may run outside of its domain, because what it does there is never seen.

A condition ``E >= 0`` of a leaf whose target is a register array may be left out if E only mentions dimensions that the target's
element determines; if in every thread and iteration of the array's scope a cell stands for one element (the same function of the
cell for every leaf that uses the array); and if every leaf that reads the array runs under a condition that implies E at the
element it reads.  So an extra run only touches a cell that nobody reads.  What else it touches is another question.

In shared memory all threads of a block read.  There it is enough that one leaf writes the array, and each of its runs, of all
threads and within one iteration of the array's scope, another cell: what is read is written by the run of the element read.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ..ir.expr import Expr, Ranges, const, quotient, remainder, var
from ..ir.instructions import instruction
from ..ir.memo import per_program
from ..ir.plan import Buffer, Plan
from ..ir.program import Constraint, Statement
from ..ir.tree import WARP_SIZE, Kernel, Leaf, Loop, View, ranges
from .early_end import ends_before
from .feasible import feasible
from .linear import Tuple, box, differ
from .plan_facts import plan_copy

MOST_RUNS = 1 << 17
"""Runs of a leaf in one block whose cells are looked at one by one."""

Use = tuple[Leaf, tuple[Loop, ...], Kernel, int]
"""A leaf that uses an array, the loops around it, its kernel, and which access of it."""


@per_program(256)
def dead_cells(plan: Plan) -> DeadCells:
    """The cells of a plan's register arrays, and who reads them."""
    return DeadCells(plan)


def in_cells(plan: Plan, leaf: Leaf, above: tuple[Loop, ...]) -> bool:
    """Whether no iteration of the loops around a leaf, run or not, is one of a cell that its buffers lack."""
    scope = ranges(above)
    for _, view in leaf.views:
        bounds = (e.interval(scope) for e in view.index)
        if any(first < 0 or last >= n for (first, last), n in zip(bounds, plan.buffer_of[view.buffer].shape, strict=True)):
            return False
    return True


def of_a_copy(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], slot: int) -> bool:
    """Whether a leaf reads a staged copy, and every iteration of the loops around it, run or not, names an element that that has.

    Cells of others are never written: those of a temporary beyond its elements, and those of a pipeline's slots behind the last
    iteration.
    """
    view = leaf.view(slot)
    name = plan_copy(plan, view.buffer) if view else None
    if view is None or not name:
        return False
    copy, scope = plan.statement_of[name], ranges(above)
    at = dict(zip(copy.dims, view.element, strict=True))
    asked = ((c, c.expr.substitute(at, scope)) for c in copy.domain)
    return all((e.interval(scope)[0] >= 0 and (e.interval(scope)[1] <= 0 or not c.equality))
               or (not c.equality and ends_before(plan, scope, e)) for c, e in asked)


class DeadCells:
    """Which conditions of leaves only leave out cells that nobody reads.

    Parameters
    ----------
    plan : Plan
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.users: dict[str, list[Use]] = {}
        for leaf, above, kernel in plan.leaves:
            accesses = len(plan.statement_of[leaf.statement].accesses)
            for slot, view in leaf.views:
                self.users.setdefault(view.buffer, []).append((leaf, above, kernel, slot % accesses))
        self.element_of: dict[str, tuple[Expr, ...] | None] = {}
        self.one_to_one: dict[str, bool] = {}

    def dead(self, leaf: Leaf, constraint: Constraint) -> bool:
        """Whether every iteration of the loops around a leaf that violates the constraint writes a cell that nobody reads."""
        statement = self.plan.statement_of[leaf.statement]
        view = leaf.view(len(statement.reads))
        buffer = self.plan.buffer_of[view.buffer] if view else None
        if buffer is None or buffer.space not in ("register", "shared"):
            return False
        wanted = _over_element(statement, len(statement.reads), constraint.expr)
        if wanted is None or not (self.apart(leaf, buffer) if buffer.space == "shared" else self.element(buffer)):
            return False
        for user, _, _, slot in self.users[buffer.name]:
            own = self.plan.statement_of[user.statement]
            reads = slot < len(own.reads) or own.update is not None
            if reads and not _has_implying(own, slot, wanted, constraint.equality):
                return False
        return True

    def apart(self, leaf: Leaf, buffer: Buffer) -> bool:
        """Whether one leaf writes a shared array, each of its runs in a block and in an iteration of the scope another cell."""
        if leaf.id not in self.one_to_one:
            self.one_to_one[leaf.id] = self._apart(leaf, buffer)
        return self.one_to_one[leaf.id]

    def _apart(self, leaf: Leaf, buffer: Buffer) -> bool:
        statements = self.plan.statement_of
        users = self.users[buffer.name]
        writers = [(user, above, slot) for user, above, _, slot in users if slot == len(statements[user.statement].reads)]
        arrays = {statements[user.statement].accesses[slot].array for user, _, _, slot in users}
        if len(writers) != 1 or len(arrays) != 1 or writers[0][0] is not leaf or statements[leaf.statement].update is not None:
            return False
        (_, above, slot), ids = writers[0], [x.id for x in writers[0][1]]
        view, within = leaf.view(slot), above[ids.index(buffer.scope) + 1:] if buffer.scope in ids else above
        loops = [x for x in within if not x.is_block]
        if view is None or prod(x.extent for x in loops) > MOST_RUNS:
            return False
        runs = np.meshgrid(*(np.arange(x.start, x.start + x.extent) for x in loops), indexing="ij")
        there: dict[str, Any] = {x.id: values.ravel() for x, values in zip(loops, runs, strict=True)}
        if any(not e.variables() <= there.keys() for e in view.index):
            return False
        place = [np.broadcast_to(e.evaluate(there), runs[0].size) for e in view.index]
        return np.unique(np.ravel_multi_index(place, buffer.shape, mode="clip")).size == runs[0].size

    def element(self, buffer: Buffer) -> tuple[Expr, ...] | None:
        """The element that a cell stands for, over ``#0, #1 …`` (the cell), places and the scope's loops.

        None if it is not one function for all leaves that use the array.
        """
        if buffer.name not in self.element_of:
            self.element_of[buffer.name] = self._element(buffer)
        return self.element_of[buffer.name]

    def _element(self, buffer: Buffer) -> tuple[Expr, ...] | None:
        found, known = list[tuple[str, tuple[Expr, ...]]](), dict[str, tuple[int, int]]()
        for leaf, above, kernel, slot in self.users[buffer.name]:
            view, access = leaf.view(slot), self.plan.statement_of[leaf.statement].accesses[slot]
            if view is None or view.element or not access.affine:
                return None
            names = self._names(above, kernel)
            cells: Ranges = {f"#{d}": (0, n - 1) for d, n in enumerate(buffer.shape)}
            scope = {**ranges(above), **{x.role: x.range for x in above if x.is_place}, **cells}
            if (row := instruction(leaf.mechanism)) is not None:
                scope[row.role] = (0, row.lanes - 1)
            solved = _solved(leaf, above, view, scope)
            if solved is None:
                return None
            places = {d: e.substitute(names, scope) for d, e in leaf.at}
            index = tuple(e.substitute(places, scope).substitute(solved, scope) for e in access.index if isinstance(e, Expr))
            if any(not e.variables() <= self._fixed(above, buffer) | cells.keys() for e in index):
                return None
            found.append((access.array, index))
            known |= {name: scope[name] for e in index for name in e.variables()}
        (array, first), *others = found
        same = all(name == array and all(_equal(e, f, known) for e, f in zip(first, index, strict=True))
                   for name, index in others)
        return first if same else None

    def _names(self, above: tuple[Loop, ...], kernel: Kernel) -> dict[str, Expr]:
        """Each loop by what it is: a place by its role, one iteration by its start."""
        axes = [f"{where}.{a}" for where in ("block", "thread") for a in "xyz"]
        size = dict(zip(axes, self.plan.extents[kernel.id], strict=True))
        size |= {"warp": -(-size["thread.x"] // WARP_SIZE), "lane": min(WARP_SIZE, size["thread.x"])}
        out: dict[str, Expr] = {}
        for x in above:
            alone = x.extent == 1 and x.role != "launch" and size.get(x.role, 1) == 1
            out[x.id] = const(x.start) if alone else var(x.role) if x.is_place else var(x.id)
        return out

    def _fixed(self, above: tuple[Loop, ...], buffer: Buffer) -> frozenset[str]:
        """Places, and the loops in which the array lives."""
        ids = [x.id for x in above]
        inside = above[: ids.index(buffer.scope) + 1] if buffer.scope in ids else ()
        return frozenset(x.role for x in above if x.is_place) | {x.id for x in inside if not x.is_place} | _lanes(above)


def _lanes(above: tuple[Loop, ...]) -> frozenset[str]:
    """The lanes that run an instruction together, which no loop around it is."""
    return frozenset(("lane", "thread.x")) if above and above[-1].role == "tensor" else frozenset()


def _solved(leaf: Leaf, above: tuple[Loop, ...], view: View, scope: Ranges) -> dict[str, Expr] | None:
    """The loops as functions of the cell; those of a tensor instruction's tile of register and lane."""
    row, index = instruction(leaf.mechanism), view.index
    if row is None:
        return solve_cell(index, scope)
    tiles, (rows, columns) = solve_cell(index[:-1], scope), (x.id for x in above[-3:-1])
    if tiles is None:
        return None
    there = {"register": var(f"#{len(index) - 1}"), "lane": var(row.role)}
    held = row.accumulator
    return {**tiles, rows: held.row.substitute(there, scope), columns: held.column.substitute(there, scope)}


def _equal(e: Expr, f: Expr, known: Ranges) -> bool:
    """Whether two expressions have the same value wherever their variables may be."""
    if e == f:
        return True
    names = tuple(sorted(e.variables() | f.variables()))
    inside = box(((var(name), known[name][0], known[name][1] - known[name][0] + 1) for name in names), "e")
    return not any(feasible((Tuple("", "e", names),), (*inside, *case)) for case in differ(e, "e", f, "e"))


def _over_element(statement: Statement, slot: int, expr: Expr) -> Expr | None:
    """`expr` over the coordinates ``#0, #1 …`` of the element that access `slot` touches, or None if these do not fix it."""
    position: dict[str, Expr] = {}
    for d, e in enumerate(statement.accesses[slot].index):
        if isinstance(e, Expr) and len(e.terms) == 1 and isinstance(e.terms[0][0], str) and e.terms[0][1] == 1:
            position.setdefault(e.terms[0][0], var(f"#{d}") - e.const)
    for d, e in enumerate(statement.accesses[slot].index):
        if isinstance(e, Expr) and len(e.terms) > 1 and not expr.variables() <= position.keys():
            atom, step = e.terms[0]
            times, rest = divmod(dict(expr.terms).get(atom, 0), step)
            without = expr - e * times
            if times and not rest and not without.variables() & e.variables():  # a multiple of the index, whatever it is made of
                expr = without + var(f"#{d}") * times
                position[f"#{d}"] = var(f"#{d}")
    return expr.substitute(position) if expr.variables() <= position.keys() else None


def _has_implying(statement: Statement, slot: int, wanted: Expr, equality: bool) -> bool:
    """Whether the statement's domain implies ``wanted >= 0`` (``== 0``) at the element that access `slot` touches."""
    for c in statement.domain:
        own = _over_element(statement, slot, c.expr)
        if own is None:
            continue
        if own == wanted and (c.equality or not equality):
            return True
        difference = wanted - own
        if not equality and not difference.terms and difference.const >= 0:
            return True
    return False


def solve_cell(index: Sequence[Expr], ranges: Ranges) -> dict[str, Expr] | None:
    """Loop variables as expressions of the cell ``#0, #1 …`` they index, or None if the index does not determine them.

    Each component must be a mixed-radix number of variables (``4*a + b`` with ``0 <= b < 4``), each variable in one
    component.
    """
    solved: dict[str, Expr] = {}
    for d, e in enumerate(index):
        rest = var(f"#{d}") - e.const
        reach = 1
        for atom, c in sorted(e.terms, key=lambda t: t[1]):
            if not isinstance(atom, str) or c < reach or c % reach or atom in solved:
                return None
            low, high = ranges[atom]
            if low != 0:
                return None
            solved[atom] = remainder(quotient(rest, c), high + 1)
            reach = c * (high + 1)
        if e.terms:
            top = max(e.terms, key=lambda t: t[1])
            solved[str(top[0])] = quotient(rest, top[1])
    return solved
