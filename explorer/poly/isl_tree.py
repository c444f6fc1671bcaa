"""The isl schedule tree of a plan, derived for display and as an independent oracle for the order of instances.

Every loop becomes a mark ``"id:role"`` over a band with one member, every body with several nodes a sequence of
filters, the launches a sequence at the top.  A place loop is a band like the others: the tree tells one legal serial
order.  Reference: Verdoolaege, Guelton, Grosser, Cohen, "Schedule Trees" (IMPACT 2014).
"""

from __future__ import annotations

from functools import reduce

import islpy as isl

from ..ir.plan import Plan
from ..ir.tree import Leaf, Loop, Node, Sync
from .isl import CONTEXT, alone, conjunction, read_map, read_set, text
from .relations import dim_names, domain, space

Runs = dict[str, isl.Set]
"""Leaf to the instances it runs (a statement may have several leaves)."""


@alone
def schedule_tree(plan: Plan) -> isl.Schedule:
    """The plan's schedule tree.

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    isl.Schedule
        Its domain is the union of the statements' domains; commits, waits and empty loops have no place in it.
    """
    runs = {leaf.id: _run(plan, leaf, above) for leaf, above, _ in plan.leaves}
    whole = reduce(isl.UnionSet.union, (isl.UnionSet.from_set(s) for s in runs.values()), isl.UnionSet("{ }"))
    root = isl.Schedule.from_domain(whole).get_root().child(0)
    bodies: tuple[tuple[Node, ...], ...] = tuple(k.body for k in plan.kernels)
    done = _sequence(plan, runs, root, bodies) if len(bodies) > 1 else _body(plan, runs, root, *bodies)
    return done.get_schedule()


@alone
def tree_text(plan: Plan) -> str:
    """The schedule tree in isl's notation, as an indented YAML block."""
    printer = isl.Printer.to_str(CONTEXT).set_yaml_style(isl.yaml_style.BLOCK)
    return printer.print_schedule(schedule_tree(plan)).get_str()


def _run(plan: Plan, leaf: Leaf, above: tuple[Loop, ...]) -> isl.Set:
    statement = plan.statement_of[leaf.statement]
    names, when = dim_names(statement), dict(leaf.when)
    boxes = [f"{x.start} <= {text(when[x.id], names)} < {x.start + x.extent}" for x in above]
    return domain(statement).intersect(read_set(f"{{ {space(statement)}{conjunction(boxes)} }}")).coalesce()


def _leaves(nodes: tuple[Node, ...]) -> list[Leaf]:
    out: list[Leaf] = []
    for node in nodes:
        out += _leaves(node.body) if isinstance(node, Loop) else [node] if isinstance(node, Leaf) else []
    return out


def _union(runs: Runs, nodes: tuple[Node, ...]) -> isl.UnionSet:
    found = [isl.UnionSet.from_set(runs[leaf.id]) for leaf in _leaves(nodes)]
    return reduce(isl.UnionSet.union, found, isl.UnionSet("{ }"))


def _body(plan: Plan, runs: Runs, at: isl.ScheduleNode, nodes: tuple[Node, ...]) -> isl.ScheduleNode:
    """Insert the nodes at a leaf of the tree; the result stands where `at` stood."""
    kept = tuple(n for n in nodes if not isinstance(n, Sync) and not _union(runs, (n,)).is_empty())
    if len(kept) > 1:
        return _sequence(plan, runs, at, tuple((n,) for n in kept))
    if not kept or isinstance(kept[0], Leaf):
        return at
    loop = kept[0]
    assert isinstance(loop, Loop)
    at = at.insert_partial_schedule(_band(plan, runs, loop)).insert_mark(isl.Id(f"{loop.id}:{loop.role}", context=CONTEXT))
    return _body(plan, runs, at.child(0).child(0), loop.body).parent().parent()


def _sequence(plan: Plan, runs: Runs, at: isl.ScheduleNode, bodies: tuple[tuple[Node, ...], ...]) -> isl.ScheduleNode:
    parts = [(body, _union(runs, body)) for body in bodies]
    parts = [(body, part) for body, part in parts if not part.is_empty()]
    filters = isl.UnionSetList.alloc(CONTEXT, len(parts))
    for _, part in parts:
        filters = filters.add(part)
    at = at.insert_sequence(filters)
    for position, (body, _) in enumerate(parts):
        at = _body(plan, runs, at.child(position).child(0), body).parent().parent()
    return at


def _band(plan: Plan, runs: Runs, loop: Loop) -> isl.MultiUnionPwAff:
    """The loop's variable as a function of the instances of the leaves below (bounds only where leaves disagree)."""
    total = isl.UnionMap("{ }")
    below = _leaves((loop,))
    values = {(leaf.statement, dict(leaf.when)[loop.id]) for leaf in below}
    for leaf in below:
        statement = plan.statement_of[leaf.statement]
        value = text(dict(leaf.when)[loop.id], dim_names(statement))
        function = read_map(f"{{ {space(statement)} -> [{value}] }}")
        if sum(name == leaf.statement for name, _ in values) > 1:
            function = function.intersect_domain(runs[leaf.id])
        total = total.union(isl.UnionMap.from_map(function))
    return isl.MultiUnionPwAff.from_union_map(total)
