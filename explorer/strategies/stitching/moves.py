"""Moves that make kernels of groups of values: nests are taken apart, ordered, cut, and joined again inside of each kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

from ...errors import IllegalSchedule
from ...ir.expr import Expr
from ...ir.tree import Loop, Node
from ...schedule import Schedule
from .._steps import Builder, leaves_of
from .alike import alike, walk_of

S = TypeVar("S", bound=Schedule)
Holder = Callable[[Builder], tuple[Node, ...]]
"""Gives a body as it is now."""


def separate(b: Builder[S], kernel: str, groups: Sequence[Sequence[str]]) -> list[str]:
    """One kernel for each group of values.

    Parameters
    ----------
    b : Builder
    kernel : str
        A kernel without bound loops, which computes the values.
    groups : sequence of sequence of str
        Values, in the order in which their kernels run.

    Returns
    -------
    list of str
        The kernels, in the order of the groups.

    Raises
    ------
    TransformError, IllegalSchedule
        If a loop cannot be distributed between two groups, or statements cannot be reordered.
    """
    number = {value: n for n, group in enumerate(groups) for value in group}
    moves = Builder(b.schedule, judged=False)
    for node in body_of(b, kernel):
        _distribute(moves, node, number)
    _arrange(moves, kernel, number)
    kernels = [kernel]
    while ends := _changes(moves, body_of(moves, kernels[-1]), number):
        here = [k.id for k in moves.plan.kernels].index(kernels[-1])
        moves.do("launch", kernels[-1], after=ends[0])
        kernels.append(moves.plan.kernels[here + 1].id)
    if refusals := moves.schedule.judgement.refusals:
        first = refusals[0]
        raise IllegalSchedule(f"these kernels are not legal: {first.what}", where=first.where, why=first.why,
                              hint="; or ".join(first.hints), finding=first)
    b.schedule = moves.schedule
    return kernels


def join_nests(b: Builder, kernel: str) -> None:
    """Fuse the parallel loops of a kernel's nests, from outside in, as far as they are alike and that is legal."""
    _join(b, lambda: body_of(b, kernel))


def demand_fusion(b: Builder, producer: str, consumer: str) -> None:
    """Fuse the nests of two statements, where they are still apart.

    Raises
    ------
    TransformError, IllegalSchedule
        If that is not possible.
    """
    one, other = b.plan.resolve(producer), b.plan.resolve(consumer)
    if one and other and one[1] and other[1] and one[1][0].id != other[1][0].id:
        b.do("fuse", one[1][0].id, other[1][0].id)


def chain_body(b: Builder, kernel: str) -> Holder:
    """The body that holds a kernel's statements and row loops, looked up again after each move."""
    body, name = body_of(b, kernel), ""
    while len(body) == 1 and isinstance(body[0], Loop):
        name, body = body[0].id, body[0].body
    return (lambda b: b.plan.loops[name].body) if name else (lambda b: body_of(b, kernel))


def alike_loops(b: Builder, first: Loop, second: Loop) -> bool:
    """Whether two loops run equally often, over the same."""
    one, other = (walk_of(x.id, ((leaf, b.plan.statement_of[leaf.statement]) for leaf in leaves_of(x))) for x in (first, second))
    return first.extent == second.extent and alike(one, other)


def is_parallel(b: Builder, loop: Loop) -> bool:
    """Whether the elements written below a loop differ in each of its iterations."""
    for leaf in leaves_of(loop):
        at = dict(leaf.at)
        index = b.plan.statement_of[leaf.statement].target.index
        if not any(isinstance(e, Expr) and loop.id in e.substitute(at).variables() for e in index):
            return False
    return True


def body_of(b: Builder, kernel: str) -> tuple[Node, ...]:
    """What stands at the top of a kernel."""
    return next(k.body for k in b.plan.kernels if k.id == kernel)


def _join(b: Builder, body: Callable[[], tuple[Node, ...]]) -> None:
    """Fuse neighbouring loops of a body, and then the loops inside of them."""
    done = False
    while not done:
        done = True
        nodes = body()
        for first, second in pairwise(nodes):
            if (isinstance(first, Loop) and isinstance(second, Loop) and alike_loops(b, first, second)
                    and is_parallel(b, first) and is_parallel(b, second) and b.attempt("fuse", first.id, second.id)):
                _join(b, lambda name=first.id: b.plan.loops[name].body)
                done = False
                break


def _numbers(b: Builder, node: Node, number: Mapping[str, int]) -> set[int]:
    return {number[b.plan.statement_of[leaf.statement].target.array] for leaf in leaves_of(node)}


def _distribute(b: Builder, node: Node, number: Mapping[str, int]) -> None:
    """Take the loops below a node apart until each holds one group, innermost first."""
    if not isinstance(node, Loop) or len(_numbers(b, node, number)) < 2:
        return
    for inner in node.body:
        _distribute(b, inner, number)
    _arrange(b, node.id, number)
    loop = node.id
    while ends := _changes(b, b.plan.loops[loop].body, number):
        places = [n.id for n in _around(b, loop)]
        b.do("distribute", loop, after=ends[0])
        loop = _around(b, loop)[places.index(loop) + 1].id


def _around(b: Builder, node: str) -> tuple[Node, ...]:
    """The body that a node stands in."""
    outer = b.parent(node)
    return b.plan.loops[outer].body if outer else next(k.body for k in b.plan.kernels if any(n.id == node for n in k.body))


def _changes(b: Builder, body: tuple[Node, ...], number: Mapping[str, int]) -> list[str]:
    """The nodes behind which another group begins."""
    owner = [min(_numbers(b, n, number)) for n in body]
    return [n.id for n, here, then in zip(body, owner, owner[1:], strict=False) if here != then]


def _arrange(b: Builder, holder: str, number: Mapping[str, int]) -> None:
    """Order the nodes of a body by their groups."""
    def nodes() -> tuple[Node, ...]:
        return b.plan.loops[holder].body if holder in b.plan.loops else body_of(b, holder)

    wanted = [n.id for n in sorted(nodes(), key=lambda n: min(_numbers(b, n, number)))]
    for place in reversed(range(len(wanted))):
        here = [n.id for n in nodes()]
        if here[place] != wanted[place]:
            b.do("sequence", wanted[place], after=here[place])
