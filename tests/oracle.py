"""What a plan runs, by enumeration: plain Python over all loops, for tiny sizes.

Independent of isl and of the code generators, so that both can be held against it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import product

from explorer.ir.plan import Plan
from explorer.ir.program import Statement
from explorer.ir.tree import Leaf, Loop, Node

Run = tuple[str, tuple[tuple[str, int], ...], str, tuple[int, ...]]
"""Kernel, place (each role with its index, outermost first), statement, point (values of its dimensions)."""


def run_order(plan: Plan) -> list[Run]:
    """Every instance that runs, in the order of the tree; loops over places are enumerated like the others.

    A leaf runs where the loops' values give a point of the statement's domain.  Order between different places
    means nothing.
    """
    return [run for run, _, _ in enumerate_plan(plan)]


def enumerate_plan(plan: Plan) -> Iterator[tuple[Run, Leaf, dict[str, int]]]:
    """Each run with its leaf and the values of the loops around it."""
    for kernel in plan.kernels:
        yield from _nodes(plan, kernel.id, kernel.body, {}, ())


def _nodes(
    plan: Plan, kernel: str, nodes: tuple[Node, ...], values: dict[str, int], place: tuple[tuple[str, int], ...]
) -> Iterator[tuple[Run, Leaf, dict[str, int]]]:
    for node in nodes:
        if isinstance(node, Loop):
            for value in range(node.start, node.start + node.extent):
                here = (*place, (node.role, value)) if node.is_place else place
                yield from _nodes(plan, kernel, node.body, {**values, node.id: value}, here)
        elif isinstance(node, Leaf):
            statement, at = plan.statement_of[node.statement], dict(node.at)
            point = tuple(int(at[d].evaluate(values)) for d in statement.dims)
            if in_domain(statement, point):
                yield (kernel, place, statement.name, point), node, values


def in_domain(statement: Statement, point: tuple[int, ...]) -> bool:
    """Whether the point satisfies every constraint of the statement."""
    values = dict(zip(statement.dims, point, strict=True))
    return all(c.holds(values) for c in statement.domain)


def instances(plan: Plan) -> set[tuple[str, tuple[int, ...]]]:
    """Every instance of the plan's statements: all integer points of their domains."""
    return {(s.name, point) for s in plan.statement_of.values() for point in points(s)}


@lru_cache(maxsize=1024)
def points(statement: Statement, reach: int = 300) -> tuple[tuple[int, ...], ...]:
    """All points of a statement's domain whose dimensions' own bounds (constraints on one variable) lie below `reach`."""
    boxes = []
    for dim in statement.dims:
        own = [c for c in statement.domain if c.expr.variables() == {dim}]
        values = [v for v in range(-reach, reach) if all(c.holds({dim: v}) for c in own)]
        assert not values or -reach < values[0] <= values[-1] < reach - 1, f"{dim} of {statement.name} is not bounded by {reach}"
        boxes.append(values)
    return tuple(p for p in product(*boxes) if in_domain(statement, p))


def check_plan(plan: Plan) -> None:
    """Each instance runs exactly once, and `Leaf.when` inverts `Leaf.at` there; ids are unique."""
    ran: Counter[tuple[str, tuple[int, ...]]] = Counter()
    for (_, _, name, point), leaf, values in enumerate_plan(plan):
        ran[name, point] += 1
        dims = dict(zip(plan.statement_of[name].dims, point, strict=True))
        back = {loop: int(e.evaluate(dims)) for loop, e in leaf.when}
        assert back == values, f"{leaf.id} runs {name}{list(point)} at {values}, but its inverse says {back}"
    twice = {key: n for key, n in ran.items() if n > 1}
    assert not twice, f"runs more than once: {twice}"
    wanted = instances(plan)
    assert set(ran) == wanted, f"never runs: {sorted(wanted - set(ran))[:5]}; should not run: {sorted(set(ran) - wanted)[:5]}"
    ids = [n for k in plan.kernels for n in (k.id, *_ids(k.body))]
    assert len(ids) == len(set(ids)), f"ids are not unique: {[n for n, c in Counter(ids).items() if c > 1]}"
    names = [b.name for b in plan.buffers]
    assert len(names) == len(set(names))
    for buffer in plan.buffers:
        assert buffer.scope in ("", *ids), f"{buffer.name} lives in {buffer.scope!r}, which is gone"


def _ids(nodes: tuple[Node, ...]) -> Iterator[str]:
    for node in nodes:
        yield node.id
        if isinstance(node, Loop):
            yield from _ids(node.body)
