"""Mutants of products in flight in the IR: waits, what they let through, and the barrier behind them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from explorer.ir.expr import var
from explorer.kernel.conditions import Condition
from explorer.kernel.nodes import Barrier, If, Multiply, WaitProducts

from .ir import Body, Rule, with_nodes


def _one_more(body: Body) -> Iterator[Body]:
    for n, node in enumerate(body):
        if isinstance(node, WaitProducts):
            yield with_nodes(body, n, replace(node, pending=node.pending + 1))


def _no_wait(body: Body) -> Iterator[Body]:
    for n, node in enumerate(body):
        if isinstance(node, WaitProducts):
            yield with_nodes(body, n)


def _met_before(body: Body) -> Iterator[Body]:
    """Threads meet, and then each waits for its own products."""
    for n, (first, second) in enumerate(itertools.pairwise(body)):
        if isinstance(first, WaitProducts) and isinstance(second, Barrier):
            yield (*body[:n], second, first, *body[n + 2 :])


def _not_met(body: Body) -> Iterator[Body]:
    for n, (first, second) in enumerate(itertools.pairwise(body)):
        if isinstance(first, WaitProducts) and isinstance(second, Barrier):
            yield with_nodes(body, n + 1)


def _sooner(body: Body) -> Iterator[Body]:
    """The wait comes before the product of its step, and counts one too few."""
    for n, (first, second) in enumerate(itertools.pairwise(body)):
        if isinstance(first, Multiply) and isinstance(second, WaitProducts):
            yield (*body[:n], second, first, *body[n + 2 :])


def _sometimes(body: Body) -> Iterator[Body]:
    """A step has no product, so that the waits of others count another one."""
    for n, node in enumerate(body):
        if isinstance(node, Multiply):
            yield with_nodes(body, n, If((Condition(var("k") - 1, False),), (node,)))


PRODUCTS: dict[str, Rule] = {
    "a product more stays in flight": _one_more,
    "a wait for products is dropped": _no_wait,
    "threads meet before they wait": _met_before,
    "threads do not meet behind the wait": _not_met,
    "a wait comes before the product": _sooner,
    "a product is skipped": _sometimes,
}
"""Kinds of mutants, and all of each kind in a body."""
