"""The calls by which one thread asks for a box of an array, for its own block or for all blocks of a cluster, or stores one."""

from __future__ import annotations

from math import prod

from ..ir.expr import ZERO, Expr, Ranges
from ..ir.swizzle import offset
from ..poly.bulk import ALIGNMENT
from .nodes import BulkCopy, BulkStore, Ref
from .sites import Site
from .spelling import Speller


def box_call(spell: Speller, node: BulkCopy) -> str:
    """``bulk_copy_2d<64, 128>(&a_s[0], a_map, 64 * k, 0, arrived[k % 3])``."""
    ranges, mates, first, box = node.site.ranges, node.mates, node.first, [str(n) for n in reversed(node.map.box)]
    spell.library |= {"bulk_copy", *(["multicast"] if mates else [])}
    if mates:
        d, by = mates.dimension, node.map.box[mates.dimension] * node.map.steps[mates.dimension]
        first, box = (*first[:d], first[d] + mates.place * by, *first[d + 1:]), [*box, str(mates.apart), str(mates.count)]
    at = _coordinates(spell, first, ranges)
    slot = f"{node.counted.name}[{spell.expr(node.slot, ranges)[0]}]"
    name = f"{'multicast' if mates else 'bulk_copy'}_{len(at)}d"
    to = _place(spell, node.to, node.site, mates.place * prod(node.map.box) if mates else ZERO)
    return f"{name}<{', '.join(box)}>({', '.join((to, node.map.name, *at, slot))})"


def store_call(spell: Speller, node: BulkStore) -> str:
    """``bulk_store_2d(c_map, 64 * j, 128 * i, &c_s[0])``."""
    spell.library |= {"bulk_copy", "bulk_store"}
    at = _coordinates(spell, node.first, node.site.ranges)
    return f"bulk_store_{len(at)}d({', '.join((node.map.name, *at, _place(spell, node.source, node.site, ZERO)))})"


def _coordinates(spell: Speller, first: tuple[Expr, ...], ranges: Ranges) -> list[str]:
    """Of the first element, innermost first as the hardware takes them."""
    return [spell.expr(e, ranges)[0] for e in reversed(first)]


def _place(spell: Speller, first: Ref, site: Site, part: Expr) -> str:
    """Where the first element is in shared memory, as the hardware sees it: before the swizzle."""
    store, ranges = first.store, site.ranges
    spell.aligned[store.name] = ALIGNMENT
    if store.placed:
        index = [e for e in first.index if isinstance(e, Expr)]
        return f"&{store.name}[{spell.expr(offset(store.placed, index, ranges) + part, ranges)[0]}]"
    return f"&{spell.element(first, site)}{'' if part == ZERO else f' + {spell.expr(part, ranges)[0]}'}"
