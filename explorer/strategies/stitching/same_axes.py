"""Whether two loops walk the same axes of the arrays that both use, not only whether they have equal extents.

Rows and columns of a square array are as different as those of any other; where no array is in common, the extents have to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...ir.expr import Expr
from ...ir.program import Statement
from ...ir.tree import Leaf

Walk = Mapping[str, frozenset[int]]
"""Array to its axes that a loop walks."""


def walk_of(loop: str, statements: Iterable[tuple[Leaf, Statement]]) -> Walk:
    """The axes of each array that a loop around some statements walks."""
    found: dict[str, frozenset[int]] = {}
    for leaf, s in statements:
        at = dict(leaf.at)
        for access in s.accesses:
            axes = {n for n, e in enumerate(access.index) if isinstance(e, Expr) and loop in e.substitute(at).variables()}
            if axes:
                found[access.array] = found.get(access.array, frozenset()) | axes
    return found


def same_axes(one: Walk, other: Walk) -> bool:
    """Whether every array that both loops walk has an axis that both walk."""
    return all(one[array] & other[array] for array in one.keys() & other.keys())
