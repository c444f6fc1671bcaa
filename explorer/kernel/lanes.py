"""Lanes of a vector loop over C variables: which accesses are one wide access, which conditions hold for some lanes only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd

from ..ir.expr import Expr
from ..ir.inequality import linear_in
from ..ir.regroup import without_remainders
from ..ir.swizzle import offset
from ..ir.tree import Loop
from .conditions import Condition, condition, conjunction
from .index import linear
from .sites import Lowered, Site

SIZES, WORD = (2, 4, 8, 16), 4
"""Bytes of one load or store of a thread (PTX ISA, "ld": up to .v4.b32), and of a register."""


@dataclass(frozen=True)
class Partial:
    """The conditions of a leaf that holds for some lanes of a vector and not for others.

    Attributes
    ----------
    some : tuple of Condition
        What holds if some lane runs.
    each : tuple of Condition
        What else each lane asks for itself.
    """

    some: tuple[Condition, ...]
    each: tuple[Condition, ...]


def partial(low: Lowered, site: Site, loop: Loop) -> Partial | None:
    """The conditions apart; None where a condition on the lane is not linear in it."""
    lane, last = low.variable[loop.id], loop.start + loop.extent - 1
    hidden = tuple(c for c in site.conditions if lane in c.variables())
    if any(c.equality for c in hidden):
        return None
    asked = conjunction(condition(linear_in(c.expr, lane), False, site.ranges) for c in hidden)
    each = tuple(c for c in asked if lane in c.variables())
    if any(lane in (c.expr - Expr(((lane, c.expr.coefficient(lane)),))).variables() for c in each):
        return None
    best = ((c.expr, Expr((), last if c.expr.coefficient(lane) > 0 else loop.start)) for c in each)
    some = conjunction([*(c for c in site.conditions if c not in hidden), *(c for c in asked if c not in each),
                        *(condition(e.substitute({lane: value}, site.ranges), False, site.ranges) for e, value in best)])
    return Partial(some, each)


def is_wide(low: Lowered, site: Site, slot: int, loop: Loop) -> bool:
    """Whether the access is contiguous in the lane and its first element is aligned to all lanes together."""
    store, index, lane = low.store(site.leaf, slot), low.index(site, slot), low.variable[loop.id]
    affine = [e for e in index if isinstance(e, Expr)]
    nbytes = loop.extent * store.dtype.bytes
    if store.space == "register" or store.handed or len(affine) != len(index) or not index:
        return False
    if nbytes not in SIZES or loop.extent < 2:
        return False
    flat = flat_offset(low, site, slot)
    if flat.coefficient(lane) != 1 or lane in (flat - Expr(((lane, 1),))).variables():
        return False
    first = without_remainders(flat.substitute({lane: Expr((), loop.start)}, site.ranges))
    return gcd(first.const, *(c for _, c in first.terms)) % loop.extent == 0


def flat_offset(low: Lowered, site: Site, slot: int, lane: Mapping[str, Expr] | None = None) -> Expr:
    """Offset of an access whose index is affine: row-major, or as panels lie."""
    flat = low.offset(site, slot, lane)
    if flat is not None:
        return flat
    index, store = [e for e in low.index(site, slot, lane) if isinstance(e, Expr)], low.store(site.leaf, slot)
    return offset(store.placed, index, site.ranges) if store.placed else linear(index, store.shape)
