"""Commit groups of the asynchronous copies in one loop, which may run ahead by different numbers of iterations.

A thread's groups complete in the order of their commits (CUDA C++ Programming Guide, "Asynchronous Data Copies"), so one wait
serves all of them.  Let an iteration commit m groups, and let group p (in the order of the commits) run `a` iterations ahead.
At the top of the iteration that reads it, ``a*m - 1 - p`` younger groups have been committed.  The wait leaves the minimum of
these numbers pending.  It is largest if the group with the smallest `a` is committed first.  Where a group is read in the
iteration that copies it (``a = 0``), the wait stands behind the commits, where m more groups are younger.

The prologue commits the same groups in the same order, so that these numbers hold from the first iteration on.  Groups that
run less far ahead than others are empty in its first iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..ir.expr import var
from ..ir.plan import Plan
from ..ir.tree import Leaf, Loop, Node, Sync, leaves, ranges, retime
from ..poly.groups import PRODUCTS


@dataclass(frozen=True)
class Ahead:
    """Copies of one group.

    Attributes
    ----------
    ahead : int
        Iterations between the copy and its use.
    early, steady : tuple of Node
        The copies of a prologue, and of the loop.
    """

    ahead: int
    early: tuple[Node, ...]
    steady: tuple[Node, ...]


@dataclass(frozen=True)
class Groups:
    """The groups of a loop's copies, the prologue that starts them (None: there is none), and what else is in the loop's body."""

    prologue: Loop | None
    groups: tuple[Ahead, ...]
    rest: tuple[Node, ...]


def groups_of(plan: Plan, loop: Loop, chosen: tuple[Node, ...], nests: tuple[Node, ...]) -> Groups | None:
    """The groups of asynchronous copies in a loop besides the chosen ones; None where they are counted otherwise.

    Parameters
    ----------
    plan : Plan
    loop : Loop
    chosen : tuple of Node
        Copies that a pipeline takes.
    nests : tuple of Node
        All copies in the loop's body that are made for its iterations.
    """
    copies = tuple(n for n in loop.body if n not in chosen and _mechanisms(n) & {"async", "bulk"})
    steady = _committed(loop.body, copies)
    if not set(copies) <= set(nests) or steady is None:
        return None
    distances = [_distance(plan, loop, g) for g in steady]
    early = _prologue(plan, loop, _statements(tuple(n for g, d in zip(steady, distances, strict=True) for n in g if d)))
    first = _committed(early.body, tuple(n for n in early.body if not isinstance(n, Sync))) if early else []
    starts = {_statements(g): g for g in first or ()}
    ahead = [g for g, d in zip(steady, distances, strict=True) if d]
    if None in distances or first is None or [*starts] != [_statements(g) for g in ahead]:
        return None
    if early is not None and (early.extent != max(d or 0 for d in distances) or early.start != loop.start):
        return None
    found = (Ahead(d or 0, starts.get(_statements(g), ()), g) for g, d in zip(steady, distances, strict=True))
    return Groups(early, tuple(found), tuple(n for n in loop.body if n not in (*copies, *chosen) and not _counts(n)))


def _prologue(plan: Plan, loop: Loop, statements: frozenset[str]) -> Loop | None:
    """The loop before a loop that makes its first copies."""
    hit, kernel = plan.find(loop.id), plan.kernel_of(loop.id)
    assert hit is not None
    assert kernel is not None
    siblings = hit[1][-1].body if hit[1] else kernel.body
    before = siblings[: next(at for at, n in enumerate(siblings) if n.id == loop.id)]
    return next((n for n in reversed(before) if statements and isinstance(n, Loop) and _statements(n.body) == statements), None)


def together(groups: tuple[Ahead, ...]) -> tuple[Ahead, ...]:
    """The groups in the order of their commits: those that run the fewest iterations ahead first, the same number as one."""
    return tuple(Ahead(n, tuple(x for g in groups if g.ahead == n for x in g.early),
                       tuple(x for g in groups if g.ahead == n for x in g.steady)) for n in sorted({g.ahead for g in groups}))


def closed(groups: tuple[Ahead, ...], waits: Callable[[int, int], Sync], commit: Callable[[int], Sync]) -> tuple[Node, ...]:
    """The copies of an iteration, each group closed, and the waits: one for each group of bulk copies, and one for all others.

    Bulk copies land in any order: each of their groups has an mbarrier of its own.

    Parameters
    ----------
    groups : tuple of Ahead
        In the order of their commits.
    waits, commit : callable
        Make the wait with a number and how many groups it leaves open, and the commit with a number.
    """
    behind = len(groups) if groups[0].ahead == 0 and len(groups) > 1 else 0
    left = {place: g.ahead * len(groups) - 1 - place + behind for place, g in enumerate(groups)}
    bulk = {n for place, n in left.items() if any("bulk" in _mechanisms(x) for x in groups[place].steady)}
    open_ = [waits(at, n) for at, n in enumerate(sorted({*bulk, min(left.values())}, reverse=True))]
    body = [n for place, g in enumerate(groups) for n in (*g.steady, commit(place))]
    return (*body, *open_) if behind else (*open_, *body)


def later(nodes: tuple[Node, ...], loop: Loop, by: int) -> tuple[Node, ...]:
    """A prologue's copies, the same ones `by` iterations later."""
    if not by:
        return nodes
    return retime(nodes, {loop.id: var(loop.id) - by}, {loop.id: var(loop.id) + by}, ranges((loop,)))


def _committed(body: tuple[Node, ...], copies: tuple[Node, ...]) -> list[tuple[Node, ...]] | None:
    """The copies between the commits of a body; None where some have no commit behind them."""
    out, now = list[tuple[Node, ...]](), list[Node]()
    for n in body:
        if n in copies:
            now.append(n)
        elif isinstance(n, Sync) and n.kind == "commit" and now:
            out.append(tuple(now))
            now = []
    return None if now else out


def _distance(plan: Plan, loop: Loop, group: tuple[Node, ...]) -> int | None:
    """Iterations that a group's copies are made ahead; None where they do not agree."""
    found = {dict(leaf.at)[_made_in(plan, leaf)] - var(loop.id) for leaf, _ in leaves(group)}
    return found.pop().const if len(found) == 1 and next(iter(found)).is_constant else None


def _made_in(plan: Plan, leaf: Leaf) -> str:
    """The dimension of a copy that is the loop it was made in: the last one before its box."""
    dims = plan.statement_of[leaf.statement].dims
    return dims[len(dims) - plan.array_of[leaf.statement].given - 1]


def _statements(nodes: tuple[Node, ...]) -> frozenset[str]:
    return frozenset(leaf.statement for leaf, _ in leaves(nodes))


def _mechanisms(node: Node) -> set[str]:
    return {leaf.mechanism for leaf, _ in leaves((node,))}


def _counts(node: Node) -> bool:
    return isinstance(node, Sync) and node.kind != PRODUCTS.wait
