"""Relations of statements and leaves: domains, accesses, and the time and place of every instance.

All are isl objects over the statement's dimensions (``S[d0, d1]``), made from the inverse map `Leaf.when`, so that
time and place are quasi-affine *functions* of the instance.  Everything is cached by value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import islpy as isl

from ..ir.expr import Expr
from ..ir.plan import Plan, block_extents, grid_extents
from ..ir.program import Array, Statement
from ..ir.tree import BLOCK_ROLES, THREAD_ROLES, WARP_SIZE, Kernel, Leaf, Loop, Node
from .isl import condition, conjunction, read_map, read_set, text

PLACE = (*BLOCK_ROLES, *THREAD_ROLES)
"""Coordinates of a place, in order; warp and lane are folded into thread.x."""


def dim_names(statement: Statement) -> dict[str, str]:
    """The names that the statement's dimensions have in isl."""
    return {dim: f"d{i}" for i, dim in enumerate(statement.dims)}


def space(statement: Statement) -> str:
    """``S0[d0, d1]``."""
    return f"{statement.name}[{', '.join(dim_names(statement).values())}]"


@lru_cache(maxsize=4096)
def domain(statement: Statement) -> isl.Set:
    """All instances of the statement."""
    names = dim_names(statement)
    return read_set(f"{{ {space(statement)}{conjunction([condition(c, names) for c in statement.domain])} }}")


@lru_cache(maxsize=8192)
def access(statement: Statement, slot: int, array: Array) -> isl.Map:
    """Instance to the element that access `slot` touches (any element along a data-dependent dimension)."""
    names = dim_names(statement)
    use = statement.accesses[slot]
    out, conditions = [], []
    for axis, index in enumerate(use.index):
        if isinstance(index, Expr):
            out.append(text(index, names))
        else:
            out.append(f"a{axis}")
            conditions.append(f"0 <= a{axis} < {array.shape[axis]}")
    for c in statement.inside if use.kind == "read" else ():
        conditions.append(condition(c, names))
    relation = read_map(f"{{ {space(statement)} -> {array.name}[{', '.join(out)}]{conjunction(conditions)} }}")
    return relation.intersect_domain(domain(statement))


@dataclass(frozen=True)
class Where:
    """Time and place of a leaf's instances.

    Attributes
    ----------
    run : isl.Set
        The instances that this leaf executes.
    time : isl.Map
        Instance to ``T[position, loop, position, …]``: the position among siblings, then the value of the loop
        (0 for a place loop), alternately, padded with zeros to the kernel's depth.
    place : isl.Map
        Instance to ``P[6]`` (:data:`PLACE`).  Coordinates that no enclosing loop binds are 0.
    free : tuple of bool
        Which coordinates of the place no enclosing loop binds although the launch has more than one there.
    """

    run: isl.Set
    time: isl.Map
    place: isl.Map
    free: tuple[bool, ...]


def _position_path(nodes: tuple[Node, ...], leaf_id: str) -> tuple[int, ...] | None:
    for position, node in enumerate(nodes):
        if node.id == leaf_id:
            return (position,)
        if isinstance(node, Loop) and (below := _position_path(node.body, leaf_id)) is not None:
            return (position, *below)
    return None


def place_exprs(leaf: Leaf, above: tuple[Loop, ...]) -> list[Expr]:
    """Block and thread coordinates of the leaf's instances over the statement's dimensions (0 where unbound)."""
    when = dict(leaf.when)
    total = [Expr() for _ in PLACE]
    for loop in above:
        if loop.role in PLACE:
            total[PLACE.index(loop.role)] = when[loop.id]
        elif loop.role == "warp":
            total[3] = total[3] + when[loop.id] * WARP_SIZE
        elif loop.role == "lane":
            total[3] = total[3] + when[loop.id]
    return total


def where(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], kernel: Kernel, depth: int) -> Where:
    """Time and place of the instances of one leaf; `depth` is the number of loops that the time is padded to."""
    statement = plan.statement_of[leaf.statement]
    path = _position_path(kernel.body, leaf.id)
    assert path is not None
    launch = (*grid_extents(kernel), *block_extents(kernel))
    bound = {loop.role for loop in above}
    if bound >= {"warp", "lane"} or ("lane" in bound and launch[3] <= WARP_SIZE):
        bound.add("thread.x")
    free = tuple(size > 1 and role not in bound for role, size in zip(PLACE, launch, strict=True))
    shape = tuple((loop.id, loop.role, loop.start, loop.extent) for loop in above)
    return _relation(statement, leaf.when, shape, path, depth, free)


@lru_cache(maxsize=8192)
def _relation(statement: Statement, inverse: tuple[tuple[str, Expr], ...], shape: tuple[tuple[str, str, int, int], ...],
              path: tuple[int, ...], depth: int, free: tuple[bool, ...]) -> Where:
    names, when = dim_names(statement), dict(inverse)
    loops = tuple(Loop(name, extent, (), role, start) for name, role, start, extent in shape)
    boxes, time = [], []
    for position, loop in zip(path, loops, strict=False):
        value = text(when[loop.id], names)
        boxes.append(f"{loop.start} <= {value} < {loop.start + loop.extent}")
        time += [str(position), "0" if loop.is_place else value]
    time.append(str(path[-1]))
    time += ["0"] * (2 * depth + 1 - len(time))
    run = domain(statement).intersect(read_set(f"{{ {space(statement)}{conjunction(boxes)} }}"))
    place = ", ".join(text(e, names) for e in place_exprs(Leaf("", "", (), inverse), loops))
    return Where(
        run,
        read_map(f"{{ {space(statement)} -> T[{', '.join(time)}] }}"),
        read_map(f"{{ {space(statement)} -> P[{place}] }}"),
        free,
    )


def time_depth(kernel: Kernel) -> int:
    """The deepest nesting of loops in the kernel."""
    def depth(nodes: tuple[Node, ...]) -> int:
        return max((1 + depth(n.body) for n in nodes if isinstance(n, Loop)), default=0)

    return depth(kernel.body)
