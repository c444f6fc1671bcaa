"""A plan's leaves with what the questions need to know about each: its instances, its launch, what binds it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import islpy as isl

from ..ir.expr import Expr
from ..ir.plan import Plan
from ..ir.program import Statement
from ..ir.tree import BLOCK_ROLES, THREAD_ROLES, WARP_SIZE, Kernel, Leaf, Loop, Node
from .plan_facts import run_set
from .relations import boxes_of

PLACE = (*BLOCK_ROLES, *THREAD_ROLES)
"""Coordinates of a place, in order; warp and lane are folded into thread.x."""


@dataclass(frozen=True, eq=False)
class Placed:
    """A leaf in its plan.

    Attributes
    ----------
    leaf, above, kernel, statement
        The leaf, its loops (outermost first), its kernel, its statement.
    launch : int
        Number of its kernel in the plan.
    path : tuple of int
        Position among siblings at each level, from the kernel's body down.
    run : isl.Set
        The instances that it executes.
    free : tuple of bool
        Which coordinates of :data:`PLACE` no enclosing loop binds although the launch has more than one there.
    """

    leaf: Leaf
    above: tuple[Loop, ...]
    kernel: Kernel
    statement: Statement
    launch: int
    path: tuple[int, ...]
    run: isl.Set
    free: tuple[bool, ...]

    @property
    def boxes(self) -> tuple[tuple[str, int, int], ...]:
        """(id, start, extent) of each loop, in alphabetical order."""
        return boxes_of(self.above)


def place_leaves(plan: Plan) -> dict[str, list[Placed]]:
    """Statement name to its placed leaves, in order of execution."""
    out: dict[str, list[Placed]] = {}
    for number, kernel in enumerate(plan.kernels):
        paths = _paths(kernel.body)
        launch = plan.extents[kernel.id]
        for leaf, above, owner in plan.leaves:
            if owner is not kernel:
                continue
            statement = plan.statement_of[leaf.statement]
            free = _free(tuple(x.role for x in above), launch)
            placed = Placed(leaf, above, kernel, statement, number, paths[leaf.id], run_set(statement, leaf, above), free)
            out.setdefault(statement.name, []).append(placed)
    return out


def _paths(nodes: tuple[Node, ...], prefix: tuple[int, ...] = ()) -> dict[str, tuple[int, ...]]:
    out: dict[str, tuple[int, ...]] = {}
    for position, node in enumerate(nodes):
        if isinstance(node, Loop):
            out |= _paths(node.body, (*prefix, position))
        else:
            out[node.id] = (*prefix, position)
    return out


@lru_cache(maxsize=4096)
def _free(roles: tuple[str, ...], launch: tuple[int, ...]) -> tuple[bool, ...]:
    bound = set(roles)
    if bound >= {"warp", "lane"} or ("lane" in bound and launch[3] <= WARP_SIZE):
        bound.add("thread.x")
    return tuple(size > 1 and role not in bound for role, size in zip(PLACE, launch, strict=True))


def place_exprs(p: Placed) -> tuple[Expr, ...]:
    """Block and thread coordinates of the leaf's instances over the statement's dimensions (0 where unbound)."""
    when = dict(p.leaf.when)
    total = [Expr() for _ in PLACE]
    for loop in p.above:
        if loop.role in PLACE:
            total[PLACE.index(loop.role)] = when[loop.id]
        elif loop.role == "warp":
            total[3] = total[3] + when[loop.id] * WARP_SIZE
        elif loop.role == "lane":
            total[3] = total[3] + when[loop.id]
    return tuple(total)
