"""Accesses of a leaf as elements of memory, and what it computes, over C variables."""

from __future__ import annotations

from collections.abc import Mapping

from ..ir.expr import Expr
from ..ir.regroup import one_division
from ..ir.scalar import Read
from .conditions import Condition, condition, conjunction
from .index import divisions, linear
from .nodes import Do, Operand, Ref
from .sites import Lowered, Site


def ref(low: Lowered, site: Site, slot: int, lane: Mapping[str, Expr] | None = None, lanes: int = 1) -> Ref:
    """The element that one access of a leaf is, with the variables in `lane` replaced.

    Row and column of an array stay apart as a person would write them (``(32 * io + ii) * 1000 + k``), unless their sum has
    fewer divisions: a coalesced loop over a whole array is one flat index.
    """
    store, index = low.store(site.leaf, slot), low.index(site, slot, lane)
    affine = tuple(e for e in index if isinstance(e, Expr))
    if len(affine) < len(index) or store.slots or store.space != "global":
        return Ref(store, index, lanes=lanes, of_lane=low.other_lane(site, slot))
    others = (e for other in range(len(site.statement.accesses)) if other != slot for e in low.index(site, other, lane))
    used = {atom for e in others if isinstance(e, Expr) for atom, _ in e.terms}
    flat = low.offset(site, slot, lane)
    offset = one_division(linear(affine, store.shape) if flat is None else flat, site.ranges, used)
    if len(affine) < 2 or divisions((offset,)) < divisions(affine):
        return Ref(store, (offset,), True, lanes)
    return Ref(store, affine, lanes=lanes)


def operands(low: Lowered, site: Site) -> tuple[Operand, ...]:
    """What the statement reads."""
    return tuple(ref(low, site, slot) for slot in range(len(site.statement.reads)))


def copied_slot(site: Site) -> int:
    """Which access the statement copies, where it copies one."""
    value = site.statement.value
    assert isinstance(value, Read), "only reads are copied"
    return value.slot


def instance(low: Lowered, site: Site) -> Do:
    """The statement itself."""
    target = ref(low, site, len(site.statement.reads))
    return Do(site, target, operands(low, site), inside_conditions(site), ids=(site.leaf.id,))


def inside_conditions(site: Site, lane: Mapping[str, Expr] | None = None) -> tuple[Condition, ...]:
    """Where the statement's value is its expression and not its fill, over C variables."""
    found: list[Condition | None] = []
    for c in site.statement.inside:
        e = c.expr.substitute(site.at, site.ranges)
        found.append(condition(e.substitute(lane, site.ranges) if lane else e, c.equality, site.ranges))
    return conjunction(found)


def is_move(low: Lowered, site: Site) -> bool:
    """Whether the statement copies one element unchanged: no widening, no rounding."""
    s = site.statement
    return isinstance(s.value, Read) and s.update is None and (
        low.store(site.leaf, s.value.slot).dtype.name == low.store(site.leaf, len(s.reads)).dtype.name)
