"""The call by which one thread asks for a box of an array: for its own block, or a part of it for all blocks of a cluster."""

from __future__ import annotations

from math import prod

from ..ir.expr import ZERO, Expr
from ..ir.swizzle import offset
from ..poly.bulk import ALIGNMENT
from .nodes import BulkCopy
from .spelling import Speller


def box_call(spell: Speller, node: BulkCopy) -> str:
    """``bulk_copy_2d<64, 128>(&a_s[0], a_map, 64 * k, 0, arrived[k % 3])``."""
    ranges, mates, first, box = node.site.ranges, node.mates, node.first, [str(n) for n in reversed(node.map.box)]
    spell.library |= {"bulk_copy", *(["multicast"] if mates else [])}
    if mates:
        d, by = mates.dimension, node.map.box[mates.dimension] * node.map.steps[mates.dimension]
        first, box = (*first[:d], first[d] + mates.place * by, *first[d + 1:]), [*box, str(mates.apart), str(mates.count)]
    at = [spell.expr(e, ranges)[0] for e in reversed(first)]
    slot = f"{node.counted.name}[{spell.expr(node.slot, ranges)[0]}]"
    name = f"{'multicast' if mates else 'bulk_copy'}_{len(at)}d"
    return f"{name}<{', '.join(box)}>({', '.join((_place(spell, node), node.map.name, *at, slot))})"


def _place(spell: Speller, node: BulkCopy) -> str:
    """Where the first element goes that this block asks for, as the hardware sees it: before the swizzle."""
    store, ranges = node.to.store, node.site.ranges
    spell.aligned[store.name] = ALIGNMENT
    part = node.mates.place * prod(node.map.box) if node.mates else ZERO
    if store.placed:
        index = [e for e in node.to.index if isinstance(e, Expr)]
        return f"&{store.name}[{spell.expr(offset(store.placed, index, ranges) + part, ranges)[0]}]"
    return f"&{spell.element(node.to, node.site)}{'' if part == ZERO else f' + {spell.expr(part, ranges)[0]}'}"
