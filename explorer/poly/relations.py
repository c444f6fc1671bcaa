"""Relations of statements and leaves: domains, accesses, and the time and place of every instance.

All are isl objects over the statement's dimensions (``S[d0, d1]``), made from the inverse map `Leaf.when`, so that
time and place are quasi-affine *functions* of the instance.  Everything is cached by value.
"""

from __future__ import annotations

from functools import lru_cache

import islpy as isl

from ..ir.expr import Expr
from ..ir.program import Array, Statement
from ..ir.tree import Kernel, Loop, Node
from .isl import condition, conjunction, read_map, read_set, text


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


def position_path(nodes: tuple[Node, ...], leaf_id: str) -> tuple[int, ...] | None:
    for position, node in enumerate(nodes):
        if node.id == leaf_id:
            return (position,)
        if isinstance(node, Loop) and (below := position_path(node.body, leaf_id)) is not None:
            return (position, *below)
    return None


def time_depth(kernel: Kernel) -> int:
    """The deepest nesting of loops in the kernel."""
    def depth(nodes: tuple[Node, ...]) -> int:
        return max((1 + depth(n.body) for n in nodes if isinstance(n, Loop)), default=0)

    return depth(kernel.body)
