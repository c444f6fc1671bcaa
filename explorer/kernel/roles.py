"""Roles in the text: what the producer's thread runs, and what the consumers do (:mod:`~explorer.poly.roles`).

The kernel IR has both in one body, in an order in which they may run; so it is compared with the plan, and so the interpreter
runs it.  What is printed are its two parts: the producer's has the bulk copies with their arrivals and acquires, and the loops
and conditions around them, the consumers' has everything else.

Before::

    for k in 0…64
        if (tx == 0): acquire; bulk A_s[…] = A[…]; arrive
        await; multiply; release

After::

    if (threadIdx.y == 2): if (threadIdx.x == 0): for k in 0…64: acquire; bulk A_s[…] = A[…]; arrive
    else: for k in 0…64: await; multiply; release
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from ..ir.expr import ZERO, var
from ..poly.roles import shares
from .conditions import Condition
from .nodes import Acquire, Arrive, Barrier, BulkCopy, Drain, For, If, Let, Node
from .sites import Lowered
from .traverse import children, exprs, map_exprs, walk

OF_PRODUCER = (BulkCopy, Arrive, Acquire, Drain)


@dataclass(frozen=True)
class Roles:
    """What the producer runs, and what the consumers do, at the same time.

    Attributes
    ----------
    producer, consumers : tuple of Node
    row : int
        The row of threads (along y) that the producer's warps are; consumers are those before it.
    threads : int
        Of the consumers, who meet in barriers of their own.
    given, taken : int
        Registers of a producer's and of a consumer's thread; 0 where all have as many.
    """

    producer: tuple[Node, ...]
    consumers: tuple[Node, ...]
    row: int
    threads: int
    given: int = 0
    taken: int = 0
    ids: tuple[str, ...] = ()


def apart(low: Lowered, body: Sequence[Node]) -> tuple[Node | Roles, ...]:
    """The body as it is printed: divided by roles, where the kernel has some, between what all threads do together."""
    if not low.kernel.has_roles:
        return tuple(body)
    begun = next(n for n, node in enumerate(body) if isinstance(node, Barrier)) + 1
    over = next((n for n in range(begun, len(body)) if isinstance(node := body[n], Barrier) and node.cluster == "end"), len(body))
    body, tail = body[:over], tuple(body[over:])
    first = {low.role_name[role]: ZERO for role in ("thread.x", "thread.y", "thread.z", "warp", "lane") if role in low.role_name}
    producer = _producer(tuple(map_exprs(node, lambda e: e.substitute(first)) for node in body[begun:]))
    rows, registers = low.block[1], low.kernel.registers
    given = shares(rows, registers, low.kernel.resident or 1)[1] if registers else 0
    row = Condition(var(low.role_name["thread.y"]), True)  # of the block's threads one row more is none of the plan's
    head = (replace(node, conditions=tuple(dict.fromkeys((*node.conditions, row)))) if isinstance(node, If) else node
            for node in body[:begun])
    return (*head, Roles(producer, _consumers(body[begun:]), rows, prod(low.block), given, registers, (low.kernel.id,)), *tail)


def _producer(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """What the producer's thread runs, in which it is the first thread of the block."""
    kept: list[Node] = []
    for node in reversed(nodes):
        if isinstance(node, Let):
            kept += [node] if any(node.name in e.variables() for x in walk(tuple(kept)) for e in exprs(x)) else []
        elif isinstance(node, If):
            body, left = _producer(node.body), tuple(c for c in node.conditions if not _holds(c))
            never = any(not c.variables() and not _holds(c) for c in left)
            kept += [] if never or not body else [replace(node, conditions=left, body=body, otherwise=())] if left else body[::-1]
            assert not _producer(node.otherwise), "who copies is no alternative"
        elif isinstance(node, For):
            body = _producer(node.body)
            kept += [replace(node, body=body)] if body else []
        elif isinstance(node, OF_PRODUCER):
            kept.append(node)
    return tuple(reversed(kept))


def _holds(c: Condition) -> bool:
    """Whether a condition is one that always holds."""
    return not c.variables() and (c.expr.const == 0 if c.equality else c.expr.const >= 0)


def _consumers(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Everything else."""
    kept: list[Node] = []
    for node in nodes:
        if isinstance(node, OF_PRODUCER):
            continue
        if isinstance(node, If):
            node = replace(node, body=_consumers(node.body), otherwise=_consumers(node.otherwise))
        elif isinstance(node, For):
            node = replace(node, body=_consumers(node.body))
        if not isinstance(node, (If, For)) or children(node):
            kept.append(node)
    return tuple(kept)
