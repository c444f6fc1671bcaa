"""Moves that make kernels of groups of values: nests are taken apart, ordered, cut, and joined again inside of each kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import combinations

from ...errors import IllegalSchedule
from ...ir.expr import Expr
from ...ir.tree import Loop, Node
from .._steps import Builder, chain, leaves_of
from .same_axes import same_axes, walk_of

Holder = Callable[[Builder], tuple[Node, ...]]
"""Gives a body as it is now."""
Pair = tuple[str, str]
"""Two loops of a body, in order."""


def separate(b: Builder, kernel: str, groups: Sequence[Sequence[str]]) -> list[str]:
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
    leaves = [leaf for node in body_of(b, kernel) for leaf in leaves_of(node)]
    return separate_leaves(b, kernel, {x.id: number[b.plan.statement_of[x.statement].target.array] for x in leaves})


def separate_leaves(b: Builder, kernel: str, number: Mapping[str, int]) -> list[str]:
    """One kernel for each group of statements, as :func:`separate` does it; `number` says of each leaf which group is its own."""
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


def join_nests(b: Builder, kernel: str, but: Set[str] = frozenset()) -> None:
    """Fuse the parallel loops of a kernel's nests, `but` some, from outside in, as far as they are alike and that is legal."""
    _join(b, lambda b: body_of(b, kernel), but)


def join_inside(b: Builder, kernel: str) -> None:
    """The same for the nests under the loops that are around all of a kernel."""
    _join(b, chain_body(b, kernel))


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


def bring_together(b: Builder, holder: Holder, pair: Pair, depth: int) -> bool:
    """Fuse two nests of a body, so many loops deep, with what stands between put before or behind; whether that was legal."""
    first, second = pair
    keep, body = b.schedule, holder(b)
    places = [n.id for n in body]
    between, made, behind = body[places.index(first) + 1 : places.index(second)], targets_of(b, b.plan.loops[first]), []
    for node in between:
        if needs(b, node, made):
            behind.append(node.id)
            made |= targets_of(b, node)
    names = [[x.id for x in chain(b.plan.loops[top])][:depth] for top in pair]
    steps = [("sequence", node, second) for node in reversed(behind)]
    steps += [("sequence", first, n.id) for n in between if n.id not in behind]
    steps += [("fuse", one, other) for one, other in zip(*names, strict=True)]
    if all(b.attempt(name, one, other) for name, one, other in steps):
        return True
    b.schedule = keep
    return False


def chain_body(b: Builder, kernel: str) -> Holder:
    """The body that holds a kernel's statements and row loops, looked up again after each move."""
    body, name = body_of(b, kernel), ""
    while len(body) == 1 and isinstance(body[0], Loop):
        name, body = body[0].id, body[0].body
    return (lambda b: b.plan.loops[name].body) if name else (lambda b: body_of(b, kernel))


def alike_loops(b: Builder, first: Loop, second: Loop) -> bool:
    """Whether two loops run equally often, over the same."""
    one, other = (walk_of(x.id, ((leaf, b.plan.statement_of[leaf.statement]) for leaf in leaves_of(x))) for x in (first, second))
    return first.extent == second.extent and same_axes(one, other)


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


def targets_of(b: Builder, node: Node) -> set[str]:
    """The arrays that a node writes."""
    return {b.plan.statement_of[leaf.statement].target.array for leaf in leaves_of(node)}


def used_by(b: Builder, node: Node) -> set[str]:
    """The arrays that a node reads or writes."""
    return {a.array for leaf in leaves_of(node) for a in b.plan.statement_of[leaf.statement].accesses}


def needs(b: Builder, node: Node, arrays: set[str]) -> bool:
    """Whether a node uses one of the arrays, directly."""
    return bool(used_by(b, node) & arrays)


def _join(b: Builder, holder: Holder, but: Set[str] = frozenset()) -> None:
    """Fuse loops of a body that may stand next to each other, neighbours first, and then the loops inside of them."""
    refused: set[Pair] = set()
    while pair := next((p for p in _joinable(b, holder(b)) if p not in refused and not but & {*p}), None):
        if bring_together(b, holder, pair, 1):
            _join(b, lambda b, name=pair[0]: b.plan.loops[name].body)
            refused.clear()
        else:
            refused.add(pair)


def _joinable(b: Builder, body: tuple[Node, ...]) -> Iterator[Pair]:
    """Pairs of parallel loops over the same, the nearest first; of those apart, the second uses what the first has made."""
    loops = [(n, x) for n, x in enumerate(body) if isinstance(x, Loop)]
    pairs = [(at - n, first, second) for (n, first), (at, second) in combinations(loops, 2)]
    for apart, first, second in sorted(pairs, key=lambda p: p[0]):
        if (alike_loops(b, first, second) and is_parallel(b, first) and is_parallel(b, second)
                and (apart == 1 or needs(b, second, targets_of(b, first)))):
            yield first.id, second.id


def _numbers(node: Node, number: Mapping[str, int]) -> set[int]:
    return {number[leaf.id] for leaf in leaves_of(node)}


def _distribute(b: Builder, node: Node, number: Mapping[str, int]) -> None:
    """Take the loops below a node apart until each holds one group, innermost first."""
    if not isinstance(node, Loop) or len(_numbers(node, number)) < 2:
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
    owner = [min(_numbers(n, number)) for n in body]
    return [n.id for n, here, then in zip(body, owner, owner[1:], strict=False) if here != then]


def _arrange(b: Builder, holder: str, number: Mapping[str, int]) -> None:
    """Order the nodes of a body by their groups."""
    def nodes() -> tuple[Node, ...]:
        return b.plan.loops[holder].body if holder in b.plan.loops else body_of(b, holder)

    wanted = [n.id for n in sorted(nodes(), key=lambda n: min(_numbers(n, number)))]
    for place in reversed(range(len(wanted))):
        here = [n.id for n in nodes()]
        if here[place] != wanted[place]:
            b.do("sequence", wanted[place], after=here[place])
