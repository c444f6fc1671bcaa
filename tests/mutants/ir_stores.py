"""Mutants of bulk stores in the IR: a wait for their reads, a fence, a barrier, or a box that is not the judged one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from explorer.kernel.nodes import Barrier, BulkStore, Node, WaitStores
from explorer.kernel.traverse import walk

from .ir import Body, Rule, with_nodes
from .ir_pipelines import no_fence


def _has(node: Node, kind: type) -> bool:
    return any(isinstance(n, kind) for n in walk((node,)))


def _no_wait(body: Body) -> Iterator[Body]:
    for n, node in enumerate(body):
        if isinstance(node, WaitStores):
            yield with_nodes(body, n)


def _late_wait(body: Body) -> Iterator[Body]:
    for n, (first, second) in enumerate(pairwise(body)):
        if _has(first, WaitStores) and isinstance(second, Barrier):
            yield (*body[:n], second, first, *body[n + 2 :])


def _early_store(body: Body) -> Iterator[Body]:
    for n, (first, second) in enumerate(pairwise(body)):
        if isinstance(first, Barrier) and _has(second, BulkStore) and not _has(second, Barrier):
            yield (*body[:n], second, first, *body[n + 2 :])


def _another_box(body: Body) -> Iterator[Body]:
    for n, node in enumerate(body):
        if isinstance(node, BulkStore):
            yield with_nodes(body, n, replace(node, first=(*node.first[:-1], node.first[-1] + 8)))
            yield with_nodes(body, n, replace(node, first=(node.first[0] + 1, *node.first[1:])))


def _another_swizzle(body: Body) -> Iterator[Body]:
    for n, node in enumerate(body):
        if isinstance(node, BulkStore):
            yield with_nodes(body, n, replace(node, map=replace(node.map, swizzle=0 if node.map.swizzle else 128)))


def _no_store(body: Body) -> Iterator[Body]:
    for n, node in enumerate(body):
        if isinstance(node, BulkStore):
            yield with_nodes(body, n)


STORES: dict[str, Rule] = {
    "reads are not waited for": _no_wait,
    "reads are waited for behind the barrier": _late_wait,
    "a box is stored before threads meet": _early_store,
    "a fence is dropped": no_fence,
    "another box is stored": _another_box,
    "a box is stored with another swizzle": _another_swizzle,
    "a box is not stored": _no_store,
}
