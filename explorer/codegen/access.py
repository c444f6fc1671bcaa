"""The C text of a leaf's accesses and of its value."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from ..ir.dtype import DTYPES
from ..ir.expr import Atom, Expr, Ranges
from ..ir.program import Indirect
from ..ir.scalar import Read, Scalar, type_of
from .guards import NEVER, Condition, condition, conjunction, guard_text
from .index import INT_MAX, horner, offset_text, subscripts, to_c
from .lower import Lowered, Site, Store
from .scalar import CONDITIONAL, PRIMARY, Text, cast, enclose, literal, narrow, value_text, widen


def element_text(store: Store, index: Sequence[Expr], ranges: Ranges, flat: Expr | None = None,
                 used: Collection[Atom] = ()) -> str:
    """The lvalue of one element: ``As[i][k]``, ``A[i * 1000 + k]``, ``total``.

    `flat` is its offset, where it is known apart; `used` are quotients and remainders that the text needs anyway.
    """
    if store.slots or store.space != "global":
        return store.name + subscripts(index, ranges)
    return f"{store.name}[{offset_text(index, store.shape, ranges, flat, used)}]"


def access_text(low: Lowered, site: Site, slot: int, read: Callable[[int], Text] | None = None,
                lane: Mapping[str, Expr] | None = None) -> str:
    """The lvalue of one access of a leaf, with the variables in `lane` replaced."""
    store, index = low.store(site.leaf, slot), low.index(site, slot, lane)
    affine = [e for e in index if isinstance(e, Expr)]
    if len(affine) == len(index):
        others = (e for other in range(len(site.statement.accesses)) if other != slot for e in low.index(site, other, lane))
        used = {atom for e in others if isinstance(e, Expr) for atom, _ in e.terms}
        return element_text(store, affine, site.ranges, low.offset(site, slot, lane), used)
    parts = [to_c(e, site.ranges) if isinstance(e, Expr) else indirect_text(low, site, e, read) for e in index]
    return f"{store.name}[{horner(parts, store.shape, store.array is not None and store.array.size > INT_MAX)}]"


def indirect_text(low: Lowered, site: Site, index: Indirect, read: Callable[[int], Text] | None = None) -> Text:
    """A data-dependent index as an integer."""
    types = low.dtypes(site)
    kind = type_of(index.value, types)
    text = value_of(low, site, index.value, read)
    return text if kind.kind == "int" else cast(text, DTYPES["i32"], kind)


def loaded_text(low: Lowered, site: Site, slot: int) -> str:
    """What one access reads: the element, the value of a sum that keeps more than that, or what another block hands over."""
    store = low.store(site.leaf, slot)
    return access_text(low, site, slot) + (".value()" if store.method else ".take()" if store.handed else "")


def read_text(low: Lowered, site: Site, slot: int) -> Text:
    """The value of one read, widened to its compute type."""
    return widen((loaded_text(low, site, slot), PRIMARY), low.store(site.leaf, slot).dtype)


def value_of(low: Lowered, site: Site, value: Scalar, read: Callable[[int], Text] | None = None) -> Text:
    """A scalar expression of the leaf's statement; `read` replaces the text of a read."""
    return value_text(value, low.dtypes(site), read or (lambda slot: read_text(low, site, slot)),
                      lambda e: to_c(e.substitute(site.at, site.ranges), site.ranges))


def inside_conditions(site: Site, lane: Mapping[str, Expr] | None = None) -> tuple[Condition, ...]:
    """Where the statement's value is its expression and not its fill, over C variables."""
    found = []
    for c in site.statement.inside:
        e = c.expr.substitute(site.at, site.ranges)
        found.append(condition(e.substitute(lane, site.ranges) if lane else e, c.equality, site.ranges))
    return conjunction(found)


def reader(low: Lowered, site: Site, element: Callable[[int], str] | None) -> Callable[[int], Text] | None:
    """Widened reads of what `element` names, or None for the ordinary ones."""
    return (lambda slot: widen((element(slot), PRIMARY), low.store(site.leaf, slot).dtype)) if element else None


def is_move(low: Lowered, site: Site) -> bool:
    """Whether the statement copies one element unchanged: no widening, no rounding."""
    s = site.statement
    return isinstance(s.value, Read) and s.update is None and (
        low.store(site.leaf, s.value.slot).dtype.name == low.store(site.leaf, len(s.reads)).dtype.name)


def stored_value(low: Lowered, site: Site, element: Callable[[int], str] | None = None) -> Text:
    """The right-hand side of a plain write, rounded to the target's type, with the fill where `inside` fails.

    `element` replaces the text of what a slot reads.
    """
    target = low.store(site.leaf, len(site.statement.reads)).dtype
    if is_move(low, site):
        assert isinstance(site.statement.value, Read)
        slot = site.statement.value.slot
        text: Text = element(slot) if element else loaded_text(low, site, slot), PRIMARY
    else:
        text = narrow(value_of(low, site, site.statement.value, reader(low, site, element)), target)
    return filled(site, text, narrow(literal(site.statement.fill, target), target), inside_conditions(site))


def filled(site: Site, text: Text, fill: Text, inside: Sequence[Condition]) -> Text:
    """``inside ? text : fill``."""
    if not inside:
        return text
    if inside == (NEVER,):
        return fill
    guard = guard_text(inside, site.around, enclosed=True)
    return f"{guard} ? {enclose(text, CONDITIONAL + 1)} : {enclose(fill, CONDITIONAL)}", CONDITIONAL
