"""Groups of asynchronous work: how many are closed before a point of the text, and how many are complete there.

A commit closes the group of the copies issued since the last one; ``wait(pending=n)`` returns when all but the `n`
youngest committed groups have landed (CUDA C++ Programming Guide, "Asynchronous Data Copies", and PTX
``cp.async.wait_group``).  A warpgroup's products that stay in flight are counted alike, each a group of its own (PTX,
``wgmma.wait_group``), and so are releases of slots by consumers for a producer (:mod:`~explorer.poly.roles`).  What closes
groups, and waits, runs unconditionally in loops with integer boxes, so

- the number of commits before a point of the text is an *affine* function of the loops around it: a loop contributes
  its variable times the commits in one of its iterations;
- the last run of a wait before a point is at the same iterations, or one back in one loop and at the end of the inner
  ones: a few alternatives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ..ir.expr import ZERO, Expr, Ranges, const, var
from ..ir.instructions import stays_in_flight
from ..ir.tree import Kernel, Leaf, Loop, Node, Sync, walk


@dataclass(frozen=True)
class Queue:
    """A kind of asynchronous work that completes group by group.

    Attributes
    ----------
    wait : str
        The kind of the synchronisations that wait for it.
    """

    wait: str

    def closes(self, node: Leaf | Sync) -> bool:
        """Whether a node closes a group."""
        if self == PRODUCTS:
            return isinstance(node, Leaf) and stays_in_flight(node.mechanism)
        if self == RELEASES:
            return isinstance(node, Sync) and node.kind == "release"
        return isinstance(node, Sync) and node.kind == "commit"


COPIES, PRODUCTS, RELEASES = Queue("wait"), Queue("wait_products"), Queue("acquire")


REMEMBERED = 2048
"""Answers about kernels that are kept; each pair of accesses asks for the same few."""


@dataclass(frozen=True)
class Landing:
    """One alternative for the last run of a wait before a read.

    Attributes
    ----------
    when : tuple of Expr
        The alternative exists where all of these are at least 0 (over the reader's loops).
    landed : Expr
        How many groups, the oldest ones, have landed.
    """

    when: tuple[Expr, ...]
    landed: Expr


@dataclass(frozen=True)
class Step:
    """A level of the way from a kernel to a node: the loop whose body it is (None: the kernel), and the child taken."""

    loop: Loop | None
    body: tuple[Node, ...]
    index: int


@lru_cache(maxsize=REMEMBERED)
def path_to(kernel: Kernel, node_id: str) -> tuple[Step, ...]:
    """The bodies from the kernel down to the node."""
    def search(loop: Loop | None, body: tuple[Node, ...]) -> tuple[Step, ...] | None:
        for index, node in enumerate(body):
            if node.id == node_id:
                return (Step(loop, body, index),)
            if isinstance(node, Loop) and (below := search(node, node.body)) is not None:
                return (Step(loop, body, index), *below)
        return None

    found = search(None, kernel.body)
    assert found is not None, node_id
    return found


@lru_cache(maxsize=REMEMBERED)
def closed_in(nodes: tuple[Node, ...], queue: Queue = COPIES) -> int:
    """Groups that one thread closes in these nodes; places, the loops of an instruction and launches are one iteration for it."""
    total = 0
    for node in nodes:
        if isinstance(node, Loop):
            turns = min(1, node.extent) if is_once(node) or node.role == "launch" else node.extent
            total += turns * closed_in(node.body, queue)
        elif queue.closes(node):
            total += 1
    return total


def closed_before(path: tuple[Step, ...], queue: Queue = COPIES) -> Expr:
    """How many groups are closed before the node at the end of the path, over the variables of the loops on it."""
    total = ZERO
    for step in path:
        loop = step.loop
        if loop is not None and not is_once(loop) and loop.role != "launch":
            total = total + (var(loop.id) - loop.start) * closed_in(loop.body, queue)
        total = total + closed_in(step.body[: step.index], queue)
    return total


def is_once(loop: Loop) -> bool:
    """Whether a thread runs the body once: a place, or a loop over the elements of one instruction."""
    return loop.is_place or loop.role == "tensor"


@lru_cache(maxsize=REMEMBERED)
def landings(kernel: Kernel, reader: str, queue: Queue = COPIES) -> tuple[Landing, ...]:
    """All alternatives for the last run of each wait before a leaf."""
    path = path_to(kernel, reader)
    waits = [node for node in walk(kernel.body) if isinstance(node, Sync) and node.kind == queue.wait]
    return tuple(run for wait in waits for run in _last_runs(path, path_to(kernel, wait.id), wait.pending, queue))


def may_be_open(kernel: Kernel, leaf: str, wait: str, queue: Queue) -> bool:
    """Whether a group that a leaf closes may still be open when threads come to a wait.

    Groups of earlier iterations are older: the last one before the wait is asked for, in the same iterations of the loops around
    both or one back in one of them, whether other waits have surely let it through.
    """
    own, at = path_to(kernel, leaf), path_to(kernel, wait)
    common = 0
    while common < min(len(own), len(at)) - 1 and own[common].index == at[common].index:
        common += 1
    group, found = closed_before(own, queue), landings(kernel, wait, queue)
    scope = {s.loop.id: (s.loop.start, s.loop.start + s.loop.extent - 1) for s in at if s.loop}
    ends = {s.loop.id: const(s.loop.start + s.loop.extent - 1) for s in own[common + 1:] if s.loop}
    if own[common].index < at[common].index and not _landed(group.substitute(ends), (), found, scope):
        return True
    for depth in range(common, 0, -1):
        loop = own[depth].loop
        assert loop is not None
        if not is_once(loop) and loop.role != "launch" and loop.extent > 1:
            back = {s.loop.id: const(s.loop.start + s.loop.extent - 1) for s in own[depth + 1:] if s.loop}
            last = group.substitute({**back, loop.id: var(loop.id) - 1})
            if not _landed(last, (var(loop.id) - loop.start - 1,), found, scope):
                return True
    return False


def _landed(group: Expr, when: tuple[Expr, ...], found: tuple[Landing, ...], scope: Ranges) -> bool:
    """Whether a landing is there wherever the group is, and covers it."""
    return any(set(w.when) <= set(when) and (w.landed - group).simplify(scope).interval(scope)[0] >= 1 for w in found)


def _last_runs(reader: tuple[Step, ...], wait: tuple[Step, ...], pending: int, queue: Queue) -> Iterator[Landing]:
    """The wait's runs: earlier in the same iterations, or one back in each common loop."""
    if any(s.loop is not None and s.loop.extent < 1 for s in wait):
        return
    common = 0
    while common < min(len(reader), len(wait)) - 1 and reader[common].index == wait[common].index:
        common += 1
    total = closed_before(wait, queue) - pending
    inner = {s.loop.id: const(s.loop.start + s.loop.extent - 1) for s in wait[common + 1:] if s.loop}
    if reader[common].index > wait[common].index:
        yield Landing((), total.substitute(inner))
    for depth in range(common, 0, -1):
        loop = wait[depth].loop
        assert loop is not None
        if loop.is_place or loop.role == "launch" or loop.extent < 2:
            continue
        ends = {s.loop.id: const(s.loop.start + s.loop.extent - 1) for s in wait[depth + 1:] if s.loop}
        landed = total.substitute({**ends, loop.id: var(loop.id) - 1})
        yield Landing((var(loop.id) - loop.start - 1,), landed)


