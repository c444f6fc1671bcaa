"""Mutants of roles in the IR: which slot is released and acquired, in which phase, by how many, and when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from explorer.kernel.nodes import Acquire, Await, Begin, BulkCopy, If, Release, WaitProducts

from .ir import Body, Rule, with_nodes
from .ir_bulk import each_of


def _other_phase(body: Body) -> Iterator[Body]:
    for n, node in each_of(body, Acquire):
        yield with_nodes(body, n, replace(node, parity=-node.parity + 1))


def _other_slot(body: Body) -> Iterator[Body]:
    for n, node in each_of(body, Acquire, Release):
        yield with_nodes(body, n, replace(node, slot=node.slot + 1))


def _uncounted(body: Body) -> Iterator[Body]:
    """Left out, or twice."""
    for n, node in each_of(body, Acquire, Release):
        yield with_nodes(body, n)
        if isinstance(node, Release):
            yield with_nodes(body, n, node, node)


def _other_count(body: Body) -> Iterator[Body]:
    for n, node in each_of(body, Begin):
        if node.mbarriers.arrivals > 1:
            for by in (-1, 1):
                yield with_nodes(body, n, replace(node, mbarriers=replace(node.mbarriers, arrivals=node.mbarriers.arrivals + by)))


def _too_late(body: Body) -> Iterator[Body]:
    """Acquired behind a copy."""
    for n, (first, second) in enumerate(pairwise(body)):
        if isinstance(first, Acquire) and isinstance(second, BulkCopy):
            yield (*body[:n], second, first, *body[n + 2 :])


def _too_early(body: Body) -> Iterator[Body]:
    """Released before the wait for products, or for copies."""
    for n, node in each_of(body, Release):
        for m, _ in each_of(body[:n], Await, WaitProducts):
            yield (*body[:m], node, *body[m:n], *body[n + 1 :])


def _by_all(body: Body) -> Iterator[Body]:
    """Every thread acquires, and asks for copies."""
    for n, node in each_of(body, If):
        if any(isinstance(inner, Acquire) for inner in node.body):
            yield with_nodes(body, n, *node.body)


SLOTS: dict[str, Rule] = {
    "a slot is acquired in another phase": _other_phase, "another slot is released or acquired": _other_slot,
    "a release or an acquire is missing or comes twice": _uncounted, "another number of warps completes a phase": _other_count,
    "a slot is acquired behind the copy": _too_late, "a slot is released before it has been read": _too_early,
    "every thread does what the producer should": _by_all}
"""By name."""
