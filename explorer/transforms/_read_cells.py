"""The cells of a buffer that something reads: what is written elsewhere is never asked for, and need not be stored."""

from __future__ import annotations

from dataclasses import replace

from ..ir.expr import Expr, Ranges
from ..ir.plan import Plan
from ..ir.program import Constraint
from ..ir.tree import Leaf, Loop, View, ranges
from ..poly.judge import judge
from ._domain import dim_ranges
from ._uses import put_buffer, with_view

Span = tuple[int, int]


def only_read(plan: Plan, name: str) -> Plan:
    """The plan whose buffer has the box of the cells that are read; writes beside it are no instances any more.

    Where the plan is legal, a cell that nothing reads has no effect, so that both compute the same.  Where it is not, or where
    the narrower one is not, the plan stays as it is.
    """
    shape = plan.buffer_of[name].shape
    spans = _read(plan, name)
    if spans is None or all(high - low + 1 >= n for (low, high), n in zip(spans, shape, strict=True)):
        return plan
    asked = _asked(plan, name, spans)
    if asked is None or not judge(plan).legal:
        return plan
    narrow = _narrowed(plan, name, spans, asked)
    return narrow if judge(narrow).legal else plan


def _views(plan: Plan, name: str) -> list[tuple[Leaf, tuple[Loop, ...], View, bool]]:
    """The accesses of a buffer: leaf, loops around it, cell, and whether it is written."""
    return [(leaf, above, v, slot == len(plan.statement_of[leaf.statement].reads))
            for leaf, above, _ in plan.leaves for slot, v in leaf.views if v.buffer == name]


def _read(plan: Plan, name: str) -> tuple[Span, ...] | None:
    """Along each axis, the first and the last cell that is read; None where nothing is."""
    found: list[list[Span]] = []
    for _, above, view, writes in _views(plan, name):
        if not writes:
            scope = ranges(above)
            found.append([e.interval(scope) for e in view.index])
    if not found:
        return None
    return tuple((max(0, min(low for low, _ in axis)), min(n - 1, max(high for _, high in axis)))
                 for axis, n in zip(zip(*found, strict=True), plan.buffer_of[name].shape, strict=True))


def _asked(plan: Plan, name: str, spans: tuple[Span, ...]) -> dict[str, tuple[Constraint, ...]] | None:
    """For each statement that writes the buffer, the conditions under which it writes a cell that is read; None where its
    leaves would ask for different ones.
    """
    out: dict[str, tuple[Constraint, ...]] = {}
    for leaf, _, view, writes in _views(plan, name):
        if not writes:
            continue
        if leaf.statement not in plan.program.statement_of:
            return None
        inside = dim_ranges(plan.statement_of[leaf.statement])
        mine = tuple(c for e, span in zip(view.index, spans, strict=True)
                     for c in _within(e.substitute(dict(leaf.when), inside), span, inside))
        if out.setdefault(leaf.statement, mine) != mine:
            return None
    return out


def _within(cell: Expr, span: Span, inside: Ranges) -> list[Constraint]:
    """The conditions that keep a cell in a span, as far as intervals do not prove them."""
    low, high = cell.interval(inside)
    out = [Constraint(cell - span[0])] if low < span[0] else []
    return [*out, Constraint(-cell + span[1])] if high > span[1] else out


def _narrowed(plan: Plan, name: str, spans: tuple[Span, ...], asked: dict[str, tuple[Constraint, ...]]) -> Plan:
    """The plan whose buffer begins at the first cell that is read and ends at the last."""
    buffer = plan.buffer_of[name]
    statements = tuple(replace(s, domain=(*s.domain, *asked.get(s.name, ()))) for s in plan.program.statements)
    program = replace(plan.program, statements=statements)

    def moved(leaf: Leaf) -> Leaf:
        for slot, v in leaf.views:
            if v.buffer == name:
                index = tuple(e - low for e, (low, _) in zip(v.index, spans, strict=True))
                leaf = with_view(leaf, slot, replace(v, index=index))
        return leaf

    new = replace(buffer, shape=tuple(high - low + 1 for low, high in spans))
    return put_buffer(replace(plan, program=program), new).map_leaves(moved)
