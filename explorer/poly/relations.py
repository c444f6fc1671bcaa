"""Relations of statements and leaves: domains, accesses, and the time and place of every instance.

All are isl objects over the statement's dimensions (``S[d0, d1]``), made from the inverse map `Leaf.when`, so that
time and place are quasi-affine *functions* of the instance.  Everything is cached by value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import islpy as isl

from ..ir.expr import Expr, var
from ..ir.program import Access, Array, Constraint, Statement
from ..ir.scalar import Read
from ..ir.tree import Kernel, Loop, Node
from .isl import Undecided, alone, budget
from .linear import Tuple, at_least, at_most, build_map, build_set, equal, function, holds

BUDGET = 400_000
"""Operations of isl for one question (a few hundred milliseconds at most)."""


def dim_names(statement: Statement) -> dict[str, str]:
    """The names that the statement's dimensions have in isl."""
    return {dim: f"d{i}" for i, dim in enumerate(statement.dims)}


def space(statement: Statement) -> str:
    """``S0[d0, d1]``."""
    return f"{statement.name}[{', '.join(dim_names(statement).values())}]"


@lru_cache(maxsize=4096)
def bare(statement: Statement) -> Statement:
    """The statement without what it computes: its instances and accesses are all that relations and orders depend on.

    Answers about it are those about the statement, and stay where a step changes values alone.
    """
    return replace(statement, value=Read(0), fill=0, origin="", line=0, text="", rounding=0.0)


@lru_cache(maxsize=4096)
def idle(statement: Statement) -> Statement:
    """The statement without accesses, too: its instances, and where they read at all.

    Answers about it stay where a step changes what the statement accesses, as a copy or another layout of an array does.
    """
    return replace(bare(statement), reads=(), target=Access("", ()))


@lru_cache(maxsize=8192)
def accessing(statement: Statement, slot: int) -> Statement:
    """The statement with one of its accesses alone, in the place of its target."""
    return replace(bare(statement), reads=(), target=statement.accesses[slot])


def boxes_of(above: tuple[Loop, ...]) -> tuple[tuple[str, int, int], ...]:
    """(id, start, extent) of each loop, in alphabetical order."""
    return tuple(sorted((x.id, x.start, x.extent) for x in above))


def instance(statement: Statement, side: str = "d") -> Tuple:
    """An instance of the statement."""
    return Tuple(statement.name, side, statement.dims)


def value_map(statement: Statement, values: tuple[Expr, ...], name: str = "V") -> isl.Map:
    """Instance to these values over its dimensions."""
    return _value_map(idle(statement), values, name)


@lru_cache(maxsize=16384)
def _value_map(statement: Statement, values: tuple[Expr, ...], name: str) -> isl.Map:
    return function(instance(statement), name, values)


@lru_cache(maxsize=4096)
@alone
def extremes(statement: Statement, value: Expr) -> tuple[int, int] | None:
    """The least and the largest value over all instances; None where there are none, or where that is not decided in time."""
    try:
        with budget(BUDGET):
            found = value_map(statement, (value,)).intersect_domain(domain(statement)).range()
            return None if found.is_empty() else (int(found.dim_min_val(0).to_python()), int(found.dim_max_val(0).to_python()))
    except Undecided:
        return None


def domain(statement: Statement) -> isl.Set:
    """All instances of the statement."""
    return _domain(idle(statement))


@lru_cache(maxsize=4096)
def _domain(statement: Statement) -> isl.Set:
    return build_set(instance(statement), [holds(c, "d") for c in statement.domain])


@lru_cache(maxsize=8192)
def bounds(constraints: tuple[Constraint, ...]) -> dict[str, tuple[int, int]]:
    """Inclusive bounds of the dimensions that constraints on single dimensions give (not to be changed)."""
    out: dict[str, tuple[int, int]] = {}
    for c in constraints:
        name, k = c.expr.terms[0] if len(c.expr.terms) == 1 else (None, 0)
        if not isinstance(name, str) or c.equality:
            continue
        low, high = out.get(name, (-FAR, FAR))
        out[name] = (max(low, -(c.expr.const // k)), high) if k > 0 else (low, min(high, c.expr.const // -k))
    return out


FAR = 1 << 200
"""Beyond every index."""


def access(statement: Statement, slot: int, array: Array) -> isl.Map:
    """Instance to the element that access `slot` touches (any element along a data-dependent dimension)."""
    return _access(accessing(statement, slot), array)


@lru_cache(maxsize=8192)
def _access(statement: Statement, array: Array) -> isl.Map:
    use = statement.target
    element = Tuple(array.name, "a", tuple(map(str, range(len(use.index)))))
    conditions = [holds(c, "d") for c in (*statement.domain, *(statement.inside if use.kind == "read" else ()))]
    for axis, index in zip(element.variables, use.index, strict=True):
        if isinstance(index, Expr):
            conditions.append(equal(index, "d", var(axis), "a"))
        else:
            conditions += [at_least(var(axis), "a", 0), at_most(var(axis), "a", array.shape[int(axis)] - 1)]
    return build_map(instance(statement), element, conditions)


@lru_cache(maxsize=2048)
@alone
def same_elements(a: Statement, b: Statement, array: Array) -> bool:
    """Whether two statements write the same elements of an array; False where that is not decided within a budget."""
    return _in_time(lambda: _written(a, array).is_equal(_written(b, array)))


@lru_cache(maxsize=2048)
@alone
def starts_all(a: Statement, b: Statement, array: Array) -> bool:
    """Whether a statement writes all elements of an array that another one does; False where that is not decided in time."""
    return _in_time(lambda: _written(b, array).is_subset(_written(a, array)))


def _in_time(ask: Callable[[], bool]) -> bool:
    """The answer of isl; False where that is not found within a budget."""
    try:
        with budget(BUDGET):
            return ask()
    except Undecided:
        return False


def _written(s: Statement, array: Array) -> isl.Set:
    return access(s, len(s.reads), array).range()


def position_path(nodes: tuple[Node, ...], leaf_id: str) -> tuple[int, ...] | None:
    """Positions, from the top of the tree down, of the nodes on the way to a leaf; None where it is not below."""
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
