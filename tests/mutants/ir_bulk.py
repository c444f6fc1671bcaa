"""Mutants of bulk copies in the IR: where a box comes from and goes, and on what and in which phase its bytes are counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from explorer.ir.swizzle import MODES
from explorer.kernel.nodes import Arrive, Await, Barrier, Begin, BulkCopy, If

from .ir import Body, Rule, with_nodes


def each_of(body: Body, *kinds: type) -> Iterator[tuple[int, Any]]:
    """The nodes of some kinds in a body, with their positions."""
    return ((n, node) for n, node in enumerate(body) if isinstance(node, kinds))


def _other_phase(body: Body) -> Iterator[Body]:
    for n, node in each_of(body, Await):
        yield with_nodes(body, n, replace(node, parity=-node.parity + 1))


def _other_mbarrier(body: Body) -> Iterator[Body]:
    for n, node in each_of(body, BulkCopy, Arrive, Await):
        yield with_nodes(body, n, replace(node, slot=node.slot + 1))


def _uncounted(body: Body) -> Iterator[Body]:
    """An arrival or a wait is left out, or comes twice."""
    for n, node in each_of(body, Arrive, Await):
        yield with_nodes(body, n)
        if isinstance(node, Arrive):
            yield with_nodes(body, n, node, node)


def _fewer_mbarriers(body: Body) -> Iterator[Body]:
    """One mbarrier less, and every number of one and of a phase as it then would be."""
    for n, node in each_of(body, Begin):
        yield with_nodes(body, n, replace(node, mbarriers=replace(node.mbarriers, count=node.mbarriers.count - 1)))
        yield with_nodes(body, n)
        yield with_nodes(body, n, node, node)


def _unready(body: Body) -> Iterator[Body]:
    """The barrier behind the one thread that makes the mbarriers ready."""
    for n, _ in each_of(body, Barrier):
        if n and _begins(body[n - 1]):
            yield with_nodes(body, n)


def _begins(node: Any) -> bool:
    return isinstance(node, Begin) or (isinstance(node, If) and any(map(_begins, node.body)))


def _every_thread(body: Body) -> Iterator[Body]:
    """Every thread copies, arrives, or makes the mbarriers ready."""
    for n, node in each_of(body, If):
        if any(isinstance(inner, (BulkCopy, Arrive, Begin)) for inner in node.body):
            yield with_nodes(body, n, *node.body)


def _next_coordinate(body: Body) -> Iterator[Body]:
    for n, node in each_of(body, BulkCopy):
        for axis, e in enumerate(node.first):
            yield with_nodes(body, n, replace(node, first=(*node.first[:axis], e + 1, *node.first[axis + 1 :])))


def _transposed(body: Body) -> Iterator[Body]:
    """The box, its coordinates, or both, in the other order."""
    for n, node in each_of(body, BulkCopy):
        box = replace(node.map, box=node.map.box[::-1])
        for first, m in ((node.first[::-1], node.map), (node.first, box), (node.first[::-1], box)):
            if (first, m.box) != (node.first, node.map.box):
                yield with_nodes(body, n, replace(node, first=first, map=m))


def _other_box(body: Body) -> Iterator[Body]:
    """A row less along a dimension, and so another number of bytes; or another swizzle than the array's."""
    for n, node in each_of(body, BulkCopy):
        for axis, extent in enumerate(node.map.box):
            if extent > 1:
                box = (*node.map.box[:axis], extent - 1, *node.map.box[axis + 1 :])
                yield with_nodes(body, n, replace(node, map=replace(node.map, box=box)))
        others = (m for m in (0, *MODES) if m != node.map.swizzle)
        yield from (with_nodes(body, n, replace(node, map=replace(node.map, swizzle=m))) for m in others)


def _other_place(body: Body) -> Iterator[Body]:
    for n, node in each_of(body, BulkCopy):
        for axis, e in enumerate(node.to.index):
            to = replace(node.to, index=(*node.to.index[:axis], e + 1, *node.to.index[axis + 1 :]))
            yield with_nodes(body, n, replace(node, to=to))
        yield with_nodes(body, n)


BULK: dict[str, Rule] = {
    "a wait is for another phase": _other_phase, "another mbarrier is used": _other_mbarrier,
    "an arrival or a wait is missing or comes twice": _uncounted, "mbarriers are made ready otherwise": _fewer_mbarriers,
    "mbarriers are used before they are ready": _unready, "every thread does what one should": _every_thread,
    "a coordinate is off by one": _next_coordinate, "a box is transposed": _transposed, "a box is another one": _other_box,
    "a box goes elsewhere, or is not copied": _other_place}
"""By name."""
