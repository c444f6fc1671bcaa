"""The isl schedule tree as rows for people: its nodes in order, in plain notation, with the ids of the plan's nodes."""

from __future__ import annotations

import re
from dataclasses import dataclass

import islpy as isl

from ..ir.plan import Plan
from ..ir.text import index_text
from ..ir.tree import Leaf, walk
from .isl import alone
from .isl_tree import schedule_tree


@dataclass(frozen=True)
class TreeRow:
    """One node of the schedule tree.

    Attributes
    ----------
    kind : str
        ``"domain"``, ``"sequence"``, ``"filter"``, ``"mark"`` or ``"band"``.
    depth : int
    node : str or None
        The loop, statement or kernel of the plan that it stands for.
    text : str
        ``S1(i, j, k)`` in a filter, ``S1(i, j, k) → k // 32`` in a band, the instances with their conditions in the domain.
    role : str
        Of a mark: the loop's role.
    """

    kind: str
    depth: int
    node: str | None
    text: str
    role: str = ""


@alone
def outline(plan: Plan) -> tuple[TreeRow, ...]:
    """The rows of the plan's schedule tree, parents before children."""
    rows: list[TreeRow] = []
    _visit(plan, schedule_tree(plan).get_root(), 0, plan.kernels[0].id if len(plan.kernels) == 1 else None, rows)
    return tuple(rows)


def _visit(plan: Plan, node: isl.ScheduleNode, depth: int, at: str | None, rows: list[TreeRow]) -> None:
    kind = node.get_type()
    types = isl.schedule_node_type
    if kind == types.leaf:
        return
    if kind == types.domain:
        rows.append(TreeRow("domain", depth, at, _instances(plan, node.domain_get_domain(), conditions=True)))
    elif kind == types.mark:
        loop, _, role = str(node.mark_get_id().get_name()).rpartition(":")
        at = loop
        rows.append(TreeRow("mark", depth, loop, loop, role))
    elif kind == types.band:
        rows.append(TreeRow("band", depth, at, _band(plan, at)))
    elif kind == types.filter:
        names = _names(node.filter_get_filter())
        at = _owner(plan, names) or at
        rows.append(TreeRow("filter", depth, at, _instances(plan, node.filter_get_filter(), conditions=False)))
    else:
        rows.append(TreeRow("sequence", depth, at, "in this order"))
    for child in range(node.n_children()):
        _visit(plan, node.child(child), depth + 1, at, rows)


def _names(found: isl.UnionSet) -> list[str]:
    names: list[str] = []
    found.foreach_set(lambda part: names.append(part.get_tuple_name()))
    return names


def _owner(plan: Plan, names: list[str]) -> str | None:
    """The statement, or the kernel, that holds exactly these statements."""
    if len(names) == 1:
        return next((leaf.id for leaf, _, _ in plan.leaves if leaf.statement == names[0]), None)
    for kernel in plan.kernels:
        if {n.statement for n in walk(kernel.body) if isinstance(n, Leaf)} == set(names) and len(plan.kernels) > 1:
            return kernel.id
    below = {x.id: {n.statement for n in walk(x.body) if isinstance(n, Leaf)} for x in plan.loops.values()}
    return next((loop for loop, found in below.items() if found == set(names)), None)


def _instances(plan: Plan, found: isl.UnionSet, conditions: bool) -> str:
    """Each statement over its own dimensions, with its conditions where they are asked for."""
    parts: dict[str, str] = {}

    def visit(part: isl.Set) -> None:
        name = part.get_tuple_name()
        dims = plan.statement_of[name].dims
        head = f"{name}({', '.join(dims)})" if dims else name
        _, colon, rest = str(part).strip("{} ").partition(":")
        parts[name] = f"{head} where {_readable(rest, dims)}" if conditions and colon else head

    found.foreach_set(visit)
    order = {leaf.statement: n for n, (leaf, _, _) in reversed(list(enumerate(plan.leaves)))}
    return "; ".join(parts[name] for name in sorted(parts, key=lambda n: order.get(n, 0)))


def _band(plan: Plan, loop: str | None) -> str:
    """``S1(i, k) → k // 32`` for every statement below the loop: its value as a function of the instances."""
    parts: dict[str, str] = {}
    for leaf, above, _ in plan.leaves:
        if loop in [x.id for x in above]:
            dims = plan.statement_of[leaf.statement].dims
            parts.setdefault(f"{leaf.statement}({', '.join(dims)}) → {index_text(dict(leaf.when)[str(loop)])}", leaf.id)
    return "; ".join(parts)


def _readable(text: str, dims: tuple[str, ...]) -> str:
    """What isl calls ``d0`` or ``i0`` as the statement's own dimensions, with ≤ and ≥."""
    named = re.sub(r"\b[di](\d+)\b", lambda m: dims[int(m[1])] if int(m[1]) < len(dims) else m[0], text)
    return re.sub(r"\s+", " ", named.replace("<=", "≤").replace(">=", "≥")).strip().strip("{}").strip()


__all__ = ["TreeRow", "outline"]
