"""Reductions of one array over the same loops, brought into one pass: the array is read once for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from ...ir.expr import Expr
from ...ir.tree import Leaf, Loop, walk
from ...schedule import Schedule
from .._steps import Builder, chain, leaves_of
from .moves import Holder, Pair, alike_loops, body_of, bring_together, chain_body, is_parallel, needs, targets_of


def in_one_pass(schedule: Schedule) -> Schedule:
    """Bring reductions that stand in nests of their own into one, where they read an array over the same loops.

    ``for i: y[i] = 0; for k: y[i] += x[i, k]`` and ``for i: z[i] = -inf; for k: z[i] = max(z[i], x[i, k])`` become
    ``for i: y[i] = 0; z[i] = -inf; for k: y[i] += x[i, k]; z[i] = max(z[i], x[i, k])``.

    Returns
    -------
    Schedule
        Legal; the same schedule where there is nothing to share.  Kernels with bound loops stay as they are.
    """
    b = Builder(schedule)
    for kernel in [k.id for k in b.plan.kernels]:
        if any(isinstance(n, Loop) and n.is_place for n in walk(body_of(b, kernel))):
            continue
        refused: set[Pair] = set()
        while pair := next((p for p in _nests(b, kernel) if p not in refused), None):
            if not bring_together(b, lambda b, kernel=kernel: body_of(b, kernel), pair, len(_outer(b, b.plan.loops[pair[0]]))):
                refused.add(pair)
        _share(b, lambda b, kernel=kernel: body_of(b, kernel))
        for innermost in [chain(n)[-1].id for n in body_of(b, kernel) if isinstance(n, Loop)]:
            _share(b, lambda b, name=innermost: b.plan.loops[name].body)
    return b.schedule


def share_passes(b: Builder, kernel: str) -> None:
    """Fuse the reductions in the body under a kernel's outer loops, as far as they read one array over equal loops."""
    _share(b, chain_body(b, kernel))


def _share(b: Builder, holder: Holder) -> None:
    refused: set[Pair] = set()
    while pair := next((p for p in _sharing(b, [n for n in holder(b) if isinstance(n, Loop)]) if p not in refused), None):
        if not bring_together(b, holder, pair, len(chain(b.plan.loops[pair[0]]))):
            refused.add(pair)


def _nests(b: Builder, kernel: str) -> Iterator[Pair]:
    """Pairs of nests under equal parallel loops, each around one reduction, which read one array over equal loops."""
    tops = [n for n in body_of(b, kernel) if isinstance(n, Loop)]
    for n, first in enumerate(tops):
        for second in tops[n + 1 :]:
            outer, other = _outer(b, first), _outer(b, second)
            if not outer or not _same(b, outer, other):
                continue
            inner = [[n for n in loops[-1].body if isinstance(n, Loop)] for loops in (outer, other)]
            if all(len(nests) == 1 for nests in inner) and any(_sharing(b, [*inner[0], *inner[1]])):
                yield first.id, second.id


def _outer(b: Builder, top: Loop) -> list[Loop]:
    """The loops of a nest, outermost first, whose iterations write different elements."""
    return list(takewhile(lambda x: is_parallel(b, x), chain(top)))


def _sharing(b: Builder, nests: list[Loop]) -> Iterator[Pair]:
    """Pairs of reductions over equal loops that read one array and do not need each other."""
    for n, first in enumerate(nests):
        for second in nests[n + 1 :]:
            if (_same(b, chain(first), chain(second)) and _updates_only(b, first) and _updates_only(b, second)
                    and _moving(b, first) & _moving(b, second) and not needs(b, second, targets_of(b, first))):
                yield first.id, second.id


def _same(b: Builder, nest: list[Loop], other: list[Loop]) -> bool:
    return len(nest) == len(other) and all(alike_loops(b, *pair) for pair in zip(nest, other, strict=True))


def _updates_only(b: Builder, nest: Loop) -> bool:
    return all(b.plan.statement_of[leaf.statement].update for leaf in leaves_of(nest)) and all(
        isinstance(n, Leaf) for n in chain(nest)[-1].body)


def _moving(b: Builder, nest: Loop) -> set[str]:
    """Arrays that a nest walks with its innermost loop."""
    inner, found = chain(nest)[-1].id, set()
    for leaf in leaves_of(nest):
        at = dict(leaf.at)
        found |= {r.array for r in b.plan.statement_of[leaf.statement].reads
                  if any(isinstance(e, Expr) and inner in e.substitute(at).variables() for e in r.index)}
    return found
