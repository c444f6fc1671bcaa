"""The form of a chain of rows: parallel loops around loops that each walk one row."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from ...ir.expr import Expr, var
from ...ir.plan import Plan
from ...ir.program import Access
from ...ir.tree import Leaf, Loop
from ...schedule import Schedule
from .._steps import chain, leaves_of, own_temporaries

WIDE = 16
"""Bytes of the widest access of one thread (PTX ISA, "ld": up to .v4.b32)."""


@dataclass(frozen=True)
class RowForm:
    """Parallel loops around a body of statements and row loops.

    Attributes
    ----------
    kernel : str
    outer : tuple of str
        The parallel loops, outermost first; the innermost may be bound to ``block.y`` already.
    rows : tuple of tuple of str
        The perfect nests in the body, in order; each is one loop once coalesced.
    extent : int
        Elements of a row.
    """

    kernel: str
    outer: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    extent: int


def row_form(schedule: Schedule, kernel: str) -> RowForm | None:
    """The form of a kernel as written, or None where its body is not rows of one extent."""
    body = next(k.body for k in schedule.plan.kernels if k.id == kernel)
    outer: list[Loop] = []
    while len(body) == 1 and isinstance(body[0], Loop) and not _is_row(schedule, body[0]):
        outer.append(body[0])
        body = body[0].body
    nests = [chain(node) for node in body if isinstance(node, Loop)]
    if not nests or any(isinstance(n, Loop) for nest in nests for n in nest[-1].body):
        return None
    extents = {_size(nest) for nest in nests}
    if len(extents) != 1 or any(loop.role not in ("seq", "block.y") for loop in outer):
        return None
    if 2 * _largest(schedule, kernel, nests) < _size(outer) * max(extents):
        return None  # every element is used again and again: tiles are wanted, not rows
    return RowForm(kernel, tuple(x.id for x in outer), tuple(tuple(x.id for x in nest) for nest in nests), extents.pop())


def _largest(schedule: Schedule, kernel: str, nests: list[list[Loop]]) -> int:
    """Elements of the largest array in global memory that the rows use."""
    plan, own = schedule.plan, set(own_temporaries(schedule.plan, kernel))
    used = {a.array for nest in nests for leaf in leaves_of(nest[0]) for a in plan.statement_of[leaf.statement].accesses}
    return max((plan.array_of[n].size for n in used if n not in own), default=0)


def _size(nest: list[Loop]) -> int:
    total = 1
    for loop in nest:
        total *= loop.extent
    return total


def _is_row(schedule: Schedule, node: Loop) -> bool:
    """Whether a loop with one body, alone, reduces or is the contiguous one: then it is no outer loop."""
    return any(schedule.plan.statement_of[leaf.statement].update for leaf in leaves_of(node)) and len(chain(node)) == 1 and all(
        isinstance(n, Leaf) for n in node.body)


def vector_width(schedule: Schedule, form: RowForm) -> int:
    """Elements of one access: 16 bytes of the narrowest array that is contiguous along the rows, if its runs allow.

    A row of several loops, one channel of all images, say, is as many runs as its outer loops have iterations, unless these
    follow each other in memory.
    """
    found = _contiguous(schedule, form)
    return gcd(*found.values(), WIDE // min(schedule.plan.array_of[name].dtype.bytes for name in found)) if found else 1


def _contiguous(schedule: Schedule, form: RowForm) -> dict[str, int]:
    """Arrays in global memory that some row loop walks element by element, with the length of their runs: what divides all."""
    found, own, plan = dict[str, int](), set(own_temporaries(schedule.plan, form.kernel)), schedule.plan
    for nest in form.rows:
        for leaf in leaves_of(plan.loops[nest[0]]):
            for access in plan.statement_of[leaf.statement].accesses:
                if access.array not in own and (run := _run(plan, nest, leaf, access)):
                    found[access.array] = gcd(found.get(access.array, 0), run)
    return found


def _run(plan: Plan, nest: tuple[str, ...], leaf: Leaf, access: Access) -> int:
    """Elements of an access that a nest walks one after the other in memory; 0 where its innermost loop does not."""
    at, steps, stride = dict(leaf.at), dict.fromkeys(nest, 0), 1
    for extent, e in zip(reversed(plan.array_of[access.array].shape), reversed(access.index), strict=True):
        if not isinstance(e, Expr):
            return 0
        e = rest = e.substitute(at)
        for name in nest:
            steps[name] += stride * e.coefficient(name)
            rest -= var(name) * e.coefficient(name)
        if not rest.variables().isdisjoint(nest):
            return 0
        stride *= extent
    run = 1
    for name in reversed(nest):
        if steps[name] != run:
            break
        run *= plan.loops[name].extent
    return run if steps[nest[-1]] == 1 else 0


def read_again(schedule: Schedule, form: RowForm) -> list[str]:
    """Arrays that several row loops read and none writes."""
    plan, seen = schedule.plan, dict[str, set[str]]()
    made = {plan.statement_of[leaf.statement].target.array for leaf, _, k in plan.leaves if k.id == form.kernel}
    for nest in form.rows:
        for leaf in leaves_of(plan.loops[nest[0]]):
            for access in plan.statement_of[leaf.statement].reads:
                if access.array not in made and set(nest) & moving(leaf, access.index):
                    seen.setdefault(access.array, set()).add(nest[0])
    return [name for name, nests in seen.items() if len(nests) > 1]


def moving(leaf: Leaf, index: tuple[object, ...]) -> set[str]:
    """The loops that an access moves with."""
    at = dict(leaf.at)
    return {name for e in index if isinstance(e, Expr) for name in e.substitute(at).variables()}
