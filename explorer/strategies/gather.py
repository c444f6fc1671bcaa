"""Bring a reduction that is written as separate nests into one: start and updates of a result under the same parallel loops."""

from __future__ import annotations

from typing import TypeVar

from ..ir.expr import Expr
from ..ir.tree import Leaf, Loop, Node
from ..schedule import Schedule
from ._steps import Builder, chain, leaves_of

S = TypeVar("S", bound=Schedule)


def gather(schedule: S) -> S:
    """Fuse nests that start results with the nests that update them.

    ``for j: y[j] = 0`` and ``for i: for j: y[j] += x[i, j]`` become ``for j: y[j] = 0; for i: y[j] += x[i, j]``, as far as
    that is legal: bodies with several statements are distributed, parallel loops reordered outwards, nests fused.

    Parameters
    ----------
    schedule : Schedule
        A program as written.

    Returns
    -------
    Schedule
        Legal; the same schedule where there is nothing to gather.
    """
    b = Builder(schedule)
    for kernel in [k.id for k in b.plan.kernels]:
        for node in _body(b, kernel):
            _one_statement_each(b, node)
        for update in [leaf.id for node in _body(b, kernel) for leaf in leaves_of(node)]:
            _join(b, kernel, update)
    return b.schedule


def _body(b: Builder, kernel: str) -> tuple[Node, ...]:
    return next(k.body for k in b.plan.kernels if k.id == kernel)


def _one_statement_each(b: Builder, node: Node) -> None:
    """Distribute a perfect nest with several updates, or several starts, in its innermost body."""
    nest = chain(node)
    if not nest or not all(isinstance(n, Leaf) for n in nest[-1].body):
        return
    statements = [b.plan.statement_of[n.statement] for n in nest[-1].body if isinstance(n, Leaf)]
    if len(statements) < 2 or len({s.target.array for s in statements}) < len(statements):
        return
    if any(b.plan.array_of[s.target.array].role == "temporary" for s in statements):
        return
    if not (all(s.update for s in statements) or all(s.update is None and not s.reads for s in statements)):
        return
    for first in nest[-1].body[:-1]:
        for loop in [x.id for x in reversed(b.plan.find(first.id)[1])]:  # type: ignore[index]
            if len(b.plan.loops[loop].body) > 1:
                b.attempt("distribute", loop, after=_child(b, loop, first.id))


def _child(b: Builder, loop: str, leaf: str) -> str:
    """The node of a loop's body that holds a leaf."""
    return next(n.id for n in b.plan.loops[loop].body if any(x.id == leaf for x in leaves_of(n)))


def _join(b: Builder, kernel: str, update: str) -> None:
    """Fuse the nest of an update with the nest that starts its results."""
    hit = b.plan.find(update)
    if hit is None or not hit[1] or not b.plan.statement_of[hit[0].statement].update:  # type: ignore[union-attr]
        return
    leaf, above = hit
    body = _body(b, kernel)
    nest = chain(next(n for n in body if n.id == above[0].id))
    if [x.id for x in nest] != [x.id for x in above] or nest[-1].body != (leaf,):
        return
    statement = b.plan.statement_of[leaf.statement]  # type: ignore[union-attr]
    start = next((n for n in body if _starts(b, n, statement.target.array)), None)
    if start is None:
        return
    at = dict(leaf.at)  # type: ignore[union-attr]
    index = [e.substitute(at) for e in statement.target.index if isinstance(e, Expr)]
    named = [next((x.id for x in above if e == Expr(((x.id, 1),))), "") for e in index]
    parallel, outer = [n for n in named if n], chain(start)
    if len(parallel) != len(index) or [b.extent(n) for n in parallel] != [x.extent for x in outer]:
        return
    keep = b.schedule
    wanted = (*parallel, *(x.id for x in above if x.id not in parallel))
    if wanted != tuple(x.id for x in above):
        b.attempt("reorder", wanted)
    places = [n.id for n in _body(b, kernel)]
    if places.index(start.id) + 1 != places.index(wanted[0]):
        b.attempt("sequence", start.id, after=places[places.index(wanted[0]) - 1])
    for first, second in zip([x.id for x in outer], parallel, strict=True):
        if not b.attempt("fuse", first, second):
            b.schedule = keep
            return


def _starts(b: Builder, node: Node, array: str) -> bool:
    """Whether a nest is nothing but the start of an array's elements."""
    nest = chain(node)
    leaves = list(leaves_of(node))
    if len(leaves) != 1 or not nest or not isinstance(node, Loop):
        return False
    statement = b.plan.statement_of[leaves[0].statement]
    return statement.target.array == array and statement.update is None and nest[-1].body == (leaves[0],)
