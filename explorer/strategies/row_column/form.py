"""Column sums to fuse into a row nest: finding them, and bringing their updates into the loops over the rows.

The gradient of a layer normalisation reads two arrays row by row and also sums products of them over the rows, for each column.
Written as nests of their own, ``for k: dw[k] = 0; for i: dw[k] += …``, these sums read everything a second time.  Distributed,
reordered and fused they become one more loop over the columns in the body of the row loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod

from ...ir.expr import Expr
from ...ir.plan import Plan
from ...ir.tree import Leaf, Loop, Node
from .._steps import Builder, axes, chain, leaves_of
from ..stitching.moves import join_nests


@dataclass(frozen=True)
class RowColumn:
    """A row nest with column reductions in its body.

    Attributes
    ----------
    kernel : str
    outer : tuple of str
        The loops over the rows, outermost first.
    nests : tuple of tuple of str
        The perfect nests over the columns in their body.
    extent : int
        Columns.
    sums : tuple of str
        The statements that update one element per column.
    """

    kernel: str
    outer: tuple[str, ...]
    nests: tuple[tuple[str, ...], ...]
    extent: int
    sums: tuple[str, ...]


def row_column_form(plan: Plan, kernel: str) -> RowColumn | None:
    """The first row nest of a kernel that column reductions can be fused into, or None."""
    for node in _body(plan, kernel):
        for depth in range(1, len(chain(node)) + 1):
            if (form := _row_column(plan, kernel, chain(node)[:depth])) is not None:
                return form
    return None


def _row_column(plan: Plan, kernel: str, outer: list[Loop]) -> RowColumn | None:
    """The form with these loops over the rows."""
    nests = [chain(n) for n in outer[-1].body if isinstance(n, Loop)]
    if not nests or any(isinstance(n, Loop) for nest in nests for n in nest[-1].body):
        return None
    if any(x.role != "seq" or x.extent == 0 for x in (*outer, *(x for nest in nests for x in nest))):
        return None
    extents = {prod(x.extent for x in nest) for nest in nests}
    sums = [leaf.id for nest in nests for leaf in leaves_of(nest[0]) if _sums(plan, leaf, outer, nest)]
    if len(extents) != 1 or not sums:
        return None
    names = tuple(tuple(x.id for x in nest) for nest in nests)
    return RowColumn(kernel, tuple(x.id for x in outer), names, extents.pop(), tuple(sums))


def _sums(plan: Plan, leaf: Leaf, outer: list[Loop], nest: list[Loop]) -> bool:
    """Whether a leaf updates one element for each iteration of the nest, the same one in all rows."""
    statement = plan.statement_of[leaf.statement]
    walked = axes(leaf, statement.target)
    return bool(statement.update) and sorted(walked) == sorted(x.id for x in nest) and not {x.id for x in outer} & set(walked)


def bring_together(b: Builder, kernel: str) -> None:
    """Move the column reductions of a kernel that stand in nests of their own into a row nest that reads the same arrays."""
    for leaf in [leaf for node in _body(b.plan, kernel) for leaf in leaves_of(node)]:
        if (match := next(_matches(b.plan, kernel, leaf.id), None)) is not None:
            _ride(b, kernel, leaf.id, *match)


def accompany(b: Builder, kernel: str) -> bool:
    """Bring nests over the same rows together, where column reductions could ride along one of them; whether there were any."""
    may_ride = {node.id for node in _body(b.plan, kernel) for leaf in leaves_of(node) if any(_matches(b.plan, kernel, leaf.id))}
    if not may_ride:
        return False
    joined = Builder(b.schedule)
    join_nests(joined, kernel, may_ride)
    changed = joined.schedule is not b.schedule
    b.schedule = joined.schedule
    return changed


def _matches(plan: Plan, kernel: str, update: str) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Row nests that an update may ride along: (nest, its loops over rows, the update's loops in the order wanted)."""
    leaf, above, _ = plan.resolve(update)  # type: ignore[misc]
    statement = plan.statement_of[leaf.statement]
    columns, longest = axes(leaf, statement.target), _longest(plan, leaf)
    reduced = {x.id for x in above if x.id not in columns}
    if not statement.update or not reduced or "" in columns or len(columns) + len(reduced) != len(above):
        return
    if not longest or longest[-1] not in columns or not _apart(plan, above[0]):
        return
    for node in _body(plan, kernel):
        if not isinstance(node, Loop) or node.id == above[0].id:
            continue
        back = {row: mine for mine, row in _same_walk(plan, node, leaf, above).items()}
        outer = [x.id for x in chain(node)][: len(reduced)]
        if {back.get(x) for x in outer} == reduced:
            order = [x for x in longest if x in columns]
            yield node.id, tuple(outer), (*(back[x] for x in outer), *order, *(x for x in columns if x not in order))


def _apart(plan: Plan, node: Loop) -> bool:
    """Whether a nest does nothing but start and update results."""
    statements = [plan.statement_of[leaf.statement] for leaf in leaves_of(node)]
    return all(s.update or not s.reads for s in statements)


def _same_walk(plan: Plan, node: Loop, leaf: Leaf, above: Iterable[Loop]) -> dict[str, str]:
    """For each loop of an update, the outer loop of a nest that walks the same axis of an array; {} where they disagree."""
    mine = {x.id: x for x in above}
    theirs = {x.id: x for x in chain(node)}
    named: dict[str, str] = {}
    for read in plan.statement_of[leaf.statement].reads:
        for other in leaves_of(node):
            for access in plan.statement_of[other.statement].accesses:
                if access.array != read.array:
                    continue
                for a, c in zip(axes(leaf, read), axes(other, access), strict=True):
                    if a not in mine or c not in theirs or mine[a].range != theirs[c].range:
                        continue
                    if named.setdefault(a, c) != c:
                        return {}
    return named if len(set(named.values())) == len(named) else {}


def _longest(plan: Plan, leaf: Leaf) -> tuple[str, ...]:
    """The loops along the axes of the largest array that a statement reads."""
    reads = plan.statement_of[leaf.statement].reads
    return axes(leaf, max(reads, key=lambda r: plan.array_of[r.array].size)) if reads else ()


def _ride(b: Builder, kernel: str, update: str, row: str, outer: tuple[str, ...], order: tuple[str, ...]) -> None:
    """Distribute, reorder and fuse until the update stands in the body of the loops over rows."""
    values = [_values(b.plan, update)[x] for x in order]
    while shared := _shared(b.plan, update):
        loop, child = shared
        body = [n.id for n in b.plan.loops[loop].body]
        b.do("distribute", loop, after=body[max(body.index(child) - 1, 0)])
    names = {value: name for name, value in _values(b.plan, update).items()}
    wanted = tuple(names[v] for v in values)
    if wanted != tuple(names.values()):
        b.do("reorder", wanted)
    tops = [n.id for n in _body(b.plan, kernel)]
    here, there = tops.index(row), tops.index(wanted[0])
    if there < here:
        b.do("sequence", wanted[0], after=row)
    elif here + 1 < there:
        b.do("sequence", row, after=tops[there - 1])
    for mine, theirs in zip(outer, wanted, strict=False):
        b.do("fuse", mine, theirs)


def _values(plan: Plan, leaf: str) -> dict[str, Expr]:
    """What each loop around a leaf is over the statement's dimensions, outermost first: the same under every name."""
    node, above, _ = plan.resolve(leaf)  # type: ignore[misc]
    when = dict(node.when)
    return {x.id: when[x.id] for x in above}


def _shared(plan: Plan, update: str) -> tuple[str, str] | None:
    """The innermost loop around a leaf that holds something beside it, and its child with the leaf."""
    above = plan.find(update)[1]  # type: ignore[index]
    path = [*(x.id for x in above), update]
    for depth in reversed(range(len(above))):
        if len(above[depth].body) > 1:
            return above[depth].id, path[depth + 1]
    return None


def _body(plan: Plan, kernel: str) -> tuple[Node, ...]:
    return next(k.body for k in plan.kernels if k.id == kernel)
