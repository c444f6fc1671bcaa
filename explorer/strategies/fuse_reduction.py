"""Fuse a reduction that is written as separate nests: initialisation, updates and finalisation under its parallel loops."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.tree import Leaf, Loop, Node
from ..schedule import Schedule
from ._steps import Builder, axes, chain, leaves_of
from .stitching.moves import alike_loops, body_of, bring_together, is_parallel, needs, targets_of


def fuse_reduction(schedule: Schedule) -> Schedule:
    """Fuse nests that start results, or do something with each of them, with the nests that update them.

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
        for node in body_of(b, kernel):
            _join(b, kernel, tuple(leaf.id for leaf in leaves_of(node)))
        for node in body_of(b, kernel):
            _one_statement_each(b, node)
        for update in [leaf.id for node in body_of(b, kernel) for leaf in leaves_of(node)]:
            _join(b, kernel, (update,))
        _finish(b, kernel)
    return b.schedule


def _one_statement_each(b: Builder, node: Node) -> None:
    """Distribute a perfect nest with several updates, or several starts, in its innermost body."""
    nest = chain(node)
    if not nest or not all(isinstance(n, Leaf) for n in nest[-1].body):
        return
    statements = [b.plan.statement_of[n.statement] for n in nest[-1].body if isinstance(n, Leaf)]
    if not any(loop for n in nest[-1].body if isinstance(n, Leaf) for loop in axes(n, b.plan.statement_of[n.statement].target)):
        return  # single results: whatever starts them stands under no loop
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


def _join(b: Builder, kernel: str, updates: tuple[str, ...]) -> None:
    """Fuse the nest of some updates of the same elements of several arrays with the nest that starts all of them."""
    hits = [b.plan.find(update) for update in updates]
    leaves = tuple(hit[0] for hit in hits if hit is not None)
    statements = [b.plan.statement_of[leaf.statement] for leaf in leaves if isinstance(leaf, Leaf)]
    if not hits or hits[0] is None or not hits[0][1] or len(statements) < len(updates) or not all(s.update for s in statements):
        return
    above, body = hits[0][1], body_of(b, kernel)
    nest = chain(next(n for n in body if n.id == above[0].id))
    if [x.id for x in nest] != [x.id for x in above] or nest[-1].body != leaves:
        return
    targets = [s.target.array for s in statements]
    start = next((n for n in body if _starts(b, n, targets)), None)
    kept = {axes(leaf, s.target) for leaf, s in zip(leaves, statements, strict=True) if isinstance(leaf, Leaf)}
    if start is None or len(kept) > 1:
        return
    parallel, outer = kept.pop(), _by_axes(b, start)
    if "" in parallel or [b.extent(n) for n in parallel] != [b.extent(n) for n in outer]:
        return
    keep = b.schedule
    wanted = (*parallel, *(x.id for x in above if x.id not in parallel))
    if not (_ordered(b, start.id, outer) and _ordered(b, above[0].id, wanted) and _beside(b, kernel, outer[0], wanted[0])
            and all(b.attempt("fuse", first, second) for first, second in zip(outer, parallel, strict=True))):
        b.schedule = keep


def _ordered(b: Builder, top: str, wanted: tuple[str, ...]) -> bool:
    """Reorder a nest where its loops are in another order; whether they are in this one now."""
    return wanted == tuple(x.id for x in chain(b.plan.loops[top])) or b.attempt("reorder", wanted)


def _beside(b: Builder, kernel: str, first: str, second: str) -> bool:
    """Move a node right before another one; whether it stands there now."""
    places = [n.id for n in body_of(b, kernel)]
    here, there = places.index(first), places.index(second)
    return here + 1 == there or (here < there and b.attempt("sequence", first, after=places[there - 1]))


def _finish(b: Builder, kernel: str) -> None:
    """Fuse nests over the results of a reduction alone, such as ``for j: y[j] = y[j] / N``, with the nest that computes them."""
    refused: set[tuple[str, str]] = set()
    while pair := next((p for p in _finishing(b, body_of(b, kernel)) if p not in refused), None):
        if not bring_together(b, lambda b: body_of(b, kernel), pair, len(chain(b.plan.loops[pair[1]]))):
            refused.add(pair)


def _finishing(b: Builder, body: tuple[Node, ...]) -> Iterator[tuple[str, str]]:
    """Pairs of a nest that reduces, and a later one that uses its results and does nothing else over the same loops."""
    nests = [n for n in body if isinstance(n, Loop)]
    for n, last in enumerate(nests):
        loops, leaves = chain(last), tuple(leaves_of(last))
        if loops[-1].body != leaves or any(b.plan.statement_of[leaf.statement].update for leaf in leaves):
            continue
        for first in nests[:n]:
            outer = chain(first)[: len(loops)]
            reduces = any(isinstance(x, Loop) for x in outer[-1].body) and len(outer) == len(loops)
            if (reduces and needs(b, last, targets_of(b, first)) and all(is_parallel(b, x) for x in (*outer, *loops))
                    and all(alike_loops(b, *pair) for pair in zip(outer, loops, strict=True))):
                yield first.id, last.id


def _by_axes(b: Builder, start: Node) -> tuple[str, ...]:
    """The loops of a nest that starts elements, in the order of the axes of the first array; () where axes have none."""
    leaf = next(leaves_of(start))
    found = axes(leaf, b.plan.statement_of[leaf.statement].target)
    return found if sorted(found) == sorted(x.id for x in chain(start)) else ()


def _starts(b: Builder, node: Node, arrays: list[str]) -> bool:
    """Whether a nest is nothing but the start of some arrays' elements."""
    nest = chain(node)
    leaves = tuple(leaves_of(node))
    if not nest or nest[-1].body != leaves:
        return False
    statements = [b.plan.statement_of[leaf.statement] for leaf in leaves]
    return sorted(s.target.array for s in statements) == sorted(arrays) and not any(s.update for s in statements)
